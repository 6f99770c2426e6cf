//! Lamport clocks, and timestamps that are unique in the whole system (thesis §4.4).

use std::fmt;

/// The bits of a node id in a timestamp.
const NODE_BITS: u32 = 16;

/// The bits of a node id that number the server within its data center.
const SERVER_BITS: u32 = 14;

/// A server: its data center and its number there. At most 4 data centers of 16,384 servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u16);

impl NodeId {
    /// Creates the id of server `server` of data center `dc`.
    pub fn new(dc: u8, server: u16) -> Self {
        Self((u16::from(dc & 3) << SERVER_BITS) | (server & ((1 << SERVER_BITS) - 1)))
    }

    /// Returns the data center.
    pub fn dc(self) -> u8 {
        (self.0 >> SERVER_BITS) as u8
    }

    /// Returns the number of the server within its data center.
    pub fn server(self) -> u16 {
        self.0 & ((1 << SERVER_BITS) - 1)
    }

    /// Returns the id as a number.
    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    /// Returns the id with that number.
    pub(crate) fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.dc(), self.server())
    }
}

/// The timestamp of an operation: the logical time at the server that accepted it, with the id of
/// this server in the low bits. No two operations have the same one.
///
/// # Examples
///
/// ```
/// use mingle_cops::clock::{NodeId, Timestamp};
///
/// let (here, there) = (NodeId::new(0, 1), NodeId::new(2, 0));
/// assert!(Timestamp::new(7, here) < Timestamp::new(7, there));
/// assert!(Timestamp::new(7, there) < Timestamp::new(8, here));
/// assert_eq!(Timestamp::new(7, there).node(), there);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The timestamp of a location that was never written.
    pub const ABSENT: Self = Self(0);

    /// Creates the timestamp of logical time `time` at `node`.
    pub fn new(time: u64, node: NodeId) -> Self {
        Self((time << NODE_BITS) | u64::from(node.0))
    }

    /// Creates the timestamp as a program does that keeps node ids as signed 16-bit numbers: the
    /// sign covers the time. See [`Flaw::SignedNodeIds`](crate::flaw::Flaw::SignedNodeIds).
    pub(crate) fn signed(time: u64, node: NodeId) -> Self {
        Self((time << NODE_BITS) | i64::from(node.0 as i16) as u64)
    }

    /// Returns the logical time.
    pub fn time(self) -> u64 {
        self.0 >> NODE_BITS
    }

    /// Returns the server that accepted the operation.
    pub fn node(self) -> NodeId {
        NodeId(self.0 as u16)
    }

    /// Returns the timestamp as a number, in the same order.
    pub fn bits(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.time(), self.node())
    }
}

/// The logical clock of a server or a client.
#[derive(Clone, Debug, Default)]
pub struct Clock(u64);

impl Clock {
    /// Returns the current logical time. Nothing that happens later has this time or an earlier one.
    pub fn now(&self) -> u64 {
        self.0
    }

    /// Advances the clock for an event, and returns the time of the event.
    pub fn tick(&mut self) -> u64 {
        self.0 = self.0.saturating_add(1);
        self.0
    }

    /// Takes note of a time in a message: the clock is later than it from now on.
    pub fn witness(&mut self, time: u64) {
        self.0 = self.0.max(time.saturating_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_later_than_each_message_before_it() {
        let mut clock = Clock::default();
        assert_eq!(clock.tick(), 1);
        clock.witness(9);
        assert_eq!((clock.now(), clock.tick()), (10, 11));
        clock.witness(3);
        assert_eq!(clock.now(), 11);
    }

    #[test]
    fn signed_node_ids_lose_the_time_of_half_of_the_data_centers() {
        let (low, high) = (NodeId::new(1, 3), NodeId::new(2, 3));
        assert_eq!(Timestamp::signed(5, low), Timestamp::new(5, low));
        assert_eq!(Timestamp::signed(5, high), Timestamp::signed(6, high));
    }
}
