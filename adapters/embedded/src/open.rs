//! Opening a store.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mingle_model::{Level, Name};
use mingle_store::{Capabilities, DataStore, Once, StoreSchema, World};

use crate::builtin;
use crate::catalog::Catalog;
use crate::config::{EmbeddedConfig, OpenError};
use crate::core::Core;
use crate::encoding::key;
use crate::geo::{GeoConfig, GeoStore, check_conflicts_kept};
use crate::kept::{self, contained, note_made, open_disk};
use crate::limits::{CONFLICTS_MAX, REPLICAS_MAX};
use crate::replicated::ReplicatedStore;
use crate::serializable::SerializableStore;
use crate::storage::memory::MemoryStorage;
use crate::storage::{Storage, StorageError};
use crate::unique;

mod rows;

pub(crate) use rows::Rows;
use rows::{check_count, check_form, check_moved, form_of, load_catalog};

/// The embedded engine.
pub struct Embedded;

impl Embedded {
    /// Opens the store that `schema` describes.
    ///
    /// # Errors
    ///
    /// When the configuration does not fit the level, the folder is in use or cannot be read, the
    /// program changes stored definitions, or the body of an operation does not fit.
    pub fn open(
        config: EmbeddedConfig,
        schema: StoreSchema,
        world: Arc<dyn World>,
    ) -> Result<Arc<dyn DataStore>, OpenError> {
        if config.geo.is_some() {
            return Ok(Self::open_geo(&config, &schema, world)?);
        }
        check(&config, &schema)?;
        let Some(folder) = &config.folder else {
            return Self::open_over(Box::<MemoryStorage>::default(), &config, &schema, world);
        };
        let disk = open_disk(folder, &schema)?;
        let store = Self::open_over(Box::new(disk), &config, &schema, world)?;
        note_made(&config, &schema)?;
        Ok(store)
    }

    /// Opens a store over rows that are kept elsewhere; `config.folder` only names the place in
    /// messages.
    ///
    /// # Errors
    ///
    /// As [`Embedded::open`].
    pub fn open_over(
        storage: Box<dyn Storage>,
        config: &EmbeddedConfig,
        schema: &StoreSchema,
        world: Arc<dyn World>,
    ) -> Result<Arc<dyn DataStore>, OpenError> {
        if config.geo.is_some() {
            return Ok(Self::open_geo_over(storage, config, schema, world)?);
        }
        check(config, schema)?;
        let is_durable = storage.is_durable();
        contained(is_durable, config, schema, || {
            let core = Self::core(storage, config, schema, &config.replicas, world)?;
            let capabilities = capabilities(config, schema);
            if is_serializable(schema.level) {
                let store: Arc<dyn DataStore> =
                    Arc::new(SerializableStore::new(core, capabilities));
                return Ok(store);
            }
            let store = ReplicatedStore::new(core, capabilities, config)
                .map_err(|error| broken(config, schema, &error))?;
            Ok(Arc::new(store))
        })
    }

    /// Opens a store over several data centers: [`EmbeddedConfig::geo`] says which.
    ///
    /// # Errors
    ///
    /// As [`Embedded::open`].
    pub fn open_geo(
        config: &EmbeddedConfig,
        schema: &StoreSchema,
        world: Arc<dyn World>,
    ) -> Result<Arc<GeoStore>, OpenError> {
        check_file_name(config, schema)?;
        let storage: Box<dyn Storage> = match &config.folder {
            Some(folder) => {
                check_geo(config, schema)?;
                Box::new(open_disk(folder, schema)?)
            }
            None => Box::<MemoryStorage>::default(),
        };
        let store = Self::open_geo_over(storage, config, schema, world)?;
        note_made(config, schema)?;
        Ok(store)
    }

