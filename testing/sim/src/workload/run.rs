//! Runs a plan, from the start of its processes to the quiet end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mingle_model::random::{Random, mix};
use mingle_runtime::stats::Counted;
use mingle_runtime::{Runtime, Settings};
use mingle_store::wrap::distance::DistantStore;
use mingle_store::wrap::history::Event as RecordedEvent;
use mingle_store::{DataStore, World};

use super::calls::{ClientCall, Store};
use super::clients::client_calls;
use super::gather::{covered, gather, has_parked};
use super::history::History;
use super::setup::{Plan, Setup, process_name};
use super::stage::{Stage, lock, stage};
use crate::flaw::Flaw;
use crate::process::{ClockRates, MortalStore, PartitionedStore, Process};
use crate::world::SimulatedWorld;

/// The total time limit of a call in a run.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// The time after which a caller abandons a store call.
const TIMEOUT: Duration = Duration::from_millis(400);

/// The time until the run is quiet: leases run out and sweeps finish.
const QUIET: Duration = Duration::from_mins(1);

fn settings(setup: &Setup) -> Settings {
    Settings {
        deadline: Duration::from_secs(8),
        help_after: Duration::from_millis(300),
        lease: setup.lease,
        sweep_every: setup.lease / 3,
        ..Settings::default()
    }
}

/// The results of a run: the material of the verdict, and a digest of all events.
pub struct Ran {
    /// The clients' observations and the final contents.
    pub history: History,
    /// The events recorded at the strong stores themselves.
    pub events: Vec<RecordedEvent>,
    /// The digest of the order in which tasks ran.
    pub digest: u64,
    /// The number of occurrences of each coverage point.
    pub covered: BTreeMap<String, u64>,
}

/// Runs a plan.
pub fn run(plan: &Plan, flaw: Flaw) -> Ran {
    let world = SimulatedWorld::new(plan.setup.seed);
    let stage = Arc::new(stage(plan, flaw, &world));
    let clients = start(&stage, plan);
    let stuck = world.run(await_clients(&stage, &clients));
    end_faults(&stage);
    world.run(world.sleep(QUIET));
    if world.run(has_parked(&stage)) {
        // A write that a store has refused for good is retried only at an operator's request; until
        // then it delays the clean-up of later transactions.
        world.run(recover(&stage));
        world.run(world.sleep(QUIET));
    }
    let mut history = world.run(gather(&stage));
    history.stuck = stuck;
    end(&stage);
    let covered = covered(&stage, &history);
    let digest = history.operations.iter().fold(world.digest(), |digest, operation| {
        let text = format!("{operation:?}");
        text.bytes().fold(digest, |digest, byte| mix(digest ^ u64::from(byte)))
    });
    world.stop();
    let events = stage.recording.events();
    Ran { history, events, digest, covered }
}

/// Starts the processes and clients of a plan; returns for each client a flag that it is done.
pub(super) fn start(stage: &Arc<Stage>, plan: &Plan) -> Vec<Arc<Mutex<bool>>> {
    let world = stage.world.clone();
    for index in 0..stage.setup.processes {
        world.spawn(Box::pin(supervise(stage.clone(), plan.clone(), index)));
    }
    (0..plan.setup.clients)
        .map(|client| {
            let calls: Vec<(Duration, ClientCall)> =
                plan.schedule.calls(client).into_iter().map(|(at, c)| (at, c.clone())).collect();
            let is_done = Arc::new(Mutex::new(false));
            let (stage, flag) = (stage.clone(), is_done.clone());
            world.spawn(Box::pin(async move {
                client_calls(stage, client, calls).await;
                *lock(&flag) = true;
            }));
            is_done
        })
        .collect()
}

/// Ends all faults.
pub(super) fn end_faults(stage: &Stage) {
    for plan in &stage.faults {
        plan.set_on(false);
    }
    for plan in &stage.deaths {
        plan.set_on(false);
    }
    stage.partitions.heal();
}

/// Ends all processes.
pub(super) fn end(stage: &Stage) {
    *lock(&stage.is_over) = true;
    for living in lock(&stage.processes).iter_mut() {
        if let Some((process, runtime)) = living.take() {
            count(stage, &runtime);
            process.kill();
        }
    }
}

pub(super) async fn await_clients(stage: &Stage, clients: &[Arc<Mutex<bool>>]) -> Vec<String> {
    for _ in 0..600 {
        stage.world.sleep(Duration::from_secs(1)).await;
        if clients.iter().all(|is_done| *lock(is_done)) {
            return Vec::new();
        }
    }
    let left = clients.iter().enumerate().filter(|(_, is_done)| !*lock(is_done));
    left.map(|(client, _)| format!("client {client}")).collect()
}

