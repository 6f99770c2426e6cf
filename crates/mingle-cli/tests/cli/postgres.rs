//! Databases for tests of `migrate` and `init`, on a real server.

use std::hash::{BuildHasher, RandomState};

use mingle_services::Engine;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

/// A database of the test's own.
pub struct Database {
    tokio: Runtime,
    client: Client,
    /// Its name.
    pub name: String,
    /// Its address.
    pub url: String,
}

impl Database {
    /// Makes a database with tables in it; none where PostgreSQL is not here.
    pub fn new(tables: &str) -> Option<Self> {
        let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let tokio = tokio.expect("threads can be started");
        let (client, name, url) = tokio.block_on(async {
            let server = mingle_services::shared(Engine::Postgres).await?;
            let unique = RandomState::new().hash_one(std::process::id());
            let name = format!("shop{unique:016x}");
            let first = connect(server.url()).await;
            let made = first.batch_execute(&format!("CREATE DATABASE {name}")).await;
            made.expect("a database is made");
            let (before, _) = server.url().rsplit_once('/').expect("a database in the address");
            let url = format!("{before}/{name}");
            let client = connect(&url).await;
            client.batch_execute(tables).await.unwrap_or_else(|error| panic!("{error:?}"));
            Some((client, name, url))
        })?;
        Some(Self { tokio, client, name, url })
    }

    /// Runs SQL.
    pub fn execute(&self, sql: &str) {
        let done = self.tokio.block_on(self.client.batch_execute(sql));
        done.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// The one number that a query gives.
    pub fn number(&self, sql: &str) -> i64 {
        let row = self.tokio.block_on(self.client.query_one(sql, &[]));
        row.unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) =
        tokio_postgres::connect(url, NoTls).await.expect("the server takes connections");
    tokio::spawn(connection);
    client
}
