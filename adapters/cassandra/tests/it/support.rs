//! Stores at real nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_model::{Origin, TransactionId};
use mingle_runtime::TokioWorld;
use mingle_store::{Commit, Data, DataStore, Read, Session, StoreError, StoreSchema, Write};
use mingle_store_cassandra::{Cassandra, CassandraConfig, OpenError};

/// The data centers of the nodes that tests share.
pub const CENTERS: [&str; 3] = ["dc1", "dc2", "dc3"];

/// Returns a name that no other test of any process uses.
pub fn fresh_area() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("t{}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Returns the settings of a separate store at the nodes of this address: one copy in each data
/// center.
pub fn config(url: &str) -> CassandraConfig {
    CassandraConfig {
        area: Some(fresh_area()),
        replication: CENTERS.map(|name| (name.to_owned(), 1)).into(),
        ..CassandraConfig::at(url.split(','), CENTERS)
    }
}

/// Opens a store.
pub async fn connect(
    config: CassandraConfig,
    schema: StoreSchema,
) -> Result<Arc<Cassandra>, OpenError> {
    Cassandra::connect(config, schema, Arc::new(TokioWorld::new())).await
}

/// Returns an id of a fixed origin.
pub fn id(sequence: u64) -> TransactionId {
    TransactionId { origin: Origin(77), sequence }
}

/// Commits writes at a data center, in a transaction of their own.
pub async fn write(store: &Cassandra, at: &str, writes: Vec<Write>) -> Result<(), StoreError> {
    let open = store.begin(&Session::at(at)).await?;
    open.commit(Commit { writes, ..Commit::default() }).await.map(|_| ())
}

/// Returns the data of one read at a data center.
pub async fn data(store: &Cassandra, at: &str, read: Read) -> Data {
    let mut open = store.begin(&Session::at(at)).await.expect("it begins");
    open.read(&[read]).await.expect("it reads").remove(0).data
}

/// A separate client, for the actions of other applications.
pub struct Other(scylla::client::session::Session);

impl Other {
    /// Connects to the nodes of an address.
    pub async fn at(url: &str) -> Self {
        let builder = scylla::client::session_builder::SessionBuilder::new();
        Self(builder.known_nodes(url.split(',')).build().await.expect("the nodes are there"))
    }

    /// Runs a statement; returns its rows.
    pub async fn run(&self, statement: &str) -> Vec<scylla::value::Row> {
        let mut statement = scylla::statement::unprepared::Statement::new(statement);
        statement.set_consistency(scylla::statement::Consistency::All);
        let found = self.0.query_unpaged(statement, ()).await.expect("the nodes do it");
        match found.into_rows_result() {
            Ok(rows) => rows.rows().expect("rows").map(|row| row.expect("a row")).collect(),
            Err(_) => Vec::new(),
        }
    }
}

/// Creates a table of another application, with these columns; returns its name.
pub async fn fresh_table(other: &Other, columns: &str) -> String {
    static MAKING: tokio::sync::Mutex<u64> = tokio::sync::Mutex::const_new(0);
    let mut number = MAKING.lock().await;
    *number += 1;
    let replication = "{'class': 'NetworkTopologyStrategy', 'dc1': 1, 'dc2': 1, 'dc3': 1}";
    other
        .run(&format!("CREATE KEYSPACE IF NOT EXISTS legacy WITH replication = {replication}"))
        .await;
    let name = format!("legacy.t{}_{}", std::process::id(), *number);
    other.run(&format!("CREATE TABLE {name} ({columns})")).await;
    name
}
