//! Numbers for the keys of objects that programs create without giving one.
//!
//! A number is drawn once, whether or not its transaction commits, so transactions that draw at the same time do
//! not wait for each other. The greatest number that a committed transaction drew is a row. After a restart the numbers go on
//! from there: those above it were drawn by transactions that did not commit, so nothing has them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use mingle_model::Name;

use crate::encoding::key;
use crate::encoding::wire::Reader;
use crate::storage::overlay::Draft;
use crate::storage::{Bytes, StorageError, View};

/// The greatest number drawn for each kind of object since the store was opened.
#[derive(Debug, Default)]
pub struct Numbers {
    last: Mutex<BTreeMap<u32, i64>>,
}

impl Numbers {
    /// Draws the next number for a kind; `view` has the row of the store that was opened.
    ///
    /// # Errors
    ///
    /// When the row cannot be read.
    pub fn draw(&self, view: &dyn View, kind: u32) -> Result<Option<i64>, StorageError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let last = match last.entry(kind) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(number(view.get(&key::numbers(kind))?))
            }
        };
        let Some(next) = last.checked_add(1) else { return Ok(None) };
        *last = next;
        Ok(Some(next))
    }
}

/// Notes the numbers of a transaction that commits.
///
/// # Errors
///
/// When a row cannot be read.
pub fn note(draft: &mut Draft<'_>, drawn: &BTreeMap<u32, i64>) -> Result<(), StorageError> {
    for (kind, drawn) in drawn {
        let key = key::numbers(*kind);
        if number(draft.get(&key)?) < *drawn {
            draft.put(&*key, drawn.to_le_bytes());
        }
    }
    Ok(())
}

/// Says that a kind has no number left.
pub fn exhausted(kind: &Name) -> String {
    format!("no number is left for a new {kind}")
}

fn number(row: Option<Bytes>) -> i64 {
    // The bits of a number that is never negative.
    row.map_or(0, |row| Reader(&row).u64().cast_signed())
}
