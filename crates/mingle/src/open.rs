//! Opening the stores of a program, each by its engine.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use mingle_lang::Program;
use mingle_lang::hir::StoreId;
use mingle_model::{Level, Name};
use mingle_runtime::intent::ProgramHash;
use mingle_store::wrap::distance::DistantStore;
use mingle_store::{DataStore, StoreOperation, StoreSchema, World};
use mingle_store_cassandra::Cassandra;
use mingle_store_embedded::{Embedded, EmbeddedConfig, GeoStore};
use mingle_store_postgres::{MayRefuse, Postgres, ReplicatedPostgres};
use mingle_store_redis::Redis;
use mingle_store_worker::WorkerStore;

use crate::binding::{Binding, EmbeddedBinding, Engine, StoreBinding};

/// Why a database could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The binding names a store or an operation that the program has not.
    Binding(String),
    /// A store of the embedded engine could not be opened.
    Embedded(mingle_store_embedded::OpenError),
    /// A store in PostgreSQL could not be opened.
    Postgres(mingle_store_postgres::OpenError),
    /// A store in Redis could not be opened.
    Redis(mingle_store_redis::OpenError),
    /// A store in Cassandra could not be opened.
    Cassandra(mingle_store_cassandra::OpenError),
    /// A store behind a worker could not be opened.
    Worker(mingle_store_worker::OpenError),
}

