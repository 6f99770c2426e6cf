//! Opening stores in PostgreSQL.

use std::sync::Arc;

use mingle_lang::Program;
use mingle_lang::hir::StoreId;
use mingle_store::{StoreSchema, World};
use mingle_store_postgres::{Postgres, PostgresConfig, ReplicatedPostgres};

use super::late::{late_refusals, reached_by_deletions, reached_by_writes, read_only_writes};
use super::{Known, OpenError, Opened, at_least_snapshot};

/// Opens a store over several servers that replicate to each other.
pub(super) async fn open_replicated(
    config: &PostgresConfig,
    schema: StoreSchema,
    world: &Arc<dyn World>,
) -> Result<Opened, OpenError> {
    let store = ReplicatedPostgres::connect(config.clone(), schema, world.clone()).await;
    Ok(Opened::new(store.map_err(OpenError::Postgres)?))
}

/// Opens a store at one server, and warns of constraints that could refuse a later phase.
pub(super) async fn open(
    config: &PostgresConfig,
    (program, id): (&Program, StoreId),
    schema: StoreSchema,
    world: &Arc<dyn World>,
    known: &mut Known,
) -> Result<Opened, OpenError> {
    let name = schema.store.clone();
    let schema = StoreSchema { level: at_least_snapshot(schema.level), ..schema };
    let store = Postgres::connect(config.clone(), schema, world.clone()).await;
    let store = store.map_err(OpenError::Postgres)?;
    let may_refuse = store.constraints_that_may_refuse();
    if let Some(reason) = read_only_writes(program, id, &may_refuse) {
        let refused = mingle_store_postgres::OpenError::Config { store: name, reason };
        return Err(OpenError::Postgres(refused));
    }
    let mut warnings = late_refusals(program, id, &may_refuse);
    warnings.extend(reached_by_deletions(program, id, &may_refuse));
    warnings.extend(reached_by_writes(program, id, &may_refuse));
    known.postgres.insert(name, Arc::clone(&store));
    Ok(Opened { store, warnings })
}

/// Checks that a store can be opened, as far as possible without its servers.
pub(super) fn check(
    config: &PostgresConfig,
    schema: StoreSchema,
    world: Arc<dyn World>,
) -> Result<(), OpenError> {
    let is_one = config.servers.is_empty();
    let level = if is_one { at_least_snapshot(schema.level) } else { schema.level };
    let schema = StoreSchema { level, ..schema };
    mingle_store_postgres::check(config.clone(), schema, world).map_err(OpenError::Postgres)
}
