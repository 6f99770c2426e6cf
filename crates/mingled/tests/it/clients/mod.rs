//! Clients of Redis, over sockets.

mod access;
mod backup;
mod centers;
mod concurrent;
mod configured;
mod differential;
mod drain;
mod encrypted;
mod hostile;
mod libraries;
mod library;
mod program;
mod protocol;
mod serving;
mod sessions;
mod slow;
mod status;
mod table;
pub mod tls;
mod transactions;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use mingle_geo::DcId;
use mingled::process::{Process, Settings};
use mingled::server::{self, Server};
use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;

/// The time after which a reply that must come is missed.
const PATIENCE: Duration = Duration::from_mins(1);

/// Returns the seed; `MINGLE_SEED` overrides it.
fn seed() -> u64 {
    let Ok(text) = std::env::var("MINGLE_SEED") else { return 1 };
    text.parse().unwrap_or_else(|_| panic!("MINGLE_SEED: expected a number, found {text:?}"))
}

/// A single data center within this process.
struct Started {
    server: Option<Server>,
    _folder: tempfile::TempDir,
}

impl Started {
    fn new() -> Self {
        Self::with(|_| {})
    }

    /// Starts with changed settings.
    fn with(change: impl FnOnce(&mut server::Settings)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = Settings {
            is_founding: true,
            strong_only: vec![b"strong-*".to_vec(), b"?*:lock".to_vec()],
            ..Settings::new(folder.path().join("data"), 7, DcId(0), 1)
        };
        let mut clients = server::Settings::new(&settings);
        change(&mut clients);
        let listener = || TcpListener::bind("127.0.0.1:0").expect("a free port");
        let process = Process::start(settings, listener()).expect("it starts");
        let server = Server::start(clients, Arc::new(process), listener()).expect("it starts");
        Self { server: Some(server), _folder: folder }
    }

    fn address(&self) -> SocketAddr {
        self.server.as_ref().expect("it runs").address()
    }

    fn client(&self) -> Raw {
        Raw::connect(self.address())
    }

    fn stop(&mut self) {
        self.server.take().expect("it runs").stop();
    }
}

/// A client that sends and receives bytes.
pub struct Raw {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Raw {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server accepts");
        stream.set_nodelay(true).expect("it is connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("it is connected");
        Self { stream, received: Vec::new() }
    }

    fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("the server reads");
    }

    /// Returns the next reply; `None` at the end of the connection.
    fn next(&mut self) -> Option<OwnedFrame> {
        loop {
            if let Some((frame, length)) = decode(&self.received).expect("a reply") {
                self.received.drain(..length);
                return Some(frame);
            }
            let mut buffer = [0; 16 << 10];
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no reply after {:?}: {error}", self.received),
            }
        }
    }

    fn reply(&mut self) -> OwnedFrame {
        self.next().expect("the connection is open")
    }

    /// Sends a request as an array, and returns the reply.
    fn call<S: AsRef<[u8]>>(&mut self, words: &[S]) -> OwnedFrame {
        self.post(words);
        self.reply()
    }

    /// Sends a request as an array.
    fn post<S: AsRef<[u8]>>(&mut self, words: &[S]) {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            let word = word.as_ref();
            request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        self.send(request);
    }

    /// Sends a request as a line, and returns the reply in short form.
    pub fn ask(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n"));
        shown(&self.reply())
    }

    /// Sends bytes, and returns the next bytes of the reply.
    fn exactly(&mut self, request: &str, length: usize) -> String {
        self.send(request);
        let mut reply = std::mem::take(&mut self.received);
        let taken = reply.len().min(length);
        self.received = reply.split_off(taken);
        reply.resize(length, 0);
        self.stream.read_exact(&mut reply[taken..]).expect("a reply");
        String::from_utf8(reply).expect("a text")
    }

    /// Checks the replies to lines of the form `REQUEST => REPLY`.
    pub fn expect(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (request, expected) = line.split_once(" => ").expect("a request and a reply");
            let found = self.ask(request.trim());
            assert_eq!(found.trim_end(), expected.trim(), "{request}");
        }
    }
}

/// Shows a reply: `+OK`, `-ERR …`, `:5`, `"text"`, `nil`, `[…]`.
fn shown(frame: &OwnedFrame) -> String {
    match frame {
        OwnedFrame::SimpleString(text) => format!("+{}", text.escape_ascii()),
        OwnedFrame::Error(text) => format!("-{text}"),
        OwnedFrame::Integer(number) => format!(":{number}"),
        OwnedFrame::BulkString(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        OwnedFrame::Array(frames) => {
            format!("[{}]", frames.iter().map(shown).collect::<Vec<_>>().join(", "))
        }
        OwnedFrame::Null => "nil".into(),
    }
}
