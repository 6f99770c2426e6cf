//! Linearizable stores over several data centers: the suite.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::members::{CITIES, Kept};
use mingle_model::Level;
use mingle_store::conformance::{self, Factory};
use mingle_store::wrap::distance::Distance;
use mingle_store::{BoxFuture, DataStore, StoreSchema, TestWorld, World};
use mingle_store_embedded::storage::Storage;
use mingle_store_embedded::storage::memory::MemoryStorage;
use mingle_store_embedded::{Embedded, EmbeddedConfig, GeoConfig};

/// The round-trip time between data centers, and its jitter.
const DISTANCE: Duration = Duration::from_millis(80);

struct StrongFactory {
    level: Level,
    partitions: u16,
    is_kept: bool,
    world: Arc<TestWorld>,
    /// The kept parts of open stores, by the address of the store.
    kept: Mutex<BTreeMap<usize, Kept>>,
}

fn address(store: &Arc<dyn DataStore>) -> usize {
    Arc::as_ptr(store).cast::<()>() as usize
}

fn geo(partitions: u16) -> GeoConfig {
    GeoConfig::new(CITIES)
        .with_distance(Distance { mean: DISTANCE, jitter: DISTANCE })
        .with_partitions(partitions)
}

impl StrongFactory {
    fn open_over(&self, kept: Option<Kept>, schema: &StoreSchema) -> Arc<dyn DataStore> {
        let config = EmbeddedConfig::in_memory().with_geo(geo(self.partitions));
        let storage: Box<dyn Storage> = match &kept {
            Some(kept) => Box::new(kept.clone()),
            None => Box::<MemoryStorage>::default(),
        };
        let opened = Embedded::open_over(storage, &config, schema, self.world.clone());
        let store = opened.expect("the store opens");
        if let Some(kept) = kept {
            self.kept.lock().expect("no test panics with the lock").insert(address(&store), kept);
        }
        store
    }
}

impl Factory for StrongFactory {
    fn keeps_indexes(&self) -> bool {
        true
    }

    fn draws_keys(&self) -> bool {
        false
    }

    fn lists_objects(&self) -> bool {
        true
    }

    fn level(&self) -> Level {
        self.level
    }

    fn open(&self, schema: StoreSchema) -> BoxFuture<'_, Arc<dyn DataStore>> {
        let kept = self.is_kept.then(Kept::default);
        Box::pin(std::future::ready(self.open_over(kept, &schema)))
    }

    fn reopen(
        &self,
        store: Arc<dyn DataStore>,
        schema: StoreSchema,
    ) -> BoxFuture<'_, Option<Arc<dyn DataStore>>> {
        let kept = self.kept.lock().expect("no test panics with the lock").remove(&address(&store));
        drop(store);
        let reopened = kept.map(|kept| self.open_over(Some(kept), &schema));
        Box::pin(std::future::ready(reopened))
    }

    fn deliver<'a>(&'a self, _store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        self.world.sleep(DISTANCE * 10)
    }

    fn step<'a>(&'a self, _store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        self.world.sleep(Duration::from_millis(self.world.random() % 20))
    }
}

fn check(level: Level, partitions: u16, is_kept: bool) {
    let world = TestWorld::new(3);
    let kept = Mutex::default();
    let factory = StrongFactory { level, partitions, is_kept, world: world.clone(), kept };
    world.block_on(conformance::run(&factory)).assert_passed();
}

#[test]
fn one_partition_conforms() {
    check(Level::Linearizable, 1, false);
}

#[test]
fn one_partition_that_is_kept_conforms() {
    check(Level::Linearizable, 1, true);
}

#[test]
fn several_partitions_that_are_kept_conform() {
    check(Level::Snapshot, 2, true);
}
