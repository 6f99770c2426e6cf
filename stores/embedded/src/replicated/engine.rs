//! Transactions, commits and deliveries.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mingle_model::{TransactionId, Version};
use mingle_store::{
    Answer, BoxFuture, Capabilities, Commit, Committed, DataStore, Outcome, Read, Session,
    StoreError, Transaction, Write,
};

use super::apply::apply;
use super::build::build;
use super::inbox::Inbox;
use super::rows::ReplicaState;
use super::update::Update;
use crate::config::EmbeddedConfig;
use crate::core::{Core, Failure};
use crate::encoding::key;
use crate::encoding::row::Fate;
use crate::encoding::wire::Reader;
use crate::limits::DELIVERIES_PER_COMMIT_MAX;
use crate::reading::Reading;
use crate::storage::overlay::Draft;
use crate::storage::{Changes, Snapshot, StorageError, View};
use crate::turnstile::{Settle, Slot, Turnstile, submit};
use crate::writing;

/// A replicated store.
pub struct ReplicatedStore {
    engine: Arc<Engine>,
    capabilities: Capabilities,
}

struct Engine {
    core: Core,
    turnstile: Turnstile<Job>,
    inbox: Inbox,
    replicas: usize,
    /// Whether updates wait for those that their origin had seen.
    is_causal: bool,
    /// Versions of writes that were flushed and are not committed.
    tentative: AtomicU64,
}

enum Job {
    Commit(CommitJob),
    Deliver(u8, Arc<Slot<Result<usize, StoreError>>>),
    Outcome(TransactionId, Arc<Slot<Result<Outcome, StoreError>>>),
}

struct CommitJob {
    replica: u8,
    writes: Vec<Write>,
    id: Option<TransactionId>,
    slot: Arc<Slot<Result<Committed, StoreError>>>,
}

const TENTATIVE: u64 = 1 << 63;

impl ReplicatedStore {
    /// The store over rows that fit its layout.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn new(
        core: Core,
        capabilities: Capabilities,
        config: &EmbeddedConfig,
    ) -> Result<Self, StorageError> {
        let snapshot = core.storage.snapshot()?;
        let inbox = Inbox::load(config, &*snapshot, &*core.world)?;
        let engine = Engine {
            core,
            turnstile: Turnstile::default(),
            inbox,
            replicas: config.replicas.len(),
            is_causal: capabilities.level == mingle_model::Level::Causal,
            tentative: AtomicU64::new(TENTATIVE),
        };
        Ok(Self { engine: Arc::new(engine), capabilities })
    }

    fn replica(&self, session: &Session) -> Result<u8, StoreError> {
        let replicas = &self.capabilities.replicas;
        let index = match &session.replica {
            None => 0,
            Some(name) => replicas.iter().position(|r| r == name).ok_or_else(|| {
                let names = replicas.join(", ");
                let reason = format!("it has no replica {name}; it has {names}");
                self.engine.core.refused(reason)
            })?,
        };
        Ok(u8::try_from(index).expect("replicas are bounded by REPLICAS_MAX"))
    }
}

impl DataStore for ReplicatedStore {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        let checked = self.engine.core.check();
        let begun = checked.and_then(|()| self.replica(session)).map(|replica| {
            let transaction: Box<dyn Transaction> = Box::new(ReplicatedTransaction {
                engine: Arc::clone(&self.engine),
                replica,
                snapshot: None,
                changes: Changes::new(),
                flushed: Vec::new(),
                seen: 0,
            });
            transaction
        });
        Box::pin(std::future::ready(begun))
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        let slot = Slot::new();
        let job = Job::Outcome(id, Arc::clone(&slot));
        Box::pin(submit(&self.engine, slot, job))
    }
}

struct ReplicatedTransaction {
    engine: Arc<Engine>,
    replica: u8,
    snapshot: Option<Snapshot>,
    /// What the flushed writes change.
    changes: Changes,
    flushed: Vec<Write>,
    /// The newest version that was read.
    seen: u64,
}

