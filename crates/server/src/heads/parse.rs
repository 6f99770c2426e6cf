//! The parser of one head.

use axum::http::Uri;
use httparse::Status;

use super::host::Host;
use crate::limits::{HEADER_NAME_BYTES_MAX, HEADERS_MAX, TARGET_BYTES_MAX};
use crate::problem::{Code, Problem};

/// A complete head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Its length in bytes.
    pub(super) len: usize,
    /// The framing of the body that follows.
    pub(super) body: Framing,
}

/// The way in which the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// By its length.
    Sized(u64),
    /// By a last chunk.
    Chunked,
}

/// Parses the head at the start of `bytes`; returns none if the head is not complete yet.
///
/// # Errors
///
/// The answer to a request with a wrong head.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<Head>, Problem> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let len = match request.parse(bytes).map_err(malformed)? {
        Status::Partial => return Ok(None),
        Status::Complete(len) => len,
    };
    let target = request.path.unwrap_or_default();
    if target.len() > TARGET_BYTES_MAX {
        let detail = format!("the target of a request has at most {TARGET_BYTES_MAX} bytes");
        return Err(Problem::new(Code::HeadTooLarge, detail).closing());
    }
    let target: Uri = target.parse().map_err(|_| wrong("the target of the request is no URI"))?;
    let is_old = request.version == Some(0);
    check_host(request.headers, &target, is_old)?;
    let body = framing(request.headers, is_old)?;
    Ok(Some(Head { len, body }))
}

/// Returns the problem for a request that is not valid HTTP.
pub(super) fn wrong(detail: &str) -> Problem {
    Problem::new(Code::BadRequest, detail).closing()
}

fn malformed(error: httparse::Error) -> Problem {
    let detail = match error {
        httparse::Error::TooManyHeaders => {
            let detail = format!("a request has at most {HEADERS_MAX} headers");
            return Problem::new(Code::HeadTooLarge, detail).closing();
        }
        httparse::Error::HeaderName => "the name of a header is malformed",
        httparse::Error::HeaderValue => "the value of a header is malformed",
        httparse::Error::NewLine => "a line of the head does not end as it should",
        httparse::Error::Version => "expected HTTP/1.1 or HTTP/1.0",
        httparse::Error::Token | httparse::Error::Status => {
            "expected METHOD TARGET HTTP/1.1 as the first line"
        }
    };
    wrong(detail)
}

