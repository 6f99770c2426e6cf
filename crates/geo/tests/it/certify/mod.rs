//! Certification: scripts on single logs, and many logs with coordinators that vanish.

mod members;
mod network;
mod random;
mod scripts;

use std::sync::Arc;

use mingle_geo::certify::{Access, Entry, Label, Proposal, Touch};
use mingle_geo::{Key, Kind, Op, PartitionId, Timestamp, Update, Vector};
use mingle_model::{Origin, TransactionId};

/// A transaction's id.
pub fn id(sequence: u64) -> TransactionId {
    TransactionId { origin: Origin(1), sequence }
}

/// An item.
pub fn key(name: &str) -> Key {
    Key::new(Kind::Counter, name)
}

/// A touch of an item, with a label unless that is empty.
pub fn touch(name: &str, access: Access, label: &str) -> Touch {
    let label = (!label.is_empty()).then(|| Label::from(label));
    Touch { key: key(name), access, label }
}

/// A proposal for partition 0, among these participants, of a transaction that began at `sequence`
/// milliseconds.
pub fn proposal(sequence: u64, participants: &[u16], touches: Vec<Touch>) -> Proposal {
    let writes = touches.iter().filter(|touch| touch.access == Access::Write);
    let writes = writes.map(|touch| Update { key: touch.key.clone(), op: Op::Add(1), id: None });
    Proposal {
        id: id(sequence),
        begun_us: sequence * 1_000,
        participants: participants.iter().copied().map(PartitionId).collect(),
        updates: writes.collect(),
        touches,
        snap_vec: Vector::ZERO,
        clock: Timestamp::new(sequence * 1_000, PartitionId(0)),
        stable: Timestamp::ZERO,
        everywhere: Timestamp::ZERO,
        uniform: Timestamp::ZERO,
    }
}

/// The proposal as an entry.
pub fn prepare(proposal: Proposal) -> Entry {
    Entry::Prepare(Arc::new(proposal))
}
