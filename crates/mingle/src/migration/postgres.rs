//! Tables in PostgreSQL.

use std::sync::Arc;

use mingle_lang::Program;
use mingle_lang::hir::StoreId;
use mingle_runtime::TokioWorld;
use mingle_store::{StoreSchema, World};
use mingle_store_postgres::PostgresConfig;

use crate::binding::StoreBinding;
use crate::open::{OpenError, at_least_snapshot, store_schema};

/// The SQL that a store needs, statement by statement.
pub(super) async fn planned(
    config: &PostgresConfig,
    program: &Program,
    id: StoreId,
    bound: &StoreBinding,
) -> Result<Vec<String>, OpenError> {
    let schema = schema(config, program, id, bound);
    let planned = mingle_store_postgres::plan_migration(config.clone(), schema, world()).await;
    Ok(planned.map_err(OpenError::Postgres)?.statements)
}

/// Makes the missing tables and columns; returns the SQL that it ran.
pub(super) async fn applied(
    config: &PostgresConfig,
    program: &Program,
    id: StoreId,
    bound: &StoreBinding,
) -> Result<Vec<String>, OpenError> {
    let schema = schema(config, program, id, bound);
    let done = mingle_store_postgres::migrate(config.clone(), schema, world()).await;
    Ok(done.map_err(OpenError::Postgres)?.statements)
}

fn schema(
    config: &PostgresConfig,
    program: &Program,
    id: StoreId,
    bound: &StoreBinding,
) -> StoreSchema {
    let schema = store_schema(program, id, bound);
    let is_replicated = !config.servers.is_empty();
    let level = if is_replicated { schema.level } else { at_least_snapshot(schema.level) };
    StoreSchema { level, ..schema }
}

fn world() -> Arc<dyn World> {
    Arc::new(TokioWorld::new())
}
