//! Commits and deliveries.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mingle_model::{Level, Name, Stamp, TransactionId, Version};
use mingle_store::{
    BoxFuture, Capabilities, Commit, Committed, DataStore, Listed, Listing, Once, Outcome, Session,
    StoreError, Transaction, Write,
};

use super::apply::apply;
use super::build::build;
use super::inbox::Inbox;
use super::latest;
use super::rows::ReplicaState;
use super::transaction::ReplicatedTransaction;
use super::update::Update;
use crate::config::EmbeddedConfig;
use crate::core::Core;
use crate::encoding::key;
use crate::encoding::wire::Reader;
use crate::limits::{BACKLOG_MAX, DELIVERIES_PER_COMMIT_MAX};
use crate::mending::{Mend, serve};
use crate::storage::overlay::Draft;
use crate::storage::{Changes, StorageError, View};
use crate::turnstile::{Settle, Slot, Turnstile, submit};
use crate::{guarding, outcome, witness};

/// A replicated store.
pub struct ReplicatedStore {
    engine: Arc<Engine>,
    capabilities: Capabilities,
}

/// The state that transactions share.
pub struct Engine {
    /// The store.
    pub core: Core,
    turnstile: Turnstile<Job>,
    inbox: Inbox,
    replicas: usize,
    /// True if updates wait for those that their origin had seen.
    is_causal: bool,
    /// Names of the replicas, if the store counts the updates they have seen; else empty.
    pub counted: Vec<Name>,
    /// True if guards are judged by the records as last committed at any replica.
    is_serial: bool,
    /// Next version for writes that are flushed and not committed.
    tentative: AtomicU64,
}

/// A job for the turnstile.
pub enum Job {
    /// Commits at a replica.
    Commit(CommitJob),
    /// Applies the due updates at a replica; the result is their number.
    Deliver(u8, Arc<Slot<Result<usize, StoreError>>>),
    /// Asks for an outcome.
    Outcome(TransactionId, Arc<Slot<Result<Outcome, StoreError>>>),
}

/// A commit.
pub struct CommitJob {
    /// The replica.
    pub replica: u8,
    /// The commit with all writes, flushed ones included, prepared.
    pub commit: Commit,
    /// The newest version that was read.
    pub seen: u64,
    /// Receives the answer.
    pub slot: Arc<Slot<Result<Committed, StoreError>>>,
}

/// Versions from here on belong to uncommitted writes.
pub const TENTATIVE: u64 = 1 << 63;

impl ReplicatedStore {
    /// Creates the store over rows that fit its layout.
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
        let is_causal = capabilities.level == Level::Causal;
        let counted = if is_causal && config.replicas.len() > 1 {
            config.replicas.clone()
        } else {
            Vec::new()
        };
        let engine = Engine {
            core,
            turnstile: Turnstile::default(),
            inbox,
            replicas: config.replicas.len(),
            is_causal,
            counted,
            is_serial: config.once == Once::Serial,
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
        let counted = &self.engine.counted;
        let unknown = session.after.iter().find(|(name, _)| !counted.contains(name));
        if let Some((name, _)) = unknown.filter(|_| !counted.is_empty()) {
            let reason = format!("a session has seen its replica {name}, which it has not");
            return Err(self.engine.core.refused(reason));
        }
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
        Box::pin(async {
            serve(&self.engine).await?;
            let replica = self.replica(session)?;
            let transaction: Box<dyn Transaction> =
                Box::new(ReplicatedTransaction::new(&self.engine, replica, &session.after));
            Ok(transaction)
        })
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(serve(&self.engine))
    }

    fn list<'a>(
        &'a self,
        session: &'a Session,
        listing: &'a Listing,
    ) -> BoxFuture<'a, Result<Listed, StoreError>> {
        Box::pin(async {
            serve(&self.engine).await?;
            let replica = self.replica(session)?;
            ReplicatedTransaction::new(&self.engine, replica, &session.after).list(listing).await
        })
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        let slot = Slot::new();
        let job = Job::Outcome(id, Arc::clone(&slot));
        Box::pin(async {
            serve(&self.engine).await?;
            submit(&self.engine, slot, job).await
        })
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        Box::pin(self.engine.everywhere())
    }
}

