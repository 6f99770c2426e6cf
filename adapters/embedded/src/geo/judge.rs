//! Checks of a commit's guards and witness rows against the state of its data center.

use std::collections::BTreeSet;

use mingle_geo::Key;
use mingle_model::{Ref, TransactionId, WitnessRow};
use mingle_store::record::read_floor;
use mingle_store::{Commit, Guard, RecordKey, StoreError, Write};

use super::answer;
use super::fetch::{self, Fetch, Found};
use super::name;
use crate::layout::Layout;

/// Adds the items needed to judge a commit.
///
/// # Errors
///
/// When a kind does not live here.
pub fn fetch(layout: &Layout, commit: &Commit, fetch: &mut Fetch) -> Result<(), String> {
    for guard in &commit.guards {
        fetch.add(name::record(record_of(guard)));
    }
    for key in rows_keys(layout, commit)? {
        fetch.add(key);
    }
    Ok(())
}

fn record_of(guard: &Guard) -> &RecordKey {
    match guard {
        Guard::Absent(record) | Guard::Below(record, _) => record,
    }
}

/// The items of the witness rows that a commit must know.
fn rows_keys(layout: &Layout, commit: &Commit) -> Result<Vec<Key>, String> {
    let written: BTreeSet<&Ref> = commit.writes.iter().filter_map(Write::object).collect();
    if written.is_empty() {
        return Ok(Vec::new());
    }
    let objects = written.into_iter().map(Some).chain([None]);
    objects.map(|object| fetch::rows(layout, object)).collect()
}

/// Returns the reason why a commit must not take effect; none if it may.
pub fn object(layout: &Layout, commit: &Commit, found: &Found) -> Option<StoreError> {
    let holds = |guard: &Guard| {
        let record = answer::record(found.get(&name::record(record_of(guard))));
        match guard {
            Guard::Absent(_) => record.is_none(),
            Guard::Below(_, bound) => record.is_none_or(|value| read_floor(&value) < *bound),
        }
    };
    if !commit.guards.iter().all(holds) {
        return Some(StoreError::Conflict);
    }
    let keys = rows_keys(layout, commit).unwrap_or_default();
    let rows: Vec<WitnessRow> = keys.iter().flat_map(|key| answer::rows(found.get(key))).collect();
    let is_own = |id: TransactionId| {
        let by_row = |write: &Write| matches!(write, Write::Witness(row) if row.id == id);
        commit.id == Some(id) || commit.writes.iter().any(by_row)
    };
    let is_known = |row: &WitnessRow| commit.known.contains(&row.id) || is_own(row.id);
    (!rows.iter().all(is_known)).then_some(StoreError::Witnessed { rows })
}
