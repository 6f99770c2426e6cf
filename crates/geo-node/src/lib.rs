//! The shell around the protocol core of Mingle's geo-replicated store: one process.
//!
//! A [`Node`] holds the partitions that one process has of one data center. It routes their messages,
//! ticks them, and groups their writes. It does no I/O itself: a driver gives it an [`Outside`], which
//! is a [`Journal`], a [`Transport`] and a [`Time`], and calls it when a frame has arrived, a tick is
//! due, or a sync has ended. A simulator and a server differ only in the driver.
//!
//! - Everything between processes is bytes: a message leaves as a [frame](Outgoing), and each record
//!   is an [entry](put_entry) of the journal, in a version of the core's [encoding](mingle_geo::wire).
//! - **The gate.** Records are appended to the journal at once, and synced in groups: while a sync is
//!   under way, the records that arrive wait for the next one. A message that rests on a record leaves
//!   after that record is synced, and not before ([`Persist::then`](mingle_geo::Persist)).
//! - A sync that failed leaves the contents of the journal unknown. So the driver drops the node, and
//!   [restores](Node::restore) another one from the entries that can be read.
//! - Partitions of one process send each other messages through a queue in memory.
//! - [`link`] is a connection between two processes: HELLO, frames, bounded queues, and which process is
//!   the right one.
//! - [`segment`] is the form of a journal as bytes, and the rule for damaged ones; [`folder`] is a journal
//!   of several segments in files. [`MemoryJournal`] is one in memory, which tears and loses entries
//!   that are not synced.

pub mod folder;
mod journal;
pub mod link;
mod memory;
mod node;
mod outside;
pub mod segment;

pub use journal::{EntryError, put_entry, take_entry};
pub use memory::{Kept, MemoryJournal};
pub use node::{CopyError, Copying, HOLD_MS, Limits, Node, OpenError, Outdated, Setup};
pub use outside::{Journal, Outgoing, Outside, Time, Transport};
