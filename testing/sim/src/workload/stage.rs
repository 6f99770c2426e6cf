//! The environment of a run: stores, their network, and all possible faults.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mingle_runtime::Runtime;
use mingle_store::wrap::fault::{FaultPlan, FaultyStore};
use mingle_store::wrap::history::{RecordedStore, Recording};
use mingle_store::{DataStore, Once, StoreOperation, StoreSchema, World};
use mingle_store_embedded::storage::memory::MemoryStorage;
use mingle_store_embedded::{Embedded, EmbeddedConfig};
use mingle_store_replay::{ReplayConfig, ReplayStore};

use super::calls::Store;
use super::history::Operation;
use super::laggards::Laggards;
use super::setup::{Engine, Plan, Setup, process_name};
use super::takes::with_takes;
use crate::flaw::Flaw;
use crate::process::{DeathPlan, DeathRates, Partitions, Process, Reopen, RestartingStore, kept};
use crate::sabotage::Sabotaged;
use crate::world::SimulatedWorld;

/// The simulated program.
pub const PROGRAM: &str = include_str!("program.mingle");

/// The part of the program with operations and deletes.
const OPERATIONS: &str = include_str!("operations.mingle");

/// The part of the program with reads that have policies.
const ANSWERS: &str = include_str!("answers.mingle");

/// The operations of the stores: the store, the name, and the body. Each reads or appends to the
/// first field of its first argument.
const BODIES: [(Store, &str, &str); 3] = [
    (Store::Bank, "recorded", "builtin:value Ledger.entries"),
    (Store::Bank, "record", "builtin:append Ledger.entries"),
    (Store::Shop, "shelved", "builtin:value Shelf.entries"),
];

/// The declarations of the stores with operations, and those that they replace.
const DECLARED: [(&str, &str); 2] = [
    (
        "store bank: linearizable;",
        "store bank: linearizable {
    query recorded(ledger: ref Ledger) -> list<string>;
    command record(ledger: ref Ledger, tag: string);
}",
    ),
    (
        "store shop: linearizable;",
        "store shop: linearizable { query shelved(shelf: ref Shelf) -> list<string>; }",
    ),
];

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A live process and its runtime.
pub(super) type Living = (Process, Arc<Runtime>);

/// A run in progress.
pub(super) struct Stage {
    pub(super) world: Arc<dyn World>,
    pub(super) program: Arc<mingle_lang::Program>,
    /// The program of restarted processes, if programs change in the run.
    pub(super) changed: Option<Arc<mingle_lang::Program>>,
    pub(super) setup: Setup,
    /// The stores without the network.
    pub(super) stores: Vec<Arc<dyn DataStore>>,
    pub(super) faulty: Vec<Arc<dyn DataStore>>,
    pub(super) faults: Vec<Arc<FaultPlan>>,
    pub(super) recording: Arc<Recording>,
    pub(super) partitions: Arc<Partitions>,
    pub(super) deaths: Vec<Arc<DeathPlan>>,
    pub(super) flaw: Flaw,
    /// The live incarnation of each process.
    pub(super) processes: Mutex<Vec<Option<Living>>>,
    pub(super) operations: Mutex<Vec<Operation>>,
    pub(super) restarts: Mutex<u64>,
    /// The number of clean-ups that met a replica which lagged.
    pub(super) laggards: Arc<AtomicU64>,
    pub(super) counted: Mutex<BTreeMap<String, u64>>,
    pub(super) is_over: Mutex<bool>,
}

/// The stores of a stage: bare ones, and ones with faults.
pub(super) struct Stores {
    pub(super) bare: Vec<Arc<dyn DataStore>>,
    pub(super) faulty: Vec<Arc<dyn DataStore>>,
    pub(super) faults: Vec<Arc<FaultPlan>>,
}

/// Returns the program of a run.
pub(super) fn program(setup: &Setup) -> Arc<mingle_lang::Program> {
    mingle::compile(&text(setup)).expect("the simulated program is right")
}

fn text(setup: &Setup) -> String {
    let eventual = setup.eventual();
    let eventual = eventual.iter().map(|store| store.name());
    let mut text = PROGRAM.to_owned();
    if setup.extras.has_operations {
        text = DECLARED.iter().fold(text, |text, (plain, full)| text.replacen(plain, full, 1));
        text.push_str(OPERATIONS);
    }
    if setup.extras.has_answers {
        text.push_str(ANSWERS);
    }
    if setup.extras.has_takes {
        text = with_takes(&text);
    }
    eventual.fold(text, |text, name| {
        text.replace(&format!("store {name}: causal;"), &format!("store {name}: eventual;"))
    })
}

/// Returns a later version of the program: it does the same, but has an additional transaction at
/// the beginning and another order.
pub(super) fn changed_program(setup: &Setup) -> Arc<mingle_lang::Program> {
    let added = "transaction added(shelf: ref Shelf) { require shelf.entries.size() < 0 else \"never\"; }\n\n";
    let text = text(setup).replacen(
        "// One store, with reads.",
        &format!("{added}// One store, with reads."),
        1,
    );
    let text = text
        .replace(
            "    board.entries.append(tag);\n    board.count.add(1);\n",
            "    board.count.add(1);\n    board.entries.append(tag);\n",
        )
        .replace(
            "    inbox.entries.append(tag);\n    inbox.count.add(1);\n",
            "    inbox.count.add(1);\n    inbox.entries.append(tag);\n",
        );
    mingle::compile(&text).expect("the changed program is right")
}

