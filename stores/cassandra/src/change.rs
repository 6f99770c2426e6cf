//! What a commit sends: mutations with a timestamp each.
//!
//! Of two with the same key and timestamp a removal counts, else the greater value; of others the
//! one with the later timestamp. So neither order nor copies matter: what a replica shows is a
//! function of the set of mutations that it has received. That is also what they may be delivered
//! by: Cassandra's own replication, a second try, another process, or a test.
//!
//! A removal bears the timestamp of what it removes, not one of its own: what it has not seen
//! survives it, even if it arrives later.

use mingle_store::{RecordKey, RecordKind};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::block;
use crate::layout::Cell;
use crate::limits::{CHUNK_BYTES, INLINE_BYTES_MAX};
use crate::scalar::Scalar;

/// Names a row of the table `data`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The object; its partition.
    pub object: Cell,
    /// The field.
    pub field: String,
    /// The element or key; empty for other shapes.
    pub element: Cell,
    /// Which of several: empty for a register or entry.
    pub dot: Cell,
}

/// One mutation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Writes a row of `data`.
    Put {
        /// Which.
        at: Place,
        /// What.
        value: Cell,
        /// When.
        time: i64,
    },
    /// Removes a row of `data` as it was at a time.
    Drop {
        /// Which.
        at: Place,
        /// Up to when.
        time: i64,
    },
    /// Writes a record.
    PutRecord {
        /// Which.
        at: RecordPlace,
        /// What.
        value: Cell,
        /// When.
        time: i64,
    },
    /// Writes a record together with all that is to follow it.
    Announce {
        /// Which.
        at: RecordPlace,
        /// What.
        value: Cell,
        /// What is to follow, as bytes.
        redo: Cell,
        /// When.
        time: i64,
    },
    /// Says that what was to follow a record has been done.
    Settle {
        /// Which record.
        at: RecordPlace,
        /// When.
        time: i64,
    },
    /// Removes a record.
    DropRecord {
        /// Which.
        at: RecordPlace,
        /// Up to when.
        time: i64,
    },
    /// Lists a witness row under its transaction.
    PutRow {
        /// The transaction.
        id: Cell,
        /// Object and digest.
        place: (Cell, Cell),
        /// The row.
        value: Cell,
        /// When.
        time: i64,
    },
    /// Removes a witness row from those of its transaction.
    DropRow {
        /// The transaction.
        id: Cell,
        /// Object and digest.
        place: (Cell, Cell),
        /// Up to when.
        time: i64,
    },
    /// Writes a chunk of a long value.
    PutChunk {
        /// Which value.
        id: Cell,
        /// Which of its chunks.
        part: i32,
        /// What.
        value: Cell,
        /// When.
        time: i64,
    },
    /// Removes a chunk.
    DropChunk {
        /// Which value.
        id: Cell,
        /// Which of its chunks.
        part: i32,
        /// Up to when.
        time: i64,
    },
    /// A statement over a table that is not ours.
    Cql {
        /// The statement.
        text: String,
        /// Its values.
        values: Vec<Scalar>,
        /// When, unless the statement says it itself.
        time: Option<i64>,
    },
    /// Says that the commit of an id has taken effect.
    Settled {
        /// The id.
        id: Cell,
        /// When.
        time: i64,
    },
}

/// Names a row of the table `records`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RecordPlace {
    /// The store, and the code of its kind.
    pub kind: String,
    /// Its block: all parts of one transaction are in one partition.
    pub head: Cell,
    /// What tells it apart in its block.
    pub tail: Cell,
}

/// What the records of a kind are called in their table.
pub fn kind(store: &str, kind: RecordKind) -> String {
    format!("{store} {}", kind.code())
}

impl RecordPlace {
    /// Where a record of a store is.
    pub fn of(store: &str, key: &RecordKey) -> Self {
        let (head, tail) = block::of_key(key);
        Self { kind: kind(store, key.kind), head, tail }
    }

    /// The record's key.
    pub fn key(&self) -> Cell {
        block::key(&self.head, &self.tail)
    }
}

impl Change {
    /// Whether it writes a record, and that alone.
    pub fn is_record(&self) -> bool {
        matches!(self, Self::PutRecord { .. })
    }

    /// What of the store it belongs to: changes of one partition take effect together.
    pub fn partition(&self) -> (&str, &[u8]) {
        match self {
            Self::Put { at, .. } | Self::Drop { at, .. } => ("data", &at.object),
            Self::PutRecord { at, .. }
            | Self::Announce { at, .. }
            | Self::Settle { at, .. }
            | Self::DropRecord { at, .. } => (&at.kind, &at.head),
            Self::PutRow { id, .. } | Self::DropRow { id, .. } => ("rows", id),
            Self::PutChunk { id, .. } | Self::DropChunk { id, .. } => ("chunks", id),
            Self::Settled { id, .. } => ("outcomes", id),
            Self::Cql { text, .. } => ("", text.as_bytes()),
        }
    }

