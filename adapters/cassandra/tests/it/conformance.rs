//! The suite that every adapter must pass.
//!
//! The tests that need no partitioned replicas run over the real data centers. The others run over
//! a keyspace for each replica, and the suite requests each delivery of mutations between them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use mingle_model::Level;
use mingle_services::Engine;
use mingle_store::conformance::{self, Factory};
use mingle_store::{BoxFuture, DataStore, StoreSchema};
use mingle_store_cassandra::{Apart, Cassandra, CassandraConfig, Consistency, Outcomes};

use crate::support::{config, connect};

struct CassandraFactory {
    url: String,
    is_apart: bool,
    /// The open stores, by address, with their configuration.
    open: Mutex<BTreeMap<usize, (CassandraConfig, Arc<Cassandra>)>>,
}

fn address(store: &dyn DataStore) -> usize {
    std::ptr::from_ref(store).cast::<()>() as usize
}

impl CassandraFactory {
    async fn open_with(&self, config: CassandraConfig, schema: StoreSchema) -> Arc<dyn DataStore> {
        let store = connect(config.clone(), schema).await.expect("the store opens");
        let opened: Arc<dyn DataStore> = store.clone();
        let mut open = self.open.lock().expect("no test panics with it");
        open.insert(address(&*opened), (config, store));
        opened
    }

    fn store(&self, store: &dyn DataStore) -> Arc<Cassandra> {
        let open = self.open.lock().expect("no test panics with it");
        Arc::clone(&open.get(&address(store)).expect("it was opened here").1)
    }
}

impl Factory for CassandraFactory {
    fn level(&self) -> Level {
        Level::Eventual
    }

    fn is_apart(&self) -> bool {
        self.is_apart
    }

    fn open(&self, schema: StoreSchema) -> BoxFuture<'_, Arc<dyn DataStore>> {
        let config = CassandraConfig {
            outcomes: Outcomes::Decided,
            // An acknowledged write is at all data centers, so there is nothing to deliver.
            write_consistency: Consistency::EachQuorum,
            apart: self.is_apart.then(|| Arc::new(Apart::new(7))),
            ..config(&self.url)
        };
        Box::pin(self.open_with(config, schema))
    }

    fn own_bodies(&self, store: &Arc<dyn DataStore>) -> Vec<String> {
        let open = self.open.lock().expect("no test panics with it");
        let keyspace = &open[&address(&**store)].0.keyspace;
        let keyspace = if self.is_apart { format!("{keyspace}_0") } else { keyspace.clone() };
        let at = "WHERE object = 0x00";
        vec![
            format!("DELETE FROM {keyspace}.data {at}"),
            format!("delete from \"{keyspace}\" . \"data\" {at}"),
            format!("INSERT INTO {keyspace}.catalog (name, value) VALUES ('a', 'b')"),
        ]
    }

    fn open_again(
        &self,
        store: &Arc<dyn DataStore>,
        schema: StoreSchema,
    ) -> BoxFuture<'_, Result<Arc<dyn DataStore>, String>> {
        let config =
            self.open.lock().expect("no test panics with it")[&address(&**store)].0.clone();
        Box::pin(async move {
            let store: Arc<dyn DataStore> =
                connect(config, schema).await.map_err(|error| error.to_string())?;
            Ok(store)
        })
    }

    fn reopen(
        &self,
        store: Arc<dyn DataStore>,
        schema: StoreSchema,
    ) -> BoxFuture<'_, Option<Arc<dyn DataStore>>> {
        let mut open = self.open.lock().expect("no test panics with it");
        let (config, _) = open.remove(&address(&*store)).expect("it was opened here");
        drop(open);
        drop(store);
        Box::pin(async move { Some(self.open_with(config, schema).await) })
    }

    fn deliver<'a>(&'a self, store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        let store = self.store(store);
        Box::pin(async move { while store.deliver_one().await.expect("it is delivered") {} })
    }

    fn step<'a>(&'a self, store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        let store = self.store(store);
        Box::pin(async move {
            store.deliver_one().await.expect("it is delivered");
        })
    }
}

async fn conforms(is_apart: bool) -> Option<usize> {
    let server = mingle_services::shared(Engine::Cassandra).await?;
    let url = server.url().to_owned();
    let factory = CassandraFactory { url, is_apart, open: Mutex::default() };
    let report = conformance::run(&factory).await;
    report.assert_passed();
    Some(report.passed.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn three_data_centers_conform() {
    let Some(count) = conforms(false).await else { return };
    assert!(count >= 40, "{count} tests");
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_apart_conform() {
    let Some(count) = conforms(true).await else { return };
    assert!(count >= 55, "{count} tests");
}