/// Opens the stores of a plan with all their possible faults.
pub(super) fn stage(plan: &Plan, flaw: Flaw, world: &Arc<SimulatedWorld>) -> Stage {
    let setup = plan.setup.clone();
    let program = program(&setup);
    let partitions = Partitions::new(world.clone(), plan.schedule.cuts());
    let mut stores: Vec<Arc<dyn DataStore>> = Vec::new();
    let (mut faulty, mut faults) = (Vec::new(), Vec::new());
    let recording = Arc::new(Recording::default());
    let laggards = Arc::new(AtomicU64::new(0));
    for store in Store::ALL {
        let opened = open(&program, &setup, store, &partitions, world);
        for (at, down) in plan.schedule.restarts(store.name()) {
            let (restarted, sleeper) = (opened.clone(), world.clone());
            world.spawn(Box::pin(async move {
                sleeper.sleep(at).await;
                restarted.restart(down);
            }));
        }
        let mut opened: Arc<dyn DataStore> = opened;
        stores.push(opened.clone());
        if store.is_causal() {
            opened = Laggards::watch(opened, partitions.clone(), laggards.clone());
        }
        let mut opened = Sabotaged::wrap(store.name(), opened, flaw.sabotage());
        if !store.is_causal() {
            opened = RecordedStore::new(opened, recording.clone(), world.clone());
        }
        let plan = FaultPlan::scripted(plan.schedule.faults(store.name()));
        faulty.push(FaultyStore::new(opened.clone(), plan.clone()) as Arc<dyn DataStore>);
        faults.push(plan);
    }
    let stores = Stores { bare: stores, faulty, faults };
    for slow in plan.schedule.slows() {
        partitions.slow(slow);
    }
    Stage { recording, laggards, ..stage_over(plan, flaw, world.clone(), stores, partitions) }
}

/// Creates a stage over stores that are open.
pub(super) fn stage_over(
    plan: &Plan,
    flaw: Flaw,
    world: Arc<dyn World>,
    stores: Stores,
    partitions: Arc<Partitions>,
) -> Stage {
    let setup = plan.setup.clone();
    let deaths = (0..setup.processes)
        .map(|index| {
            let (late, late_most) = (setup.late, setup.late_most);
            let rates = DeathRates { late, late_most, ..DeathRates::default() };
            let script = plan.schedule.deaths(&process_name(index));
            DeathPlan::new(setup.seed ^ index as u64, script, rates)
        })
        .collect();
    Stage {
        world,
        program: program(&setup),
        changed: setup.extras.changes_program.then(|| changed_program(&setup)),
        stores: stores.bare,
        faulty: stores.faulty,
        faults: stores.faults,
        recording: Arc::default(),
        laggards: Arc::default(),
        partitions,
        deaths,
        flaw,
        processes: Mutex::new(vec![None; setup.processes]),
        operations: Mutex::default(),
        restarts: Mutex::default(),
        counted: Mutex::default(),
        is_over: Mutex::new(false),
        setup,
    }
}

/// Returns the schema with which a store of the program is opened.
pub(super) fn schema(program: &mingle_lang::Program, store: Store) -> StoreSchema {
    let declared = program
        .checked
        .stores
        .iter()
        .find(|declared| *declared.name == *store.name())
        .expect("the simulated program declares it");
    let body = |name: &str| BODIES.iter().find(|(at, known, _)| *at == store && *known == name);
    let operations = declared.operations.iter().map(|operation| {
        let described = StoreOperation {
            is_command: operation.is_command,
            parameters: operation.params.clone(),
            result: operation.result.clone(),
            body: body(&operation.name).map(|(_, _, body)| (*body).to_owned()),
            builtin: operation.builtin.clone(),
        };
        (operation.name.clone(), described)
    });
    StoreSchema {
        store: declared.name.clone(),
        level: program.checked.levels.carrier(declared.level),
        schema: program.schema().stored().into(),
        operations: operations.collect(),
    }
}

fn open(
    program: &mingle_lang::Program,
    setup: &Setup,
    store: Store,
    partitions: &Arc<Partitions>,
    world: &Arc<SimulatedWorld>,
) -> Arc<RestartingStore> {
    let schema = schema(program, store);
    let engine = match store {
        Store::Wall => setup.wall,
        Store::Feed => setup.feed,
        Store::Bank | Store::Shop => Engine::Embedded(Once::Serial),
    };
    let (delay, jitter) = (setup.delay, setup.delay / 2);
    let links = partitions.links(store.name());
    let replicas = if store.is_causal() { setup.replicas } else { 1 };
    let inside: Arc<dyn World> = world.clone();
    let reopen: Reopen = match engine {
        Engine::Embedded(once) => {
            let mut config = EmbeddedConfig::in_memory().with_replicas(replicas);
            if store.is_causal() {
                config = config.with_delay(delay, jitter).with_once(once).with_links(links);
            }
            let rows = Arc::new(MemoryStorage::default());
            Box::new(move || {
                Embedded::open_over(kept(&rows), &config, &schema, inside.clone())
                    .expect("memory can be opened")
            })
        }
        Engine::Replay(once) => {
            let mut config =
                ReplayConfig::new(setup.replicas, once).with_delay(delay, jitter).with_links(links);
            if once == Once::ById && setup.replicas == 1 {
                config = config.with_floor_suffices();
            }
            let store = ReplayStore::open(config, schema, inside).expect("the store opens");
            // The store keeps its data; transactions in progress are lost all the same.
            Box::new(move || store.clone())
        }
    };
    RestartingStore::new(reopen, world.clone())
}