    /// About how many bytes it takes on its way.
    pub fn bytes(&self) -> usize {
        64 + match self {
            Self::Put { at, value, .. } => at.bytes() + value.len(),
            Self::Drop { at, .. } => at.bytes(),
            Self::PutRecord { at, value, .. } => at.head.len() + at.tail.len() + value.len(),
            Self::Announce { at, value, redo, .. } => {
                at.head.len() + at.tail.len() + value.len() + redo.len()
            }
            Self::Settle { at, .. } | Self::DropRecord { at, .. } => at.head.len() + at.tail.len(),
            Self::PutRow { id, place, value, .. } => id.len() + place.0.len() + value.len(),
            Self::DropRow { id, place, .. } => id.len() + place.0.len(),
            Self::PutChunk { id, value, .. } => id.len() + value.len(),
            Self::DropChunk { id, .. } | Self::Settled { id, .. } => id.len(),
            Self::Cql { text, values, .. } => {
                text.len() + values.iter().map(Scalar::bytes).sum::<usize>()
            }
        }
    }
}

/// Whether all of it is in one partition of a table of our own.
pub fn is_of_one_partition(changes: &[&Change]) -> bool {
    let is_own = |change: &&Change| !matches!(change, Change::Cql { .. });
    changes.windows(2).all(|two| two[0].partition() == two[1].partition())
        && (changes.len() < 2 || changes.iter().all(is_own))
}

impl Place {
    fn bytes(&self) -> usize {
        self.object.len() + self.field.len() + self.element.len() + self.dot.len()
    }
}

/// In front of a value that stands in its cell, and of one that stands in chunks.
const INLINE: u8 = 0;
const CHUNKED: u8 = 1;

/// A cell with a value, and its chunks if it is long. The chunks' name is a function of the cell's
/// place and time, so that copies have the same.
pub fn cell(at: &Place, value: &[u8], time: i64) -> (Cell, Vec<Change>) {
    if value.len() <= INLINE_BYTES_MAX {
        return ([&[INLINE], value].concat(), Vec::new());
    }
    let place = postcard::to_stdvec(&(at, time)).expect("a place has a form");
    let id = Sha256::digest(place).to_vec();
    let chunks = value.chunks(CHUNK_BYTES).zip(0..);
    let chunk = |(value, part): (&[u8], i32)| Change::PutChunk {
        id: id.clone(),
        part,
        value: value.to_vec(),
        time,
    };
    let chunks: Vec<Change> = chunks.map(chunk).collect();
    let count = (chunks.len() as u32).to_be_bytes();
    ([&[CHUNKED], &id[..], &count].concat(), chunks)
}

/// What a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// The value.
    Inline(&'a [u8]),
    /// The name of its chunks, and how many.
    Chunked(&'a [u8], i32),
}

/// What a cell holds; none if it is none of ours.
pub fn content(cell: &[u8]) -> Option<Content<'_>> {
    match cell.split_first()? {
        (&INLINE, value) => Some(Content::Inline(value)),
        (&CHUNKED, rest) => {
            let (id, count) = rest.split_last_chunk()?;
            Some(Content::Chunked(id, i32::try_from(u32::from_be_bytes(*count)).ok()?))
        }
        _ => None,
    }
}

/// Removes the chunks that a cell names, if it names any.
pub fn drop_chunks(cell: &[u8], time: i64) -> Vec<Change> {
    match content(cell) {
        Some(Content::Chunked(id, count)) => {
            let drop = |part| Change::DropChunk { id: id.to_vec(), part, time };
            (0..count).map(drop).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place { object: vec![1], field: "f".into(), element: vec![], dot: vec![] }
    }

    #[test]
    fn short_values_stand_in_their_cell_and_long_ones_in_chunks() {
        let (short, chunks) = cell(&place(), b"x", 7);
        assert_eq!((content(&short), chunks.len()), (Some(Content::Inline(b"x")), 0));
        let long = vec![7; CHUNK_BYTES + 1];
        let (kept, chunks) = cell(&place(), &long, 7);
        let Some(Content::Chunked(id, 2)) = content(&kept) else { panic!("{kept:?}") };
        let sizes: Vec<usize> = chunks.iter().map(Change::bytes).collect();
        assert!(sizes[0] > CHUNK_BYTES && sizes[1] < 200, "{sizes:?}");
        assert_eq!(drop_chunks(&kept, 7).len(), 2);
        let (other, _) = cell(&place(), &long, 8);
        assert!(!other[1..].starts_with(id), "another write has chunks of its own");
        assert_eq!(content(b""), None);
        assert_eq!(content(b"\x09"), None);
    }

    #[test]
    fn parts_of_a_transaction_share_a_partition() {
        let id = mingle_model::TransactionId { origin: mingle_model::Origin(1), sequence: 2 };
        let of = |part| RecordPlace::of("s", &RecordKey::of(RecordKind::Intent, id, part));
        assert_eq!(of(0).head, of(9).head);
        assert_ne!(of(0).tail, of(9).tail);
        assert_eq!(of(3).key(), RecordKey::of(RecordKind::Intent, id, 3).key.to_vec());
    }
}
