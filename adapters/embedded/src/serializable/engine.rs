//! Transactions, and the commits that validate and apply them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_model::{Stamp, TransactionId, Version};
use mingle_store::{
    Answer, BoxFuture, Capabilities, Commit, Committed, DataStore, Listed, Listing, Outcome, Read,
    Session, StoreError, Transaction, Write,
};

use super::apply::apply;
use crate::core::Core;
use crate::encoding::key;
use crate::encoding::row;
use crate::encoding::wire::Reader;
use crate::mending::{Mend, serve};
use crate::reading::{ReadSet, Reading};
use crate::storage::overlay::Draft;
use crate::storage::{Changes, Snapshot, StorageError, View};
use crate::turnstile::{Settle, Slot, Turnstile, submit};
use crate::{guarding, numbers, outcome, witness, writing};

/// A serializable store.
pub struct SerializableStore {
    engine: Arc<Engine>,
    capabilities: Capabilities,
}

struct Engine {
    core: Core,
    turnstile: Turnstile<Job>,
    /// Versions of writes that were flushed and are not committed: above all others, and each
    /// used once.
    tentative: AtomicU64,
}

enum Job {
    Commit(CommitJob),
    Outcome(TransactionId, Arc<Slot<Result<Outcome, StoreError>>>),
}

struct CommitJob {
    read_set: ReadSet,
    /// The newest version that was read.
    seen: u64,
    /// With all writes, flushed ones included, prepared.
    commit: Commit,
    slot: Arc<Slot<Result<Committed, StoreError>>>,
}

const TENTATIVE: u64 = 1 << 63;

impl SerializableStore {
    /// The store over rows that fit its layout.
    pub fn new(core: Core, capabilities: Capabilities) -> Self {
        let engine = Arc::new(Engine {
            core,
            turnstile: Turnstile::default(),
            tentative: AtomicU64::new(TENTATIVE),
        });
        Self { engine, capabilities }
    }
}

impl DataStore for SerializableStore {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn begin<'a>(
        &'a self,
        _session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(async {
            serve(&self.engine).await?;
            let transaction: Box<dyn Transaction> = Box::new(SerializableTransaction {
                engine: Arc::clone(&self.engine),
                openings: self.engine.core.openings(),
                snapshot: None,
                changes: Changes::new(),
                flushed: Vec::new(),
                read_set: ReadSet::default(),
                seen: 0,
            });
            Ok(transaction)
        })
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(serve(&self.engine))
    }

    fn list<'a>(
        &'a self,
        _session: &'a Session,
        listing: &'a Listing,
    ) -> BoxFuture<'a, Result<Listed, StoreError>> {
        Box::pin(async {
            serve(&self.engine).await?;
            let core = &self.engine.core;
            core.contained(|| {
                let (snapshot, none) = (core.snapshot()?, Changes::new());
                let mut reading = Reading::at_replica(core, 0, &*snapshot, &none);
                reading.list(listing).map_err(|why| core.failure(why))
            })
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
}

struct SerializableTransaction {
    engine: Arc<Engine>,
    /// The number of times that the disk had been reopened when the transaction began.
    openings: u64,
    snapshot: Option<Snapshot>,
    /// The changes of the flushed writes.
    changes: Changes,
    flushed: Vec<Write>,
    read_set: ReadSet,
    /// The newest version that was read.
    seen: u64,
}

impl SerializableTransaction {
    fn read_now(&mut self, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
        let core = &self.engine.core;
        core.check_since(self.openings)?;
        let snapshot = match &mut self.snapshot {
            Some(snapshot) => snapshot,
            empty => empty.insert(core.snapshot()?),
        };
        let mut reading = Reading::validated(core, &**snapshot, &self.changes, &mut self.read_set);
        let mut answers = Vec::with_capacity(reads.len());
        for read in reads {
            let answer = reading.answer(read).map_err(|why| core.failure(why))?;
            self.seen = self.seen.max(answer.version.0 & !TENTATIVE);
            answers.push(answer);
        }
        Ok(answers)
    }

    fn flush_now(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        let core = &self.engine.core;
        core.check_since(self.openings)?;
        let writes = writing::prepare(core, writes, self.flushed.len())
            .map_err(|reason| core.refused(reason))?;
        let snapshot = match &mut self.snapshot {
            Some(snapshot) => snapshot,
            empty => empty.insert(core.snapshot()?),
        };
        let mut draft = Draft::new(&**snapshot, std::mem::take(&mut self.changes));
        let version = self.engine.tentative.fetch_add(1, Ordering::Relaxed);
        apply(core, &mut draft, version, &writes).map_err(|error| core.fail(&error))?;
        self.changes = draft.changes;
        self.flushed.extend(writes);
        Ok(())
    }
}

impl Transaction for SerializableTransaction {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        let engine = Arc::clone(&self.engine);
        Box::pin(std::future::ready(engine.core.contained(|| self.read_now(reads))))
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        let engine = Arc::clone(&self.engine);
        Box::pin(std::future::ready(engine.core.contained(|| self.flush_now(writes))))
    }

    fn commit(
        self: Box<Self>,
        mut commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        let this = *self;
        Box::pin(async move {
            let engine = this.engine;
            drop(this.snapshot);
            engine.core.check_since(this.openings)?;
            let late = writing::prepare(&engine.core, commit.writes, this.flushed.len())
                .map_err(|reason| engine.core.refused(reason))?;
            commit.writes = this.flushed;
            commit.writes.extend(late);
            writing::check_size(&commit.writes).map_err(|reason| engine.core.refused(reason))?;
            if commit.is_empty() {
                return Ok(committed(this.seen));
            }
            let slot = Slot::new();
            let job = CommitJob {
                read_set: this.read_set,
                seen: this.seen,
                commit,
                slot: Arc::clone(&slot),
            };
            submit(&engine, slot, Job::Commit(job)).await
        })
    }
}

