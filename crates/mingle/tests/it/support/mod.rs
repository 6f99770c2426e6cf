//! A program over counted stores, in a world whose clock is virtual.
#![allow(dead_code)]

pub mod dying;
pub mod geo;
pub mod losing;
pub mod noting;
pub mod scenarios;
pub mod shared;

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle::{Binding, CallReport, Database, Error, Session};
use mingle_store::wrap::count::{Counters, CountingStore};
use mingle_store::wrap::fault::{FaultPlan, FaultyStore};
use mingle_store::{DataStore, TestWorld};
use serde_json::Value as Json;

pub struct Setup {
    pub world: Arc<TestWorld>,
    pub database: Arc<Database>,
    pub counters: BTreeMap<String, Arc<Counters>>,
    /// The session of all calls; none if each call has its own.
    pub session: Option<Session>,
}

impl Setup {
    pub fn new(text: &str) -> Self {
        Self::with(text, "", &BTreeMap::new())
    }

    /// Creates the program with a binding, and with faults at some stores.
    pub fn with(text: &str, binding: &str, faults: &BTreeMap<&str, Arc<FaultPlan>>) -> Self {
        let program = mingle::compile(text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        let binding = bound(&program, binding);
        let world = TestWorld::new(7);
        let mut counters = BTreeMap::new();
        let wrap = |name: &str, store: Arc<dyn DataStore>| -> Arc<dyn DataStore> {
            let store: Arc<dyn DataStore> = match faults.get(name) {
                Some(plan) => FaultyStore::new(store, plan.clone()),
                None => store,
            };
            let (counted, counter) = CountingStore::new(store);
            counters.insert(name.to_owned(), counter);
            counted
        };
        let opened = Database::open_wrapped(program, &binding, None, world.clone(), wrap);
        let database = world.block_on(opened);
        let database = Arc::new(database.unwrap_or_else(|error| panic!("{error}")));
        Self { world, database, counters, session: None }
    }

    /// Creates the program without wrappers around its stores, and with one session for all calls.
    pub fn plain(text: &str, binding: &str) -> Self {
        let program = mingle::compile(text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        let binding = bound(&program, binding);
        let world = TestWorld::new(7);
        let opened =
            Database::open_wrapped(program, &binding, None, world.clone(), |_, store| store);
        let database = world.block_on(opened);
        let database = Arc::new(database.unwrap_or_else(|error| panic!("{error}")));
        Self { world, database, counters: BTreeMap::new(), session: Some(Session::default()) }
    }

    pub fn call(&self, transaction: &str, arguments: &[(&str, &str)]) -> Result<CallReport, Error> {
        let arguments = self.database.arguments(transaction, arguments.iter().copied())?;
        let session = self.session.clone().unwrap_or_default();
        self.world.block_on(self.database.call(transaction, arguments, session))
    }

    /// The result of a call that must succeed, as JSON.
    pub fn ok(&self, transaction: &str, arguments: &[(&str, &str)]) -> Json {
        let report = self
            .call(transaction, arguments)
            .unwrap_or_else(|error| panic!("{transaction}: {error}"));
        self.database.result_json(transaction, &report)
    }

    pub fn show(&self, kind: &str, key: &str) -> Json {
        let object = self.database.object(kind, key).expect("the kind and key are right");
        let session = self.session.clone().unwrap_or_default();
        let shown = self.database.show(&object, &session, 1_000);
        self.world.block_on(shown).expect("the stores of the test answer")
    }

    pub fn round_trips(&self, store: &str) -> u64 {
        self.counters[store].now().round_trips()
    }
}

/// A binding; stores that it does not bind are in this process.
pub fn bound(program: &mingle_lang::Program, binding: &str) -> Binding {
    let mut binding = Binding::parse(binding).expect("the test's binding is right");
    for store in &program.checked.stores {
        binding.stores.entry(store.name.to_string()).or_default();
    }
    binding
}

impl scenarios::Site for Setup {
    fn call(&self, transaction: &str, arguments: &[(&str, &str)]) -> Result<CallReport, Error> {
        self.call(transaction, arguments)
    }

    fn ok(&self, transaction: &str, arguments: &[(&str, &str)]) -> Json {
        self.ok(transaction, arguments)
    }

    fn show(&self, kind: &str, key: &str) -> Json {
        self.show(kind, key)
    }
}
