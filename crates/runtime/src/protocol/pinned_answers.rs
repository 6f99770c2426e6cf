//! The answers of a phase that are kept beside the intent, so that every process computes the same from
//! them.

use mingle_model::TransactionId;
use mingle_store::{RecordKey, RecordKind, Write};

use crate::protocol::intent::{PinnedAnswers, encode, parts_of};

/// Returns the records of a phase's pinned answers.
pub(crate) fn pinned_records(
    id: TransactionId,
    index: usize,
    pinned: &PinnedAnswers,
) -> Vec<Write> {
    let from = (index as u32) << 16;
    parts_of(&encode(pinned), |part| RecordKey::of(RecordKind::Fixed, id, from + part))
}
