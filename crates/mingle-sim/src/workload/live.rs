//! The same clients, and the same promises, over servers that are not simulated, in real time.
//!
//! What happens to the servers meanwhile is up to the caller. Processes die as in a simulation; one
//! seed makes the same calls, but does not run twice the same.

use std::sync::Arc;
use std::time::Duration;

use mingle_store::{DataStore, Read, RecordKind, Session, StoreSchema, World};

use super::calls::Store;
use super::gather::{covered, gather, has_parked};
use super::promises::{Broken, check};
use super::run::{await_clients, end, end_faults, recover, start};
use super::setup::Plan;
use super::stage::{Stage, Stores, program, schema, stage_over};
use super::{Verdict, checked, mixed};
use crate::flaw::Flaw;
use crate::process::Partitions;

/// How long a call may take: a server may be away for some of it, and the machine busy.
const PATIENCE: Duration = Duration::from_mins(2);

/// How long it may take until nothing is left but floors.
const QUIET: Duration = Duration::from_mins(2);

/// How often to look.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The stores of a run, each in the order of [`Store::ALL`].
pub struct LiveStores {
    /// As processes reach them.
    pub faulty: Vec<Arc<dyn DataStore>>,
    /// As they are looked at in the end.
    pub bare: Vec<Arc<dyn DataStore>>,
}

/// What a store of the program is opened with.
pub fn schema_of(plan: &Plan, store: Store) -> StoreSchema {
    schema(&program(&plan.setup), store)
}

/// Runs a plan, and checks all promises. Once all clients are done, `heal` is awaited, and has to
/// see to it that all servers answer again.
///
/// # Errors
///
/// The first promise that did not hold.
///
/// # Panics
///
/// When a bare store does not answer in the end.
pub async fn judge_live(
    plan: &Plan,
    world: Arc<dyn World>,
    stores: LiveStores,
    heal: impl Future<Output = ()>,
) -> Result<Verdict, Broken> {
    let partitions = Partitions::new(world.clone(), plan.schedule.cuts());
    let stores = Stores { bare: stores.bare, faulty: stores.faulty, faults: Vec::new() };
    let stage = Arc::new(stage_over(plan, Flaw::None, world, stores, partitions));
    let clients = start(&stage, plan);
    let stuck = await_clients(&stage, &clients).await;
    heal.await;
    end_faults(&stage);
    for store in &stage.stores {
        reconnect(&stage, &**store).await;
    }
    be_quiet(&stage).await;
    let mut history = gather(&stage).await;
    history.stuck = stuck;
    end(&stage);
    check(&history, PATIENCE)?;
    checked::models(&history, &[])?;
    let mut covered = covered(&stage, &history);
    covered.extend(mixed::mixed(&history)?);
    let transactions = history.operations.iter().filter(|done| done.end.is_done()).count() as u64;
    Ok(Verdict { digest: 0, covered, transactions })
}

/// Asks until there is an answer: a connection may have broken that nobody has used since.
async fn reconnect(stage: &Stage, store: &dyn DataStore) {
    let deadline = stage.world.elapsed() + QUIET;
    let session = Session::default();
    let lease = Read::Records { kind: RecordKind::Lease, from: [].as_slice().into(), limit: 1 };
    loop {
        let answer =
            async { store.begin(&session).await?.read(std::slice::from_ref(&lease)).await };
        match answer.await {
            Ok(_) => return,
            Err(error) if stage.world.elapsed() >= deadline => panic!("{error}"),
            Err(_) => stage.world.sleep(LOOK_EVERY).await,
        }
    }
}

/// Waits until nothing is left but floors, or it has taken too long.
async fn be_quiet(stage: &Stage) {
    let deadline = stage.world.elapsed() + QUIET;
    while stage.world.elapsed() < deadline {
        if has_parked(stage).await {
            recover(stage).await;
        }
        if gather(stage).await.residue.is_empty() {
            return;
        }
        stage.world.sleep(LOOK_EVERY).await;
    }
}