    /// Opens a store over several data centers over rows that are kept elsewhere; `config.folder` only
    /// names the place in messages.
    ///
    /// # Errors
    ///
    /// As [`Embedded::open`].
    pub fn open_geo_over(
        storage: Box<dyn Storage>,
        config: &EmbeddedConfig,
        schema: &StoreSchema,
        world: Arc<dyn World>,
    ) -> Result<Arc<GeoStore>, OpenError> {
        let geo = check_geo(config, schema)?;
        // A strong store keeps the level of the schema; any other store is causal.
        let level = if geo.is_strong { schema.level } else { Level::Causal };
        let schema = &StoreSchema { level, ..schema.clone() };
        let is_durable = storage.is_durable();
        contained(is_durable, config, schema, || {
            let core = Self::core(storage, config, schema, &geo.datacenters, world)?;
            let kept = check_conflicts_kept(&geo, &*core.storage);
            let kept = kept.map_err(|error| broken(config, schema, &error))?;
            kept.map_err(|reason| refused(schema, reason))?;
            let store = GeoStore::new(core, schema.level, &geo, config.links.clone());
            let store = store.map_err(|error| broken(config, schema, &error))?;
            Ok(Arc::new(store))
        })
    }

    /// Returns the stores whose files are in a folder.
    ///
    /// # Errors
    ///
    /// When the folder cannot be read.
    pub fn stores(folder: &Path) -> Result<BTreeSet<String>, OpenError> {
        kept::stores(folder)
    }

    /// Renames a store of a folder, with all its content. None of the folder's stores may be open. A repeated
    /// call changes nothing.
    ///
    /// # Errors
    ///
    /// When a store is in use; when unfinished transactions contain its name; when the disk fails.
    pub fn rename(folder: &Path, from: &Name, to: &Name) -> Result<(), OpenError> {
        kept::rename(folder, from, to)
    }

    /// Checks that a store can be opened, as far as that does not depend on stored data.
    ///
    /// # Errors
    ///
    /// As [`Embedded::open`].
    pub fn check(
        config: &EmbeddedConfig,
        schema: &StoreSchema,
        world: Arc<dyn World>,
    ) -> Result<(), OpenError> {
        check_file_name(config, schema)?;
        let places = match &config.geo {
            Some(_) => check_geo(config, schema)?.datacenters,
            None => {
                check(config, schema)?;
                config.replicas.clone()
            }
        };
        Self::core(Box::<MemoryStorage>::default(), config, schema, &places, world).map(|_| ())
    }

    /// As [`Embedded::check`], for a store in the engine of another store.
    ///
    /// # Errors
    ///
    /// As [`Embedded::open_beside`].
    pub fn check_beside(
        (host, host_level): (&Name, Level),
        config: &EmbeddedConfig,
        schema: &StoreSchema,
        world: Arc<dyn World>,
    ) -> Result<(), OpenError> {
        if !is_serializable(host_level) {
            return Err(refused(schema, host_is_weak(host)));
        }
        Self::check(config, schema, world)
    }

    /// Opens a store in the engine of another store and shares its data centers: a transaction over both
    /// stores is a single transaction. The new store has its own items, kept with the items of the other
    /// store; `config.folder` keeps their meaning.
    ///
    /// # Errors
    ///
    /// As [`Embedded::open`]; when the other store is not linearizable, or one of the two is kept in a
    /// folder and the other is not.
    pub fn open_beside(
        host: &GeoStore,
        config: &EmbeddedConfig,
        schema: &StoreSchema,
        world: Arc<dyn World>,
    ) -> Result<Arc<GeoStore>, OpenError> {
        check_file_name(config, schema)?;
        let refuse = |reason| Err(OpenError::Config { store: schema.store.clone(), reason });
        let other = &host.capabilities().store;
        if !host.config().is_strong {
            return refuse(host_is_weak(other));
        }
        if host.is_kept() != config.folder.is_some() {
            return refuse(format!(
                "either both it and {other} are kept in a folder, or neither is"
            ));
        }
        let is_strong = is_serializable(schema.level);
        let conflicts = config.geo.as_ref().and_then(|geo| geo.conflicts.clone());
        let geo = GeoConfig { is_strong, conflicts, ..host.config().clone() };
        check_conflicts(&geo, schema).map_err(|reason| refused(schema, reason))?;
        let config = &EmbeddedConfig { geo: Some(geo.clone()), ..config.clone() };
        let storage: Box<dyn Storage> = match &config.folder {
            Some(folder) => Box::new(open_disk(folder, schema)?),
            None => Box::<MemoryStorage>::default(),
        };
        let level = if is_strong { schema.level } else { Level::Causal };
        let schema = &StoreSchema { level, ..schema.clone() };
        let form = format!("with {other}, {}", form_of(config, schema));
        let places = config.geo.as_ref().map_or(&[][..], |geo| &geo.datacenters);
        let is_durable = storage.is_durable();
        let store = contained(is_durable, config, schema, || {
            let rows = Rows { storage, form, is_shared: false };
            let core = Self::core_of(rows, config, schema, places, world)?;
            let store = host.beside(core, schema.level, &geo);
            store.map_err(|error| broken(config, schema, &error))
        })?;
        note_made(config, schema)?;
        Ok(Arc::new(store))
    }

