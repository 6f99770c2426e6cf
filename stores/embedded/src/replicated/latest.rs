//! Records as they were last committed at any replica.
//!
//! They are kept beside what the replicas have, and delivered to nobody. A store that is
//! [`mingle_store::Once::Serial`] judges guards by them. There the commits of one record have an
//! order, so a later one has a higher timestamp too: replicas end up with the record that guards
//! were judged by, and not with one that it was written over.

use mingle_store::Write;

use crate::encoding::{key, row};
use crate::storage::overlay::Draft;
use crate::storage::{StorageError, View};

/// The highest timestamp at which a record that is written was last committed; 0 if none was.
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

/// Keeps the records that a commit writes at this timestamp.
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
