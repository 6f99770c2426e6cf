//! What became of a commit with an id.
//!
//! One row for each id, inserted by its commit, or by the first that asks: then it is barred. Rows are
//! removed once they are old, a few with each commit that adds one. Up to which number the ids of an origin
//! are gone is kept, one small row for each origin; of those without a row nothing is said any more, and
//! none takes effect. A clock that jumps lets rows go sooner or later, no more.

use std::sync::{Mutex, PoisonError};

use mingle_model::TransactionId;
use mingle_store::{Outcome, StoreError, World};

use crate::core::Core;
use crate::encoding::key;
use crate::encoding::row::{Fate, FateRow};
use crate::limits::{OUTCOMES_KEPT, OUTCOMES_SWEPT};
use crate::storage::overlay::Draft;
use crate::storage::{Bytes, Direction, StorageError, View};

/// Where the search for old outcomes goes on.
#[derive(Default)]
pub struct Sweep(Mutex<Option<Bytes>>);

/// Why a commit with this id must not take effect, if it must not: it has already, or somebody
/// was told that it did not, or nothing is known of it any more.
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
    Ok(match draft.get(&key::outcome(id))?.map(|row| FateRow::decode(&row).fate) {
        Some(Fate::Barred) => Some(core.barred(id)),
        Some(Fate::Committed) => Some(StoreError::Conflict),
        None => is_gone(draft, id)?.then_some(StoreError::Conflict),
    })
}

/// Notes that the commit with this id takes effect.
///
/// # Errors
///
/// When the disk fails.
pub fn note(
    core: &Core,
    draft: &mut Draft<'_>,
    id: Option<TransactionId>,
) -> Result<(), StorageError> {
    let Some(id) = id else { return Ok(()) };
    sweep(core, draft)?;
    put(core, draft, id, Fate::Committed);
    Ok(())
}

/// What became of `id`. One that is not there is barred first, so that the answer stays true.
///
/// # Errors
///
/// When the disk fails.
pub fn ask(core: &Core, draft: &mut Draft<'_>, id: TransactionId) -> Result<Outcome, StorageError> {
    Ok(match draft.get(&key::outcome(id))?.map(|row| FateRow::decode(&row).fate) {
        Some(Fate::Committed) => Outcome::Committed,
        Some(Fate::Barred) => Outcome::NotCommitted,
        None if is_gone(draft, id)? => Outcome::Unknown,
        None => {
            sweep(core, draft)?;
            put(core, draft, id, Fate::Barred);
            Outcome::NotCommitted
        }
    })
}

fn put(core: &Core, draft: &mut Draft<'_>, id: TransactionId, fate: Fate) {
    let row = FateRow { fate, at: Some(seconds(&*core.world)) };
    draft.put(key::outcome(id), row.encode());
}

/// Whether the row of an id may have been removed.
fn is_gone(draft: &Draft<'_>, id: TransactionId) -> Result<bool, StorageError> {
    let gone = draft.get(&key::outcomes_gone(id))?;
    Ok(gone.is_some_and(|row| key::number(&row) >= id.sequence))
}

/// Looks at a few outcomes, in turn, and removes those that are old. It looks at more of them than
/// commits add.
fn sweep(core: &Core, draft: &mut Draft<'_>) -> Result<(), StorageError> {
    let mut next = core.outcomes.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found: Vec<(Bytes, FateRow)> = Vec::with_capacity(OUTCOMES_SWEPT + 1);
    draft.scan(key::OUTCOMES, next.as_deref(), Direction::Forward, &mut |key, row| {
        found.push((key.into(), FateRow::decode(row)));
        found.len() <= OUTCOMES_SWEPT
    })?;
    *next = (found.len() > OUTCOMES_SWEPT).then(|| found.pop().map(|(key, _)| key)).flatten();
    let now = seconds(&*core.world);
    for (row_key, row) in found {
        match row.at {
            // One of an earlier version is kept from now on.
            None => draft.put(row_key, FateRow { at: Some(now), ..row }.encode()),
            Some(at) if at + OUTCOMES_KEPT.as_secs() < now => {
                let id = key::outcome_id(&row_key);
                let gone = key::outcomes_gone(id);
                let last = draft.get(&gone)?.map_or(0, |row| key::number(&row));
                draft.put(gone, last.max(id.sequence).to_be_bytes());
                draft.remove(row_key);
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The time of day in seconds.
fn seconds(world: &dyn World) -> u64 {
    u64::try_from(world.now().millis() / 1_000).unwrap_or(0)
}
