//! Transactions: reads at one data center, and commits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use mingle_model::{Stamp, Version, WitnessRow};
use mingle_store::overlay::Overlay;
use mingle_store::{
    Answer, BoxFuture, Commit, Committed, Data, Read, StoreError, Transaction, Write,
};

use crate::change::RecordPlace;
use crate::commit::Own;
use crate::fetch::{Asked, Found, Part, complete, fetch};
use crate::layout::{Cell, Layout, ROWS};
use crate::limits::{READS_MAX, WRITES_MAX};
use crate::reading;
use crate::store::Core;

/// A transaction: its replica, and the writes that it has flushed.
pub(crate) struct CassandraTransaction {
    core: Arc<Core>,
    /// The index of its data center.
    replica: usize,
    overlay: Overlay,
    flushed: usize,
    /// Commands, in order; they are sent with the commit.
    commands: Vec<Write>,
    /// The latest timestamp that was read.
    seen: i64,
    /// The rows read, from reads with no value in chunks.
    read: Found,
}

/// The answer to a read of no object.
type Answered = (Data, Version);

impl CassandraTransaction {
    pub fn new(core: Arc<Core>, replica: usize) -> Self {
        Self {
            core,
            replica,
            overlay: Overlay::default(),
            flushed: 0,
            commands: Vec::new(),
            seen: 0,
            read: Found::default(),
        }
    }

    fn take(&mut self, writes: &[Write]) -> Result<(), StoreError> {
        let core = &self.core;
        self.flushed += writes.len();
        if self.flushed > WRITES_MAX {
            let (found, most) = (self.flushed, WRITES_MAX);
            return Err(
                core.refused(format!("a commit carries at most {most} writes, not {found}"))
            );
        }
        let checked = writes.iter().try_for_each(|write| core.check_write(write));
        checked.map_err(|reason| core.refused(reason))?;
        Ok(())
    }

    fn add(&mut self, writes: &[Write]) {
        for write in writes {
            // A unique timestamp.
            let version = self.core.clock.next().unsigned_abs();
            self.overlay.write(&self.core.layout.schema, write, version);
            if matches!(write, Write::Command { .. }) {
                self.commands.push(write.clone());
            }
        }
    }

    async fn answers(&mut self, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
        let core = Arc::clone(&self.core);
        if reads.len() > READS_MAX {
            let (found, most) = (reads.len(), READS_MAX);
            return Err(core.refused(format!("a batch has at most {most} reads, not {found}")));
        }
        let refused = |reason| core.refused(reason);
        let based: Vec<Option<Read>> = reads.iter().map(|read| self.overlay.base(read)).collect();
        let asked = asked(&core.layout, &self.overlay, reads, &based).map_err(refused)?;
        let site = &core.sites[self.replica];
        // Records that prove another transaction's effects are read first, then the effects. The
        // witness rows that name the transactions to wait for are read last, unless they are beside
        // the effects.
        let records = self.records(&based).await?;
        let objects = fetch(site, &core.layout, &asked);
        let found = if reads.iter().any(has_rows) {
            core.with_whole(self.replica, objects).await
        } else {
            objects.await
        };
        let mut found = found.map_err(|failed| core.failed(&failed))?;
        let is_inline = !found.is_chunked();
        let is_whole = complete(site, &mut found).await.map_err(|failed| core.failed(&failed))?;
        if !is_whole {
            return Err(StoreError::Conflict);
        }
        self.seen = self.seen.max(found.latest());
        core.clock.saw(self.seen);
        let others = self.others(&based, records).await?;
        for read in reads {
            if let Read::Counter(address) = read
                && let Ok(field) = core.layout.field(address, &[])
                && let Ok(object) = core.layout.object(&address.object)
            {
                let part = Part::Field(field.field.name.to_string());
                core.fold_if_long(self.replica, address, found.rows(&object, &part));
            }
        }
        let mut rows = Rows::new(&core, &found);
        let mut answers = Vec::with_capacity(reads.len());
        for ((read, base), other) in reads.iter().zip(&based).zip(others) {
            let base = match (base, other) {
                (_, Some(other)) => Some(other),
                (Some(base), None) => {
                    Some(reading::answer(&core.layout, base, &found).map_err(refused)?)
                }
                (None, None) => None,
            };
            let (data, version) = self.overlay.answer(read, base);
            let witnesses = rows.of(read, &self.overlay).map_err(refused)?;
            answers.push(Answer { data, version, witnesses });
        }
        if is_inline {
            self.read.join(found);
        }
        Ok(answers)
    }

    /// Answers the reads of records.
    async fn records(&self, based: &[Option<Read>]) -> Result<Vec<Option<Answered>>, StoreError> {
        let place = |base: &Option<Read>| match base {
            Some(Read::Record(key)) => Some(self.core.layout.record(key)),
            _ => None,
        };
        let places: Vec<Option<RecordPlace>> = based.iter().map(place).collect();
        let asked: Vec<RecordPlace> = places.iter().flatten().cloned().collect();
        let found = self.core.records_at(self.replica, &asked).await?;
        let answer = |at: Option<RecordPlace>| at.map(|at| record_answer(found.get(&at).cloned()));
        Ok(places.into_iter().map(answer).collect())
    }

