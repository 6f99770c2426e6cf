//! Guards on an origin's floor and fence.

use mingle_model::TransactionId;
use mingle_store::{Guard, RecordKey, RecordKind};

/// Returns the guard that the floor of a transaction's origin lies below it: it is not over.
pub(crate) fn is_not_over(id: TransactionId) -> Guard {
    Guard::Below(RecordKey::of_origin(RecordKind::Floor, id.origin), id.sequence)
}

/// Returns the guards under which a transaction may begin: its origin has no fence, and its floor lies
/// below the transaction.
pub(crate) fn may_begin(id: TransactionId) -> [Guard; 2] {
    let fence = RecordKey::of_origin(RecordKind::Fence, id.origin);
    [Guard::Absent(fence), is_not_over(id)]
}