/// Does the operator's work after the run is quiet: `mingle recover`, at one of the processes.
pub(super) async fn recover(stage: &Stage) {
    for _ in 0..6 {
        let living = lock(&stage.processes).iter().flatten().next().cloned();
        if let Some((process, runtime)) = living {
            // A failing store shows in the remaining rows, and so does a transaction that no
            // process can finish.
            let left = process.run(async move {
                let _ = runtime.recover_all().await;
                runtime.unfinished().await
            });
            if matches!(left.await, Some(Ok(left)) if left.is_empty()) {
                return;
            }
        }
        stage.world.sleep(Duration::from_secs(5)).await;
    }
}

/// Keeps a process running, one incarnation after another.
async fn supervise(stage: Arc<Stage>, plan: Plan, index: usize) {
    let world = stage.world.clone();
    let name = process_name(index);
    let mut random = Random::new(stage.setup.seed ^ mix(index as u64));
    let rates = ClockRates {
        one_in: if stage.setup.clock_jumps.is_zero() { 0 } else { 20 },
        most: stage.setup.clock_jumps,
    };
    let mut process = Process::start(world.clone(), name.clone(), random.bits(), rates);
    let (kills, jumps) = (plan.schedule.kills(&name), plan.schedule.jumps(&name));
    for (at, by_ms) in jumps {
        let (world, process) = (world.clone(), process.clone());
        world.clone().spawn(Box::pin(async move {
            world.sleep(at).await;
            process.jump(by_ms);
        }));
    }
    for (at, lasts) in plan.schedule.pauses(&name) {
        let (stage, world) = (stage.clone(), world.clone());
        world.clone().spawn(Box::pin(async move {
            world.sleep(at).await;
            let running = lock(&stage.processes)[index].clone();
            if let Some((process, _)) = running {
                process.pause(lasts);
            }
        }));
    }
    for at in kills {
        let (stage, world) = (stage.clone(), world.clone());
        world.clone().spawn(Box::pin(async move {
            world.sleep(at).await;
            let running = lock(&stage.processes)[index].clone();
            if let Some((process, _)) = running {
                process.kill();
            }
        }));
    }
    for incarnation in 0_usize.. {
        // As during an upgrade, each process restarts with the other program, and both run side by
        // side.
        let changed = stage.changed.as_ref().filter(|_| (incarnation + index) % 2 == 1);
        let runtime = runtime(&stage, index, &process, changed.unwrap_or(&stage.program));
        runtime.start_sweeps();
        lock(&stage.processes)[index] = Some((process.clone(), runtime.clone()));
        process.died().await;
        lock(&stage.processes)[index] = None;
        count(&stage, &runtime);
        drop(runtime);
        if *lock(&stage.is_over) {
            return;
        }
        *lock(&stage.restarts) += 1;
        world.sleep(Duration::from_millis(random.below(3_000) as u64)).await;
        process = process.restart();
    }
}

/// Adds the counts of a runtime.
fn count(stage: &Stage, runtime: &Runtime) {
    let mut counted = lock(&stage.counted);
    for what in Counted::ALL {
        *counted.entry(format!("runtime {what:?}")).or_default() += runtime.stats().get(what);
    }
    drop(counted);
    count_changed(stage, runtime);
}

/// Adds the counts of a runtime if it runs the changed program.
fn count_changed(stage: &Stage, runtime: &Runtime) {
    let is_changed = |changed| Arc::ptr_eq(runtime.program(), changed);
    if !stage.changed.as_ref().is_some_and(is_changed) {
        return;
    }
    let mut counted = lock(&stage.counted);
    *counted.entry("processes with another program".into()).or_default() += 1;
    let finished = [Counted::Helped, Counted::Swept].map(|what| runtime.stats().get(what));
    let name = "transactions finished by another program";
    *counted.entry(name.into()).or_default() += finished.iter().sum::<u64>();
}

/// Creates the runtime of an incarnation of a process, and its view of the stores.
fn runtime(
    stage: &Stage,
    index: usize,
    process: &Process,
    program: &Arc<mingle_lang::Program>,
) -> Arc<Runtime> {
    let own: Arc<dyn World> = Arc::new(process.clone());
    let stores = Store::ALL.iter().zip(&stage.faulty).map(|(store, faulty)| {
        let distance = if store.is_causal() { stage.setup.weak } else { stage.setup.strong };
        let near = PartitionedStore::new(
            faulty.clone(),
            process_name(index),
            stage.partitions.clone(),
            TIMEOUT,
            own.clone(),
        );
        let distant = DistantStore::new(near, distance, own.clone());
        MortalStore::new(distant, process.clone(), stage.deaths[index].clone())
            as Arc<dyn DataStore>
    });
    Runtime::new(program.clone(), stores.collect(), own.clone(), settings(&stage.setup))
        .with_planted(stage.flaw.planted())
}