    /// Answers the other reads of no object: queries, and then lists.
    async fn others(
        &self,
        based: &[Option<Read>],
        mut answered: Vec<Option<Answered>>,
    ) -> Result<Vec<Option<Answered>>, StoreError> {
        for is_query in [true, false] {
            let asking = based.iter().zip(&answered).map(|(base, answered)| async move {
                match base {
                    Some(base)
                        if answered.is_none()
                            && base.object().is_none()
                            && matches!(base, Read::Query { .. }) == is_query =>
                    {
                        self.core.other(self.replica, base).await.map(Some)
                    }
                    _ => Ok(None),
                }
            });
            let found = try_join_all(asking.collect::<Vec<_>>()).await?;
            for (answered, found) in answered.iter_mut().zip(found) {
                *answered = answered.take().or(found);
            }
        }
        Ok(answered)
    }
}

/// Returns the parts to read for reads of objects; `based` are the reads without own writes.
fn asked(
    layout: &Layout,
    overlay: &Overlay,
    reads: &[Read],
    based: &[Option<Read>],
) -> Result<Asked, String> {
    let mut asked = Asked::default();
    for (read, base) in reads.iter().zip(based) {
        layout.read(read)?;
        check_visible(overlay, read)?;
        match (base, read.object()) {
            (Some(base), Some(_)) => reading::ask(layout, base, &mut asked)?,
            // Its witness rows are needed even if its data is known here.
            (None, Some(object)) => asked.add(&layout.object(object)?, Part::Field(ROWS.into())),
            _ => {}
        }
    }
    Ok(asked)
}

/// True if the answer includes witness rows.
fn has_rows(read: &Read) -> bool {
    read.object().is_some() || matches!(read, Read::Query { .. })
}

/// The witness rows found, decoded once each.
struct Rows<'a> {
    core: &'a Core,
    found: &'a Found,
    decoded: BTreeMap<Cell, Vec<WitnessRow>>,
}

impl<'a> Rows<'a> {
    fn new(core: &'a Core, found: &'a Found) -> Self {
        Self { core, found, decoded: BTreeMap::new() }
    }

    fn at(&mut self, object: Cell) -> Result<Vec<WitnessRow>, String> {
        if let Some(rows) = self.decoded.get(&object) {
            return Ok(rows.clone());
        }
        let rows = reading::witnesses(self.found, &object)?;
        self.decoded.insert(object, rows.clone());
        Ok(rows)
    }

    fn of(&mut self, read: &Read, overlay: &Overlay) -> Result<Vec<WitnessRow>, String> {
        let mut rows = Vec::new();
        if let Some(object) = read.object() {
            let own = self.at(self.core.layout.object(object)?)?;
            rows = overlay.rows(Some(object), own);
        } else if !has_rows(read) {
            return Ok(rows);
        }
        let of_store = self.at(self.core.layout.whole())?;
        rows.extend(overlay.rows(None, of_store));
        Ok(rows)
    }
}

impl Transaction for CassandraTransaction {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(self.answers(reads))
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.take(&writes)?;
            self.add(&writes);
            Ok(())
        })
    }

    fn commit(
        mut self: Box<Self>,
        mut commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin(async move {
            let writes = std::mem::take(&mut commit.writes);
            self.take(&writes)?;
            self.add(&writes);
            if self.flushed == 0 && commit.guards.is_empty() {
                return Ok(Committed { version: Version(0), stamp: Stamp::default() });
            }
            self.core.tell_before(&self.overlay).await?;
            let is_fresh = |until: Duration| self.core.world.elapsed() < until;
            let own = Own {
                overlay: &self.overlay,
                commands: &self.commands,
                seen: self.seen,
                fresh: commit.fresh_until.is_some_and(is_fresh).then_some(&self.read),
            };
            let time = self.core.commit(self.replica, own, &commit).await?;
            Ok(Committed { version: Version(time.max(0) as u64), stamp: Stamp::default() })
        })
    }
}

/// Refuses reads that cannot see the transaction's own writes.
fn check_visible(overlay: &Overlay, read: &Read) -> Result<(), String> {
    let is_own = matches!(read, Read::Record(_) | Read::Records { .. } | Read::Witnesses { .. });
    let is_query = matches!(read, Read::Query { .. });
    if is_query && overlay.has_data || !is_own && overlay.has_commands {
        let what = if is_query { "a query" } else { "a read after a command" };
        return Err(format!(
            "{what} of a transaction that has written here before cannot see what it wrote: the \
             cluster gets writes with the commit alone; query first, or in a transaction of its own"
        ));
    }
    Ok(())
}

/// Returns the answer to a read of a record.
pub(crate) fn record_answer(found: Option<crate::fetch::Record>) -> (Data, Version) {
    match found {
        Some(record) => {
            (Data::Record(Some(record.value.into())), Version(record.time.max(0) as u64))
        }
        None => (Data::Record(None), Version(0)),
    }
}