/// Checks that a request of HTTP/1.1 names its host exactly once; an older request may name none.
fn check_host(
    headers: &[httparse::Header<'_>],
    target: &Uri,
    may_lack: bool,
) -> Result<(), Problem> {
    if headers.iter().any(|header| header.name.len() > HEADER_NAME_BYTES_MAX) {
        let detail = format!("the name of a header has at most {HEADER_NAME_BYTES_MAX} bytes");
        return Err(Problem::new(Code::HeadTooLarge, detail).closing());
    }
    let invalid = |detail: &str| Err(Problem::new(Code::InvalidHost, detail).closing());
    let mut hosts = headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
    let Some(host) = hosts.next() else {
        return if may_lack { Ok(()) } else { invalid("the request has no Host header") };
    };
    if hosts.next().is_some() {
        return invalid("the request has several Host headers");
    }
    let Some(host) =
        std::str::from_utf8(host.value).ok().filter(|host| Host::parse(host).is_some())
    else {
        return invalid("the Host header is no HOST or HOST:PORT");
    };
    match target.authority() {
        Some(authority) if !authority.as_str().eq_ignore_ascii_case(host) => {
            invalid("the target of the request and its Host header name different hosts")
        }
        _ => Ok(()),
    }
}

/// Returns the framing of the body (RFC 9112, section 6.3). A body that could be read in two ways
/// is refused.
fn framing(headers: &[httparse::Header<'_>], is_old: bool) -> Result<Framing, Problem> {
    let named = |name: &'static str| {
        let headers = headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
        headers.map(|header| header.value.trim_ascii())
    };
    let mut encodings = named("transfer-encoding");
    let mut lengths = named("content-length");
    let length = lengths.next();
    if let Some(encoding) = encodings.next() {
        let is_chunked = encoding.eq_ignore_ascii_case(b"chunked") && encodings.next().is_none();
        if !is_chunked || is_old || length.is_some() {
            let detail = "expected Transfer-Encoding: chunked alone, without Content-Length";
            return Err(wrong(detail));
        }
        return Ok(Framing::Chunked);
    }
    let Some(length) = length else { return Ok(Framing::Sized(0)) };
    let digits = std::str::from_utf8(length).ok();
    let digits = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let parsed = digits.and_then(|text| text.parse::<u64>().ok());
    // hyper gives the two largest numbers a special meaning.
    match parsed.filter(|length| *length < u64::MAX - 1) {
        Some(parsed) if lengths.all(|other| other == length) => Ok(Framing::Sized(parsed)),
        _ => Err(wrong("expected one Content-Length, a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &str, expected: Result<Option<Framing>, (Code, &str)>) {
        let found = parse(head.as_bytes());
        match (&found, expected) {
            (Ok(found), Ok(expected)) => {
                assert_eq!(found.map(|head| head.body), expected, "{head}");
            }
            (Err(problem), Err((code, words))) => {
                let detail = problem.to_json()["detail"].to_string();
                assert!(problem.code() == code && detail.contains(words), "{head}: {problem:?}");
            }
            _ => panic!("{head}: {found:?}"),
        }
    }

    #[test]
    fn heads_are_framed_or_refused() {
        let get = |rest: &str| format!("GET / HTTP/1.1\r\nhost: a\r\n{rest}\r\n");
        check(&get(""), Ok(Some(Framing::Sized(0))));
        check("\r\nGET / HTTP/1.1\nhost: a:80\n\n", Ok(Some(Framing::Sized(0))));
        check("GET / HTTP/1.1\r\nhost", Ok(None));
        check(&get("content-length: 7\r\nContent-Length: 7\r\n"), Ok(Some(Framing::Sized(7))));
        check(&get("transfer-encoding: Chunked\r\n"), Ok(Some(Framing::Chunked)));
        check("GET / HTTP/1.0\r\n\r\n", Ok(Some(Framing::Sized(0))));
        check("GET http://a/x HTTP/1.1\r\nhost: A\r\n\r\n", Ok(Some(Framing::Sized(0))));
        for (rest, words) in [
            ("content-length: 7\r\ncontent-length: 8\r\n", "one Content-Length"),
            ("content-length: +7\r\n", "one Content-Length"),
            ("content-length: 18446744073709551615\r\n", "one Content-Length"),
            ("transfer-encoding: gzip, chunked\r\n", "chunked alone"),
            ("transfer-encoding: chunked\r\ncontent-length: 7\r\n", "chunked alone"),
            ("a b: c\r\n", "name of a header"),
            ("a: \x01\r\n", "value of a header"),
        ] {
            check(&get(rest), Err((Code::BadRequest, words)));
        }
        for (head, words) in [
            ("GET / HTTP/1.1\r\n\r\n", "no Host"),
            ("GET / HTTP/1.1\r\nhost: a\r\nHost: a\r\n\r\n", "several Host"),
            ("GET / HTTP/1.1\r\nhost: a:x\r\n\r\n", "no HOST or HOST:PORT"),
            ("GET / HTTP/1.1\r\nhost:\r\n\r\n", "no HOST or HOST:PORT"),
            ("GET http://b/ HTTP/1.1\r\nhost: a\r\n\r\n", "different hosts"),
        ] {
            check(head, Err((Code::InvalidHost, words)));
        }
        check("GET / HTTP/9.9\r\n", Err((Code::BadRequest, "HTTP/1.1")));
        check("\x16\x03\x01", Err((Code::BadRequest, "first line")));
        let many = get(&"a: b\r\n".repeat(HEADERS_MAX));
        check(&many, Err((Code::HeadTooLarge, "at most 100 headers")));
        let long = format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", "a".repeat(TARGET_BYTES_MAX));
        check(&long, Err((Code::HeadTooLarge, "target")));
    }
}
