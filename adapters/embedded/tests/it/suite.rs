//! The suite itself: stores that are broken on purpose must fail it, in the tests for their
//! flaws.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mingle_model::{Level, Origin, Stamp, TransactionId, Version};
use mingle_store::conformance::{self, Factory};
use mingle_store::test_world::yield_now;
use mingle_store::{
    Answer, BoxFuture, Capabilities, Commit, Committed, Data, DataStore, Outcome, Read, Session,
    StoreError, StoreSchema, TestWorld, Transaction, World, Write,
};
use mingle_store_embedded::{Embedded, EmbeddedConfig};

/// The flaw of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// None: the wrapper itself must do no harm.
    Sound,
    /// Commits do not validate reads.
    NoValidation,
    /// Every read has a snapshot of its own.
    NewSnapshots,
    /// One of many writes is lost.
    LosesWrite,
    /// A commit comes in two halves.
    TearsCommit,
    /// Flushed writes are seen by all.
    LeaksFlush,
    /// An id reported as not committed can commit later.
    BarsNothing,
    /// Versions never change.
    OneVersion,
    /// Witness rows are not returned.
    NoWitnesses,
    /// Elements come in the wrong order.
    Unordered,
    /// After concurrent adds, the counter of only one replica is read.
    ForgetsAdds,
    /// Causes may come after their effects.
    NotCausal,
    /// Guards are not judged.
    IgnoresGuards,
    /// A writer need not know any witness rows.
    IgnoresRows,
    /// Records stay when they are discarded.
    KeepsRecords,
    /// Some of many witness rows are not listed.
    ListsSome,
    /// Sessions may go back.
    IgnoresAfter,
    /// Everything that one replica has seen is reported to be everywhere.
    OneIsAll,
}

struct Broken {
    inner: Arc<dyn DataStore>,
    capabilities: Capabilities,
    flaw: Flaw,
    committed: Arc<Mutex<BTreeSet<TransactionId>>>,
}

impl DataStore for Broken {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(async move {
            let transaction: Box<dyn Transaction> = Box::new(BrokenTransaction {
                inner: match self.flaw {
                    Flaw::IgnoresAfter => {
                        let session = Session { after: Stamp::default(), ..session.clone() };
                        self.inner.begin(&session).await?
                    }
                    _ => self.inner.begin(session).await?,
                },
                store: Arc::clone(&self.inner),
                session: session.clone(),
                flaw: self.flaw,
                committed: Arc::clone(&self.committed),
                flushed: Vec::new(),
            });
            Ok(transaction)
        })
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        if self.flaw != Flaw::BarsNothing {
            return self.inner.outcome(id);
        }
        let committed = self.committed.lock().expect("no panic").contains(&id);
        let outcome = if committed { Outcome::Committed } else { Outcome::NotCommitted };
        Box::pin(std::future::ready(Ok(outcome)))
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        if self.flaw != Flaw::OneIsAll {
            return self.inner.everywhere();
        }
        Box::pin(async move {
            let first = self.inner.begin(&Session::default()).await?;
            Ok(first.commit(Commit::default()).await?.stamp)
        })
    }
}

struct BrokenTransaction {
    inner: Box<dyn Transaction>,
    store: Arc<dyn DataStore>,
    session: Session,
    flaw: Flaw,
    committed: Arc<Mutex<BTreeSet<TransactionId>>>,
    flushed: Vec<Write>,
}

impl BrokenTransaction {
    fn spoil(&self, answer: &mut Answer) {
        match (self.flaw, &mut answer.data) {
            (Flaw::OneVersion, _) => answer.version = Version(answer.version.0.min(1)),
            (Flaw::NoWitnesses, _) => answer.witnesses.clear(),
            (Flaw::Unordered, Data::Values(values)) => values.sort_by_key(ToString::to_string),
            (Flaw::ListsSome, Data::Witnesses(rows)) => rows.truncate(3),
            (Flaw::ForgetsAdds, Data::Counter(sum)) if *sum > 6 => *sum -= 1,
            _ => {}
        }
    }
}

