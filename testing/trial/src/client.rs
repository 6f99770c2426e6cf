//! A small client of Redis's protocol.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The maximum time to connect.
const CONNECT: Duration = Duration::from_secs(2);

/// The maximum number of bytes or elements of a reply.
const LENGTH_MAX: usize = 1 << 24;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A status, such as `OK`.
    Simple(String),
    /// An error, with its first word.
    Error(String),
    /// A number.
    Integer(i64),
    /// A text.
    Bulk(String),
    /// There is nothing.
    Null,
    /// Several replies.
    Array(Vec<Reply>),
}

impl Reply {
    /// Returns the number in it, if it is one.
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            Self::Bulk(text) => text.parse().ok(),
            Self::Null => Some(0),
            _ => None,
        }
    }

    /// Returns the value after a name in an array of pairs.
    pub fn field(&self, name: &str) -> Option<&Self> {
        let Self::Array(all) = self else { return None };
        let mut pairs = all.chunks_exact(2);
        let is_wanted = |pair: &&[Self]| matches!(&pair[0], Self::Bulk(found) if found == name);
        pairs.find(is_wanted).map(|pair| &pair[1])
    }

    /// True if it is an error that begins with this word.
    pub fn is_error(&self, word: &str) -> bool {
        matches!(self, Self::Error(text) if text.split(' ').next() == Some(word))
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simple(text) | Self::Error(text) | Self::Bulk(text) => f.write_str(text),
            Self::Integer(number) => number.fmt(f),
            Self::Null => f.write_str("nil"),
            Self::Array(all) => {
                let all: Vec<String> = all.iter().map(Self::to_string).collect();
                write!(f, "[{}]", all.join(", "))
            }
        }
    }
}

/// A connection.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    /// Connects; a reply that takes longer than `patience` is an error.
    pub fn connect(address: SocketAddr, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, CONNECT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends the words of a line as a request, and returns the reply.
    pub fn ask(&mut self, line: &str) -> io::Result<Reply> {
        let words: Vec<&str> = line.split(' ').collect();
        self.stream.get_mut().write_all(&request(&words))?;
        self.reply()
    }

    fn reply(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let malformed = || io::Error::new(ErrorKind::InvalidData, "this is no reply");
        let line = line.strip_suffix("\r\n").ok_or_else(malformed)?;
        let (Some(kind), Some(rest)) = (line.chars().next(), line.get(1..)) else {
            return Err(malformed());
        };
        let number = || rest.parse::<i64>().map_err(|_| malformed());
        match kind {
            '+' => Ok(Reply::Simple(rest.into())),
            '-' => Ok(Reply::Error(rest.into())),
            ':' => number().map(Reply::Integer),
            '$' | '*' if number()? < 0 => Ok(Reply::Null),
            '$' | '*' => {
                let length = usize::try_from(number()?).map_err(|_| malformed())?;
                if length > LENGTH_MAX {
                    return Err(malformed());
                }
                if kind == '*' {
                    return (0..length)
                        .map(|_| self.reply())
                        .collect::<io::Result<_>>()
                        .map(Reply::Array);
                }
                let mut bytes = vec![0; length + 2];
                self.stream.read_exact(&mut bytes)?;
                bytes.truncate(length);
                Ok(Reply::Bulk(String::from_utf8_lossy(&bytes).into_owned()))
            }
            _ => Err(malformed()),
        }
    }
}

/// Returns the bytes of a request.
pub fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn replies_of_each_kind_are_read() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut asked = [0; 14];
            stream.read_exact(&mut asked).expect("a request");
            assert_eq!(&asked, b"*1\r\n$4\r\nPING\r\n");
            let replies = b"*5\r\n+OK\r\n-ERR no\r\n:5\r\n$2\r\nab\r\n$-1\r\n";
            stream.write_all(replies).expect("the client reads");
            // A connection that is closed with a request to read is reset, and does not end.
            stream.read_exact(&mut asked).expect("a second request");
        });
        let mut client = Client::connect(address, Duration::from_secs(10)).expect("it accepts");
        let reply = client.ask("PING").expect("a reply");
        assert_eq!(reply.to_string(), "[OK, ERR no, 5, ab, nil]");
        let Reply::Array(all) = &reply else { panic!("{reply}") };
        assert!(all[1].is_error("ERR") && !all[0].is_error("ERR"));
        assert_eq!([all[2].number(), all[3].number(), all[4].number()], [Some(5), None, Some(0)]);
        assert_eq!(client.ask("PING").expect_err("it is closed").kind(), ErrorKind::UnexpectedEof);
        server.join().expect("it ends");
    }

    #[test]
    fn a_field_is_found_by_its_name() {
        let text = |text: &str| Reply::Bulk(text.into());
        let pairs = Reply::Array(vec![text("name"), text("d1"), text("d1"), Reply::Integer(3)]);
        assert_eq!(pairs.field("d1"), Some(&Reply::Integer(3)));
        assert_eq!(pairs.field("d2"), None);
    }
}
