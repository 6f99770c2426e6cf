//! A commit: its guards, and the mutations that it sends.
//!
//! A commit first reads the rows that it overwrites, the witness rows and the records that its
//! guards name, all at once; then it sends its mutations. Before sending, it compares and sets in
//! two cases: if it must find a record absent that it writes itself, or if its id decides. The row
//! that it sets then carries all other mutations, so that any process that finds it can carry them
//! out if the process that set it is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join;
use mingle_model::{Origin, TransactionId, WitnessRow};
use mingle_store::overlay::Overlay;
use mingle_store::record::read_floor;
use mingle_store::{Commit, Guard, Outcome, RecordKey, RecordKind, Refusal, StoreError, Write};
use scylla::value::CqlValue;

use crate::bind::blob;
use crate::change::{Change, Place, RecordPlace};
use crate::config::Outcomes;
use crate::error::Failed;
use crate::fetch::{Found, Part, Record, bytes, fetch, records};
use crate::layout::{Cell, Layout, ROWS};
use crate::link::{Taken, takes_several};
use crate::listing::Listed;
use crate::reading;
use crate::statement::Statement;
use crate::store::Core;
use crate::writing::{self, Dots, id_bytes, row_place};

/// The transaction's part of its commit.
#[derive(Clone, Copy)]
pub struct Own<'a> {
    /// The net effect of its writes.
    pub overlay: &'a Overlay,
    /// Its commands, in order.
    pub commands: &'a [Write],
    /// The latest timestamp that it has read.
    pub seen: i64,
    /// The rows that it has read, if those and floors need not be read again.
    pub fresh: Option<&'a Found>,
}

/// The rows that a commit has read.
struct Known {
    found: Found,
    records: BTreeMap<RecordPlace, Record>,
    /// The witness rows to be removed.
    forgotten: Vec<Listed>,
}

impl Core {
    /// Commits at a replica; returns the timestamp.
    pub(crate) async fn commit(
        self: &Arc<Self>,
        replica: usize,
        own: Own<'_>,
        commit: &Commit,
    ) -> Result<i64, StoreError> {
        let Own { overlay, seen, .. } = own;
        let refused = |reason| self.refused(reason);
        let known = self.ask(replica, own, commit).await?;
        if !guards(own, commit).all(|guard| holds(&self.layout, &known.records, guard)) {
            return Err(StoreError::Conflict);
        }
        self.check_witnesses(replica, overlay, commit, &known.found).await?;
        let taken = taken_by_guard(overlay, commit);
        let time = self.time_of(commit, seen.max(known.found.latest()))?;
        let dots = match commit.operation {
            Some(operation) => Dots::of_operation(time, operation),
            None => Dots::of_writer(time, self.writer),
        };
        let mut changes = self.changes_of(own, commit, &known, &dots).map_err(refused)?;
        let listed = self.unlisted(&changes);
        let decided = commit.id.filter(|_| self.outcomes == Outcomes::Decided);
        // Set if other processes may carry out the rest: not sending it does not undo the commit.
        let mut is_begun = taken.is_some() || decided.is_some();
        changes.extend(listed.iter().cloned());
        if taken.is_some() || decided.is_some() || takes_several(&changes) {
            // Other processes must be able to find the mutations that they may carry out.
            self.send(replica, &listed, None).await?;
        }
        match (taken, decided) {
            (Some(key), decided) => {
                if let Some(id) = decided {
                    self.take_id(id, &[]).await?;
                }
                let settle = self.take_record(replica, overlay, &key, &changes, commit.id).await?;
                changes.push(settle);
            }
            (None, Some(id)) => self.take_id(id, &changes).await?,
            (None, None) if commit.operation.is_none() && takes_several(&changes) => {
                is_begun = self.announce(replica, &mut changes).await?;
            }
            (None, None) => {}
        }
        if let Some(id) = decided {
            changes.push(Change::Settled { id: self.outcome_id(id), time });
        }
        // The records that prove that a copy of an operation ran are written after all its effects.
        let last = if commit.operation.is_some() { records_of(&mut changes) } else { Vec::new() };
        let sent = self.send(replica, &changes, commit.id).await;
        sent.map_err(|error| match error {
            StoreError::Unavailable { .. } if is_begun => self.lose(commit.id, replica, &changes),
            error => error,
        })?;
        if last.is_empty() {
            self.registered.note(&listed, self.world.elapsed());
        } else {
            self.trail(replica, last).await;
        }
        Ok(time)
    }

