//! Commit witnesses: the records that say that a phase has taken effect, and the guards on them.

use mingle_model::TransactionId;
use mingle_store::{Guard, RecordKey, RecordKind, Write};

use crate::protocol::floor;
use crate::protocol::intent::{Witness, encode, write_parts};

/// Returns the guard that a transaction has no commit witness yet.
pub(crate) fn is_absent(id: TransactionId) -> Guard {
    Guard::Absent(RecordKey::of(RecordKind::Witness, id, 0))
}

/// Returns the guards under which a phase of a transaction may still take effect, or be excluded: it
/// has no commit witness, and is not over.
pub(crate) fn is_undecided(id: TransactionId) -> Vec<Guard> {
    vec![is_absent(id), floor::is_not_over(id)]
}

/// Returns the records of a commit witness.
pub(crate) fn records(id: TransactionId, witness: &Witness) -> Vec<Write> {
    write_parts(RecordKind::Witness, id, &encode(witness))
}