fn committed(version: u64) -> Committed {
    Committed { version: Version(version), stamp: Stamp::default() }
}

/// The result of a job, valid once its group is safe.
enum Verdict {
    Committed(Committed),
    Outcome(Outcome),
    Failed(StoreError),
}

/// Nothing was written, so every job has failed for certain.
fn refuse(jobs: &[Job], error: &StoreError) -> (Vec<Verdict>, bool) {
    (jobs.iter().map(|_| Verdict::Failed(error.clone())).collect(), false)
}

impl Mend for Engine {
    fn core(&self) -> &Core {
        &self.core
    }

    fn reopen(&self) -> Result<(), StorageError> {
        self.core.reopen(|_| Ok(()))
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
        let judged = self.core.contained(|| Ok(self.judge(&jobs)));
        let (verdicts, committed) = judged.unwrap_or_else(|error| refuse(&jobs, &error));
        for (job, verdict) in jobs.into_iter().zip(verdicts) {
            match job {
                Job::Commit(job) => job.slot.fill(match verdict {
                    Verdict::Committed(done) if committed => Ok(done),
                    Verdict::Failed(error) => Err(error),
                    _ => Err(self.core.unknown(job.commit.id)),
                }),
                Job::Outcome(_, slot) => slot.fill(match verdict {
                    Verdict::Outcome(outcome) if committed => Ok(outcome),
                    Verdict::Failed(error) => Err(error),
                    _ => Ok(Outcome::Unknown),
                }),
            }
        }
    }
}

impl Engine {
    /// Returns a verdict for each job, and true if the changes are safe.
    fn judge(&self, jobs: &[Job]) -> (Vec<Verdict>, bool) {
        let snapshot = match self.core.snapshot() {
            Ok(snapshot) => snapshot,
            Err(error) => return refuse(jobs, &error),
        };
        let mut draft = Draft::new(&*snapshot, Changes::new());
        let mut verdicts = Vec::with_capacity(jobs.len());
        for job in jobs {
            let verdict = match job {
                Job::Commit(job) => self.judge_commit(&mut draft, job),
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
    ) -> Result<Verdict, StorageError> {
        let commit = &job.commit;
        if let Some(objection) = outcome::objection(&self.core, draft, commit.id)? {
            return Ok(Verdict::Failed(objection));
        }
        if !guarding::hold(draft, &commit.guards, |record| key::record(0, record))? {
            return Ok(Verdict::Failed(StoreError::Conflict));
        }
        for (key, version) in &job.read_set.units {
            let now = draft.get(key)?.map_or(0, |row| row::version(&row));
            if now != *version {
                return Ok(Verdict::Failed(StoreError::Conflict));
            }
        }
        if let Some(rows) = witness::unknown(&self.core, draft, 0, commit)? {
            return Ok(Verdict::Failed(StoreError::Witnessed { rows }));
        }
        outcome::note(&self.core, draft, commit.id)?;
        if commit.writes.is_empty() {
            return Ok(Verdict::Committed(committed(job.seen)));
        }
        let last = draft.get(key::COMMITS)?;
        let version = last.map_or(0, |row| Reader(&row).u64()) + 1;
        draft.put(key::COMMITS, version.to_le_bytes());
        apply(&self.core, draft, version, &commit.writes)?;
        numbers::note(draft, &job.read_set.drawn)?;
        Ok(Verdict::Committed(committed(version)))
    }
}
