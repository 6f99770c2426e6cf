//! Programs on several stores, at least one of them in PostgreSQL, run by the runtime.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{self, unique};
use mingle::{Database, Error, Session, Settings, TokioWorld};
use mingle_model::random::Random;
use mingle_runtime::Runtime;
use mingle_store::{DataStore, StoreSchema, World};
use mingle_store_postgres::{Postgres, PostgresConfig};

const ACCOUNTS: usize = 4;
const CLIENTS: u64 = 8;
const TRANSFERS: usize = 10;

/// The bank with both stores in PostgreSQL, each in a schema of its own, and a client that counts
/// rows there.
struct Bank {
    database: Database,
    url: String,
    schemas: Vec<String>,
}

impl Bank {
    async fn open(processes: &[(String, String)]) -> Option<Self> {
        let url = support::server().await?;
        let text = include_str!("../../../../examples/bank.mingle")
            .replace("store notifications: causal", "store notifications: snapshot");
        let program = mingle::compile(&text).unwrap_or_else(|errors| panic!("{errors}"));
        let world: Arc<dyn World> = Arc::new(TokioWorld::new());
        let names: BTreeMap<&str, &str> =
            processes.iter().map(|(store, schema)| (&**store, &**schema)).collect();
        let (mut stores, mut schemas) = (Vec::<Arc<dyn DataStore>>::new(), Vec::new());
        for declared in &program.checked.stores {
            let schema = StoreSchema {
                store: declared.name.clone(),
                level: program.checked.levels.carrier(declared.level),
                schema: program.schema().stored().into(),
                operations: BTreeMap::new(),
            };
            let mut config = PostgresConfig::at(&url);
            config.schema = Some(names[&*declared.name].to_owned());
            schemas.push(names[&*declared.name].to_owned());
            let store = Postgres::connect(config, schema, world.clone()).await;
            stores.push(store.unwrap_or_else(|error| panic!("{error}")));
        }
        let settings = Settings { deadline: Duration::from_mins(2), ..Settings::default() };
        let database = Database::over(Runtime::new(program, stores, world, settings));
        Some(Self { database, url, schemas })
    }

    async fn call(&self, transaction: &str, arguments: &[(&str, &str)]) -> Result<(), Error> {
        let arguments = self.database.arguments(transaction, arguments.iter().copied())?;
        self.database.call(transaction, arguments, Session::default()).await.map(|_| ())
    }

    async fn show(&self, kind: &str, key: &str) -> serde_json::Value {
        let object = self.database.object(kind, key).expect("the kind and key are right");
        let shown = self.database.show(&object, &Session::default(), 1_000).await;
        shown.expect("the store answers")
    }

    /// Counts the rows that transactions have left besides the data.
    async fn left(&self) -> i64 {
        let client = support::client(&self.url).await;
        let mut left = 0;
        for schema in &self.schemas {
            let sql = format!(
                "SELECT (SELECT count(*) FROM {schema}.mingle_witnesses) + \
                 (SELECT count(*) FROM {schema}.mingle_records WHERE kind IN (2, 3, 4, 5))"
            );
            left += client.query_one(&sql, &[]).await.expect("a count").get::<_, i64>(0);
        }
        left
    }
}

fn schemas() -> Vec<(String, String)> {
    ["accounts", "notifications"].map(|store| (store.to_owned(), unique(store))).to_vec()
}

async fn transfers(bank: Arc<Bank>, seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let mut moved = 0;
    for _ in 0..TRANSFERS {
        let from = random.below(ACCOUNTS);
        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let (from, to) = (format!("a{from}"), format!("a{to}"));
        let amount = (1 + random.below(60)).to_string();
        let arguments = [("from", &*from), ("to", &*to), ("amount", &*amount)];
        match bank.call("transfer", &arguments).await {
            Ok(()) => moved += 1,
            Err(Error::Require { code, .. }) => assert_eq!(code.as_deref(), Some("too_low")),
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    moved
}

/// Two processes on one database move money for many clients: no money is created or lost, each
/// transfer has notified both owners exactly once, and no row of it is left in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_is_neither_made_nor_lost() {
    let schemas = schemas();
    let Some(first) = Bank::open(&schemas).await else { return };
    let second = Bank::open(&schemas).await.expect("the server is still there");
    for number in 0..ACCOUNTS {
        let (number, owner) = (format!("a{number}"), format!("owner{number}"));
        let arguments = [("number", &*number), ("owner", &*owner)];
        first.call("open_account", &arguments).await.expect("a new account");
        let arguments = [("account", &*number), ("amount", "100")];
        second.call("deposit", &arguments).await.expect("a deposit");
    }
    let banks = [Arc::new(first), Arc::new(second)];
    let start = Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let bank = Arc::clone(&banks[usize::from(client % 2 == 0)]);
            tokio::spawn(transfers(bank, 11_000 + client))
        })
        .collect();
    let mut moved = 0;
    for client in clients {
        moved += client.await.expect("no client panics");
    }
    println!("{moved} transfers over two stores took {:?}", start.elapsed());
    let (mut total, mut messages) = (0, 0);
    for number in 0..ACCOUNTS {
        let account = banks[0].show("Account", &format!("a{number}")).await;
        let balance = account["balance"].as_i64().expect("a balance is an int");
        assert!(balance >= 0, "{account}");
        let history = account["history"].as_array().expect("a history is a list");
        let sum: i64 = history.iter().filter_map(|entry| entry["amount"].as_i64()).sum();
        assert_eq!(sum, balance, "the history does not add up: {account}");
        total += balance;
        let customer = banks[1].show("Customer", &format!("owner{number}")).await;
        messages += customer["unread"].as_u64().expect("a count");
    }
    assert_eq!(total, 100 * ACCOUNTS as i64, "the total");
    assert_eq!(messages, 2 * moved, "messages of {moved} transfers");
    assert!(moved > 20, "only {moved} transfers");
    for bank in &banks {
        assert!(bank.database.settle(Duration::from_mins(1)).await, "it does not come to rest");
    }
    assert_eq!(banks[0].left().await, 0, "rows that transactions have left");
}
