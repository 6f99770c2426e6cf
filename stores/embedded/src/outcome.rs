//! What became of a commit with an id.
//!
//! One row for each id, for ever: nothing tells this engine that nobody will ask any more.

use mingle_model::TransactionId;
use mingle_store::{Outcome, StoreError};

use crate::core::Core;
use crate::encoding::key;
use crate::encoding::row::Fate;
use crate::storage::overlay::Draft;
use crate::storage::{StorageError, View};

/// Why a commit with this id must not take effect, if it must not: it has already, or somebody
/// was told that it did not.
///
/// # Errors
///
/// When the disk fails.
pub fn objection(
    core: &Core,
    draft: &Draft<'_>,
    id: Option<TransactionId>,
) -> Result<Option<StoreError>, StorageError> {
    let Some(id) = id else { return Ok(None) };
    let fate = draft.get(&key::outcome(id))?;
    Ok(fate.map(|fate| match Fate::decode(&fate) {
        Fate::Barred => core.barred(id),
        Fate::Committed => StoreError::Conflict,
    }))
}

/// Notes that the commit with this id takes effect.
pub fn note(draft: &mut Draft<'_>, id: Option<TransactionId>) {
    if let Some(id) = id {
        draft.put(key::outcome(id), Fate::Committed.encode());
    }
}

/// What became of `id`. One that is not there is barred first, so that the answer stays true.
///
/// # Errors
///
/// When the disk fails.
pub fn ask(draft: &mut Draft<'_>, id: TransactionId) -> Result<Outcome, StorageError> {
    let key = key::outcome(id);
    Ok(match draft.get(&key)?.as_deref().map(Fate::decode) {
        Some(Fate::Committed) => Outcome::Committed,
        Some(Fate::Barred) => Outcome::NotCommitted,
        None => {
            draft.put(key, Fate::Barred.encode());
            Outcome::NotCommitted
        }
    })
}
