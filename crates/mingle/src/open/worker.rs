//! Opening stores behind a worker.

use std::sync::Arc;

use mingle_lang::Program;
use mingle_runtime::intent::ProgramHash;
use mingle_store::{StoreSchema, World};
use mingle_store_worker::{WorkerConfig, WorkerStore};

use super::{OpenError, Opened};

/// Opens a store at its worker, which must serve the same program.
pub(crate) async fn open(
    config: &WorkerConfig,
    program: &Program,
    schema: StoreSchema,
    world: &Arc<dyn World>,
) -> Result<Opened, OpenError> {
    let program = (ProgramHash::of(&program.text).0, &*program.text);
    let store = WorkerStore::connect(config.clone(), schema.store, program, world.clone()).await;
    Ok(Opened::new(store.map_err(OpenError::Worker)?))
}

/// Checks that a store can be opened, as far as possible without its worker.
pub(super) fn check(config: &WorkerConfig, schema: &StoreSchema) -> Result<(), OpenError> {
    WorkerStore::check(config, &schema.store).map_err(OpenError::Worker)
}
