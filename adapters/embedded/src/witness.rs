//! Witness rows: their keys, and the check that a commit knows them.
//!
//! Each row is kept twice, by its object and by its transaction, so that a read finds
//! the rows of an object, and the end of a transaction finds its own rows, without a search.

use std::collections::BTreeSet;

use mingle_model::{Ref, TransactionId, WitnessRow};
use mingle_store::{Commit, Write};

use crate::core::{Core, Failure};
use crate::encoding::{key, order, row};
use crate::layout::Layout;
use crate::storage::{Direction, StorageError, View};

/// A row's key by its object, without section and replica.
///
/// # Errors
///
/// When no such kind lives here.
pub fn key_of(layout: &Layout, witness: &WitnessRow) -> Result<Vec<u8>, String> {
    let prefix = prefix(layout, 0, witness.object.as_ref())?;
    Ok(key::with(&prefix[2..], &row::witness(witness)))
}

/// The prefix of the rows of an object, or of those of the whole store.
fn prefix(layout: &Layout, replica: u8, object: Option<&Ref>) -> Result<Vec<u8>, String> {
    let object = match object {
        Some(object) => Some((layout.kind(object.kind())?.id, object.key())),
        None => None,
    };
    Ok(key::witnesses(replica, object))
}

/// The rows of an object, or of the whole store.
///
/// # Errors
///
/// When the disk fails, or no such kind lives here.
pub fn rows(
    layout: &Layout,
    replica: u8,
    view: &dyn View,
    object: Option<&Ref>,
) -> Result<Vec<WitnessRow>, Failure> {
    let prefix = prefix(layout, replica, object)?;
    let mut rows = Vec::new();
    view.scan(&prefix, None, Direction::Forward, &mut |key, _| {
        rows.push(row::decode_witness(object.cloned(), &key[prefix.len()..]));
        true
    })?;
    Ok(rows)
}

/// Returns the rows of all objects in order of their transactions, from one transaction on, until
/// there are `limit`; of each transaction all rows.
///
/// # Errors
///
/// When the disk fails.
pub fn rows_from(
    layout: &Layout,
    replica: u8,
    view: &dyn View,
    from: TransactionId,
    limit: usize,
) -> Result<Vec<WitnessRow>, StorageError> {
    let mut rows: Vec<WitnessRow> = Vec::new();
    let first = key::by_transaction(replica, Some(from));
    let prefix = key::by_transaction(replica, None);
    view.scan(&prefix, Some(&first), Direction::Forward, &mut |key, _| {
        let row = decode(layout, key::indexed(key));
        let is_next = rows.last().is_none_or(|last| last.id != row.id);
        if is_next && rows.len() >= limit {
            return false;
        }
        rows.push(row);
        true
    })?;
    Ok(rows)
}

/// The row with this key by its object, without section and replica.
fn decode(layout: &Layout, rest: &[u8]) -> WitnessRow {
    let (kind, mut rest) = key::witness_kind(rest);
    let object = (kind != 0).then(|| {
        let name = layout.names.get(&kind);
        let name = name.expect("the catalog knows every kind that has rows: it is corrupt");
        Ref::new(name.clone(), order::decode(&mut rest))
    });
    row::decode_witness(object, rest)
}

/// Returns all rows of the written objects and of the whole store, if the commit does not know
/// all of them: a transaction that overwrites a write must know the rows to wait for (MixT §5.4).
///
/// # Errors
///
/// When the disk fails.
pub fn unknown(
    core: &Core,
    view: &dyn View,
    replica: u8,
    commit: &Commit,
) -> Result<Option<Vec<WitnessRow>>, StorageError> {
    let written: BTreeSet<&Ref> = commit.writes.iter().filter_map(Write::object).collect();
    if written.is_empty() || is_empty(view, &key::by_transaction(replica, None))? {
        return Ok(None);
    }
    let mut found = Vec::new();
    for object in written.into_iter().map(Some).chain([None]) {
        match rows(&core.layout, replica, view, object) {
            Ok(rows) => found.extend(rows),
            Err(Failure::Storage(error)) => return Err(error),
            Err(Failure::Refused(why)) => unreachable!("writes are checked: {why}"),
        }
    }
    let is_own = |id: TransactionId| {
        commit.id == Some(id)
            || commit.writes.iter().any(|w| matches!(w, Write::Witness(row) if row.id == id))
    };
    let is_known = |row: &WitnessRow| commit.known.contains(&row.id) || is_own(row.id);
    Ok((!found.iter().all(is_known)).then_some(found))
}

fn is_empty(view: &dyn View, prefix: &[u8]) -> Result<bool, StorageError> {
    let mut is_empty = true;
    view.scan(prefix, None, Direction::Forward, &mut |_, _| {
        is_empty = false;
        false
    })?;
    Ok(is_empty)
}