impl Transaction for BrokenTransaction {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(async move {
            let mut answers = if self.flaw == Flaw::NewSnapshots && self.flushed.is_empty() {
                let mut other = self.store.begin(&self.session).await?;
                other.read(reads).await?
            } else {
                self.inner.read(reads).await?
            };
            for answer in &mut answers {
                self.spoil(answer);
            }
            Ok(answers)
        })
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            if self.flaw == Flaw::LeaksFlush {
                let other = self.store.begin(&self.session).await?;
                let writes = writes.clone();
                other.commit(Commit { writes, ..Commit::default() }).await?;
            }
            self.flushed.extend(writes.clone());
            self.inner.flush(writes).await
        })
    }

    fn commit(
        self: Box<Self>,
        mut commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin(async move {
            let this = *self;
            let (inner, flushed) = (this.inner, this.flushed);
            match this.flaw {
                Flaw::NoValidation | Flaw::NewSnapshots => {
                    let other = this.store.begin(&this.session).await?;
                    commit.writes.splice(..0, flushed);
                    other.commit(commit).await
                }
                Flaw::LosesWrite => {
                    if commit.writes.len() > 4 {
                        commit.writes.remove(2);
                    }
                    inner.commit(commit).await
                }
                Flaw::TearsCommit if commit.writes.len() > 1 => {
                    let half = commit.writes.split_off(commit.writes.len() / 2);
                    inner.commit(commit).await?;
                    yield_now().await;
                    let other = this.store.begin(&this.session).await?;
                    let writes = half;
                    other.commit(Commit { writes, ..Commit::default() }).await
                }
                Flaw::BarsNothing => {
                    let id = commit.id.take();
                    let committed = inner.commit(commit).await?;
                    let mut ids = this.committed.lock().expect("no panic");
                    if id.is_some_and(|id| !ids.insert(id)) {
                        return Err(StoreError::Conflict);
                    }
                    Ok(committed)
                }
                Flaw::IgnoresGuards => {
                    commit.guards.clear();
                    inner.commit(commit).await
                }
                Flaw::IgnoresRows => {
                    let known = this.store.begin(&this.session).await?.read(&[ALL_ROWS]).await?;
                    if let Data::Witnesses(rows) = &known[0].data {
                        commit.known.extend(rows.iter().map(|row| row.id));
                    }
                    inner.commit(commit).await
                }
                Flaw::KeepsRecords => {
                    commit.writes.retain(|write| !matches!(write, Write::Discard(_)));
                    inner.commit(commit).await
                }
                _ => inner.commit(commit).await,
            }
        })
    }
}

const ALL_ROWS: Read =
    Read::Witnesses { from: TransactionId { origin: Origin(0), sequence: 0 }, limit: usize::MAX };

struct BrokenFactory {
    level: Level,
    flaw: Flaw,
    world: Arc<TestWorld>,
}

impl Factory for BrokenFactory {
    fn level(&self) -> Level {
        self.level
    }

    fn open(&self, mut schema: StoreSchema) -> BoxFuture<'_, Arc<dyn DataStore>> {
        let delay = Duration::from_millis(20);
        let replicas = match self.level {
            Level::Linearizable | Level::Snapshot => 1,
            Level::Causal | Level::Eventual => 3,
        };
        if self.flaw == Flaw::NotCausal {
            schema.level = Level::Eventual;
        }
        let config = EmbeddedConfig::in_memory().with_replicas(replicas).with_delay(delay, delay);
        let world: Arc<dyn World> = self.world.clone();
        let inner = Embedded::open(config, schema, world).expect("the store opens");
        let store: Arc<dyn DataStore> = Arc::new(Broken {
            capabilities: inner.capabilities().clone(),
            inner,
            flaw: self.flaw,
            committed: Arc::default(),
        });
        Box::pin(std::future::ready(store))
    }

    fn deliver<'a>(&'a self, _store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        self.world.advance(Duration::from_millis(40));
        Box::pin(std::future::ready(()))
    }

    fn step<'a>(&'a self, _store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        let passed = self.world.random() % 10;
        self.world.advance(Duration::from_millis(passed));
        Box::pin(std::future::ready(()))
    }
}

/// The tests that fail for a store with this flaw; all of `expected` must be among them.
#[track_caller]
fn check(level: Level, flaw: Flaw, expected: &[&str]) {
    let world = TestWorld::new(9);
    let factory = BrokenFactory { level, flaw, world: world.clone() };
    let report = world.block_on(conformance::run(&factory));
    let failed: Vec<&str> = report.failures.iter().map(|failure| failure.test).collect();
    for test in expected {
        assert!(failed.contains(test), "{flaw:?} passes {test}, and fails only {failed:?}");
    }
    assert_eq!(failed.is_empty(), expected.is_empty(), "{flaw:?}: {failed:?}");
}

#[test]
fn a_sound_store_passes() {
    for level in Level::ALL {
        check(level, Flaw::Sound, &[]);
    }
}

