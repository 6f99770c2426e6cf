//! Records as they were last committed at any replica.
//!
//! They are stored beside the replicas' rows, and not delivered. A store that is
//! [`mingle_store::Once::Serial`] judges guards by them. There the commits of one record have an
//! order, so a later one also has a higher timestamp: replicas converge to the record that guards
//! were judged by, and not to one that it overwrote.

use mingle_store::Write;

use crate::encoding::{key, row};
use crate::storage::overlay::Draft;
use crate::storage::{StorageError, View};

/// Returns the highest timestamp of the last commits of the records to be written; 0 if none.
///
/// # Errors
///
/// When the disk fails.
pub fn timestamp(view: &dyn View, writes: &[Write]) -> Result<u64, StorageError> {
    let mut highest = 0;
    for write in writes {
        if let Write::Record(record, _) | Write::Discard(record) = write {
            let row = view.get(&key::latest(record))?;
            highest = highest.max(row.map_or(0, |row| row::version(&row)));
        }
    }
    Ok(highest)
}

/// Stores the records that a commit writes at this timestamp.
pub fn note(draft: &mut Draft<'_>, timestamp: u64, writes: &[Write]) {
    for write in writes {
        match write {
            Write::Record(record, value) => {
                draft.put(key::latest(record), row::unit(timestamp, value));
            }
            Write::Discard(record) => draft.remove(key::latest(record)),
            _ => {}
        }
    }
}
