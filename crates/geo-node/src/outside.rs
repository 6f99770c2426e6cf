//! The interfaces that a driver implements.

use mingle_geo::{Address, Now};

/// The log of one process.
pub trait Journal {
    /// Appends an entry. It is safe after the end of a sync that began later.
    fn append(&mut self, entry: &[u8]);

    /// Begins to make all appended entries safe. The driver reports the end with
    /// [`Node::synced`](crate::Node::synced); until then no other sync begins.
    fn sync(&mut self);

    /// Returns the number of entries.
    fn length(&self) -> usize;

    /// Replaces all entries, which are safe, by these. A crash leaves the old entries or the new
    /// ones.
    fn replace(&mut self, entries: Vec<Vec<u8>>);
}

/// A message on its way to another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The destination, which the frame names too.
    pub to: Address,
    /// True if the message needs a connection that keeps the order and reports its loss
    /// ([`Node::reconnected`](crate::Node::reconnected)). Others may be lost, repeated and reordered.
    pub is_ordered: bool,
    /// The message with its source and destination, in the highest version of the encoding that both
    /// ends know; a receiver takes it with [`take_parcels`](mingle_geo::wire::take_parcels).
    pub frame: Vec<u8>,
}

/// The connections to other processes.
pub trait Transport {
    /// Sends a message.
    fn send(&mut self, outgoing: Outgoing);
}

/// The clocks of the machine.
pub trait Time {
    /// Returns the current time.
    fn now(&self) -> Now;
}

/// Everything outside of a node.
pub trait Outside: Journal + Transport + Time {}

impl<T: Journal + Transport + Time> Outside for T {}
