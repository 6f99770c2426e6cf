//! Outcomes of commits with an id.
//!
//! Each id has one row, inserted by its commit, or by the first query: then the id is barred. Old
//! rows are removed, a few with each commit that adds one. For each origin, one small row holds the
//! number up to which ids are gone; an id up to there without a row has an unknown outcome, and its
//! commit cannot take effect. If the clock jumps, rows are only removed sooner or later.

use std::sync::{Mutex, PoisonError};

use mingle_model::TransactionId;
use mingle_store::{Outcome, StoreError, World};

use crate::core::Core;
use crate::encoding::key;
use crate::encoding::row::{Fate, FateRow};
use crate::limits::{OUTCOMES_KEPT, OUTCOMES_SWEPT};
use crate::storage::overlay::Draft;
use crate::storage::{Bytes, Direction, StorageError, View};

/// The position at which the search for old outcomes continues.
#[derive(Default)]
pub struct Sweep(Mutex<Option<Bytes>>);

/// Returns the reason why a commit with this id must not take effect: it has already, or a helper
/// was told that it did not, or its row is gone. None if it may take effect.
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

/// Returns the outcome of `id`. An unknown id is barred first, so that the answer stays true.
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

/// True if the row of an id may have been removed.
fn is_gone(draft: &Draft<'_>, id: TransactionId) -> Result<bool, StorageError> {
    let gone = draft.get(&key::outcomes_gone(id))?;
    Ok(gone.is_some_and(|row| key::number(&row) >= id.sequence))
}

/// Checks a few outcomes in turn and removes the old ones. It checks more outcomes than commits
/// add.
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
            // The time of a row of an earlier version counts from now on.
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
