//! Opening stores of the embedded engine.

use std::path::Path;
use std::sync::Arc;

use mingle_lang::Program;
use mingle_store::wrap::distance::DistantStore;
use mingle_store::{StoreSchema, World};
use mingle_store_embedded::{Embedded, EmbeddedConfig};

use super::{Known, OpenError, Opened};
use crate::binding::{ConflictPairs, EmbeddedBinding};

/// Opens a store of this process: in a folder or in memory.
pub(super) fn open(
    bound: &EmbeddedBinding,
    conflicts: Option<ConflictPairs>,
    (schema, folder): (StoreSchema, Option<&Path>),
    world: &Arc<dyn World>,
    known: &mut Known,
) -> Result<Opened, OpenError> {
    let name = schema.store.clone();
    let config = config((bound, conflicts), folder);
    if let Some(with) = &bound.with {
        let host = known.geo.get(&**with).ok_or_else(|| no_host(&schema.store, with))?;
        let geo = Embedded::open_beside(host, &config, &schema, world.clone());
        let geo = geo.map_err(OpenError::Embedded)?;
        known.geo.insert(name, Arc::clone(&geo));
        return Ok(Opened::new(geo));
    }
    let mut opened = if config.geo.is_some() {
        let geo = Embedded::open_geo(&config, &schema, world.clone());
        let geo = geo.map_err(OpenError::Embedded)?;
        known.geo.insert(name, Arc::clone(&geo));
        Opened::new(geo)
    } else {
        let store = Embedded::open(config, schema, world.clone());
        Opened::new(store.map_err(OpenError::Embedded)?)
    };
    if !bound.distance.mean.is_zero() {
        opened.store = DistantStore::new(opened.store, bound.distance, world.clone());
    }
    Ok(opened)
}

/// Checks that a store can be opened, without looking at its kept data.
pub(super) fn check(
    program: &Program,
    (bound, conflicts): (&EmbeddedBinding, Option<ConflictPairs>),
    schema: &StoreSchema,
    world: Arc<dyn World>,
) -> Result<(), OpenError> {
    let config = config((bound, conflicts), None);
    let Some(with) = &bound.with else {
        return Embedded::check(&config, schema, world).map_err(OpenError::Embedded);
    };
    let host = program.checked.stores.iter().find(|store| *store.name == **with);
    let Some(host) = host else { return Err(no_host(&schema.store, with)) };
    let host = (&host.name, program.checked.levels.carrier(host.level));
    Embedded::check_beside(host, &config, schema, world).map_err(OpenError::Embedded)
}

fn no_host(store: &str, with: &str) -> OpenError {
    OpenError::Binding(format!("stores.{store}.with: the program has no store {with}"))
}

fn config(
    (bound, conflicts): (&EmbeddedBinding, Option<ConflictPairs>),
    folder: Option<&Path>,
) -> EmbeddedConfig {
    let mut config = match folder {
        Some(folder) => EmbeddedConfig::in_folder(folder),
        None => EmbeddedConfig::in_memory(),
    };
    config.replicas = bound.replicas.iter().map(|name| name.as_str().into()).collect();
    config.delay = bound.delay.mean;
    config.jitter = bound.delay.jitter;
    config.geo.clone_from(&bound.geo);
    if let Some(geo) = &mut config.geo {
        geo.conflicts = conflicts;
    }
    config
}