    fn core(
        storage: Box<dyn Storage>,
        config: &EmbeddedConfig,
        schema: &StoreSchema,
        replicas: &[Name],
        world: Arc<dyn World>,
    ) -> Result<Core, OpenError> {
        let rows = Rows { storage, form: form_of(config, schema), is_shared: false };
        Self::core_of(rows, config, schema, replicas, world)
    }

    pub(crate) fn core_of(
        Rows { storage, form, is_shared }: Rows,
        config: &EmbeddedConfig,
        schema: &StoreSchema,
        replicas: &[Name],
        world: Arc<dyn World>,
    ) -> Result<Core, OpenError> {
        check_builtins(config, schema)?;
        let mut catalog = load_catalog(&*storage, config, schema)?;
        check_form(catalog.is_some(), &*storage, &form, (config, schema))?;
        if let Some(catalog) = &catalog {
            check_moved(catalog, &*storage, config, schema)?;
        }
        let kept = catalog.clone();
        let layout = catalog
            .get_or_insert_with(|| Catalog::new(schema, replicas))
            .merge(schema, replicas)?;
        if let Some((catalog, kept)) = catalog.as_mut().zip(kept.as_ref().filter(|_| is_shared)) {
            catalog.keep_indexes_of(kept);
        }
        check_count(is_shared, catalog.as_ref(), schema)?;
        let builtins =
            builtin::parse_all(&schema.operations, &layout).map_err(|(operation, reason)| {
                OpenError::Operation { store: schema.store.clone(), operation, reason }
            })?;
        if catalog != kept {
            let catalog = catalog.expect("it was made above");
            let failed = |error: &StorageError| broken(config, schema, error);
            let (catalogs, count) = ((kept.as_ref(), &catalog), replicas.len());
            let mut changes = unique::rows(&*storage, &layout, count, catalogs, schema, failed)?;
            changes.insert(key::CATALOG.into(), Some(catalog.encode().into()));
            changes.insert(key::FORM.into(), Some(form.into_bytes().into()));
            storage.commit(changes).map_err(|error| failed(&error))?;
        }
        Ok(Core::new(schema.store.clone(), layout, builtins, storage, world))
    }
}

/// Returns the checked data centers; transactions are strong at a serializable level.
fn check_geo(config: &EmbeddedConfig, schema: &StoreSchema) -> Result<GeoConfig, OpenError> {
    let refuse = |reason| OpenError::Config { store: schema.store.clone(), reason };
    let geo = config.geo.as_ref().ok_or_else(|| refuse("it has no data centers".into()))?;
    geo.check().and_then(|()| check_conflicts(geo, schema)).map_err(refuse)?;
    Ok(GeoConfig { is_strong: is_serializable(schema.level), ..geo.clone() })
}

fn host_is_weak(host: &Name) -> String {
    format!("it cannot live with {host}: the store whose engine others share is linearizable")
}

fn refused(schema: &StoreSchema, reason: String) -> OpenError {
    OpenError::Config { store: schema.store.clone(), reason }
}

