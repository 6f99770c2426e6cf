//! Redis's protocol, without I/O.
//!
//! A [`Decoder`] takes the bytes that a client sends, in any pieces, and returns its requests. A
//! [`Reply`] writes itself as version 2 or 3 of the protocol ([`Protocol`]).
//!
//! ```text
//!   *2\r\n$3\r\nGET\r\n$1\r\na\r\n     a request: an array of strings
//!   GET a\r\n                          the same request as a line, for people
//!   $5\r\nhello\r\n                    a reply
//! ```
//!
//! A request is an array of strings, in version 3 too. Instead of a string, numbers and simple strings
//! are accepted, and mean their text. Errors are of two kinds. After one that leaves the end of the
//! request known, such as an argument that is too long, the client gets an error and the connection
//! continues ([`ProtocolError::is_fatal`] is false). After one that does not, such as a length that is
//! no number, the connection must be closed.
//!
//! Memory is bounded: the decoder keeps no more than the arguments of one request, within
//! [`Limits`], and the bytes that it was last given.

mod decode;
mod double;
mod error;
mod inline;
mod reply;
#[cfg(test)]
mod tests;

pub use decode::{Decoder, Limits};
pub use double::format_double;
pub use error::ProtocolError;
pub use reply::{Protocol, Reply};

/// Bytes of a client: an argument, or a string in a reply.
pub type Bytes = std::sync::Arc<[u8]>;