impl ReplicatedTransaction {
    /// Takes the snapshot with the first read, after what is due by then has been applied.
    async fn settle(&mut self) -> Result<(), StoreError> {
        if self.snapshot.is_none() {
            self.engine.deliver(self.replica).await?;
            self.snapshot = Some(self.engine.core.snapshot()?);
        }
        Ok(())
    }

    fn view(&self) -> &dyn View {
        &**self.snapshot.as_ref().expect("settle took it")
    }

    fn read_now(&mut self, reads: &[Read]) -> Result<Vec<Answer>, Failure> {
        let core = &self.engine.core;
        let mut reading = Reading::at_replica(core, self.replica, self.view(), &self.changes);
        let strong = if reads.iter().any(|read| matches!(read, Read::Query { .. })) {
            Some(self.strong()?)
        } else {
            None
        };
        let none = Changes::new();
        let mut seen = self.seen;
        let mut answers = Vec::with_capacity(reads.len());
        for read in reads {
            let answer = match (&strong, read) {
                (Some(strong), Read::Query { .. }) => {
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

    /// The rows as they will be here once all that any replica has acknowledged has come, with
    /// the transaction's own writes.
    fn strong(&self) -> Result<Draft<'_>, StorageError> {
        let mut draft = Draft::new(self.view(), Changes::new());
        for key in draft.keys(&key::queue(self.replica))? {
            let update = self.engine.load(&draft, key::number(&key))?;
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
            self.read_now(reads).map_err(|why| engine.core.failure(why))
        })
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.settle().await?;
            let engine = Arc::clone(&self.engine);
            let writes = writing::prepare(&engine.core, writes, self.flushed.len())
                .map_err(|reason| engine.core.refused(reason))?;
            self.flushed.extend(writes);
            let mut draft = Draft::new(self.view(), Changes::new());
            engine
                .tentative(&mut draft, self.replica, &self.flushed)
                .map_err(|error| engine.core.fail(&error))?;
            self.changes = draft.changes;
            Ok(())
        })
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        let this = *self;
        Box::pin(async move {
            let engine = this.engine;
            let late = writing::prepare(&engine.core, commit.writes, this.flushed.len())
                .map_err(|reason| engine.core.refused(reason))?;
            let mut writes = this.flushed;
            writes.extend(late);
            if writes.is_empty() {
                return Ok(Committed { version: Version(this.seen) });
            }
            if this.snapshot.is_none() {
                engine.deliver(this.replica).await?;
            }
            let slot = Slot::new();
            let job =
                CommitJob { replica: this.replica, writes, id: commit.id, slot: Arc::clone(&slot) };
            submit(&engine, slot, Job::Commit(job)).await
        })
    }
}

/// What a job comes to, once the group it is in is safe.
enum Verdict {
    Committed(Version),
    Delivered(Vec<(Duration, u64)>),
    Outcome(Outcome),
    Failed(StoreError),
}

impl Settle for Engine {
    type Job = Job;

    fn core(&self) -> &Core {
        &self.core
    }

    fn turnstile(&self) -> &Turnstile<Job> {
        &self.turnstile
    }

    fn settle(&self, jobs: Vec<Job>) {
        let mut sent = Vec::new();
        let (verdicts, is_safe) = self.judge(&jobs, &mut sent);
        if is_safe {
            for (replica, number) in sent {
                self.inbox.send(replica, number, &*self.core.world);
            }
        }
        for (job, verdict) in jobs.into_iter().zip(verdicts) {
            match job {
                Job::Commit(job) => job.slot.fill(match verdict {
                    Verdict::Committed(version) if is_safe => Ok(Committed { version }),
                    Verdict::Failed(error) => Err(error),
                    _ => Err(self.core.unknown(job.id)),
                }),
                Job::Deliver(replica, slot) => slot.fill(match verdict {
                    Verdict::Delivered(updates) if is_safe => {
                        self.inbox.delivered(replica, &updates);
                        Ok(updates.len())
                    }
                    Verdict::Failed(error) => Err(error),
                    _ => Err(self.core.unavailable("its disk has failed".into())),
                }),
                Job::Outcome(_, slot) => slot.fill(match verdict {
                    Verdict::Outcome(outcome) if is_safe => Ok(outcome),
                    Verdict::Failed(error) => Err(error),
                    _ => Ok(Outcome::Unknown),
                }),
            }
        }
    }
}

