//! Opening stores in Cassandra.

use std::sync::Arc;

use mingle_store::{StoreSchema, World};
use mingle_store_cassandra::{Cassandra, CassandraConfig};

use super::{OpenError, Opened};

/// Opens a store, and warns of data that its cluster could lose.
pub(super) async fn open(
    config: &CassandraConfig,
    schema: StoreSchema,
    world: &Arc<dyn World>,
) -> Result<Opened, OpenError> {
    let store = Cassandra::connect(config.clone(), schema, world.clone()).await;
    let store = store.map_err(OpenError::Cassandra)?;
    let warnings = store.warnings().to_vec();
    Ok(Opened { store, warnings })
}

/// Checks that a store can be opened, as far as possible without its cluster.
pub(super) fn check(config: &CassandraConfig, schema: &StoreSchema) -> Result<(), OpenError> {
    Cassandra::check(config, schema).map_err(OpenError::Cassandra)
}
