//! What the tables of a program's stores still need.

use std::sync::Arc;

use mingle_lang::Program;
use mingle_lang::hir::StoreId;
use mingle_model::Name;
use mingle_runtime::TokioWorld;
use mingle_store::{StoreSchema, World};
use mingle_store_postgres::PostgresConfig;

use crate::binding::{Binding, Engine, StoreBinding};
use crate::open::{OpenError, at_least_snapshot, check_names, store_schema};

/// What the tables of one store need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Which store.
    pub store: Name,
    /// What keeps its data, as the binding calls it.
    pub engine: &'static str,
    /// SQL, statement by statement; empty where nothing is missing, and where the engine has no
    /// tables that anybody has to make.
    pub statements: Vec<String>,
}

/// Says what the tables of all stores of a program need, without changing them. Must be called on
/// a tokio runtime.
///
/// # Errors
///
/// When the binding does not fit the program, a server cannot be reached, or the program changes
/// what is kept.
///
/// # Examples
///
/// ```
/// use mingle::{Binding, plan_migrations};
///
/// # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
/// let program = mingle::compile("store a: causal; object O in a { key k: int; n: int; }").unwrap();
/// let planned = plan_migrations(&program, &Binding::default()).await.unwrap();
/// assert_eq!((&*planned[0].store, planned[0].engine), ("a", "embedded"));
/// assert!(planned[0].statements.is_empty());
/// # });
/// ```
pub async fn plan_migrations(
    program: &Program,
    binding: &Binding,
) -> Result<Vec<Migration>, OpenError> {
    check_names(program, binding)?;
    let mut all = Vec::new();
    for (index, declared) in program.checked.stores.iter().enumerate() {
        let (bound, schema) = part(program, StoreId(index as u32), binding);
        let (engine, statements) = match &bound.engine {
            Engine::Embedded(_) => ("embedded", Vec::new()),
            Engine::Redis(_) => ("redis", Vec::new()),
            // Whoever serves the store sees to its tables.
            Engine::Worker(..) => ("worker", Vec::new()),
            Engine::Cassandra(_) => ("cassandra", Vec::new()),
            Engine::Postgres(config) => ("postgres", planned(config, schema).await?),
        };
        all.push(Migration { store: declared.name.clone(), engine, statements });
    }
    Ok(all)
}

/// Makes what is missing: of each store all, or nothing; nothing at all if one of them would be
/// refused. Gives what was done. Must be called on a tokio runtime.
///
/// # Errors
///
/// As [`plan_migrations`], and when a server refuses the SQL.
pub async fn apply_migrations(
    program: &Program,
    binding: &Binding,
) -> Result<Vec<Migration>, OpenError> {
    let mut all = plan_migrations(program, binding).await?;
    for (index, migration) in all.iter_mut().enumerate() {
        let (bound, schema) = part(program, StoreId(index as u32), binding);
        if let Engine::Postgres(config) = &bound.engine {
            let done = mingle_store_postgres::migrate(config.clone(), schema, world()).await;
            migration.statements = done.map_err(OpenError::Postgres)?.statements;
        }
    }
    Ok(all)
}

async fn planned(config: &PostgresConfig, schema: StoreSchema) -> Result<Vec<String>, OpenError> {
    let planned = mingle_store_postgres::plan_migration(config.clone(), schema, world()).await;
    Ok(planned.map_err(OpenError::Postgres)?.statements)
}

/// What the binding and the program say of a store.
fn part(program: &Program, id: StoreId, binding: &Binding) -> (StoreBinding, StoreSchema) {
    let name = &program.checked.stores[id.index()].name;
    let bound = binding.stores.get(&**name).cloned().unwrap_or_default();
    let schema = store_schema(program, id, &bound);
    let is_replicated =
        matches!(&bound.engine, Engine::Postgres(config) if !config.servers.is_empty());
    let level = if is_replicated { schema.level } else { at_least_snapshot(schema.level) };
    (bound, StoreSchema { level, ..schema })
}

fn world() -> Arc<dyn World> {
    Arc::new(TokioWorld::new())
}
