//! Opening the stores of a program: each engine has a file, and a feature of this crate.

mod away;
#[cfg(feature = "cassandra")]
mod cassandra;
#[cfg(feature = "embedded")]
mod embedded;
mod error;
#[cfg(feature = "postgres")]
mod late;
#[cfg(feature = "mingled")]
mod mingled;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "embedded")]
pub(crate) mod renamed;
#[cfg(feature = "worker")]
mod worker;

#[cfg(any(feature = "embedded", feature = "postgres"))]
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use mingle_lang::Program;
use mingle_lang::hir::StoreId;
#[cfg(any(feature = "postgres", feature = "redis"))]
use mingle_model::Level;
#[cfg(any(feature = "embedded", feature = "postgres"))]
use mingle_model::Name;
use mingle_model::Type;
use mingle_store::{DataStore, StoreOperation, StoreSchema, World};
#[cfg(feature = "embedded")]
use mingle_store_embedded::GeoStore;
#[cfg(feature = "mingled")]
use mingle_store_mingled::{Cluster, MingledConfig};
#[cfg(feature = "postgres")]
use mingle_store_postgres::Postgres;

use crate::binding::{Binding, Engine, StoreBinding};
use crate::still::StillWorld;

pub use error::OpenError;
#[cfg(feature = "postgres")]
pub(crate) use late::{late_refusals, reached_by_deletions, reached_by_writes};
#[cfg(feature = "worker")]
pub(crate) use worker::open as open_worker;

/// True if all stores are in the folder, so that no other process can use them.
pub(crate) fn is_all_embedded(program: &Program, binding: &Binding) -> bool {
    program.checked.stores.iter().all(|store| {
        let default = StoreBinding::default();
        binding.stores.get(&*store.name).unwrap_or(&default).engine.is_embedded()
    })
}

/// A store that is open.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn DataStore>,
    /// Warnings about data that could be lost, and writes that could be refused too late.
    pub(crate) warnings: Vec<String>,
}

impl Opened {
    #[cfg(any(
        feature = "postgres",
        feature = "embedded",
        feature = "mingled",
        feature = "worker"
    ))]
    fn new(store: Arc<dyn DataStore>) -> Self {
        Self { store, warnings: Vec::new() }
    }
}

/// Stores with functions beyond [`DataStore`], by name and with their engine's type.
#[derive(Default)]
pub(crate) struct Known {
    /// Stores that have their data centers in this process.
    #[cfg(feature = "embedded")]
    pub(crate) geo: BTreeMap<Name, Arc<GeoStore>>,
    /// Stores that are one database of PostgreSQL.
    #[cfg(feature = "postgres")]
    pub(crate) postgres: BTreeMap<Name, Arc<Postgres>>,
    /// Connections to clusters of `mingled`, by binding.
    #[cfg(feature = "mingled")]
    pub(crate) mingled: Vec<(MingledConfig, Arc<Cluster>)>,
}

/// The stores of a program in the order of opening: a store that shares the engine of another store
/// comes after that store.
pub(crate) fn opening_order(program: &Program, binding: &Binding) -> Vec<StoreId> {
    let mut ids: Vec<StoreId> =
        (0..program.checked.stores.len()).map(|index| StoreId(index as u32)).collect();
    ids.sort_by_key(|id| {
        let bound = binding.stores.get(&*program.checked.stores[id.index()].name);
        bound.is_some_and(|bound| bound.engine.lives_with_another())
    });
    ids
}

/// Opens a store; it may share the engine of a store that is open already.
pub(crate) async fn open_store(
    (program, id): (&Program, StoreId),
    binding: &Binding,
    folder: Option<&Path>,
    world: &Arc<dyn World>,
    known: &mut Known,
) -> Result<Opened, OpenError> {
    let declared = &program.checked.stores[id.index()];
    let default = StoreBinding::default();
    let bound = binding.stores.get(&*declared.name).unwrap_or(&default);
    let schema = store_schema(program, id, bound);
    // Without any engine, nothing uses these values.
    let _ = (folder, &world, &known, &schema);
    match &bound.engine {
        Engine::Unbound => Err(OpenError::Binding(format!(
            "stores.{}: the binding has no engine for it, and this build of Mingle has no embedded one",
            declared.name
        ))),
        #[cfg(feature = "embedded")]
        Engine::Embedded(bound) => {
            let pairs = crate::strong_only::pairs_of(program, id, bound);
            embedded::open(bound, pairs, (schema, folder), world, known)
        }
        #[cfg(feature = "postgres")]
        Engine::Postgres(config) if !config.servers.is_empty() => {
            postgres::open_replicated(config, schema, world).await
        }
        #[cfg(feature = "postgres")]
        Engine::Postgres(config) => {
            postgres::open(config, (program, id), schema, world, known).await
        }
        #[cfg(feature = "redis")]
        Engine::Redis(config) => redis::open(config, schema, world).await,
        #[cfg(feature = "cassandra")]
        Engine::Cassandra(config) => cassandra::open(config, schema, world).await,
        #[cfg(feature = "mingled")]
        Engine::Mingled(config) => {
            mingled::open(config, (program, id), binding, world, known).await
        }
        #[cfg(feature = "worker")]
        Engine::Worker(config, _) => worker::open(config, program, schema, world).await,
    }
}

