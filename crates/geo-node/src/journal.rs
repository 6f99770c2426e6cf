//! Entries of the journal: a record with the partition that it belongs to.

use std::fmt;

use mingle_geo::wire::{WireError, put_record, take_record};
use mingle_geo::{PartitionId, Record};

/// The error for an entry that no node of a version that this build reads has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryError {
    /// The partition, if the entry is long enough to name one.
    pub partition: Option<PartitionId>,
    /// The reason.
    pub why: WireError,
}

impl fmt::Display for EntryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.partition {
            Some(partition) => write!(f, "partition {}: {}", partition.0, self.why),
            None => write!(f, "{}", self.why),
        }
    }
}

impl std::error::Error for EntryError {}

/// Writes the entry of a record.
///
/// # Examples
///
/// ```
/// use mingle_geo::{PartitionId, Record};
/// use mingle_geo_node::{put_entry, take_entry};
///
/// let entry = put_entry(PartitionId(3), &Record::AgeFloor(9));
/// assert_eq!(take_entry(&entry), Ok((PartitionId(3), Record::AgeFloor(9))));
/// assert!(take_entry(&entry[..2]).is_err());
/// ```
pub fn put_entry(partition: PartitionId, record: &Record) -> Vec<u8> {
    let mut entry = partition.0.to_le_bytes().to_vec();
    put_record(&mut entry, record);
    entry
}

/// Reads an entry.
///
/// # Errors
///
/// If this build cannot read it.
pub fn take_entry(entry: &[u8]) -> Result<(PartitionId, Record), EntryError> {
    let Some((number, record)) = entry.split_first_chunk() else {
        let why = WireError::Malformed("an entry begins with a partition");
        return Err(EntryError { partition: None, why });
    };
    let partition = PartitionId(u16::from_le_bytes(*number));
    match take_record(record) {
        Ok(record) => Ok((partition, record)),
        Err(why) => Err(EntryError { partition: Some(partition), why }),
    }
}
