//! Transactions at one replica.

use std::sync::Arc;

use mingle_model::{Stamp, Version};
use mingle_store::{
    Answer, BoxFuture, Commit, Committed, Listed, Listing, Read, StoreError, Transaction, Write,
};

use super::engine::{CommitJob, Engine, Job, TENTATIVE, load};
use crate::core::Failure;
use crate::encoding::key;
use crate::reading::Reading;
use crate::storage::overlay::Draft;
use crate::storage::{Changes, Snapshot, StorageError, View};
use crate::turnstile::{Slot, submit};
use crate::writing;

/// A transaction at one replica.
pub struct ReplicatedTransaction {
    engine: Arc<Engine>,
    /// Number of times the disk had been opened again when it began.
    openings: u64,
    replica: u8,
    /// The stamp that the replica must have seen first.
    after: Stamp,
    snapshot: Option<Snapshot>,
    /// The changes of the flushed writes.
    changes: Changes,
    flushed: Vec<Write>,
    /// The newest version that was read.
    seen: u64,
}

impl ReplicatedTransaction {
    /// Creates a transaction that has done nothing yet.
    pub fn new(engine: &Arc<Engine>, replica: u8, after: &Stamp) -> Self {
        Self {
            engine: Arc::clone(engine),
            openings: engine.core.openings(),
            replica,
            after: after.clone(),
            snapshot: None,
            changes: Changes::new(),
            flushed: Vec::new(),
            seen: 0,
        }
    }

    /// Takes the snapshot at the first read, after the updates that are due have been applied.
    async fn settle(&mut self) -> Result<(), StoreError> {
        self.engine.core.check_since(self.openings)?;
        if self.snapshot.is_none() {
            self.engine.deliver(self.replica).await?;
            let snapshot = self.engine.core.snapshot()?;
            let engine = &self.engine;
            let (replica, after) = (self.replica, &self.after);
            engine.core.contained(|| engine.check_seen(&*snapshot, replica, after))?;
            self.snapshot = Some(snapshot);
        }
        Ok(())
    }

    /// Lists objects as the replica has them once all that is due has arrived.
    pub(super) async fn list(mut self, listing: &Listing) -> Result<Listed, StoreError> {
        self.settle().await?;
        let (engine, none) = (Arc::clone(&self.engine), Changes::new());
        engine.core.contained(|| {
            let mut reading = Reading::at_replica(&engine.core, self.replica, self.view(), &none);
            reading.list(listing).map_err(|why| engine.core.failure(why))
        })
    }

    /// Ends without having written anything.
    async fn end(mut self) -> Result<Committed, StoreError> {
        let engine = Arc::clone(&self.engine);
        if engine.counted.is_empty() {
            return Ok(Committed { version: Version(self.seen), stamp: Stamp::default() });
        }
        self.settle().await?;
        let stamp = engine.core.contained(|| {
            engine.seen(self.view(), self.replica).map_err(|error| engine.core.fail(&error))
        })?;
        Ok(Committed { version: Version(self.seen), stamp })
    }

    fn view(&self) -> &dyn View {
        &**self.snapshot.as_ref().expect("settle took it")
    }

    fn read_now(&mut self, reads: &[Read]) -> Result<Vec<Answer>, Failure> {
        let core = &self.engine.core;
        let mut reading = Reading::at_replica(core, self.replica, self.view(), &self.changes);
        // An index is read at the replica, as the objects that it leads to.
        let is_strong = |read: &Read| match read {
            Read::Query { operation, .. } => !core.builtins.get(operation).is_some_and(|found| {
                found.as_ref().is_some_and(|builtin| builtin.index().is_some())
            }),
            _ => false,
        };
        let strong = if reads.iter().any(is_strong) { Some(self.strong()?) } else { None };
        let none = Changes::new();
        let mut seen = self.seen;
        let mut answers = Vec::with_capacity(reads.len());
        for read in reads {
            let answer = match (&strong, read) {
                (Some(strong), read) if is_strong(read) => {
                    Reading::at_replica(core, self.replica, strong, &none).answer(read)?
                }
                _ => reading.answer(read)?,
            };
            seen = seen.max(answer.version.0 & !TENTATIVE);
            answers.push(answer);
        }
        drop(strong);
        self.seen = seen;
        Ok(answers)
    }

    /// Returns the rows as they will be here once all acknowledged updates of all replicas have arrived,
    /// with the transaction's own writes.
    fn strong(&self) -> Result<Draft<'_>, StorageError> {
        let mut draft = Draft::new(self.view(), Changes::new());
        for key in draft.keys(&key::queue(self.replica))? {
            let update = load(&draft, key::number(&key))?;
            self.engine.receive(&mut draft, self.replica, &update)?;
        }
        self.engine.tentative(&mut draft, self.replica, &self.flushed)?;
        Ok(draft)
    }
}

impl Transaction for ReplicatedTransaction {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(async move {
            self.settle().await?;
            let engine = Arc::clone(&self.engine);
            let core = &engine.core;
            core.contained(|| self.read_now(reads).map_err(|why| core.failure(why)))
        })
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.settle().await?;
            let engine = Arc::clone(&self.engine);
            let writes = writing::prepare(&engine.core, writes, self.flushed.len())
                .map_err(|reason| engine.core.refused(reason))?;
            self.flushed.extend(writes);
            self.changes = engine.core.contained(|| {
                let mut draft = Draft::new(self.view(), Changes::new());
                let done = engine.tentative(&mut draft, self.replica, &self.flushed);
                done.map_err(|error| engine.core.fail(&error))?;
                Ok(draft.changes)
            })?;
            Ok(())
        })
    }

    fn commit(
        self: Box<Self>,
        mut commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        let mut this = *self;
        Box::pin(async move {
            let engine = Arc::clone(&this.engine);
            let late = writing::prepare(&engine.core, commit.writes, this.flushed.len())
                .map_err(|reason| engine.core.refused(reason))?;
            commit.writes = std::mem::take(&mut this.flushed);
            commit.writes.extend(late);
            writing::check_size(&commit.writes).map_err(|reason| engine.core.refused(reason))?;
            if commit.is_empty() {
                return this.end().await;
            }
            this.settle().await?;
            drop(this.snapshot);
            let slot = Slot::new();
            let job = CommitJob {
                replica: this.replica,
                commit,
                seen: this.seen,
                slot: Arc::clone(&slot),
            };
            submit(&engine, slot, Job::Commit(job)).await
        })
    }
}
