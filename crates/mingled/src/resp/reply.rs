//! Replies.

use super::Bytes;
use super::double::format_double;

/// The version of the protocol in which a client wants its replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// The version of a connection that has not asked for another one.
    #[default]
    Two,
    /// The version with maps, sets, doubles, booleans and one null.
    Three,
}

/// A reply.
///
/// # Examples
///
/// ```
/// use mingled::resp::{Protocol, Reply};
///
/// let reply = Reply::Array(vec![Reply::Integer(5), Reply::Null, Reply::text("ab")]);
/// assert_eq!(reply.encoded(Protocol::Two), b"*3\r\n:5\r\n$-1\r\n$2\r\nab\r\n");
/// assert_eq!(reply.encoded(Protocol::Three), b"*3\r\n:5\r\n_\r\n$2\r\nab\r\n");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A fixed word, such as `OK`.
    Simple(&'static str),
    /// An error; it begins with a word in capital letters.
    Error(String),
    /// A number.
    Integer(i64),
    /// A string.
    Bulk(Bytes),
    /// No value.
    Null,
    /// No array; in version 3 it is [`Null`](Self::Null).
    NullArray,
    /// A list of replies.
    Array(Vec<Reply>),
    /// Pairs; in version 2 an array of keys and values in turn.
    Map(Vec<(Reply, Reply)>),
    /// Distinct replies; in version 2 an array.
    Set(Vec<Reply>),
    /// A floating-point number; in version 2 a string.
    Double(f64),
    /// A truth value; in version 2 the number 0 or 1.
    Boolean(bool),
    /// A text for people; in version 2 a string.
    Verbatim(String),
}

impl Reply {
    /// The reply `OK`.
    pub const OK: Self = Self::Simple("OK");

    /// Returns a string.
    pub fn text(text: impl AsRef<str>) -> Self {
        Self::Bulk(text.as_ref().as_bytes().into())
    }

    /// Returns a number of elements.
    pub fn count(count: usize) -> Self {
        Self::Integer(count as i64)
    }

    /// Returns an array.
    pub fn array(replies: impl IntoIterator<Item = Self>) -> Self {
        Self::Array(replies.into_iter().collect())
    }

    /// Returns the bytes of the reply.
    pub fn encoded(&self, protocol: Protocol) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.put(protocol, &mut bytes);
        bytes
    }

    /// Writes the reply at the end of these bytes.
    pub fn put(&self, protocol: Protocol, out: &mut Vec<u8>) {
        let is_new = protocol == Protocol::Three;
        match self {
            Self::Simple(text) => put_line(out, b'+', text.as_bytes()),
            Self::Error(text) => put_line(out, b'-', text.as_bytes()),
            Self::Integer(number) => put_line(out, b':', number.to_string().as_bytes()),
            Self::Bulk(bytes) => put_string(out, bytes),
            Self::Null if is_new => out.extend_from_slice(b"_\r\n"),
            Self::Null => out.extend_from_slice(b"$-1\r\n"),
            Self::NullArray if is_new => out.extend_from_slice(b"_\r\n"),
            Self::NullArray => out.extend_from_slice(b"*-1\r\n"),
            Self::Array(replies) => put_all(replies, b'*', protocol, out),
            Self::Set(replies) => {
                put_all(replies, if is_new { b'~' } else { b'*' }, protocol, out);
            }
            Self::Map(pairs) => {
                let (mark, count) = if is_new { (b'%', 1) } else { (b'*', 2) };
                put_line(out, mark, (pairs.len() * count).to_string().as_bytes());
                for (key, value) in pairs {
                    key.put(protocol, out);
                    value.put(protocol, out);
                }
            }
            Self::Double(number) if is_new => {
                put_line(out, b',', format_double(*number).as_bytes());
            }
            Self::Double(number) => put_string(out, format_double(*number).as_bytes()),
            Self::Boolean(is_true) if is_new => {
                put_line(out, b'#', if *is_true { b"t" } else { b"f" });
            }
            Self::Boolean(is_true) => put_line(out, b':', if *is_true { b"1" } else { b"0" }),
            Self::Verbatim(text) if is_new => {
                put_line(out, b'=', (text.len() + 4).to_string().as_bytes());
                out.extend_from_slice(b"txt:");
                out.extend_from_slice(text.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
            Self::Verbatim(text) => put_string(out, text.as_bytes()),
        }
    }
}

/// Writes a line. The text of an error may quote a client's bytes, so ends of lines become spaces.
fn put_line(out: &mut Vec<u8>, mark: u8, text: &[u8]) {
    out.push(mark);
    out.extend(text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
    out.extend_from_slice(b"\r\n");
}

fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    put_line(out, b'$', bytes.len().to_string().as_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn put_all(replies: &[Reply], mark: u8, protocol: Protocol, out: &mut Vec<u8>) {
    put_line(out, mark, replies.len().to_string().as_bytes());
    for reply in replies {
        reply.put(protocol, out);
    }
}
