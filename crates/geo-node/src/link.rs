//! Connections between processes, without I/O.
//!
//! A driver moves bytes between a [`Connection`] and a byte stream that keeps their order (TCP). One
//! connection stands between two processes; [`Peers`] decides which one that is, and which process is
//! the right one.
//!
//! ```text
//!   dialer                              acceptor
//!     HELLO ──────────────────────────►   is it the right cluster, version, clock, process?
//!     is it?  ◄──────────────────────── HELLO, or REFUSED with the reason
//!     messages, pings ◄───────────────► messages, pings
//! ```
//!
//! - A frame has at most [`FRAME_BYTES_MAX`] bytes. A longer message is split, and put together at the
//!   other end, up to [`Settings::message_bytes_max`]: the core bounds neither the end of a state
//!   transfer nor the base of a group by 1 MiB. Parts of several messages are not mixed, so a
//!   message waits for the parts of the one before it.
//! - A frame carries the number of the connection, which both ends draw together, and a sequence
//!   number. A frame of another connection, and so of an earlier start, or one that has been
//!   taken before is dropped and [counted](Connection::replayed). A gap closes the connection.
//! - The queue of a connection is bounded. A process that sends more closes the connection; it connects
//!   anew, and the core repeats what is needed ([`Node::reconnected`](crate::Node::reconnected)).
//! - A connection on which nothing was heard for [`Settings::silent_ms`] is closed; the ends send pings.

mod connection;
mod frame;
mod peers;
mod refusal;

#[cfg(test)]
mod tests;

pub use connection::{Closed, Connection, Event, Settings};
pub use frame::FRAME_BYTES_MAX;
pub use peers::Peers;
pub use refusal::{Code, Refused};
