//! Blocks: finding the runtime's rows without reading a whole table.
//!
//! The records of [`BLOCK_IDS`] consecutive transactions of one origin are in one partition, and so
//! are the witness rows that these transactions list. Records that belong to no transaction are
//! grouped by the first byte of their keys. The first row of each block also registers the block in
//! a listing. So a sweep reads the open records, and not the tombstones that the table still holds;
//! a cleanup reads and removes many records at once.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mingle_model::Origin;
use mingle_store::{RecordKey, RecordKind};

use crate::change::{Change, RecordPlace};
use crate::layout::Cell;
use crate::limits::{BLOCK_IDS, REGISTERED_FOR, REGISTERED_MAX};

/// The lengths in bytes of an origin, and of an origin with a number.
const ORIGIN: usize = 16;
const ID: usize = 24;

/// The number of partitions for the records of one block that are compared and set: concurrent
/// compare-and-set operations on one partition wait for each other.
const SPREAD: u8 = 16;

/// Returns the block of a record, and the rest of its key.
pub fn of_key(key: &RecordKey) -> (Cell, Cell) {
    let bytes = &key.key[..];
    if key.transaction().is_none() {
        let (head, tail) = bytes.split_at(bytes.len().min(1));
        return (head.to_vec(), tail.to_vec());
    }
    let mut head = of_id(&bytes[..ID]);
    if matches!(key.kind, RecordKind::Intent | RecordKind::Fixed) {
        head.push(bytes[ID - 1] % SPREAD);
    }
    (head, bytes[ORIGIN..].to_vec())
}

/// Returns the block of a transaction's id.
pub fn of_id(id: &[u8]) -> Cell {
    let (origin, number) = id.split_at(id.len().min(ORIGIN));
    let number = number.try_into().map_or(0, u64::from_be_bytes);
    [origin, &(number / BLOCK_IDS).to_be_bytes()].concat()
}

/// Returns the key of a record from its block and the rest.
pub fn key(head: &[u8], tail: &[u8]) -> Cell {
    let shared = if head.len() < ID { head } else { &head[..ORIGIN] };
    [shared, tail].concat()
}

/// True if a block can hold keys from this one on.
pub fn reaches(head: &[u8], from: &[u8]) -> bool {
    let Some(last) = last_number(head) else { return head >= &from[..from.len().min(1)] };
    let last = [&head[..ORIGIN], &last.to_be_bytes(), &[0xff; 4]].concat();
    last[..] >= *from
}

/// Returns the origin of a block of transactions.
pub fn origin(head: &[u8]) -> Option<Origin> {
    let origin: &[u8; ORIGIN] = head.first_chunk().filter(|_| head.len() >= ID)?;
    Some(Origin(u128::from_be_bytes(*origin)))
}

/// Returns the last number of a block of transactions.
pub fn last_number(head: &[u8]) -> Option<u64> {
    let block = u64::from_be_bytes(head.get(ORIGIN..ID)?.try_into().ok()?);
    Some(block.saturating_mul(BLOCK_IDS).saturating_add(BLOCK_IDS - 1))
}

/// A listing of a store's blocks: those of records of one kind, or those of witness rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listing(u8);

impl Listing {
    /// The listing of witness rows.
    pub const ROWS: Self = Self(0);

    /// Returns the listing of records of a kind.
    pub fn of(kind: RecordKind) -> Self {
        Self(kind.code())
    }

    /// True if a change registers a block of a store.
    pub fn is_of(area: &str, change: &Change) -> bool {
        matches!(change, Change::PutRecord { at, .. } if at.kind == kind(area))
    }

    /// Returns the place of a block in the listing.
    pub fn place(self, area: &str, head: &[u8]) -> RecordPlace {
        RecordPlace { kind: kind(area), head: vec![self.0], tail: head.to_vec() }
    }
}

/// Returns the kind of a store's listings in the table of records.
fn kind(area: &str) -> String {
    format!("{area} blocks")
}

/// The blocks that this process has registered recently.
#[derive(Debug, Default)]
pub struct Registered(Mutex<BTreeMap<RecordPlace, Duration>>);

impl Registered {
    /// Returns the blocks to be registered, at `time`, before or together with these changes.
    pub fn missing(&self, area: &str, changes: &[Change], now: Duration, time: i64) -> Vec<Change> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = |at: &RecordPlace| {
            known.get(at).is_some_and(|at| now.saturating_sub(*at) < REGISTERED_FOR)
        };
        let mut missing: Vec<RecordPlace> =
            changes.iter().filter_map(|change| place(area, change)).collect();
        missing.sort();
        missing.dedup();
        missing.retain(|at| !is_fresh(at));
        let put = |at| Change::PutRecord { at, value: vec![1], time };
        missing.into_iter().map(put).collect()
    }

    /// Notes that these registrations were written.
    pub fn note(&self, written: &[Change], now: Duration) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() + written.len() > REGISTERED_MAX {
            known.retain(|_, at| now.saturating_sub(*at) < REGISTERED_FOR);
        }
        for change in written {
            if let Change::PutRecord { at, .. } = change {
                known.insert(at.clone(), now);
            }
        }
    }
}

