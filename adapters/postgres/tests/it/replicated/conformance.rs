//! The conformance suite on three servers. Arriving updates are held back at the receiver, and let
//! through step by step; they always arrive by logical replication.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use mingle_model::Level;
use mingle_store::conformance::{self, Factory};
use mingle_store::random::next_random;
use mingle_store::{BoxFuture, DataStore, StoreSchema};
use mingle_store_postgres::ReplicatedPostgres;

use crate::replicated::cluster::Cluster;
use crate::support::{RealWorld, unique};

/// Maximum number of stores at a time: each has workers at every server.
const STORES_MAX: usize = 3;

struct ReplicatedFactory {
    level: Level,
    cluster: Cluster,
    state: Mutex<State>,
}

struct State {
    /// Schemas of open stores, by the address of the store.
    schemas: BTreeMap<usize, String>,
    /// All schemas, the oldest first.
    there: Vec<String>,
    random: u64,
}

fn address(store: &dyn DataStore) -> usize {
    std::ptr::from_ref(store).cast::<()>() as usize
}

impl ReplicatedFactory {
    async fn open_in(&self, name: String, schema: StoreSchema) -> Arc<dyn DataStore> {
        let config = self.cluster.config(&name);
        let store: Arc<dyn DataStore> =
            ReplicatedPostgres::connect(config, schema, RealWorld::make())
                .await
                .unwrap_or_else(|error| panic!("{error}"));
        let address = address(&*store);
        self.state.lock().expect("no panic with the lock").schemas.insert(address, name);
        store
    }

    fn schema(&self, store: &dyn DataStore) -> String {
        self.state.lock().expect("no panic with the lock").schemas[&address(store)].clone()
    }

    fn random(&self) -> u64 {
        next_random(&mut self.state.lock().expect("no panic with the lock").random)
    }
}

impl Factory for ReplicatedFactory {
    fn level(&self) -> Level {
        self.level
    }

    fn open(&self, schema: StoreSchema) -> BoxFuture<'_, Arc<dyn DataStore>> {
        Box::pin(async move {
            let name = unique("suite");
            let old = {
                let mut state = self.state.lock().expect("no panic with the lock");
                state.there.push(name.clone());
                (state.there.len() > STORES_MAX).then(|| state.there.remove(0))
            };
            if let Some(old) = old {
                self.cluster.remove(&old).await;
            }
            let store = self.open_in(name.clone(), schema).await;
            self.cluster.hold(&name).await;
            store
        })
    }

    fn reopen(
        &self,
        store: Arc<dyn DataStore>,
        schema: StoreSchema,
    ) -> BoxFuture<'_, Option<Arc<dyn DataStore>>> {
        let name = self.schema(&*store);
        drop(store);
        Box::pin(async move { Some(self.open_in(name, schema).await) })
    }

    fn deliver<'a>(&'a self, store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        let name = self.schema(store);
        Box::pin(async move {
            self.cluster.arrived(&name).await;
            for server in 0..self.cluster.clients.len() {
                self.cluster.drain(&name, server, None).await;
            }
            self.cluster.applied(&name).await;
            self.cluster.acknowledged(&name).await;
        })
    }

    fn step<'a>(&'a self, store: &'a dyn DataStore) -> BoxFuture<'a, ()> {
        let name = self.schema(store);
        Box::pin(async move {
            self.cluster.arrived(&name).await;
            let (server, most) = (self.random(), self.random());
            let server = usize::try_from(server % 3).expect("one of three");
            let most = i64::try_from(1 + most % 3).expect("a few");
            self.cluster.drain(&name, server, Some(most)).await;
        })
    }
}

async fn check(level: Level) {
    let Some(cluster) = Cluster::start().await else { return };
    let state = State { schemas: BTreeMap::new(), there: Vec::new(), random: 11 };
    let factory = ReplicatedFactory { level, cluster, state: Mutex::new(state) };
    conformance::run(&factory).await.assert_passed();
}

#[tokio::test]
async fn causal() {
    check(Level::Causal).await;
}

#[tokio::test]
async fn eventual() {
    check(Level::Eventual).await;
}
