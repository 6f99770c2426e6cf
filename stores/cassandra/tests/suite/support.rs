//! Stores at real nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_runtime::TokioWorld;
use mingle_store::StoreSchema;
use mingle_store_cassandra::{Cassandra, CassandraConfig, OpenError};

/// The data centers of the nodes that tests share.
pub const CENTERS: [&str; 3] = ["dc1", "dc2", "dc3"];

/// A name that no other test of any process uses.
pub fn fresh_area() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("t{}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The settings of a store of its own at the nodes of this address: one copy in each data center.
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
