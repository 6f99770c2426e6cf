//! Opening stores in Redis.

use std::sync::Arc;

use mingle_store::{StoreSchema, World};
use mingle_store_redis::{Redis, RedisConfig};

use super::{OpenError, Opened, at_least_snapshot};

/// Opens a store, and warns of data that its server could lose.
pub(super) async fn open(
    config: &RedisConfig,
    schema: StoreSchema,
    world: &Arc<dyn World>,
) -> Result<Opened, OpenError> {
    let schema = StoreSchema { level: at_least_snapshot(schema.level), ..schema };
    let store = Redis::connect(config.clone(), schema, world.clone()).await;
    let store = store.map_err(OpenError::Redis)?;
    let warnings = store.warnings().to_vec();
    Ok(Opened { store, warnings })
}

/// Checks that a store can be opened, as far as possible without its server.
pub(super) fn check(
    config: &RedisConfig,
    schema: StoreSchema,
    world: Arc<dyn World>,
) -> Result<(), OpenError> {
    let schema = StoreSchema { level: at_least_snapshot(schema.level), ..schema };
    Redis::check(config, &schema, world).map_err(OpenError::Redis)
}
