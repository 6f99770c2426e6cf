//! The mutations of a commit, with a timestamp each.
//!
//! Of two mutations with the same key, the later timestamp wins. With equal timestamps a removal
//! wins, else the greater value. So neither order nor copies matter: the visible state of a replica
//! is a function of the set of mutations that it has received. Mutations can therefore be delivered
//! by Cassandra's own replication, a second try, another process, or a test.
//!
//! A removal has the timestamp of the row that it removes, not one of its own: a write that the
//! removal has not seen survives it, even if that write arrives later.

use mingle_store::{RecordKey, RecordKind};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::block;
use crate::layout::Cell;
use crate::limits::{CHUNK_BYTES, INLINE_BYTES_MAX};
use crate::scalar::Scalar;

/// The key of a row in the table `data`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The object, which is the partition.
    pub object: Cell,
    /// The field.
    pub field: String,
    /// The element or key; empty for other shapes.
    pub element: Cell,
    /// The dot that tells several rows apart; empty for a register or entry.
    pub dot: Cell,
}

/// One mutation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Writes a row of `data`.
    Put {
        /// The row.
        at: Place,
        /// The value.
        value: Cell,
        /// The timestamp.
        time: i64,
    },
    /// Removes a row of `data` as it was at a timestamp.
    Drop {
        /// The row.
        at: Place,
        /// The timestamp up to which it is removed.
        time: i64,
    },
    /// Writes a record.
    PutRecord {
        /// The record.
        at: RecordPlace,
        /// The value.
        value: Cell,
        /// The timestamp.
        time: i64,
    },
    /// Writes a record together with all mutations that must follow it.
    Announce {
        /// The record.
        at: RecordPlace,
        /// The value.
        value: Cell,
        /// The mutations that must follow, as bytes.
        redo: Cell,
        /// The timestamp.
        time: i64,
    },
    /// Marks the mutations that follow a record as done.
    Settle {
        /// The record.
        at: RecordPlace,
        /// The timestamp.
        time: i64,
    },
    /// Removes a record.
    DropRecord {
        /// The record.
        at: RecordPlace,
        /// The timestamp up to which it is removed.
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
        /// The timestamp.
        time: i64,
    },
    /// Removes a witness row from the list of its transaction.
    DropRow {
        /// The transaction.
        id: Cell,
        /// Object and digest.
        place: (Cell, Cell),
        /// The timestamp up to which it is removed.
        time: i64,
    },
    /// Writes a chunk of a long value.
    PutChunk {
        /// The value's id.
        id: Cell,
        /// The index of the chunk.
        part: i32,
        /// The bytes of the chunk.
        value: Cell,
        /// The timestamp.
        time: i64,
    },
    /// Removes a chunk.
    DropChunk {
        /// The value's id.
        id: Cell,
        /// The index of the chunk.
        part: i32,
        /// The timestamp up to which it is removed.
        time: i64,
    },
    /// A statement on a foreign table.
    Cql {
        /// The statement.
        text: String,
        /// Its values.
        values: Vec<Scalar>,
        /// The timestamp; none if the statement sets it itself.
        time: Option<i64>,
    },
    /// Marks the commit of an id as carried out.
    Settled {
        /// The id.
        id: Cell,
        /// The timestamp.
        time: i64,
    },
}

/// The key of a row in the table `records`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RecordPlace {
    /// The store, and the code of the record's kind.
    pub kind: String,
    /// The block: all parts of one transaction are in one partition.
    pub head: Cell,
    /// The rest of the key, unique in the block.
    pub tail: Cell,
}

/// Returns the value of the column `kind` for records of a kind.
pub fn kind(store: &str, kind: RecordKind) -> String {
    format!("{store} {}", kind.code())
}

impl RecordPlace {
    /// Returns the place of a record of a store.
    pub fn of(store: &str, key: &RecordKey) -> Self {
        let (head, tail) = block::of_key(key);
        Self { kind: kind(store, key.kind), head, tail }
    }

    /// Returns the record's key.
    pub fn key(&self) -> Cell {
        block::key(&self.head, &self.tail)
    }
}

impl Change {
    /// True if it writes a record, and nothing else.
    pub fn is_record(&self) -> bool {
        matches!(self, Self::PutRecord { .. })
    }

    /// Returns the table and partition that it changes: changes of one partition take effect
    /// together.
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

    /// Returns its approximate size in bytes on the wire.
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

/// True if all changes are in one partition of a table of the store's own.
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

/// The first byte of a cell that holds its value, and of one whose value is in chunks.
const INLINE: u8 = 0;
const CHUNKED: u8 = 1;

/// Returns the cell for a value, and its chunks if the value is long. The chunks' id is a function
/// of the cell's place and time, so copies have the same id.
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

/// The content of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// The value.
    Inline(&'a [u8]),
    /// The id of its chunks, and their number.
    Chunked(&'a [u8], i32),
}

/// Returns the content of a cell; none if this crate did not write the cell.
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