#[test]
fn a_store_without_isolation_fails() {
    let anomalies = [
        "no_lost_update",
        "no_write_skew",
        "no_phantoms",
        "no_lost_creation",
        "no_write_skew_over_existence",
        "concurrent_increments_are_all_kept",
        "random_transfers_keep_the_total",
    ];
    check(Level::Linearizable, Flaw::NoValidation, &anomalies);
    let snapshots = ["a_transaction_reads_one_snapshot", "no_fractured_read"];
    check(Level::Snapshot, Flaw::NewSnapshots, &snapshots);
    let snapshots = ["a_transaction_reads_one_snapshot"];
    check(Level::Causal, Flaw::NewSnapshots, &snapshots);
}

#[test]
fn a_store_that_loses_a_write_fails() {
    let tests = ["a_deleted_object_reads_as_absent", "many_elements_and_lines"];
    for level in Level::ALL {
        check(level, Flaw::LosesWrite, &tests);
    }
}

#[test]
fn a_store_that_tears_commits_fails() {
    let refused = ["a_refused_commit_leaves_nothing"];
    check(Level::Linearizable, Flaw::TearsCommit, &refused);
    let together = ["all_writes_of_a_commit_are_seen_together"];
    check(Level::Causal, Flaw::TearsCommit, &together);
    check(Level::Eventual, Flaw::TearsCommit, &together);
}

#[test]
fn a_store_that_shows_uncommitted_writes_fails() {
    let dirty = [
        "flushed_writes_are_seen_by_their_transaction_alone",
        "a_dropped_transaction_leaves_nothing",
    ];
    for level in Level::ALL {
        check(level, Flaw::LeaksFlush, &dirty);
    }
}

#[test]
fn a_store_that_takes_back_an_outcome_fails() {
    let late = ["a_late_commit_of_what_was_not_committed_fails"];
    for level in Level::ALL {
        check(level, Flaw::BarsNothing, &late);
    }
}

#[test]
fn a_store_that_says_too_little_about_what_it_read_fails() {
    let versions = ["versions_change_if_the_unit_was_written_and_only_then"];
    check(Level::Linearizable, Flaw::OneVersion, &versions);
    let rows = ["witness_rows_come_with_reads_of_their_object"];
    check(Level::Causal, Flaw::NoWitnesses, &rows);
    let order = ["odd_values_are_elements_in_order"];
    check(Level::Eventual, Flaw::Unordered, &order);
}

#[test]
fn a_store_that_merges_wrongly_fails() {
    let adds = ["concurrent_adds_are_all_kept", "random_writes_converge"];
    check(Level::Eventual, Flaw::ForgetsAdds, &adds);
    let causes = ["effects_come_after_their_causes", "what_a_session_wrote_stays_in_order"];
    check(Level::Causal, Flaw::NotCausal, &causes);
}

#[test]
fn a_store_that_does_not_judge_guards_fails() {
    let guards = [
        "a_guard_that_does_not_hold_leaves_nothing",
        "guards_are_judged_without_writes",
        "of_racing_commits_with_one_guard_one_takes_effect",
        "guards_hold_at_every_replica_of_a_serial_store",
    ];
    for level in Level::ALL {
        check(level, Flaw::IgnoresGuards, &guards);
    }
}

#[test]
fn a_store_that_keeps_the_runtimes_rows_wrongly_fails() {
    let unknown = [
        "whoever_writes_an_object_must_know_its_rows",
        "whoever_has_read_an_object_must_know_its_rows_too",
        "whoever_writes_anything_must_know_the_rows_of_the_store",
        "a_transaction_knows_its_own_rows",
    ];
    let kept = ["a_record_reads_back_until_it_is_discarded"];
    let listed = [
        "rows_are_listed_in_order_of_their_transactions",
        "all_rows_of_a_transaction_are_forgotten_together",
    ];
    for level in Level::ALL {
        check(level, Flaw::IgnoresRows, &unknown);
        check(level, Flaw::KeepsRecords, &kept);
        check(level, Flaw::ListsSome, &listed);
    }
}

#[test]
fn a_store_that_says_it_has_seen_what_it_has_not_fails() {
    let moved = ["a_session_that_moves_waits_for_what_it_has_seen"];
    check(Level::Causal, Flaw::IgnoresAfter, &moved);
    let everywhere = ["everywhere_is_what_every_replica_has_seen"];
    check(Level::Causal, Flaw::OneIsAll, &everywhere);
}
