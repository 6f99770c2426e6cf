//! Data centers, some of which are given up.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use mingle_model::{Level, Stamp, Value};
use mingle_store::{Commit, Data, DataStore, Read, Session, StoreError, TestWorld, World, Write};
use mingle_store_embedded::storage::memory::MemoryStorage;
use mingle_store_embedded::storage::{Changes, Direction, Snapshot, Storage, StorageError};
use mingle_store_embedded::{
    DatacenterState, Embedded, EmbeddedConfig, GeoConfig, GeoStore, Links,
};

use super::{at, usual};

pub const CITIES: [&str; 3] = ["oslo", "rome", "lima"];

pub const BOTH: [Level; 2] = [Level::Causal, Level::Linearizable];

/// The data centers that are cut off from all others.
#[derive(Default)]
pub struct Alone(Mutex<BTreeSet<&'static str>>);

impl Alone {
    pub fn set(&self, cities: &[&'static str]) {
        *self.0.lock().expect("no panic") = cities.iter().copied().collect();
    }
}

impl Links for Alone {
    fn is_up(&self, from: &str, to: &str) -> bool {
        let alone = self.0.lock().expect("no panic");
        !alone.contains(from) && !alone.contains(to)
    }
}

pub fn geo() -> GeoConfig {
    GeoConfig::new(CITIES)
        .with_distance("40ms±10ms".parse().expect("a distance"))
        .with_partitions(2)
}

pub fn open(world: &Arc<TestWorld>, level: Level, config: EmbeddedConfig) -> Arc<GeoStore> {
    let opened = Embedded::open_geo(&config, &usual(level), world.clone());
    opened.unwrap_or_else(|error| panic!("{level}: {error}"))
}

pub fn pass(world: &TestWorld, millis: u64) {
    world.block_on(world.sleep(Duration::from_millis(millis)));
}

pub async fn write(
    store: &GeoStore,
    session: &Session,
    writes: Vec<Write>,
) -> Result<Stamp, StoreError> {
    let transaction = store.begin(session).await?;
    let commit = Commit { writes, ..Commit::default() };
    transaction.commit(commit).await.map(|committed| committed.stamp)
}

/// Puts `value` at two partitions, in a transaction.
pub fn put(world: &TestWorld, store: &GeoStore, session: &Session, value: i64) -> Stamp {
    let writes =
        vec![Write::Add(at("a", 1), value.into()), Write::Insert(at("b", 3), Value::Int(value))];
    let committed = world.block_on(write(store, session, writes));
    committed.unwrap_or_else(|error| panic!("{session:?}: {error}"))
}

/// Returns the values put, as one data center shows them; checks that transactions are whole.
pub fn found(
    world: &TestWorld,
    store: &GeoStore,
    session: &Session,
) -> Result<Vec<i64>, StoreError> {
    let reads = [Read::Counter(at("a", 1)), Read::Elements(at("b", 3))];
    let answers = world.block_on(async {
        let mut transaction = store.begin(session).await?;
        let answers = transaction.read(&reads).await?;
        transaction.commit(Commit::default()).await?;
        Ok::<_, StoreError>(answers)
    })?;
    let Data::Values(values) = &answers[1].data else { panic!("{answers:?}") };
    let values: Vec<i64> = values.iter().filter_map(Value::as_int).collect();
    assert_eq!(answers[0].data, Data::Counter(values.iter().map(|n| i128::from(*n)).sum()));
    Ok(values)
}

pub fn state(store: &GeoStore, city: &str) -> DatacenterState {
    let status = store.status().into_iter().find(|status| &*status.name == city);
    status.expect("it is there").state
}

/// Rows that outlive the store that uses them.
#[derive(Clone, Default)]
pub struct Kept(Arc<MemoryStorage>);

impl Storage for Kept {
    fn snapshot(&self) -> Result<Snapshot, StorageError> {
        self.0.snapshot()
    }

    fn commit(&self, changes: Changes) -> Result<(), StorageError> {
        self.0.commit(changes)
    }

    fn is_durable(&self) -> bool {
        true
    }
}

impl Kept {
    pub fn open(
        &self,
        world: &Arc<TestWorld>,
        level: Level,
        config: &EmbeddedConfig,
    ) -> Arc<GeoStore> {
        let opened =
            Embedded::open_geo_over(Box::new(self.clone()), config, &usual(level), world.clone());
        opened.unwrap_or_else(|error| panic!("{level}: {error}"))
    }

    /// The keys of the rows of a data center's log of a partition.
    pub fn log(&self, dc: u8, partition: u8) -> Vec<Vec<u8>> {
        let (view, mut keys) = (self.0.snapshot().expect("memory"), Vec::new());
        let visit = &mut |key: &[u8], _: &[u8]| {
            keys.push(key.to_vec());
            true
        };
        let prefix = [b'l', dc, 0, partition];
        view.scan(&prefix, None, Direction::Forward, visit).expect("memory");
        keys
    }

    pub fn set(&self, keys: impl IntoIterator<Item = Vec<u8>>, row: Option<&[u8]>) {
        let row = row.map(|row| row.to_vec().into());
        let changes = keys.into_iter().map(|key| (key.into(), row.clone())).collect();
        self.0.commit(changes).expect("memory");
    }
}

pub fn config() -> EmbeddedConfig {
    EmbeddedConfig::in_memory().with_geo(geo())
}

/// Runs `work`, and drops it after `millis` ms if it is not finished.
pub fn within<T>(world: &TestWorld, millis: u64, work: impl Future<Output = T>) -> Option<T> {
    world.block_on(async {
        let mut work = std::pin::pin!(work);
        let mut sleep = world.sleep(Duration::from_millis(millis));
        std::future::poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => sleep.as_mut().poll(context).map(|()| None),
        })
        .await
    })
}
