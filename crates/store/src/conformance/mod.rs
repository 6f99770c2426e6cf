//! The suite that every adapter must pass.
//!
//! An adapter implements [`Factory`] and calls [`run`] in a test of its own, in any executor
//! it needs:
//!
//! ```no_run
//! # use mingle_store::{TestWorld, conformance};
//! # fn test(factory: &dyn conformance::Factory) {
//! let world = TestWorld::new(1);
//! let report = world.block_on(conformance::run(factory));
//! report.assert_passed();
//! # }
//! ```
//!
//! Transactions overlap in one task, step by step, so a failure occurs each time.
//! Randomness comes from fixed seeds, which failures name. The suite opens a new store for each
//! test, with [`schema::store_schema`].

use std::fmt;
use std::sync::Arc;

use mingle_model::{Level, Name, Origin, RowKind, TransactionId, WitnessRow};

use crate::declared::StoreSchema;
use crate::operation::{Answer, Data, Read, Write};
use crate::store::{Commit, Committed, DataStore, Session, StoreError, Transaction};
use crate::world::BoxFuture;

mod atomicity;
mod changes;
mod commands;
mod draws;
pub mod hostile;
mod indexes;
mod isolation;
mod lists;
pub mod model;
mod once;
mod operations;
mod records;
mod replicas;
pub mod schema;
mod stamps;
mod values;
mod versions;
mod witnesses;
mod zeros;

/// Makes stores for the suite.
pub trait Factory: Send + Sync {
    /// The level that its stores give.
    fn level(&self) -> Level;

    /// Opens a new, empty store. If it has replicas, they are at least three, and writes at
    /// one reach the others only by [`Factory::deliver`] and [`Factory::step`].
    fn open(&self, schema: StoreSchema) -> BoxFuture<'_, Arc<dyn DataStore>>;

    /// True if replicas are apart as [`Factory::open`] says. Where they are not, as with servers
    /// that replicate on their own schedule, tests that rely on it are left out.
    fn is_apart(&self) -> bool {
        true
    }

    /// Closes a store and opens it again; none if it is not durable.
    fn reopen(
        &self,
        store: Arc<dyn DataStore>,
        schema: StoreSchema,
    ) -> BoxFuture<'_, Option<Arc<dyn DataStore>>> {
        drop((store, schema));
        Box::pin(std::future::ready(None))
    }

    /// Bodies of commands that write rows which a store keeps for itself, in each way to name them. None where
    /// commands cannot name any.
    fn own_bodies(&self, store: &Arc<dyn DataStore>) -> Vec<String> {
        let _ = store;
        Vec::new()
    }

    /// Opens the data of an open store once more, with another schema; an error gives the reason why it cannot be
    /// opened. Needed where [`Factory::own_bodies`] returns some.
    fn open_again(
        &self,
        store: &Arc<dyn DataStore>,
        schema: StoreSchema,
    ) -> BoxFuture<'_, Result<Arc<dyn DataStore>, String>> {
        drop(schema);
        let _ = store;
        Box::pin(std::future::ready(Err("this engine's commands name no rows".to_owned())))
    }

    /// True if its stores keep indexes.
    fn keeps_indexes(&self) -> bool {
        false
    }

    /// True if its stores draw keys where their level is serializable.
    fn draws_keys(&self) -> bool {
        self.keeps_indexes()
    }

    /// True if its stores list their objects.
    fn lists_objects(&self) -> bool {
        false
    }

    /// Lets every update reach every replica.
    fn deliver<'a>(&'a self, store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        let _ = store;
        Box::pin(std::future::ready(()))
    }

    /// Lets some time pass, so that some updates may reach some replicas.
    fn step<'a>(&'a self, store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        let _ = store;
        Box::pin(std::future::ready(()))
    }
}

/// A test that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The test's name.
    pub test: &'static str,
    /// The expected and the actual result.
    pub message: String,
}

/// The results of the suite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Tests that passed.
    pub passed: Vec<&'static str>,
    /// Tests that failed.
    pub failures: Vec<Failure>,
}

impl Report {
    /// Panics with all failures, if there are any.
    ///
    /// # Panics
    ///
    /// When a test failed, or none was run.
    pub fn assert_passed(&self) {
        assert!(!self.passed.is_empty(), "no test was run");
        let show = |failure: &Failure| format!("  {}: {}\n", failure.test, failure.message);
        let failures: String = self.failures.iter().map(show).collect();
        assert!(failures.is_empty(), "the store does not conform:\n{failures}");
    }
}

/// The failure that a test found.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wrong(String);

impl From<StoreError> for Wrong {
    fn from(error: StoreError) -> Self {
        Self(format!("an unexpected error: {error}"))
    }
}

type Checked = Result<(), Wrong>;
type Test = for<'a> fn(&'a Bench<'a>) -> BoxFuture<'a, Checked>;

/// Fails the test unless a condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::conformance::Wrong(format!($($message)+)));
        }
    };
}
use ensure;

/// Fails the test unless two values are equal.
macro_rules! ensure_eq {
    ($found:expr, $expected:expr, $($message:tt)+) => {{
        let (found, expected) = (&$found, &$expected);
        if found != expected {
            let what = format!($($message)+);
            return Err($crate::conformance::Wrong(format!(
                "{what}: expected {}, found {}",
                $crate::conformance::short(expected),
                $crate::conformance::short(found)
            )));
        }
    }};
}
use ensure_eq;

/// Lists tests by name.
macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        pub(super) const TESTS: &[(&str, super::Test)] =
            &[$((stringify!($name), |bench| Box::pin($name(bench)))),+];
    };
}
use tests;

