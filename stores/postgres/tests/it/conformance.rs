//! The suite over PostgreSQL, at both levels.

use crate::support;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use mingle_model::Level;
use mingle_store::conformance::{self, Factory};
use mingle_store::{BoxFuture, DataStore, StoreSchema};
use mingle_store_postgres::{Postgres, PostgresConfig};

struct PostgresFactory {
    level: Level,
    url: String,
    /// Schemas of open stores, by the address of the store.
    schemas: Mutex<BTreeMap<usize, String>>,
}

fn address(store: &Arc<dyn DataStore>) -> usize {
    Arc::as_ptr(store).cast::<()>() as usize
}

impl PostgresFactory {
    async fn open_in(&self, name: String, schema: StoreSchema) -> Arc<dyn DataStore> {
        let mut config = PostgresConfig::at(&self.url);
        config.schema = Some(name.clone());
        let store: Arc<dyn DataStore> =
            Postgres::connect(config, schema, support::RealWorld::make())
                .await
                .unwrap_or_else(|error| panic!("{error}"));
        self.schemas.lock().expect("no panic with the lock").insert(address(&store), name);
        store
    }
}

impl Factory for PostgresFactory {
    fn level(&self) -> Level {
        self.level
    }

    fn open(&self, schema: StoreSchema) -> BoxFuture<'_, Arc<dyn DataStore>> {
        Box::pin(self.open_in(support::unique("suite"), schema))
    }

    fn reopen(
        &self,
        store: Arc<dyn DataStore>,
        schema: StoreSchema,
    ) -> BoxFuture<'_, Option<Arc<dyn DataStore>>> {
        let name = self.schemas.lock().expect("no panic with the lock").remove(&address(&store));
        drop(store);
        Box::pin(async move { Some(self.open_in(name?, schema).await) })
    }
}

async fn check(level: Level) {
    let Some(url) = support::server().await else { return };
    let factory = PostgresFactory { level, url, schemas: Mutex::new(BTreeMap::new()) };
    conformance::run(&factory).await.assert_passed();
}

#[tokio::test]
async fn linearizable() {
    check(Level::Linearizable).await;
}

#[tokio::test]
async fn snapshot() {
    check(Level::Snapshot).await;
}
