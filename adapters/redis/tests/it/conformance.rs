//! The conformance suite that every adapter must pass.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use mingle_model::Level;
use mingle_services::Engine;
use mingle_store::conformance::{self, Factory};
use mingle_store::{BoxFuture, DataStore, StoreSchema};
use mingle_store_redis::RedisConfig;

use crate::support::{config, connect};

struct RedisFactory {
    level: Level,
    url: String,
    /// The configuration of each open store, by its address.
    configs: Mutex<BTreeMap<usize, RedisConfig>>,
}

fn address(store: &Arc<dyn DataStore>) -> usize {
    Arc::as_ptr(store).cast::<()>() as usize
}

impl RedisFactory {
    async fn open_with(&self, config: RedisConfig, schema: StoreSchema) -> Arc<dyn DataStore> {
        let store: Arc<dyn DataStore> =
            connect(config.clone(), schema).await.expect("the store opens");
        self.configs.lock().expect("no test panics with it").insert(address(&store), config);
        store
    }
}

impl Factory for RedisFactory {
    fn keeps_indexes(&self) -> bool {
        true
    }

    fn draws_keys(&self) -> bool {
        false
    }

    fn level(&self) -> Level {
        self.level
    }

    fn open(&self, schema: StoreSchema) -> BoxFuture<'_, Arc<dyn DataStore>> {
        Box::pin(self.open_with(config(&self.url), schema))
    }

    fn own_bodies(&self, store: &Arc<dyn DataStore>) -> Vec<String> {
        let configs = self.configs.lock().expect("no test panics with it");
        let prefix = configs[&address(store)].prefix_of("suite");
        vec![
            format!("DEL {prefix}Thing:k"),
            format!("DEL elsewhere {prefix}!records:1"),
            format!("HSET {prefix}Thing:k text changed"),
            format!("set \"{prefix}!commits\" 7"),
            format!("RENAME {prefix}Thing:k elsewhere"),
            format!("COPY elsewhere {prefix}Thing:k REPLACE"),
            "FLUSHALL".to_owned(),
        ]
    }

    fn open_again(
        &self,
        store: &Arc<dyn DataStore>,
        schema: StoreSchema,
    ) -> BoxFuture<'_, Result<Arc<dyn DataStore>, String>> {
        let configs = self.configs.lock().expect("no test panics with it");
        let config = configs[&address(store)].clone();
        drop(configs);
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
        let mut configs = self.configs.lock().expect("no test panics with it");
        let config = configs.remove(&address(&store)).expect("it was opened here");
        drop(configs);
        drop(store);
        Box::pin(async move { Some(self.open_with(config, schema).await) })
    }
}

async fn conforms(level: Level) {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let url = server.url().to_owned();
    let factory = RedisFactory { level, url, configs: Mutex::default() };
    let report = conformance::run(&factory).await;
    report.assert_passed();
    assert!(report.passed.len() >= 50, "{} tests", report.passed.len());
}

#[tokio::test]
async fn a_linearizable_store_conforms() {
    conforms(Level::Linearizable).await;
}

#[tokio::test]
async fn a_snapshot_store_conforms() {
    conforms(Level::Snapshot).await;
}