impl OpenError {
    /// Whether the binding is at fault, rather than the store or what it keeps.
    pub fn is_misconfiguration(&self) -> bool {
        use mingle_store_cassandra::OpenError as Cassandra;
        use mingle_store_embedded::OpenError as Embedded;
        use mingle_store_postgres::OpenError as Postgres;
        use mingle_store_redis::OpenError as Redis;
        use mingle_store_worker::OpenError as Worker;
        match self {
            Self::Binding(_)
            | Self::Embedded(Embedded::Config { .. } | Embedded::Operation { .. })
            | Self::Postgres(
                Postgres::Config { .. } | Postgres::Operation { .. } | Postgres::Mapping { .. },
            )
            | Self::Redis(
                Redis::Config { .. }
                | Redis::Unfit { .. }
                | Redis::Operation { .. }
                | Redis::Mapping { .. },
            )
            | Self::Cassandra(
                Cassandra::Config { .. } | Cassandra::Operation { .. } | Cassandra::Mapping { .. },
            )
            | Self::Worker(Worker::Config { .. } | Worker::Refused { .. }) => true,
            Self::Embedded(_)
            | Self::Postgres(_)
            | Self::Redis(_)
            | Self::Cassandra(_)
            | Self::Worker(_) => false,
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binding(message) => f.write_str(message),
            Self::Embedded(error) => write!(f, "{error}"),
            Self::Postgres(error) => write!(f, "{error}"),
            Self::Redis(error) => write!(f, "{error}"),
            Self::Cassandra(error) => write!(f, "{error}"),
            Self::Worker(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for OpenError {}

/// That the binding names nothing which the program has not.
pub(crate) fn check_names(program: &Program, binding: &Binding) -> Result<(), OpenError> {
    for (name, bound) in &binding.stores {
        let Some(store) = program.checked.stores.iter().find(|store| *store.name == **name) else {
            let known: Vec<&str> =
                program.checked.stores.iter().map(|store| &*store.name).collect();
            return Err(OpenError::Binding(format!(
                "stores.{name}: the program has no such store; it has {}",
                known.join(", ")
            )));
        };
        if let Some(unknown) = bound
            .operations
            .keys()
            .find(|name| !store.operations.iter().any(|known| *known.name == ***name))
        {
            return Err(OpenError::Binding(format!(
                "stores.{name}.operations.{unknown}: the store declares no such operation"
            )));
        }
    }
    Ok(())
}

/// Whether no other process can be at the stores of a folder.
pub(crate) fn is_all_embedded(program: &Program, binding: &Binding) -> bool {
    program.checked.stores.iter().all(|store| {
        let bound = binding.stores.get(&*store.name);
        bound.is_none_or(|bound| matches!(bound.engine, Engine::Embedded(_)))
    })
}

/// A store that is open.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn DataStore>,
    /// What could be lost.
    pub(crate) warnings: Vec<String>,
    /// What may refuse changes, by kind of object.
    pub(crate) may_refuse: BTreeMap<Name, MayRefuse>,
    /// Its data centers, if they are in this process.
    pub(crate) geo: Option<Arc<GeoStore>>,
    /// The same store, if it is one database of PostgreSQL.
    pub(crate) postgres: Option<Arc<Postgres>>,
}

impl Opened {
    fn new(store: Arc<dyn DataStore>) -> Self {
        Self { store, warnings: Vec::new(), may_refuse: BTreeMap::new(), geo: None, postgres: None }
    }
}

/// The stores of a program in an order in which they can be opened: one that lives with another one
/// after that.
pub(crate) fn opening_order(program: &Program, binding: &Binding) -> Vec<StoreId> {
    let mut ids: Vec<StoreId> =
        (0..program.checked.stores.len()).map(|index| StoreId(index as u32)).collect();
    ids.sort_by_key(|id| {
        let bound = binding.stores.get(&*program.checked.stores[id.index()].name);
        let with = bound.map(|bound| match &bound.engine {
            Engine::Embedded(embedded) => embedded.with.is_some(),
            _ => false,
        });
        with.unwrap_or(false)
    });
    ids
}

/// Opens a store, which may live with one of those that are open.
pub(crate) async fn open_store(
    program: &Program,
    id: StoreId,
    binding: &Binding,
    folder: Option<&Path>,
    (world, hosts): (&Arc<dyn World>, &BTreeMap<Name, Arc<GeoStore>>),
) -> Result<Opened, OpenError> {
    let declared = &program.checked.stores[id.index()];
    let default = StoreBinding::default();
    let bound = binding.stores.get(&*declared.name).unwrap_or(&default);
    let schema = store_schema(program, id, bound);
    match &bound.engine {
        Engine::Embedded(embedded) => open_embedded(embedded, schema, folder, (world, hosts)),
        Engine::Postgres(config) if !config.servers.is_empty() => {
            let store = ReplicatedPostgres::connect(config.clone(), schema, world.clone()).await;
            let store = store.map_err(OpenError::Postgres)?;
            Ok(Opened::new(store))
        }
        Engine::Postgres(config) => {
            let schema = StoreSchema { level: at_least_snapshot(schema.level), ..schema };
            let store = Postgres::connect(config.clone(), schema, world.clone()).await;
            let store = store.map_err(OpenError::Postgres)?;
            let may_refuse = store.constraints_that_may_refuse();
            let postgres = Some(Arc::clone(&store));
            Ok(Opened { may_refuse, postgres, ..Opened::new(store) })
        }
        Engine::Redis(config) => {
            let schema = StoreSchema { level: at_least_snapshot(schema.level), ..schema };
            let store = Redis::connect(config.clone(), schema, world.clone()).await;
            let store = store.map_err(OpenError::Redis)?;
            let warnings = store.warnings().to_vec();
            Ok(Opened { warnings, ..Opened::new(store) })
        }
        Engine::Cassandra(config) => {
            let store = Cassandra::connect(config.clone(), schema, world.clone()).await;
            let store = store.map_err(OpenError::Cassandra)?;
            let warnings = store.warnings().to_vec();
            Ok(Opened { warnings, ..Opened::new(store) })
        }
        Engine::Worker(config, _) => {
            let program = (ProgramHash::of(&program.text).0, &*program.text);
            let (config, name) = (config.clone(), schema.store);
            let store = WorkerStore::connect(config, name, program, world.clone()).await;
            Ok(Opened::new(store.map_err(OpenError::Worker)?))
        }
    }
}

/// The part of a program that concerns one store.
pub(crate) fn store_schema(program: &Program, id: StoreId, bound: &StoreBinding) -> StoreSchema {
    let declared = &program.checked.stores[id.index()];
    let operations = declared.operations.iter().map(|operation| {
        let described = StoreOperation {
            is_command: operation.is_command,
            parameters: operation.params.clone(),
            result: operation.result.clone(),
            body: bound.operations.get(&*operation.name).cloned(),
        };
        (operation.name.clone(), described)
    });
    StoreSchema {
        store: declared.name.clone(),
        level: program.checked.levels.carrier(declared.level),
        schema: program.schema().clone(),
        operations: operations.collect(),
    }
}

/// What a store of one copy gives where a program asks for less.
pub(crate) fn at_least_snapshot(level: Level) -> Level {
    match level {
        Level::Linearizable => Level::Linearizable,
        _ => Level::Snapshot,
    }
}

fn open_embedded(
    bound: &EmbeddedBinding,
    schema: StoreSchema,
    folder: Option<&Path>,
    (world, hosts): (&Arc<dyn World>, &BTreeMap<Name, Arc<GeoStore>>),
) -> Result<Opened, OpenError> {
    let mut config = match folder {
        Some(folder) => EmbeddedConfig::in_folder(folder),
        None => EmbeddedConfig::in_memory(),
    };
    config.replicas = bound.replicas.iter().map(|name| name.as_str().into()).collect();
    config.delay = bound.delay.mean;
    config.jitter = bound.delay.jitter;
    config.geo.clone_from(&bound.geo);
    if let Some(geo) = &mut config.geo {
        geo.conflicts.clone_from(&bound.conflicts);
    }
    if let Some(with) = &bound.with {
        let host = hosts.get(&**with).ok_or_else(|| {
            let store = &schema.store;
            OpenError::Binding(format!("stores.{store}.with: the program has no store {with}"))
        })?;
        let geo = Embedded::open_beside(host, &config, &schema, world.clone());
        let geo = geo.map_err(OpenError::Embedded)?;
        return Ok(Opened { geo: Some(Arc::clone(&geo)), ..Opened::new(geo) });
    }
    let mut opened = if config.geo.is_some() {
        let geo = Embedded::open_geo(&config, &schema, world.clone());
        let geo = geo.map_err(OpenError::Embedded)?;
        Opened { geo: Some(Arc::clone(&geo)), ..Opened::new(geo) }
    } else {
        let store = Embedded::open(config, schema, world.clone());
        Opened::new(store.map_err(OpenError::Embedded)?)
    };
    if !bound.distance.mean.is_zero() {
        opened.store = DistantStore::new(opened.store, bound.distance, world.clone());
    }
    Ok(opened)
}