    /// Returns the mutations of a commit.
    fn changes_of(
        &self,
        Own { overlay, commands, .. }: Own<'_>,
        commit: &Commit,
        known: &Known,
        dots: &Dots,
    ) -> Result<Vec<Change>, Refusal> {
        let mut changes = writing::build(&self.layout, overlay, &known.found, dots)?;
        for command in commands {
            if let Write::Command { operation, arguments } = command {
                let operation = self.operation(operation, true)?;
                changes.push(operation.change(&self.layout.schema, arguments, dots.time())?);
            }
        }
        changes.extend(known.drops(&self.layout, overlay));
        changes.extend(self.put_records(overlay, dots, commit));
        Ok(changes)
    }

    /// Returns the timestamp of a commit that has seen the timestamp `seen`.
    fn time_of(&self, commit: &Commit, seen: i64) -> Result<i64, StoreError> {
        self.clock.saw(seen);
        let time = match commit.operation {
            Some(_) if commit.time > 0 => i64::try_from(commit.time).unwrap_or(i64::MAX),
            // Copies with timestamps of their own would be separate operations.
            Some(_) => return Err(self.refused("an operation has no time that all copies share")),
            None => self.clock.next(),
        };
        self.clock.saw(time);
        Ok(time)
    }

    async fn ask(
        self: &Arc<Self>,
        replica: usize,
        own: Own<'_>,
        commit: &Commit,
    ) -> Result<Known, StoreError> {
        let (site, overlay) = (&self.sites[replica], own.overlay);
        let mut asked =
            writing::ask(&self.layout, overlay).map_err(|reason| self.refused(reason))?;
        let (whole, rows) = (self.layout.whole(), Part::Field(ROWS.to_owned()));
        if overlay.has_data {
            asked.add(&whole, rows.clone());
        }
        let mut known = own.fresh.map(|read| asked.take_known(read)).unwrap_or_default();
        let mut places: BTreeSet<RecordPlace> =
            guards(own, commit).map(|guard| self.layout.record(key_of(guard))).collect();
        let discarded = overlay.records().filter(|(_, value)| value.is_none());
        places.extend(discarded.map(|(key, _)| self.layout.record(key)));
        let places: Vec<RecordPlace> = places.into_iter().collect();
        let is_whole_asked = asked.remove(&whole, rows);
        let found = async {
            let objects = fetch(site, &self.layout, &asked);
            let found = if is_whole_asked {
                self.with_whole(replica, objects).await
            } else {
                objects.await
            };
            found.map_err(|failed| self.failed(&failed))
        };
        let others = try_join(self.records_at(replica, &places), self.rows_of(replica, overlay));
        let (found, (records, forgotten)) = try_join(found, others).await?;
        known.join(found);
        Ok(Known { found: known, records, forgotten })
    }

    /// Returns the records that exist, after carrying out the mutations that follow them.
    pub(crate) async fn records_at(
        self: &Arc<Self>,
        replica: usize,
        places: &[RecordPlace],
    ) -> Result<BTreeMap<RecordPlace, Record>, StoreError> {
        self.await_trailing(replica, Some(places)).await?;
        let found = records(&self.sites[replica], places).await;
        let found = found.map_err(|failed| self.failed(&failed))?;
        for (at, record) in &found {
            self.finish(replica, at, record).await?;
        }
        Ok(found)
    }

    /// Carries out the mutations that follow a record, unless they are done.
    pub(crate) async fn finish(
        &self,
        replica: usize,
        at: &RecordPlace,
        record: &Record,
    ) -> Result<(), StoreError> {
        let Some(redo) = &record.redo else { return Ok(()) };
        self.redo(replica, redo, Change::Settle { at: at.clone(), time: record.touched }).await
    }

