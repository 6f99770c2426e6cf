//! The answers of a phase that are kept beside the intent, so that every process computes the same from
//! them.

use mingle_model::TransactionId;
use mingle_store::{RecordKey, RecordKind, Write};

use crate::protocol::intent::{Fixed, encode, parts_of};

/// Returns the records of a phase's fixed answers.
pub(crate) fn fixed_records(id: TransactionId, index: usize, fixed: &Fixed) -> Vec<Write> {
    let from = (index as u32) << 16;
    parts_of(&encode(fixed), |part| RecordKey::of(RecordKind::Fixed, id, from + part))
}
