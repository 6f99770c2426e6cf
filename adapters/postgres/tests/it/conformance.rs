//! The conformance suite on PostgreSQL, at both levels.

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
        Box::pin(self.open_in(support::unique("suite"), schema))
    }

    fn own_bodies(&self, store: &Arc<dyn DataStore>) -> Vec<String> {
        let schemas = self.schemas.lock().expect("no panic with the lock");
        let own = &schemas[&address(store)];
        let spelled: Vec<String> = own.chars().map(|c| format!("\\{:04x}", u32::from(c))).collect();
        let spelled = spelled.concat();
        vec![
            format!("DELETE FROM {own}.mingle_records"),
            format!("UPDATE \"{own}\".\"Thing\" SET text = 'changed'"),
            format!("DELETE FROM /* all */ {} . MINGLE_RECORDS", own.to_uppercase()),
            format!(
                "WITH gone AS (DELETE FROM {own}.mingle_records RETURNING 1) SELECT * FROM gone"
            ),
            format!("INSERT INTO {own}.mingle_witnesses SELECT * FROM {own}.mingle_witnesses"),
            format!("DELETE FROM U&\"{spelled}\".mingle_records"),
            format!("TRUNCATE {own}.mingle_records"),
            format!("TRUNCATE \"{own}\" . \"Thing\""),
        ]
    }

    fn open_again(
        &self,
        store: &Arc<dyn DataStore>,
        schema: StoreSchema,
    ) -> BoxFuture<'_, Result<Arc<dyn DataStore>, String>> {
        let schemas = self.schemas.lock().expect("no panic with the lock");
        let mut config = PostgresConfig::at(&self.url);
        config.schema = Some(schemas[&address(store)].clone());
        drop(schemas);
        Box::pin(async move {
            let store = Postgres::connect(config, schema, support::RealWorld::make()).await;
            let store: Arc<dyn DataStore> = store.map_err(|error| error.to_string())?;
            Ok(store)
        })
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