impl Engine {
    /// Applies what is due at a replica.
    async fn deliver(self: &Arc<Self>, replica: u8) -> Result<(), StoreError> {
        // Ends, since each round but the last applies a full batch of what was due at first.
        let now = self.core.world.elapsed();
        while self.inbox.is_due(replica, now) {
            let slot = Slot::new();
            let job = Job::Deliver(replica, Arc::clone(&slot));
            if submit(self, slot, job).await? < DELIVERIES_PER_COMMIT_MAX {
                break;
            }
        }
        Ok(())
    }

    /// A verdict for each job, and whether what they rest on is safe. `sent` gets the updates
    /// that were made, by replica that lacks them.
    fn judge(&self, jobs: &[Job], sent: &mut Vec<(u8, u64)>) -> (Vec<Verdict>, bool) {
        let refuse = |error: StoreError| {
            let verdicts = jobs.iter().map(|_| Verdict::Failed(error.clone()));
            (verdicts.collect(), false)
        };
        let snapshot = match self.core.snapshot() {
            Ok(snapshot) => snapshot,
            Err(error) => return refuse(error),
        };
        let mut draft = Draft::new(&*snapshot, Changes::new());
        let mut verdicts = Vec::with_capacity(jobs.len());
        for job in jobs {
            let verdict = match job {
                Job::Commit(job) => self.judge_commit(&mut draft, job, sent),
                Job::Deliver(replica, _) => self.judge_delivery(&mut draft, *replica),
                Job::Outcome(id, _) => judge_outcome(&mut draft, *id),
            };
            match verdict {
                Ok(verdict) => verdicts.push(verdict),
                // Nothing was written yet, so every job of the group has failed for certain.
                Err(error) => return refuse(self.core.fail(&error)),
            }
        }
        if draft.changes.is_empty() {
            return (verdicts, true);
        }
        let changes = draft.changes;
        match self.core.storage.commit(changes) {
            Ok(()) => (verdicts, true),
            Err(error) => {
                self.core.fail(&error);
                (verdicts, false)
            }
        }
    }

    fn judge_commit(
        &self,
        draft: &mut Draft<'_>,
        job: &CommitJob,
        sent: &mut Vec<(u8, u64)>,
    ) -> Result<Verdict, StorageError> {
        if let Some(id) = job.id {
            let key = key::outcome(id);
            match draft.get(&key)?.as_deref().map(Fate::decode) {
                Some(Fate::Barred) => return Ok(Verdict::Failed(self.core.barred(id))),
                Some(Fate::Committed) => return Ok(Verdict::Failed(StoreError::Conflict)),
                None => draft.put(key, Fate::Committed.encode()),
            }
        }
        let state = self.state(draft, job.replica)?;
        let update = build(&self.core, draft, job.replica, &state, &job.writes)?;
        let version = self.receive(draft, job.replica, &update)?;
        if self.replicas > 1 {
            let last = draft.get(key::COMMITS)?;
            let number = last.map_or(0, |row| Reader(&row).u64()) + 1;
            draft.put(key::COMMITS, number.to_le_bytes());
            draft.put(key::update(number), update.encode());
            for replica in self.others(job.replica) {
                draft.put(key::queued(replica, number), []);
                sent.push((replica, number));
            }
        }
        Ok(Verdict::Committed(Version(version)))
    }

    fn others(&self, replica: u8) -> impl Iterator<Item = u8> + use<> {
        let count = u8::try_from(self.replicas).expect("replicas are bounded by REPLICAS_MAX");
        (0..count).filter(move |other| *other != replica)
    }

