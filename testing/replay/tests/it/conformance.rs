//! The conformance suite, at both levels and with every way to take effect once.

use std::sync::Arc;
use std::time::Duration;

use mingle_model::Level;
use mingle_store::conformance::{self, Factory};
use mingle_store::{BoxFuture, DataStore, Once, StoreSchema, TestWorld, World};
use mingle_store_replay::{ReplayConfig, ReplayStore};

/// The delay of updates to other replicas; the jitter is as large.
const DELAY: Duration = Duration::from_millis(40);

struct ReplayFactory {
    level: Level,
    once: Once,
    world: Arc<TestWorld>,
}

impl Factory for ReplayFactory {
    fn level(&self) -> Level {
        self.level
    }

    fn open(&self, schema: StoreSchema) -> BoxFuture<'_, Arc<dyn DataStore>> {
        let config = ReplayConfig::new(3, self.once).with_delay(DELAY, DELAY);
        let store = ReplayStore::open(config, schema, self.world.clone());
        Box::pin(std::future::ready(store.expect("the store opens")))
    }

    fn deliver<'a>(&'a self, _store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        self.world.advance(DELAY * 2);
        Box::pin(std::future::ready(()))
    }

    fn step<'a>(&'a self, _store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        let passed = self.world.random() % 20;
        self.world.advance(Duration::from_millis(passed));
        Box::pin(std::future::ready(()))
    }
}

fn check(level: Level, once: Once) {
    let world = TestWorld::new(3);
    let factory = ReplayFactory { level, once, world: world.clone() };
    world.block_on(conformance::run(&factory)).assert_passed();
}

#[test]
fn causal_by_id() {
    check(Level::Causal, Once::ById);
}

#[test]
fn causal_at_a_home() {
    check(Level::Causal, Once::Home);
}

#[test]
fn eventual_by_id() {
    check(Level::Eventual, Once::ById);
}

#[test]
fn eventual_never() {
    check(Level::Eventual, Once::Never);
}
