//! The conditions of a commit on records.

use mingle_store::record::read_floor;
use mingle_store::{Guard, RecordKey};

use crate::encoding::row;
use crate::storage::{StorageError, View};

/// True if all guards hold for the records in `view` under the keys that `key` returns.
///
/// # Errors
///
/// When the disk fails.
pub fn hold(
    view: &dyn View,
    guards: &[Guard],
    key: impl Fn(&RecordKey) -> Vec<u8>,
) -> Result<bool, StorageError> {
    for guard in guards {
        let holds = match guard {
            Guard::Absent(record) => view.get(&key(record))?.is_none(),
            Guard::Below(record, bound) => {
                let row = view.get(&key(record))?;
                row.is_none_or(|row| read_floor(row::unit_value(&row)) < *bound)
            }
        };
        if !holds {
            return Ok(false);
        }
    }
    Ok(true)
}