    /// Carries out the mutations of another process, and marks them as done.
    async fn redo(&self, replica: usize, redo: &[u8], settle: Change) -> Result<(), StoreError> {
        let mut changes: Vec<Change> = postcard::from_bytes(redo)
            .map_err(|_| self.refused("what was to be done is of a newer version"))?;
        changes.push(settle);
        self.send(replica, &changes, None).await
    }

    /// Applies mutations at a replica, and so at all.
    pub(crate) async fn send(
        &self,
        replica: usize,
        changes: &[Change],
        id: Option<TransactionId>,
    ) -> Result<(), StoreError> {
        let sent = self.sites[replica].apply(changes).await;
        if let Some(apart) = self.apart.as_ref().filter(|_| sent.is_ok()) {
            apart.send(replica, self.sites.len(), changes);
        }
        sent.map_err(|failed| match failed {
            Failed::No(reason) => self.refused(reason),
            Failed::Unsent(reason) => self.unavailable(reason),
            Failed::Lost(_) => self.lose(id, replica, changes),
        })
    }

    /// Handles mutations of which the effect is unknown: they can be sent again.
    fn lose(&self, id: Option<TransactionId>, replica: usize, changes: &[Change]) -> StoreError {
        if let Some(id) = id {
            self.remember(id, replica, changes);
        }
        self.unknown(id)
    }

    /// Checks that the writer of data knows the witness rows of its object and of the whole store.
    /// It knows its own rows.
    async fn check_witnesses(
        self: &Arc<Self>,
        replica: usize,
        overlay: &Overlay,
        commit: &Commit,
        found: &Found,
    ) -> Result<(), StoreError> {
        if !overlay.has_data {
            return Ok(());
        }
        let refused = |reason| self.refused(reason);
        let mut rows: Vec<WitnessRow> =
            reading::witnesses(found, &self.layout.whole()).map_err(refused)?;
        for (object, _) in overlay.objects() {
            let object = self.layout.object(object).map_err(refused)?;
            rows.extend(reading::witnesses(found, &object).map_err(refused)?);
        }
        if overlay.has_commands {
            // A command can write any object.
            let from = TransactionId { origin: Origin(0), sequence: 0 };
            rows.extend(self.witnesses(replica, from, usize::MAX).await?);
            rows.sort();
            rows.dedup();
        }
        let own: BTreeSet<TransactionId> =
            overlay.added_rows().map(|row| row.id).chain(commit.id).collect();
        if rows.iter().all(|row| commit.known.contains(&row.id) || own.contains(&row.id)) {
            return Ok(());
        }
        Err(StoreError::Witnessed { rows })
    }

    fn put_records(&self, overlay: &Overlay, dots: &Dots, commit: &Commit) -> Vec<Change> {
        // Copies of an operation differ in their commit witness: the last copy's witness wins.
        let time = if commit.operation.is_some() { self.clock.next() } else { dots.time() };
        let put = |(key, value): (&RecordKey, Option<&mingle_store::Bytes>)| {
            let value = value?.to_vec();
            // Of two floors the higher one wins, in any order and from any process.
            let time = match (key.kind, value.len()) {
                (RecordKind::Floor, 8) => read_floor(&value).clamp(1, i64::MAX as u64) as i64,
                _ => time,
            };
            Some(Change::PutRecord { at: self.layout.record(key), value, time })
        };
        overlay.records().filter_map(put).collect()
    }

