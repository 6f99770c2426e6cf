//! HTTP requests to a collector, each over a connection of its own. Requests are few, and sent by threads that
//! may block, so neither an asynchronous client nor a pool is needed.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// The time for each of connecting, sending and the answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The number of bytes of an answer that are read: its status line.
const ANSWER_BYTES_MAX: u64 = 256;

/// The address of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    host: String,
    port: u16,
    path: String,
}

impl Endpoint {
    /// Parses `http://HOST:PORT/PATH`; the port is 80 if there is none.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let fail =
            || format!("the collector's endpoint has the form http://HOST:PORT; found {text:?}");
        let rest = text.strip_prefix("http://").ok_or_else(fail)?;
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '@');
        if authority.is_empty() || !rest.chars().all(is_plain) {
            return Err(fail());
        }
        let after_host = authority.rfind(']').map_or(0, |at| at + 1);
        let (host, port) = match authority[after_host..].find(':') {
            Some(at) => {
                let port = authority[after_host + at + 1..].parse().map_err(|_| fail())?;
                (&authority[..after_host + at], port)
            }
            None => (authority, 80),
        };
        if host.is_empty() {
            return Err(fail());
        }
        let path = path.trim_end_matches('/').to_owned();
        Ok(Self { host: host.to_owned(), port, path })
    }

    /// Sends a body; the error says what went wrong.
    pub(super) fn post(&self, path: &str, body: &[u8]) -> Result<(), String> {
        let Self { host, port, path: prefix } = self;
        let fail = |error: std::io::Error| format!("{host}:{port}: {error}");
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let mut failed = format!("{host}:{port}: the name has no address");
        let mut stream = None;
        for address in (bare, *port).to_socket_addrs().map_err(fail)? {
            match TcpStream::connect_timeout(&address, TIMEOUT) {
                Ok(connected) => {
                    stream = Some(connected);
                    break;
                }
                Err(error) => failed = fail(error),
            }
        }
        let mut stream = stream.ok_or(failed)?;
        stream.set_write_timeout(Some(TIMEOUT)).map_err(fail)?;
        stream.set_read_timeout(Some(TIMEOUT)).map_err(fail)?;
        let head = format!(
            "POST {prefix}{path} HTTP/1.1\r\nhost: {host}:{port}\r\n\
             content-type: application/x-protobuf\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).map_err(fail)?;
        stream.write_all(body).map_err(fail)?;
        let mut answer = Vec::new();
        let read = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        let line = text.lines().next().unwrap_or_default();
        match line.split_whitespace().nth(1) {
            Some(status) if status.len() == 3 && status.starts_with('2') => Ok(()),
            Some(_) => Err(format!("{host}:{port}{prefix}{path} answers {line:?}")),
            None => match read {
                Err(error) => Err(fail(error)),
                Ok(_) => Err(format!("{host}:{port} closes the connection without an answer")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_a_host_and_perhaps_a_port_and_a_path() {
        let parsed = |text| Endpoint::parse(text).map(|it| (it.host, it.port, it.path));
        let of = |host: &str, port, path: &str| Ok((host.to_owned(), port, path.to_owned()));
        assert_eq!(parsed("http://localhost:4318"), of("localhost", 4318, ""));
        assert_eq!(parsed("http://localhost:4318/"), of("localhost", 4318, ""));
        assert_eq!(parsed("http://collector"), of("collector", 80, ""));
        assert_eq!(parsed("http://[::1]:4318/otlp/"), of("[::1]", 4318, "/otlp"));
        for wrong in [
            "",
            "localhost:4318",
            "https://localhost:4318",
            "http://",
            "http://:4318",
            "http://a:b",
            "http://a:99999",
            "http://a/b c",
            "http://a\r\nx",
            "http://me@a",
        ] {
            let error = Endpoint::parse(wrong).expect_err(wrong);
            assert!(error.contains("http://HOST:PORT") && error.contains("found"), "{error}");
        }
    }
}