/// Changes to the queues, made once a group is safe.
#[derive(Default)]
struct Moves {
    /// New updates, by replica that lacks them: their numbers and origins.
    sent: Vec<(u8, u64, u8)>,
    /// Applied updates, by replica.
    delivered: Vec<(u8, Vec<(Duration, u64)>)>,
}

/// The result of a job, valid once its group is safe.
enum Verdict {
    Committed(Committed),
    Delivered(usize),
    Outcome(Outcome),
    Failed(StoreError),
}

/// Fails every job: nothing was written, so this is certain.
fn refuse(jobs: &[Job], error: &StoreError) -> (Vec<Verdict>, bool) {
    (jobs.iter().map(|_| Verdict::Failed(error.clone())).collect(), false)
}

impl Mend for Engine {
    fn core(&self) -> &Core {
        &self.core
    }

    fn reopen(&self) -> Result<(), StorageError> {
        self.core.reopen(|view| self.inbox.reload(view, &*self.core.world))
    }
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
        let mut moves = Moves::default();
        let judged = self.core.contained(|| Ok(self.judge(&jobs, &mut moves)));
        let (verdicts, is_safe) = judged.unwrap_or_else(|error| refuse(&jobs, &error));
        if is_safe {
            for (replica, number, origin) in moves.sent {
                self.inbox.send(replica, number, origin, &*self.core.world);
            }
            for (replica, updates) in moves.delivered {
                self.inbox.delivered(replica, &updates);
            }
        }
        for (job, verdict) in jobs.into_iter().zip(verdicts) {
            match job {
                Job::Commit(job) => job.slot.fill(match verdict {
                    Verdict::Committed(done) if is_safe => Ok(done),
                    Verdict::Failed(error) => Err(error),
                    _ => Err(self.core.unknown(job.commit.id)),
                }),
                Job::Deliver(_, slot) => slot.fill(match verdict {
                    Verdict::Delivered(count) if is_safe => Ok(count),
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
    /// Applies the due updates at a replica.
    pub async fn deliver(self: &Arc<Self>, replica: u8) -> Result<(), StoreError> {
        // Terminates: each round except the last applies a full batch of the updates due at the
        // start.
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

    /// Returns a verdict for each job, and true if the changes are safe.
    fn judge(&self, jobs: &[Job], moves: &mut Moves) -> (Vec<Verdict>, bool) {
        let snapshot = match self.core.snapshot() {
            Ok(snapshot) => snapshot,
            Err(error) => return refuse(jobs, &error),
        };
        let mut draft = Draft::new(&*snapshot, Changes::new());
        let mut verdicts = Vec::with_capacity(jobs.len());
        for job in jobs {
            let verdict = match job {
                Job::Commit(job) => self.judge_commit(&mut draft, job, moves),
                Job::Deliver(replica, _) => {
                    self.judge_delivery(&mut draft, *replica, moves).map(Verdict::Delivered)
                }
                Job::Outcome(id, _) => {
                    outcome::ask(&self.core, &mut draft, *id).map(Verdict::Outcome)
                }
            };
            match verdict {
                Ok(verdict) => verdicts.push(verdict),
                // Nothing was written yet, so every job of the group has failed for certain.
                Err(error) => return refuse(jobs, &self.core.fail(&error)),
            }
        }
        if draft.changes.is_empty() {
            return (verdicts, true);
        }
        let changes = draft.changes;
        // Rows in memory are changed in place where no snapshot shares them.
        drop(snapshot);
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
        moves: &mut Moves,
    ) -> Result<Verdict, StorageError> {
        if let Some(objection) = self.object(draft, job)? {
            return Ok(Verdict::Failed(objection));
        }
        outcome::note(&self.core, draft, job.commit.id)?;
        if job.commit.writes.is_empty() {
            let stamp = self.seen(draft, job.replica)?;
            return Ok(Verdict::Committed(Committed { version: Version(job.seen), stamp }));
        }
        let mut state = self.state(draft, job.replica)?;
        if self.is_serial {
            state.clock = state.clock.max(latest::timestamp(draft, &job.commit.writes)?);
        }
        let update = build(&self.core, draft, job.replica, &state, &job.commit.writes)?;
        let version = self.receive(draft, job.replica, &update)?;
        let stamp = self.seen(draft, job.replica)?;
        if self.replicas > 1 {
            latest::note(draft, update.timestamp, &job.commit.writes);
            let last = draft.get(key::COMMITS)?;
            let number = last.map_or(0, |row| Reader(&row).u64()) + 1;
            draft.put(key::COMMITS, number.to_le_bytes());
            draft.put(key::update(number), update.encode());
            for replica in self.others(job.replica) {
                draft.put(key::queued(replica, number), []);
                moves.sent.push((replica, number, job.replica));
                let now = self.core.world.elapsed();
                if self.inbox.is_behind(replica, now, BACKLOG_MAX) {
                    self.judge_delivery(draft, replica, moves)?;
                }
            }
        }
        Ok(Verdict::Committed(Committed { version: Version(version), stamp }))
    }

    /// Returns the reason why a commit must not take effect; none if it may.
    fn object(
        &self,
        draft: &Draft<'_>,
        job: &CommitJob,
    ) -> Result<Option<StoreError>, StorageError> {
        let CommitJob { replica, commit, .. } = job;
        if let Some(objection) = outcome::objection(&self.core, draft, commit.id)? {
            return Ok(Some(objection));
        }
        let is_global = self.is_serial && self.replicas > 1;
        let hold = guarding::hold(draft, &commit.guards, |record| {
            if is_global { key::latest(record) } else { key::record(*replica, record) }
        })?;
        if !hold {
            return Ok(Some(StoreError::Conflict));
        }
        let unknown = witness::unknown(&self.core, draft, *replica, commit)?;
        Ok(unknown.map(|rows| StoreError::Witnessed { rows }))
    }

    fn others(&self, replica: u8) -> impl Iterator<Item = u8> + use<> {
        let count = u8::try_from(self.replicas).expect("replicas are bounded by REPLICAS_MAX");
        (0..count).filter(move |other| *other != replica)
    }

    fn judge_delivery(
        &self,
        draft: &mut Draft<'_>,
        replica: u8,
        moves: &mut Moves,
    ) -> Result<usize, StorageError> {
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
            // At a causal store, an update may allow one that came due before it.
            if delivered.len() == before || delivered.len() == DELIVERIES_PER_COMMIT_MAX {
                let count = delivered.len();
                moves.delivered.push((replica, delivered));
                return Ok(count);
            }
        }
    }

    /// Applies an update at a replica, unless it must wait for others; returns true if applied.
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
        let update = load(draft, number)?;
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

    /// Returns the state of a replica.
    pub fn state(&self, view: &dyn View, replica: u8) -> Result<ReplicaState, StorageError> {
        let row = view.get(&key::replica(replica))?;
        Ok(row.map_or_else(|| ReplicaState::new(self.replicas), |row| ReplicaState::decode(&row)))
    }

    /// Applies an update, under the replica's next version, which it returns.
    pub fn receive(
        &self,
        draft: &mut Draft<'_>,
        replica: u8,
        update: &Update,
    ) -> Result<u64, StorageError> {
        // Versions differ between replicas, since two replicas can hold different data after the
        // same number of updates.
        let count = self.state(draft, replica)?.count + 1;
        let version = count * self.replicas as u64 + u64::from(replica);
        apply(&self.core, draft, replica, version, update)?;
        Ok(version)
    }

    /// Applies flushed writes in a draft that only their transaction sees.
    pub fn tentative(
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

/// The message for a queued update that is missing.
pub const KEPT: &str = "an update stays until no queue has it: the store is corrupt";

/// Loads the update of this number.
pub fn load(draft: &Draft<'_>, number: u64) -> Result<Update, StorageError> {
    let row = draft.get(&key::update(number))?;
    Ok(Update::decode(&row.expect(KEPT)))
}