    /// Sets a record, together with the others of its partition, unless it exists. Returns the
    /// change that marks all other mutations as done.
    async fn take_record(
        &self,
        replica: usize,
        overlay: &Overlay,
        key: &RecordKey,
        changes: &[Change],
        id: Option<TransactionId>,
    ) -> Result<Change, StoreError> {
        let first = self.layout.record(key);
        let values: Vec<(RecordPlace, &[u8])> = overlay
            .records()
            .filter_map(|(key, value)| Some((self.layout.record(key), &value?[..])))
            .filter(|(place, _)| (&place.kind, &place.head) == (&first.kind, &first.head))
            .collect();
        let value = values.iter().find(|(place, _)| *place == first).map_or(&[][..], |(_, v)| v);
        let others: Vec<(&RecordPlace, &[u8])> = values
            .iter()
            .filter(|(place, _)| *place != first)
            .map(|(place, value)| (place, *value))
            .collect();
        let is_there = |change: &Change| match change {
            Change::PutRecord { at, .. } => (&at.kind, &at.head) == (&first.kind, &first.head),
            _ => false,
        };
        let rest: Vec<&Change> = changes.iter().filter(|change| !is_there(change)).collect();
        let redo = if rest.is_empty() { Cell::new() } else { self.redo_of(replica, &rest).await? };
        let taken = self.sites[replica].take_records((&first, value, &redo), &others).await;
        match taken {
            Ok(Taken::Set) => Ok(Change::Settle { at: first, time: self.clock.next() }),
            Ok(Taken::Not(_)) => Err(StoreError::Conflict),
            Err(Failed::No(reason)) => Err(self.refused(reason)),
            Err(Failed::Unsent(reason)) => Err(self.unavailable(reason)),
            Err(Failed::Lost(_)) => Err(self.unknown(id)),
        }
    }

    /// Returns the bytes from which other processes can carry out mutations: long values are
    /// written first.
    async fn redo_of(&self, replica: usize, changes: &[&Change]) -> Result<Cell, StoreError> {
        let is_chunk = |change: &&Change| matches!(change, Change::PutChunk { .. });
        let chunks: Vec<Change> = changes.iter().copied().filter(is_chunk).cloned().collect();
        self.send(replica, &chunks, None).await?;
        let rest: Vec<&Change> =
            changes.iter().copied().filter(|change| !is_chunk(change)).collect();
        let redo = postcard::to_stdvec(&rest).expect("changes have a form");
        if redo.len() > crate::limits::PARTITION_BYTES_MAX {
            let (found, most) = (redo.len(), crate::limits::PARTITION_BYTES_MAX);
            return Err(self.refused(format!(
                "a commit that compares and sets takes at most {most} bytes, not {found}"
            )));
        }
        Ok(redo)
    }

    /// Writes the records of a commit that takes several batches first, together with all other
    /// mutations: any process that finds the records does the rest. A commit without records has no
    /// such process. Returns true if there were records.
    async fn announce(
        &self,
        replica: usize,
        changes: &mut Vec<Change>,
    ) -> Result<bool, StoreError> {
        let first = changes.iter().find_map(|change| match change {
            Change::PutRecord { at, value, time } => Some((at.clone(), value.clone(), *time)),
            _ => None,
        });
        let Some((at, value, time)) = first else { return Ok(false) };
        let all: Vec<&Change> = changes.iter().collect();
        let redo = self.redo_of(replica, &all).await?;
        let is_beside = |change: &&Change| match change {
            Change::PutRecord { at: other, .. } => {
                *other != at && (&other.kind, &other.head) == (&at.kind, &at.head)
            }
            _ => false,
        };
        let mut announced: Vec<Change> = changes.iter().filter(is_beside).cloned().collect();
        announced.push(Change::Announce { at: at.clone(), value, redo, time });
        self.send(replica, &announced, None).await?;
        changes.push(Change::Settle { at, time: self.clock.next() });
        Ok(true)
    }

    /// Takes an id, with the mutations to carry out; `changes` is empty if a record holds them.
    async fn take_id(&self, id: TransactionId, changes: &[Change]) -> Result<(), StoreError> {
        let changes: Vec<&Change> = changes.iter().collect();
        let redo = self.redo_of(0, &changes).await?;
        let values = vec![blob(&self.outcome_id(id)), blob(&redo), self.keep_outcomes()];
        match self.sites[0].take(Statement::TakeId, values).await {
            Ok(Taken::Set) => Ok(()),
            Ok(Taken::Not(row)) if is_barred(&row) => {
                Err(self.refused(format!("{id} was said to be not committed")))
            }
            Ok(Taken::Not(_)) => Err(StoreError::Conflict),
            Err(Failed::No(reason)) => Err(self.refused(reason)),
            Err(Failed::Unsent(reason)) => Err(self.unavailable(reason)),
            Err(Failed::Lost(_)) => Err(self.unknown(Some(id))),
        }
    }

