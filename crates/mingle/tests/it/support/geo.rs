//! A program over stores with data centers; its clients' calls are recorded for the checker.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mingle::{Binding, CallReport, Database, Error, GeoStore, Session};
use mingle_checker::history::{Interval, Operation, Transaction};
use mingle_checker::{History, Outcome};
use mingle_store::{TestWorld, World};
use serde_json::Value as Json;

/// The data centers.
pub const CITIES: [&str; 3] = ["oslo", "rome", "lima"];

/// A program over such stores, without wrappers.
pub struct Cities {
    pub world: Arc<TestWorld>,
    pub database: Database,
}

impl Cities {
    pub fn new(text: &str, binding: &str) -> Self {
        Self::seeded(text, binding, 7)
    }

    /// Creates the program; distances are drawn from a seed.
    pub fn seeded(text: &str, binding: &str, seed: u64) -> Self {
        let program = mingle::compile(text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        let binding = Binding::parse(binding).unwrap_or_else(|error| panic!("{error}"));
        let world = TestWorld::new(seed);
        let opened =
            Database::open_wrapped(program, &binding, None, world.clone(), |_, store| store);
        let database = world.block_on(opened).unwrap_or_else(|error| panic!("{error}"));
        Self { world, database }
    }

    /// The data centers of a store.
    pub fn geo(&self, store: &str) -> &Arc<GeoStore> {
        self.database.geo(store).expect("the binding gives it data centers")
    }

    pub async fn report(
        &self,
        session: &Session,
        transaction: &str,
        arguments: &[(&str, String)],
    ) -> Result<(CallReport, Json), Error> {
        let database = &self.database;
        let arguments = arguments.iter().map(|(name, value)| (*name, value.as_str()));
        let arguments = database.arguments(transaction, arguments)?;
        let report = database.call(transaction, arguments, session.clone()).await?;
        let result = database.result_json(transaction, &report);
        Ok((report, result))
    }

    /// The result of a call that returns a list of numbers.
    pub async fn call(
        &self,
        session: &Session,
        transaction: &str,
        arguments: &[(&str, String)],
    ) -> Result<Vec<i64>, Error> {
        let (_, found) = self.report(session, transaction, arguments).await?;
        let numbers = found.as_array().into_iter().flatten();
        Ok(numbers.map(|number| number.as_i64().expect("a number")).collect())
    }

    /// Stops these data centers of a store, group after group, and starts them again.
    pub async fn stop(&self, store: &str, stops: &[&[&str]]) {
        let pause = Duration::from_millis(1_500);
        for cities in stops {
            self.world.sleep(pause).await;
            cities.iter().for_each(|city| self.geo(store).kill(city).expect("it is there"));
            self.world.sleep(pause).await;
            cities.iter().for_each(|city| self.geo(store).start(city).expect("it is there"));
        }
    }
}

/// The observations of clients.
#[derive(Default)]
pub struct Seen(Mutex<Vec<Transaction>>);

impl Seen {
    pub fn add(
        &self,
        client: usize,
        (begin, end): (Duration, Duration),
        outcome: Outcome,
        operations: Vec<Operation>,
    ) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).expect("a short run");
        let mut seen = self.0.lock().expect("no panic");
        let id = seen.len() as i64;
        seen.push(Transaction {
            id,
            session: client as i64,
            outcome,
            interval: Some(Interval { begin: nanos(begin), end: nanos(end) }),
            commit: None,
            is_final: false,
            operations,
        });
    }

    /// The whole history; panics if it is too small to be a test.
    pub fn into_history(self, least: usize) -> History {
        let seen = self.0.into_inner().expect("no panic");
        let committed = seen.iter().filter(|one| one.outcome == Outcome::Committed).count();
        assert!(committed > least, "only {committed} committed");
        History::new(seen).expect("each number is written once")
    }

    /// The number of transactions with an operation that satisfies the predicate.
    pub fn count(&self, mut is_one: impl FnMut(&Operation) -> bool) -> usize {
        let seen = self.0.lock().expect("no panic");
        seen.iter().filter(|one| one.operations.iter().any(&mut is_one)).count()
    }
}
