//! Transactions. A transaction holds a connection from its first read or flush until its end.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use mingle_model::{IndexRead, Name, Ref, Stamp, TransactionId, Value, Version};
use mingle_store::{
    Answer, BoxFuture, Commit, Committed, Listed, Listing, Read, Refusal, StoreError, Transaction,
    Write,
};

use crate::commit;
use crate::encoding::Digest;
use crate::error::Failure;
use crate::operation::Indexed;
use crate::pool::Lease;
use crate::reading::{Answered, Plan};
use crate::session::Step;
use crate::store::Inner;
use crate::text::Sql;
use crate::wire::Row;
use crate::writing::Writing;

/// Begins a transaction; its snapshot is that of the first statement after it.
static BEGIN: LazyLock<Sql> =
    LazyLock::new(|| "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE".into());

/// Begins a transaction that reads once, with statements of this adapter only.
static BEGIN_READS: LazyLock<Sql> =
    LazyLock::new(|| "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY".into());

/// The end of a transaction, relative to a batch of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// More statements follow.
    Later,
    /// The transaction ends with this batch.
    Now,
    /// The transaction ends with this batch, and none of its statements can write.
    Unwritten,
}

/// A transaction.
pub struct PostgresTransaction {
    pub(crate) inner: Arc<Inner>,
    /// Its connection, once it has one.
    pub(crate) lease: Option<Lease>,
    /// The reason why it can do nothing more.
    pub(crate) broken: Option<StoreError>,
    /// True if a call is waiting, or was dropped while it waited.
    waits: bool,
    /// True if it ended with its last reads.
    pub(crate) has_ended: bool,
    /// The record of its actions so far.
    pub(crate) done: Done,
}

/// The actions of a transaction before its commit.
#[derive(Default)]
pub(crate) struct Done {
    /// Records that were read one by one.
    pub(crate) records: BTreeSet<Vec<u8>>,
    /// Objects in Mingle's own tables that were read.
    pub(crate) objects: BTreeSet<(Name, Digest)>,
    /// Those of them that exist and have not been changed since.
    pub(crate) existing: BTreeSet<(Name, Digest)>,
    /// Objects whose keys were drawn and whose rows are not made yet.
    pub(crate) drawn: BTreeSet<Ref>,
    /// The newest version that was read.
    pub(crate) seen: u64,
    /// Number of flushed writes.
    pub(crate) flushed: usize,
    /// True if anything was written.
    pub(crate) has_written: bool,
    /// True if data was written.
    pub(crate) has_data: bool,
    /// Objects whose data was written.
    pub(crate) written: BTreeSet<Ref>,
    /// Records that were written.
    pub(crate) written_records: BTreeSet<Vec<u8>>,
    /// Floors that were written.
    pub(crate) floors: Vec<TransactionId>,
    /// Transactions whose witness rows were written.
    pub(crate) rows: BTreeSet<TransactionId>,
}

