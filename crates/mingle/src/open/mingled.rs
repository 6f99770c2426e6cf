//! Opening stores in a cluster of `mingled`.

use std::sync::Arc;

use mingle_lang::Program;
use mingle_lang::hir::StoreId;
use mingle_store::{StoreSchema, World};
use mingle_store_mingled::{Cluster, MingledConfig, OpenError as MingledError};

use super::{Known, OpenError, Opened, store_schema};
use crate::binding::{Binding, Engine};

/// Opens a store, with all stores of the program that have the same binding: they are one engine.
pub(super) async fn open(
    config: &MingledConfig,
    (program, id): (&Program, StoreId),
    binding: &Binding,
    world: &Arc<dyn World>,
    known: &mut Known,
) -> Result<Opened, OpenError> {
    let name = &program.checked.stores[id.index()].name;
    let opened = known.mingled.iter().find(|(bound, _)| bound == config);
    let cluster = match opened {
        Some((_, cluster)) => Arc::clone(cluster),
        None => {
            let schemas = schemas(config, program, binding);
            let cluster = Cluster::open(config.clone(), &schemas, Arc::clone(world)).await;
            let cluster = cluster.map_err(OpenError::Mingled)?;
            known.mingled.push((config.clone(), Arc::clone(&cluster)));
            cluster
        }
    };
    let store = cluster.store(name).ok_or_else(|| {
        OpenError::Binding(format!("stores.{name}: the cluster was opened without it"))
    })?;
    Ok(Opened::new(store))
}

/// Checks that a store can be opened, as far as possible without its cluster.
pub(super) fn check(config: &MingledConfig, schema: &StoreSchema) -> Result<(), OpenError> {
    let checked = config.check().map_err(|wrong| wrong.to_string());
    let checked = checked.and_then(|()| schema.refuse_all_but_indexes("a store of mingled"));
    checked.map_err(|reason| {
        OpenError::Mingled(MingledError::Config { store: schema.store.clone(), reason })
    })
}

fn schemas(config: &MingledConfig, program: &Program, binding: &Binding) -> Vec<StoreSchema> {
    let ids = (0..program.checked.stores.len()).map(|index| StoreId(index as u32));
    let bound = ids.filter_map(|id| {
        let bound = binding.stores.get(&*program.checked.stores[id.index()].name)?;
        let Engine::Mingled(found) = &bound.engine else { return None };
        (found == config).then(|| store_schema(program, id, bound))
    });
    bound.collect()
}