/// Returns the place in a listing of the block that a change adds to.
fn place(area: &str, change: &Change) -> Option<RecordPlace> {
    match change {
        Change::PutRow { id, .. } => Some(Listing::ROWS.place(area, &of_id(id))),
        Change::PutRecord { at, .. } | Change::Announce { at, .. } => {
            let code = at.kind.strip_prefix(area)?.trim_start().parse().ok()?;
            Some(Listing(code).place(area, &at.head))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use mingle_model::TransactionId;

    use super::*;

    fn record(kind: RecordKind, sequence: u64, part: u32) -> RecordKey {
        RecordKey::of(kind, TransactionId { origin: Origin(7), sequence }, part)
    }

    #[test]
    fn keys_are_found_again_from_block_and_rest() {
        let bytes = |key: &[u8]| RecordKey { kind: RecordKind::Witness, key: key.into() };
        let origin = RecordKey::of_origin(RecordKind::Floor, Origin(u128::MAX));
        let odd = [bytes(b""), bytes(b"a"), bytes(b"ab"), bytes(&[9; 27]), bytes(&[9; 40]), origin];
        let kinds = [RecordKind::Witness, RecordKind::Intent];
        let of = kinds.into_iter().flat_map(|kind| {
            [0, 1, BLOCK_IDS - 1, BLOCK_IDS, u64::MAX].map(|number| record(kind, number, 3))
        });
        for name in odd.into_iter().chain(of) {
            let (head, tail) = of_key(&name);
            assert_eq!(key(&head, &tail), name.key.to_vec(), "{name:?}");
            assert!(reaches(&head, &name.key), "{name:?}");
            assert!(reaches(&head, b""), "{name:?}");
        }
    }

    #[test]
    fn a_block_below_is_not_looked_at_and_one_above_is() {
        let head = |number| of_key(&record(RecordKind::Witness, number, 0)).0;
        let from = |number| record(RecordKind::Witness, number, 0).key;
        assert!(!reaches(&head(0), &from(BLOCK_IDS)));
        assert!(reaches(&head(0), &from(BLOCK_IDS - 1)));
        assert!(reaches(&head(2 * BLOCK_IDS), &from(BLOCK_IDS)));
        assert!(!reaches(b"a", b"b") && reaches(b"b", b"bz") && !reaches(b"", b"a"));
        assert_eq!(last_number(&head(5)), Some(BLOCK_IDS - 1));
        assert_eq!(last_number(b"a"), None);
    }

    #[test]
    fn parts_share_a_partition_and_compared_ones_of_several_transactions_do_not() {
        let head = |kind, number, part| of_key(&record(kind, number, part)).0;
        let (witness, intent) = (RecordKind::Witness, RecordKind::Intent);
        assert_eq!(head(witness, 1, 0), head(witness, BLOCK_IDS - 1, 9));
        assert_ne!(head(witness, 1, 0), head(witness, BLOCK_IDS, 0));
        assert_eq!(head(intent, 1, 0), head(intent, 1, 9));
        assert_ne!(head(intent, 1, 0), head(intent, 2, 0));
        let kinds: std::collections::BTreeSet<Cell> =
            (0..BLOCK_IDS).map(|number| head(intent, number, 0)).collect();
        assert_eq!(kinds.len(), usize::from(SPREAD));
    }

    #[test]
    fn a_block_is_written_down_once_in_a_while() {
        let put = |number| Change::PutRecord {
            at: RecordPlace::of("a store", &record(RecordKind::Witness, number, 0)),
            value: vec![],
            time: 1,
        };
        let (registered, start) = (Registered::default(), Duration::ZERO);
        let changes = [put(1), put(2), put(BLOCK_IDS)];
        let missing = registered.missing("a store", &changes, start, 5);
        let listing = Listing::of(RecordKind::Witness);
        let of = |number| of_key(&record(RecordKind::Witness, number, 0)).0;
        let down = |number| Change::PutRecord {
            at: listing.place("a store", &of(number)),
            value: vec![1],
            time: 5,
        };
        assert_eq!(missing, [down(1), down(BLOCK_IDS)]);
        registered.note(&missing[..1], start);
        assert_eq!(registered.missing("a store", &changes, start, 6).len(), 1);
        let later = start + REGISTERED_FOR;
        assert_eq!(registered.missing("a store", &changes, later, 6).len(), 2);
        let row =
            Change::PutRow { id: vec![1; 24], place: (vec![], vec![]), value: vec![], time: 1 };
        assert_eq!(registered.missing("a store", &[row], start, 6).len(), 1);
    }
}