impl PostgresTransaction {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self {
            inner,
            lease: None,
            broken: None,
            waits: false,
            has_ended: false,
            done: Done::default(),
        }
    }

    pub(crate) fn refused(&self, why: impl Into<Refusal>) -> StoreError {
        why.into().at(self.inner.store.clone())
    }

    pub(crate) fn unavailable(&self, reason: impl Into<String>) -> StoreError {
        let store = self.inner.store.clone();
        StoreError::Unavailable { store, reason: reason.into() }
    }

    /// Returns the error that prevents further calls, if there is one.
    pub(crate) fn broken(&self) -> Option<StoreError> {
        let given_up = || self.unavailable("an earlier call was given up");
        self.broken.clone().or_else(|| self.waits.then(given_up))
    }

    /// Prepares all these steps on the transaction's connection. Returns true if its transaction
    /// has begun there; if not, nothing is begun yet.
    pub(crate) async fn ready(&mut self, steps: &[Step]) -> Result<bool, Failure> {
        let is_open = self.lease.is_some();
        if !is_open {
            self.lease = Some(self.inner.pool.lease().await.map_err(Failure::Unavailable)?);
        }
        let lease = self.lease.as_ref().expect("it was put there above");
        let failure = match lease.prepare(steps).await {
            Some(Ok(())) => return Ok(is_open),
            Some(Err(error)) => Failure::of(&error, &self.inner.layout),
            None => Failure::Lost("no answer in time".into()),
        };
        Err(failure)
    }

    /// Sends steps in one round trip, before or with the commit. Some of the steps may be those of
    /// `writes`.
    async fn send(
        &mut self,
        steps: Vec<Step>,
        end: End,
        writes: &[Write],
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        if let Some(broken) = self.broken() {
            return Err(broken);
        }
        if self.has_ended {
            return Err(self.refused("nothing comes after the last reads"));
        }
        self.waits = true;
        let sent = match self.try_send(steps, end).await {
            Ok(rows) => Ok(rows),
            Err(failure) => {
                // The second look at the tables needs a connection too.
                self.lease = None;
                Err(Box::pin(self.inner.explain(failure, writes)).await)
            }
        };
        self.waits = false;
        self.broken = sent.as_ref().err().cloned();
        self.has_ended = end != End::Later;
        if self.broken.is_some() || self.has_ended {
            // Other transactions can use its connection at once.
            self.lease = None;
        }
        sent
    }

    async fn try_send(&mut self, mut steps: Vec<Step>, end: End) -> Result<Vec<Vec<Row>>, Failure> {
        let is_open = self.ready(&steps).await?;
        let is_alone = !is_open && end == End::Unwritten && steps.len() == 1;
        if is_alone {
            // A single statement is a transaction, at the connection's isolation level.
        } else if !is_open {
            let begin = if end == End::Unwritten { &BEGIN_READS } else { &BEGIN };
            steps.insert(0, Step::control(Sql::clone(begin)));
        }
        if end != End::Later && !is_alone {
            steps.push(Step::commit());
        }
        let lease = self.lease.as_mut().expect("it is ready");
        lease.soil();
        let Some(results) = lease.run(&steps).await else {
            return Err(Failure::Lost("no answer in time".into()));
        };
        if end != End::Later {
            lease.settle(&results);
        }
        let skipped = usize::from(!is_open && !is_alone);
        let mut rows = Vec::with_capacity(results.len());
        for result in results {
            match result {
                Ok(found) => rows.push(found),
                Err(error) => {
                    let failure = Failure::of(&error, &self.inner.layout);
                    if matches!(failure, Failure::Stale(_)) {
                        lease.connection().forget();
                    }
                    return Err(failure);
                }
            }
        }
        if end != End::Later && !is_alone {
            rows.pop();
        }
        rows.drain(..skipped);
        Ok(rows)
    }

    async fn read_now(&mut self, reads: &[Read], is_last: bool) -> Result<Vec<Answer>, StoreError> {
        let inner = Arc::clone(&self.inner);
        let plan = Plan::new(&inner.layout, &inner.operations, reads);
        // Boxed, because it is large and kept across a long wait.
        let mut plan = Box::new(plan.map_err(|why| self.refused(why))?);
        if reads.is_empty() {
            return Ok(Vec::new());
        }
        // A batch that writes is not the last: its commit is yet to come.
        let end = match is_last && !plan.writes && !self.done.has_written {
            true if reads.iter().any(|read| matches!(read, Read::Query { .. })) => End::Now,
            true => End::Unwritten,
            false => End::Later,
        };
        let results = self.send(plan.take_steps(), end, &[]).await?;
        let found = plan.answers(&results).map_err(|why| self.refused(why))?;
        if self.has_ended {
            // No later call needs a record of these reads.
            self.done.saw(&found.answers);
            return Ok(found.answers);
        }
        Ok(self.done.note_read(&plan, found))
    }

    /// Lists objects in the order of their keys, and ends.
    pub(crate) async fn list(mut self, listing: &Listing) -> Result<Listed, StoreError> {
        let inner = Arc::clone(&self.inner);
        let layout = &inner.layout;
        // An index without fields has all objects, by their keys.
        let read = IndexRead {
            object: listing.kind.clone(),
            index: "all".into(),
            fields: Vec::new(),
            equal: 0,
            counts: false,
            is_unique: false,
        };
        let kind = layout.kind(&listing.kind).map_err(|why| self.refused(why))?;
        let after = listing.after(&layout.schema, &kind.key_type);
        let after = after.map_err(|why| self.refused(why))?;
        let most = i64::try_from(listing.most).unwrap_or(i64::MAX).saturating_add(1);
        let arguments = [
            after.map_or(Value::NONE, |after| Value::some(Value::Ref(after))),
            Value::Bool(false),
            Value::Int(most),
        ];
        let index = Indexed::new(layout, &read).map_err(|why| self.refused(why))?;
        let step = index.step(layout, &arguments).map_err(|why| self.refused(why))?;
        let rows = self.send(vec![step], End::Unwritten, &[]).await?;
        let rows = rows.first().map_or(&[][..], Vec::as_slice);
        let found = index.result(layout, rows).map_err(|why| self.refused(why))?;
        let objects = match found {
            Value::List(found) => found.iter().filter_map(Value::as_ref_value).cloned().collect(),
            _ => Vec::new(),
        };
        Ok(listing.page(&layout.schema, &kind.key_type, objects))
    }

    async fn flush_now(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        if writes.is_empty() {
            return Ok(());
        }
        let inner = Arc::clone(&self.inner);
        let flush = self.done.flush(&inner, &writes);
        let (steps, writing) = flush.map_err(|why| self.refused(why))?;
        self.send(steps, End::Later, &writes).await?;
        self.done.has_flushed(writing, &writes);
        Ok(())
    }
}

