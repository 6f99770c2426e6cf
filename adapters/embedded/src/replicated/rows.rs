//! The parts of a replica's rows that readers skip.

use super::context::Context;
use super::tally::Tally;
use super::update::Dot;
use crate::encoding::row::{self, Presence};
use crate::encoding::wire::{Reader, Writer};

/// One write of a unit that no later write has replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sibling {
    /// Lamport timestamp of its update.
    pub timestamp: u64,
    /// The dot of its update.
    pub dot: Dot,
    /// The value; empty for elements.
    pub value: Vec<u8>,
}

/// Encodes the row of a register, entry or element: first the last writer's value, for readers,
/// then everything else.
pub fn encode_unit(version: u64, mut siblings: Vec<Sibling>) -> Vec<u8> {
    siblings.sort_by_key(|sibling| std::cmp::Reverse((sibling.timestamp, sibling.dot)));
    let mut writer = Writer(row::unit(version, &siblings[0].value));
    writer.count(siblings.len());
    for (index, sibling) in siblings.iter().enumerate() {
        writer.u64(sibling.timestamp);
        sibling.dot.encode(&mut writer);
        if index > 0 {
            writer.bytes(&sibling.value);
        }
    }
    writer.0
}

/// The siblings in a unit's row.
pub fn decode_unit(row: &[u8]) -> Vec<Sibling> {
    let mut reader = Reader(row);
    reader.u64();
    let winner = reader.bytes();
    let siblings = (0..reader.count()).map(|index| Sibling {
        timestamp: reader.u64(),
        dot: Dot::decode(&mut reader),
        value: if index == 0 { winner } else { reader.bytes() }.to_vec(),
    });
    siblings.collect()
}

/// Encodes the row of a presence: first the part for readers, then the dots.
pub fn encode_presence(presence: Presence, dots: &[Dot]) -> Vec<u8> {
    let mut writer = presence.encode();
    writer.count(dots.len());
    for dot in dots {
        dot.encode(&mut writer);
    }
    writer.0
}

/// The parts of a presence's row.
pub fn decode_presence(row: &[u8]) -> (Presence, Vec<Dot>) {
    let mut reader = Reader(row);
    let presence = Presence::decode(&mut reader);
    let dots = (0..reader.count()).map(|_| Dot::decode(&mut reader));
    (presence, dots.collect())
}

/// A counter's row.
pub fn encode_counter(version: u64, tally: &Tally) -> Vec<u8> {
    let mut writer = row::counter(version, tally.value());
    tally.encode(&mut writer);
    writer.0
}

/// The tally in a counter's row.
pub fn decode_counter(row: &[u8]) -> Tally {
    let mut reader = Reader(row);
    reader.u64();
    reader.i128();
    Tally::decode(&mut reader)
}

/// Returns the end of a line's key, which orders the lines.
pub fn line_key(timestamp: u64, dot: Dot, index: u32) -> [u8; 21] {
    let mut key = [0; 21];
    key[..8].copy_from_slice(&timestamp.to_be_bytes());
    key[8] = dot.origin;
    key[9..17].copy_from_slice(&dot.sequence.to_be_bytes());
    key[17..].copy_from_slice(&index.to_be_bytes());
    key
}

/// The dot in a line's key.
pub fn line_dot(key: &[u8]) -> Dot {
    let tail: &[u8; 21] = key.last_chunk().expect("a line's key ends in 21 bytes");
    let sequence = tail[9..17].try_into().expect("eight bytes of a fixed array");
    Dot { origin: tail[8], sequence: u64::from_be_bytes(sequence) }
}

/// The state of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaState {
    /// Number of updates applied, its own included.
    pub count: u64,
    /// The highest Lamport timestamp that it has seen.
    pub clock: u64,
    /// The updates that it has seen.
    pub context: Context,
}

impl ReplicaState {
    /// Returns the state before the first update.
    pub fn new(replicas: usize) -> Self {
        Self { count: 0, clock: 0, context: Context::new(replicas) }
    }

    /// The row form.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.u64(self.count);
        writer.u64(self.clock);
        self.context.encode(&mut writer);
        writer.0
    }

    /// From the row form.
    pub fn decode(row: &[u8]) -> Self {
        let mut reader = Reader(row);
        Self { count: reader.u64(), clock: reader.u64(), context: Context::decode(&mut reader) }
    }
}
