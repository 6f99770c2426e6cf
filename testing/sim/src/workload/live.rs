//! The same clients and promises over real servers, in real time.
//!
//! The caller decides what happens to the servers meanwhile. Processes die as in a simulation. One
//! seed makes the same calls, but two runs of it differ.

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

/// The time limit of a call: a server may be away for part of it, and the machine busy.
const PATIENCE: Duration = Duration::from_mins(2);

/// The time limit for cleaning up everything except floors.
const QUIET: Duration = Duration::from_mins(2);

/// The interval between two checks.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The stores of a run, each in the order of [`Store::ALL`].
pub struct LiveStores {
    /// The stores as the processes reach them, with faults.
    pub faulty: Vec<Arc<dyn DataStore>>,
    /// The stores as the final check reads them, without faults.
    pub bare: Vec<Arc<dyn DataStore>>,
}

/// Returns the schema with which a store of the program is opened.
pub fn schema_of(plan: &Plan, store: Store) -> StoreSchema {
    schema(&program(&plan.setup), store)
}

/// Runs a plan and checks all promises. After all clients are done it awaits `heal`, which must
/// make all servers answer again.
///
/// # Errors
///
/// The first promise that did not hold.
///
/// # Panics
///
/// If a bare store does not answer in the end.
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

/// Repeats a request until there is an answer: a connection may have broken unnoticed since its
/// last use.
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

/// Waits until only floors are left, or until the time limit.
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