impl Done {
    /// Returns the result of a transaction that has written nothing.
    pub(crate) fn read(&self) -> Committed {
        Committed { version: Version(self.seen), stamp: Stamp::default() }
    }

    /// Records the reads, and returns the answers.
    pub(crate) fn note_read(&mut self, plan: &Plan<'_>, found: Answered) -> Vec<Answer> {
        let answers = found.answers;
        self.records.extend(plan.records().iter().cloned());
        self.objects.extend(plan.objects().map(|(kind, object)| (kind.clone(), object.clone())));
        self.has_written |= plan.writes;
        self.has_data |= plan.writes;
        // A command may have any effect.
        self.existing.retain(|_| !plan.writes);
        self.existing.extend(found.existing.into_iter().filter(|_| !plan.writes));
        self.drawn.extend(plan.drawn(&answers));
        self.saw(&answers);
        answers
    }

    fn saw(&mut self, answers: &[Answer]) {
        let newest = answers.iter().map(|answer| answer.version.0).max();
        self.seen = self.seen.max(newest.unwrap_or(0));
    }

    /// Returns the statements that flush writes, and the state to record afterwards.
    ///
    /// # Errors
    ///
    /// The reason why they cannot be written.
    pub(crate) fn flush<'a>(
        &mut self,
        inner: &'a Inner,
        writes: &[Write],
    ) -> Result<(Vec<Step>, Writing<'a>), Refusal> {
        let existing = std::mem::take(&mut self.existing);
        let writing = Writing::new(&inner.layout, &inner.operations, existing);
        let mut writing = writing.having_drawn(&self.drawn);
        writing.add(writes, self.flushed)?;
        let mut steps = std::mem::take(&mut writing.steps);
        if writing.concerns_store {
            steps.insert(0, commit::lock_store(&inner.layout));
        }
        Ok((steps, writing))
    }

    /// Records flushed writes.
    pub(crate) fn has_flushed(&mut self, writing: Writing<'_>, writes: &[Write]) {
        self.flushed += writes.len();
        self.note(writing, writes);
    }

    /// Records writes.
    pub(crate) fn note(&mut self, writing: Writing<'_>, writes: &[Write]) {
        self.has_written |= !writes.is_empty();
        self.has_data |= writing.has_data;
        self.written.extend(writing.objects);
        self.written_records.extend(writing.records);
        self.floors.extend(writing.floors);
        self.existing = writing.existing;
        self.drawn = writing.drawn;
        self.rows.extend(writes.iter().filter_map(|write| match write {
            Write::Witness(row) => Some(row.id),
            _ => None,
        }));
    }
}

impl Transaction for PostgresTransaction {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(self.read_now(reads, false))
    }

    fn read_last<'a>(
        &'a mut self,
        reads: &'a [Read],
    ) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(self.read_now(reads, true))
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.flush_now(writes))
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        if self.has_ended && self.broken().is_none() && commit.is_empty() {
            // Its last reads were its commit.
            return Box::pin(std::future::ready(Ok(self.done.read())));
        }
        Box::pin(commit::commit(*self, commit))
    }
}

/// Returns the statement that begins a transaction.
pub(crate) fn begin() -> Step {
    Step::control(Sql::clone(&BEGIN))
}