fn short(value: &(impl fmt::Debug + ?Sized)) -> String {
    let text = format!("{value:?}");
    if text.chars().count() <= 400 {
        return text;
    }
    text.chars().take(400).chain(['…']).collect()
}

/// Runs all tests that fit the factory's level.
pub async fn run(factory: &dyn Factory) -> Report {
    let mut report = Report::default();
    let is_serializable = matches!(factory.level(), Level::Linearizable | Level::Snapshot);
    let common = [
        operations::TESTS,
        values::TESTS,
        hostile::TESTS,
        commands::TESTS,
        zeros::TESTS,
        atomicity::TESTS,
        once::TESTS,
        versions::TESTS,
        records::TESTS,
        witnesses::TESTS,
        stamps::TESTS,
    ];
    let replicated = vec![replicas::TESTS, records::REPLICATED_TESTS, witnesses::REPLICATED_TESTS];
    let own = match (is_serializable, factory.level()) {
        (true, _) => vec![isolation::TESTS, changes::TESTS, records::SERIALIZABLE_TESTS],
        (false, _) if !factory.is_apart() => Vec::new(),
        (false, Level::Causal) => {
            [replicated, vec![replicas::CAUSAL_TESTS, stamps::CAUSAL_TESTS]].concat()
        }
        (false, _) => replicated,
    };
    let mut indexed = match (factory.keeps_indexes(), is_serializable) {
        (false, _) => Vec::new(),
        (true, false) => vec![indexes::TESTS],
        (true, true) => vec![indexes::TESTS, indexes::SERIALIZABLE_TESTS],
    };
    if factory.draws_keys() && is_serializable {
        indexed.push(draws::TESTS);
    }
    let listed = if factory.lists_objects() { vec![lists::TESTS] } else { Vec::new() };
    for (name, test) in common.iter().chain(&own).chain(&indexed).chain(&listed).copied().flatten()
    {
        let store = factory.open(schema::store_schema(factory.level())).await;
        let bench = Bench { factory, store };
        match test(&bench).await {
            Ok(()) => report.passed.push(name),
            Err(Wrong(message)) => report.failures.push(Failure { test: name, message }),
        }
    }
    report
}

/// One test's store.
struct Bench<'a> {
    factory: &'a dyn Factory,
    store: Arc<dyn DataStore>,
}

impl Bench<'_> {
    /// A transaction at the first replica.
    async fn begin(&self) -> Result<Box<dyn Transaction>, Wrong> {
        Ok(self.store.begin(&Session::default()).await?)
    }

    /// A transaction at a replica, or at the only one.
    async fn begin_at(&self, replica: usize) -> Result<Box<dyn Transaction>, Wrong> {
        Ok(self.store.begin(&self.session(replica)).await?)
    }

    fn session(&self, replica: usize) -> Session {
        Session { replica: self.replicas().get(replica).cloned(), ..Session::default() }
    }

    fn replicas(&self) -> &[Name] {
        &self.store.capabilities().replicas
    }

    /// Commits writes in a transaction of their own.
    async fn write(&self, writes: Vec<Write>) -> Result<Committed, Wrong> {
        self.write_at(0, writes).await
    }

    async fn write_at(&self, replica: usize, writes: Vec<Write>) -> Result<Committed, Wrong> {
        let transaction = self.begin_at(replica).await?;
        Ok(transaction.commit(commit(writes)).await?)
    }

    /// Commits writes in a transaction of their own, which knows these of witness rows.
    async fn write_knowing(&self, known: &[TransactionId], writes: Vec<Write>) -> Checked {
        let known = known.iter().copied().collect();
        self.begin().await?.commit(Commit { writes, known, ..Commit::default() }).await?;
        Ok(())
    }

    /// Reads in a transaction of their own.
    async fn read(&self, reads: &[Read]) -> Result<Vec<Answer>, Wrong> {
        self.read_at(0, reads).await
    }

    async fn read_at(&self, replica: usize, reads: &[Read]) -> Result<Vec<Answer>, Wrong> {
        let mut transaction = self.begin_at(replica).await?;
        let answers = transaction.read_last(reads).await?;
        transaction.commit(Commit::default()).await?;
        ensure_eq!(answers.len(), reads.len(), "answers to a batch");
        Ok(answers)
    }

    async fn data_at(&self, replica: usize, read: Read) -> Result<Data, Wrong> {
        one(self.read_at(replica, &[read]).await?).map(|answer| answer.data)
    }

    async fn data(&self, read: Read) -> Result<Data, Wrong> {
        self.data_at(0, read).await
    }

    async fn deliver(&self) {
        self.factory.deliver(&*self.store).await;
    }
}

fn commit(writes: Vec<Write>) -> Commit {
    Commit { writes, ..Commit::default() }
}

/// A row of some transaction, of the `Thing` with this key or of the whole store.
fn witness_row(key: Option<&str>, sequence: u64) -> WitnessRow {
    WitnessRow {
        object: key.map(schema::thing),
        id: TransactionId { origin: Origin(u128::MAX - 1), sequence },
        kind: RowKind::Write,
        intent: "intents".into(),
        stores: vec!["a".into()],
        seen: Vec::new(),
    }
}

/// The only answer of a batch of one.
fn one(answers: Vec<Answer>) -> Result<Answer, Wrong> {
    let count = answers.len();
    let mut answers = answers.into_iter();
    match (answers.next(), count) {
        (Some(answer), 1) => Ok(answer),
        _ => Err(Wrong(format!("expected one answer, found {count}"))),
    }
}

/// The data of the only answer to one read in an open transaction.
async fn get(transaction: &mut Box<dyn Transaction>, read: Read) -> Result<Data, Wrong> {
    one(transaction.read(&[read]).await?).map(|answer| answer.data)
}