    fn judge_delivery(&self, draft: &mut Draft<'_>, replica: u8) -> Result<Verdict, StorageError> {
        let mut waiting = self.inbox.due(replica, self.core.world.elapsed());
        let mut delivered = Vec::new();
        loop {
            let before = delivered.len();
            let mut left = Vec::new();
            for (due, number) in waiting {
                if delivered.len() == DELIVERIES_PER_COMMIT_MAX {
                    break;
                }
                if self.deliver_one(draft, replica, number)? {
                    delivered.push((due, number));
                } else {
                    left.push((due, number));
                }
            }
            waiting = left;
            // At a causal store an update may have made way for one that came due before it.
            if delivered.len() == before || delivered.len() == DELIVERIES_PER_COMMIT_MAX {
                return Ok(Verdict::Delivered(delivered));
            }
        }
    }

    /// Applies an update at a replica, unless it has to wait for others; whether it is applied.
    fn deliver_one(
        &self,
        draft: &mut Draft<'_>,
        replica: u8,
        number: u64,
    ) -> Result<bool, StorageError> {
        let queued = key::queued(replica, number);
        if draft.get(&queued)?.is_none() {
            // Another job of this group has just applied it.
            return Ok(true);
        }
        let update = self.load(draft, number)?;
        if self.is_causal && !self.state(draft, replica)?.context.covers(&update.context) {
            return Ok(false);
        }
        self.receive(draft, replica, &update)?;
        draft.remove(queued);
        let mut is_lacked = false;
        for other in self.others(replica) {
            is_lacked |= draft.get(&key::queued(other, number))?.is_some();
        }
        if !is_lacked {
            draft.remove(key::update(number));
        }
        Ok(true)
    }

    fn state(&self, draft: &Draft<'_>, replica: u8) -> Result<ReplicaState, StorageError> {
        let row = draft.get(&key::replica(replica))?;
        Ok(row.map_or_else(|| ReplicaState::new(self.replicas), |row| ReplicaState::decode(&row)))
    }

    fn load(&self, draft: &Draft<'_>, number: u64) -> Result<Update, StorageError> {
        let row = draft.get(&key::update(number))?;
        Ok(Update::decode(
            &row.expect("an update stays until no queue has it: the store is corrupt"),
        ))
    }

    /// Applies an update, under the next version of the replica, which it returns.
    fn receive(
        &self,
        draft: &mut Draft<'_>,
        replica: u8,
        update: &Update,
    ) -> Result<u64, StorageError> {
        // Distinct for each replica, since what one replica has at its version is not what
        // another has at the same.
        let count = self.state(draft, replica)?.count + 1;
        let version = count * self.replicas as u64 + u64::from(replica);
        apply(&self.core, draft, replica, version, update)?;
        Ok(version)
    }

    /// Applies flushed writes where only their transaction sees them.
    fn tentative(
        &self,
        draft: &mut Draft<'_>,
        replica: u8,
        writes: &[Write],
    ) -> Result<(), StorageError> {
        if writes.is_empty() {
            return Ok(());
        }
        let state = self.state(draft, replica)?;
        let update = build(&self.core, draft, replica, &state, writes)?;
        let version = self.tentative.fetch_add(1, Ordering::Relaxed);
        apply(&self.core, draft, replica, version, &update)
    }
}

/// Once nobody can have been told otherwise, says so; an id that is not there is barred first.
fn judge_outcome(draft: &mut Draft<'_>, id: TransactionId) -> Result<Verdict, StorageError> {
    let key = key::outcome(id);
    let outcome = match draft.get(&key)?.as_deref().map(Fate::decode) {
        Some(Fate::Committed) => Outcome::Committed,
        Some(Fate::Barred) => Outcome::NotCommitted,
        None => {
            draft.put(key, Fate::Barred.encode());
            Outcome::NotCommitted
        }
    };
    Ok(Verdict::Outcome(outcome))
}