/// Checks that conflicts are configured only where transactions are certified.
fn check_conflicts(geo: &GeoConfig, schema: &StoreSchema) -> Result<(), String> {
    let Some(pairs) = &geo.conflicts else { return Ok(()) };
    if pairs.len() > CONFLICTS_MAX {
        let found = pairs.len();
        return Err(format!("transactions conflict in at most {CONFLICTS_MAX} pairs, not {found}"));
    }
    if !matches!(schema.level, Level::Linearizable | Level::Causal) {
        return Err(format!(
            "which transactions conflict is said of a linearizable or a causal store, and it is {}",
            schema.level
        ));
    }
    match geo.datacenters.len() {
        0 | 1 => {
            Err("which transactions conflict is said of several data centers, and it has one"
                .into())
        }
        _ => Ok(()),
    }
}

/// True if transactions at this level are serializable.
pub(crate) fn is_serializable(level: Level) -> bool {
    matches!(level, Level::Linearizable | Level::Snapshot)
}

fn check(config: &EmbeddedConfig, schema: &StoreSchema) -> Result<(), OpenError> {
    let refuse = |reason: String| Err(OpenError::Config { store: schema.store.clone(), reason });
    let count = config.replicas.len();
    if count == 0 || count > REPLICAS_MAX {
        return refuse(format!("it needs 1 to {REPLICAS_MAX} replicas, not {count}"));
    }
    if count > 1 && is_serializable(schema.level) {
        return refuse(format!(
            "a {} store of this engine has one replica, not {count}: several would not agree",
            schema.level
        ));
    }
    match config.once {
        // All replicas live in one process, so an id takes effect once at any replica.
        Once::Serial => {}
        Once::Home if !is_serializable(schema.level) => {}
        Once::Home => {
            return refuse(format!("a {} store has no replicas, and so no home", schema.level));
        }
        Once::ById | Once::Never => {
            return refuse(format!(
                "this engine can do `Serial` and `Home`, but not `{:?}`",
                config.once
            ));
        }
    }
    let mut names = config.replicas.clone();
    names.sort();
    if let Some(index) = (1..count).find(|index| names[*index] == names[index - 1]) {
        return refuse(format!("two replicas are called {}", names[index]));
    }
    check_file_name(config, schema)
}

/// Checks that the name, a part of a file name, does not lead out of the folder.
fn check_file_name(config: &EmbeddedConfig, schema: &StoreSchema) -> Result<(), OpenError> {
    let fits = |name: &Name| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-".contains(c))
    };
    if config.folder.is_some() && !fits(&schema.store) {
        let reason = "its name cannot be part of a file name".to_owned();
        return Err(OpenError::Config { store: schema.store.clone(), reason });
    }
    Ok(())
}

/// Refuses `unique`s and drawn keys where this engine has none.
fn check_builtins(config: &EmbeddedConfig, schema: &StoreSchema) -> Result<(), OpenError> {
    if config.geo.is_none() {
        return Ok(());
    }
    let reason = schema.refuse_all_but_indexes("a store with data centers");
    reason.map_err(|reason| OpenError::Config { store: schema.store.clone(), reason })
}

pub(crate) fn broken(
    config: &EmbeddedConfig,
    schema: &StoreSchema,
    error: &StorageError,
) -> OpenError {
    let folder = config.folder.clone().unwrap_or_default();
    OpenError::Storage {
        store: schema.store.clone(),
        path: folder.join(format!("{}.redb", schema.store)),
        reason: error.to_string(),
    }
}

fn capabilities(config: &EmbeddedConfig, schema: &StoreSchema) -> Capabilities {
    let is_serializable = is_serializable(schema.level);
    Capabilities {
        store: schema.store.clone(),
        level: schema.level,
        atomic_commit: true,
        serializable: is_serializable,
        once: config.once,
        // The answer is lost if the disk fails during a commit.
        may_lose_answers: config.folder.is_some(),
        floor_suffices: false,
        replicas: if is_serializable { Vec::new() } else { config.replicas.clone() },
        weaker_answers: Capabilities::weaker_than(
            schema.level,
            if is_serializable { 1 } else { config.replicas.len() },
        ),
        operations_per_round_trip: usize::MAX,
        round_trip: Duration::ZERO,
    }
}