    /// Ensures that an id takes effect now or never, as far as the store can tell.
    pub(crate) async fn decide(&self, id: TransactionId) -> Result<Outcome, StoreError> {
        let values = vec![blob(&self.outcome_id(id)), self.keep_outcomes()];
        let taken = self.sites[0].take(Statement::BarId, values).await;
        let row = match taken.map_err(|failed| self.failed(&failed))? {
            Taken::Set => return Ok(Outcome::NotCommitted),
            Taken::Not(row) => row,
        };
        if is_barred(&row) {
            return Ok(Outcome::NotCommitted);
        }
        if !row.contains_key("settled") {
            let redo = row.get("redo").cloned().and_then(|redo| bytes(Some(redo)));
            let redo = redo.ok_or_else(|| self.refused("an outcome is not what it was"))?;
            let changes: Vec<Change> = postcard::from_bytes(&redo).unwrap_or_default();
            if changes.is_empty() {
                return Ok(Outcome::Unknown);
            }
            let settled = Change::Settled { id: self.outcome_id(id), time: self.clock.next() };
            self.redo(0, &redo, settled).await?;
        }
        Ok(Outcome::Committed)
    }

    fn outcome_id(&self, id: TransactionId) -> Cell {
        self.layout.within(&id_bytes(id))
    }

    fn keep_outcomes(&self) -> CqlValue {
        CqlValue::Int(i32::try_from(self.keep_outcomes.as_secs()).unwrap_or(i32::MAX))
    }
}

/// Takes the records out of the changes of an operation, if there are other changes.
fn records_of(changes: &mut Vec<Change>) -> Vec<Change> {
    if changes.iter().all(Change::is_record) {
        return Vec::new();
    }
    let (records, rest) = std::mem::take(changes).into_iter().partition(Change::is_record);
    *changes = rest;
    records
}

/// Returns the record that must be absent and is written, if the first writer must win: copies of
/// an operation do no harm to each other.
fn taken_by_guard(overlay: &Overlay, commit: &Commit) -> Option<RecordKey> {
    let written = |key: &&RecordKey| {
        overlay.records().any(|(written, value)| written == *key && value.is_some())
    };
    let keys = commit.guards.iter().filter_map(|guard| match guard {
        Guard::Absent(key) => Some(key),
        Guard::Below(..) => None,
    });
    let mut keys = keys.filter(|_| commit.operation.is_none()).filter(written);
    keys.next().cloned()
}

fn is_barred(outcome: &BTreeMap<String, CqlValue>) -> bool {
    outcome.get("state").and_then(CqlValue::as_text).is_some_and(|state| state == "barred")
}

/// The guards to be checked: no process can have raised a floor over a fresh transaction.
fn guards<'a>(own: Own<'_>, commit: &'a Commit) -> impl Iterator<Item = &'a Guard> {
    let is_fresh = own.fresh.is_some();
    commit.guards.iter().filter(move |guard| !is_fresh || matches!(guard, Guard::Absent(_)))
}

fn key_of(guard: &Guard) -> &RecordKey {
    match guard {
        Guard::Absent(key) | Guard::Below(key, _) => key,
    }
}

fn holds(layout: &Layout, records: &BTreeMap<RecordPlace, Record>, guard: &Guard) -> bool {
    let found = records.get(&layout.record(key_of(guard)));
    match guard {
        Guard::Absent(_) => found.is_none(),
        Guard::Below(_, number) => found.is_none_or(|found| read_floor(&found.value) < *number),
    }
}

impl Known {
    /// Returns the removals of records and witness rows, as they were seen.
    fn drops(&self, layout: &Layout, overlay: &Overlay) -> Vec<Change> {
        let mut changes = Vec::new();
        for (key, _) in overlay.records().filter(|(_, value)| value.is_none()) {
            let at = layout.record(key);
            if let Some(found) = self.records.get(&at) {
                changes.push(Change::DropRecord { at, time: found.touched });
            }
        }
        for (id, (object, digest), time) in &self.forgotten {
            let at: Place = row_place(object.clone(), id.clone(), digest.clone());
            changes.push(Change::Drop { at, time: *time });
            let place = (object.clone(), digest.clone());
            changes.push(Change::DropRow { id: id.clone(), place, time: *time });
        }
        changes
    }
}
