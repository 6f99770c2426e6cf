//! The suite over every kind of store of this engine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mingle_model::Level;
use mingle_store::conformance::{self, Factory};
use mingle_store::{BoxFuture, DataStore, StoreSchema, TestWorld, World};
use mingle_store_embedded::{Embedded, EmbeddedConfig};
use tempfile::TempDir;

/// The delay until updates reach other replicas, and its jitter.
const DELAY: Duration = Duration::from_millis(40);

struct EmbeddedFactory {
    level: Level,
    replicas: usize,
    is_durable: bool,
    world: Arc<TestWorld>,
    /// Folders of open stores, by the address of the store.
    folders: Mutex<BTreeMap<usize, TempDir>>,
}

fn address(store: &Arc<dyn DataStore>) -> usize {
    Arc::as_ptr(store).cast::<()>() as usize
}

impl EmbeddedFactory {
    fn config(&self, folder: Option<&TempDir>) -> EmbeddedConfig {
        let config = match folder {
            Some(folder) => EmbeddedConfig::in_folder(folder.path()),
            None => EmbeddedConfig::in_memory(),
        };
        config.with_replicas(self.replicas).with_delay(DELAY, DELAY)
    }

    fn open_in(&self, folder: Option<TempDir>, schema: StoreSchema) -> Arc<dyn DataStore> {
        let config = self.config(folder.as_ref());
        let world: Arc<dyn World> = self.world.clone();
        let store = Embedded::open(config, schema, world).expect("the store opens");
        if let Some(folder) = folder {
            let mut folders = self.folders.lock().expect("no test panics with the lock");
            folders.insert(address(&store), folder);
        }
        store
    }
}

impl Factory for EmbeddedFactory {
    fn keeps_indexes(&self) -> bool {
        true
    }

    fn lists_objects(&self) -> bool {
        true
    }

    fn level(&self) -> Level {
        self.level
    }

    fn open(&self, schema: StoreSchema) -> BoxFuture<'_, Arc<dyn DataStore>> {
        let folder = self.is_durable.then(|| TempDir::new().expect("a temporary folder"));
        Box::pin(std::future::ready(self.open_in(folder, schema)))
    }

    fn reopen(
        &self,
        store: Arc<dyn DataStore>,
        schema: StoreSchema,
    ) -> BoxFuture<'_, Option<Arc<dyn DataStore>>> {
        let mut folders = self.folders.lock().expect("no test panics with the lock");
        let folder = folders.remove(&address(&store));
        drop(folders);
        drop(store);
        let reopened = folder.map(|folder| self.open_in(Some(folder), schema));
        Box::pin(std::future::ready(reopened))
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

fn check(level: Level, replicas: usize, is_durable: bool) {
    let world = TestWorld::new(3);
    let factory = EmbeddedFactory {
        level,
        replicas,
        is_durable,
        world: world.clone(),
        folders: Mutex::new(BTreeMap::new()),
    };
    world.block_on(conformance::run(&factory)).assert_passed();
}

#[test]
fn linearizable_in_memory() {
    check(Level::Linearizable, 1, false);
}

#[test]
fn linearizable_in_a_folder() {
    check(Level::Linearizable, 1, true);
}

#[test]
fn snapshot_in_memory() {
    check(Level::Snapshot, 1, false);
}

#[test]
fn snapshot_in_a_folder() {
    check(Level::Snapshot, 1, true);
}

#[test]
fn causal_in_memory() {
    check(Level::Causal, 3, false);
}

#[test]
fn causal_in_a_folder() {
    check(Level::Causal, 3, true);
}

#[test]
fn eventual_in_memory() {
    check(Level::Eventual, 3, false);
}

#[test]
fn eventual_in_a_folder() {
    check(Level::Eventual, 3, true);
}