/// Returns a replacement for a store that could not be opened.
pub(crate) fn in_place_of(
    (program, id): (&Program, StoreId),
    binding: &Binding,
    error: &OpenError,
) -> Opened {
    let declared = &program.checked.stores[id.index()];
    let default = StoreBinding::default();
    let bound = binding.stores.get(&*declared.name).unwrap_or(&default);
    let level = program.checked.levels.carrier(declared.level);
    let mut replicas: Vec<_> = bound.engine.replicas().into_iter().map(Into::into).collect();
    if replicas.len() == 1 && level == mingle_model::Level::Linearizable {
        // A single copy needs no name.
        replicas.clear();
    }
    let error = error.to_string();
    // The caller adds the store's name.
    let reason = error.strip_prefix(&format!("store {}: ", declared.name)).unwrap_or(&error);
    let away = away::AwayStore::new(declared.name.clone(), level, replicas, reason.to_owned());
    Opened { store: Arc::new(away), warnings: Vec::new() }
}

/// Checks that a store can be opened, as far as possible without its servers.
pub(crate) fn check_store(
    program: &Program,
    id: StoreId,
    binding: &Binding,
) -> Result<(), OpenError> {
    let declared = &program.checked.stores[id.index()];
    let default = StoreBinding::default();
    let bound = binding.stores.get(&*declared.name).unwrap_or(&default);
    let schema = store_schema(program, id, bound);
    let world: Arc<dyn World> = Arc::new(StillWorld);
    // Without any engine, nothing uses these values.
    let _ = (&schema, &world);
    match &bound.engine {
        // Only opening is refused: a build without the engine may check a program.
        Engine::Unbound => Ok(()),
        #[cfg(feature = "embedded")]
        Engine::Embedded(bound) => {
            let pairs = crate::strong_only::pairs_of(program, id, bound);
            embedded::check(program, (bound, pairs), &schema, world)
        }
        #[cfg(feature = "postgres")]
        Engine::Postgres(config) => postgres::check(config, schema, world),
        #[cfg(feature = "redis")]
        Engine::Redis(config) => redis::check(config, schema, world),
        #[cfg(feature = "cassandra")]
        Engine::Cassandra(config) => cassandra::check(config, &schema),
        #[cfg(feature = "mingled")]
        Engine::Mingled(config) => mingled::check(config, &schema),
        #[cfg(feature = "worker")]
        Engine::Worker(config, _) => worker::check(config, &schema),
    }
}

/// The part of a program that concerns one store.
pub(crate) fn store_schema(program: &Program, id: StoreId, bound: &StoreBinding) -> StoreSchema {
    let declared = &program.checked.stores[id.index()];
    let operations = program.operations(id).map(|operation| {
        let described = StoreOperation {
            is_command: operation.is_command,
            parameters: operation
                .params
                .iter()
                .map(|(name, found)| (name.clone(), found.stored()))
                .collect(),
            result: operation.result.as_ref().map(Type::stored),
            body: bound.operations.get(&*operation.name).cloned(),
            builtin: operation.builtin.clone(),
        };
        (operation.name.clone(), described)
    });
    StoreSchema {
        store: declared.name.clone(),
        level: program.checked.levels.carrier(declared.level),
        schema: Arc::new(program.schema().stored()),
        operations: operations.collect(),
    }
}

/// Returns the level of a store with one copy: snapshot where the program asks for less.
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) fn at_least_snapshot(level: Level) -> Level {
    match level {
        Level::Linearizable => Level::Linearizable,
        _ => Level::Snapshot,
    }
}
