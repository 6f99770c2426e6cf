//! The encoding of messages, log records and the state in them.
//!
//! All bytes that leave a process, to a peer, a client or a disk, are written here in a version of
//! the encoding ([`VERSION`]).
//!
//! - [`Hello`] begins a connection: both ends name the [versions](Versions) that they read, and speak
//!   the highest common one.
//! - [`put_parcel`] writes a message with its source and destination, and needs no state at either
//!   end. [`Encoder`] writes messages between siblings as differences to earlier ones of the link.
//! - [`put_record`] writes a log record, which names its version itself.
//!
//! The form of a value follows from its type (`codec`). Variants are numbered in the order of
//! their declaration, so a new one goes to the end of its enumeration. The golden files pin all
//! numbers and bytes of a version.
//!
//! Some fields are reserved for several processes in one data center, and are 0 in version 1:
//! addresses name a process and its number of starts, and vectors that stand for several partitions
//! name the placement of the partitions and the partitions that they cover (`message/form.rs`).

mod hello;
mod link;
mod parcel;
mod record;
mod sessions;

#[cfg(test)]
mod tests;

pub use crate::codec::{VERSION, VERSIONS, Versions, WireError};
pub use hello::Hello;
pub use link::{Decoder, Encoder};
pub use parcel::{Parcel, put_message, put_parcel, take_message, take_parcels};
pub use record::{put_record, take_record};
