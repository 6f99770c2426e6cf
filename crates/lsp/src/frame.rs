//! Frames: `Content-Length: N`, an empty line, and `N` bytes.

use std::io::{self, BufRead, Read, Write};

/// The maximum length of a message body, in bytes.
pub const BODY_BYTES_MAX: usize = 1 << 30;

/// The maximum length of a header line, in bytes.
const HEADER_BYTES_MAX: u64 = 4_096;

/// Reads the body of the next message; none at the end of the stream.
///
/// # Errors
///
/// When the stream fails or ends within a message, and when a header is invalid: the start of the
/// body is then unknown.
///
/// # Examples
///
/// ```
/// let mut stream = &b"Content-Length: 2\r\n\r\n{}"[..];
/// assert_eq!(mingle_lsp::frame::read(&mut stream).unwrap().as_deref(), Some(&b"{}"[..]));
/// assert_eq!(mingle_lsp::frame::read(&mut stream).unwrap(), None);
/// ```
pub fn read(stream: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut length = None;
    let mut is_first = true;
    loop {
        let mut line = Vec::new();
        stream.by_ref().take(HEADER_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.is_empty() && is_first {
            return Ok(None);
        }
        is_first = false;
        let Some(line) = line.strip_suffix(b"\n") else {
            return Err(bad("a header line without an end".into()));
        };
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned();
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(bad(format!(
                "expected a header like `Content-Length: 12`, found `{line}`"
            )));
        };
        if name.trim().eq_ignore_ascii_case("content-length") {
            length = Some(parse_length(value.trim())?);
        }
    }
    let length = length.ok_or_else(|| bad("a message without `Content-Length`".into()))?;
    let mut body = Vec::new();
    stream.by_ref().take(length as u64).read_to_end(&mut body)?;
    if body.len() < length {
        let found = body.len();
        return Err(bad(format!("the stream ends after {found} of a message's {length} bytes")));
    }
    Ok(Some(body))
}

fn parse_length(value: &str) -> io::Result<usize> {
    let length = value.parse().ok().filter(|length| *length <= BODY_BYTES_MAX);
    length.ok_or_else(|| {
        bad(format!("`Content-Length` is a number up to {BODY_BYTES_MAX}, found `{value}`"))
    })
}

fn bad(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Writes a message.
///
/// # Errors
///
/// When the stream fails.
pub fn write(stream: &mut impl Write, message: &serde_json::Value) -> io::Result<()> {
    let body = message.to_string();
    write!(stream, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    stream.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(stream: &[u8]) -> String {
        read(&mut &*stream).expect_err("it is no message").to_string()
    }

    #[test]
    fn messages_are_read_one_after_the_other() {
        let mut stream = Vec::new();
        write(&mut stream, &serde_json::json!("é")).unwrap();
        stream.extend(b"Content-Type: x\r\ncontent-length:1\r\n\r\n1");
        let mut stream = &*stream;
        assert_eq!(read(&mut stream).unwrap().as_deref(), Some("\"é\"".as_bytes()));
        assert_eq!(read(&mut stream).unwrap().as_deref(), Some(&b"1"[..]));
        assert_eq!(read(&mut stream).unwrap(), None);
    }

    #[test]
    fn what_is_no_message_is_named() {
        assert!(error(b"{}\r\n\r\n").contains("found `{}`"));
        assert!(error(b"Content-Length: -1\r\n\r\n").contains("found `-1`"));
        assert!(error(b"Content-Length: 9999999999\r\n\r\n").contains("9999999999"));
        assert!(error(b"Content-Length: 5\r\n\r\n{}").contains("after 2 of a message's 5 bytes"));
        assert!(error(b"Content-Type: x\r\n\r\n").contains("without `Content-Length`"));
        assert!(error(b"Content-Length: 5").contains("without an end"));
        assert!(error(&[b'x'; 10_000]).contains("without an end"));
    }
}
