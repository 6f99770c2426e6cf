//! One seed, from its set-up to its verdict.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mingle::{Binding, Database, Error, Session};
use mingle_model::random::Random;
use mingle_store::wrap::distance::{Distance, DistantStore};
use mingle_store::wrap::fault::{Call, Fault, FaultPlan, FaultyStore, Rates};
use mingle_store::wrap::history::{RecordedStore, Recording};
use mingle_store::{DataStore, World};

use crate::check;
use crate::covered::{ACCOUNTS, Covered};
use crate::sabotage::{Sabotage, Sabotaged};
use crate::world::SimulatedWorld;

/// The program that is simulated: accounts that are strong, notifications that are near.
pub const PROGRAM: &str = include_str!("../../../examples/bank.mingle");

/// How a simulation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What it went through.
    pub covered: Covered,
    /// Which task ran when, and what was recorded, as a digest.
    pub digest: u64,
    /// How long it took, in its own time.
    pub elapsed: Duration,
}

/// What one seed sets up.
struct Setup {
    clients: usize,
    calls: usize,
    strong: Distance,
    weak: Distance,
    replicas: usize,
    delay: Duration,
    rates: Rates,
    /// One call in so many is given up by its caller.
    gives_up: usize,
}

impl Setup {
    fn draw(random: &mut Random) -> Self {
        let ms =
            |random: &mut Random, most: usize| Duration::from_millis(random.below(most + 1) as u64);
        let distance = |mean: Duration| Distance { mean, jitter: mean / 3 };
        let rate = |random: &mut Random, most: usize| {
            if random.one_in(2) { random.below(most) as u16 } else { 0 }
        };
        Self {
            clients: 1 + random.below(8),
            calls: 5 + random.below(20),
            strong: distance(ms(random, 90)),
            weak: distance(ms(random, 5)),
            replicas: 1 + random.below(3),
            delay: ms(random, 200),
            rates: Rates {
                conflict: rate(random, 200),
                unavailable: rate(random, 50),
                lost_before: rate(random, 100),
                lost_after: rate(random, 100),
            },
            gives_up: 2 + random.below(20),
        }
    }
}

/// Runs the simulation of a seed.
///
/// # Errors
///
/// What did not hold, as text.
pub fn simulate(seed: u64) -> Result<Report, String> {
    simulate_with(seed, Sabotage::None)
}

/// As [`simulate`], with a planted fault.
///
/// # Errors
///
/// What did not hold, as text.
pub fn simulate_with(seed: u64, sabotage: Sabotage) -> Result<Report, String> {
    let mut random = Random::new(seed);
    let setup = Setup::draw(&mut random);
    let world = SimulatedWorld::new(random.bits());
    let recording = Arc::new(Recording::default());
    let plans: BTreeMap<&str, Arc<FaultPlan>> = ["accounts", "notifications"]
        .into_iter()
        .map(|store| {
            // Once the first phase has committed, a store that cannot serve leaves the rest
            // undone in this version; so only the first store is ever out of reach.
            let rates = if store == "accounts" {
                setup.rates
            } else {
                Rates { unavailable: 0, ..setup.rates }
            };
            (store, FaultPlan::seeded(random.bits(), rates))
        })
        .collect();
    let database = Arc::new(open(&setup, &world, &recording, &plans, sabotage)?);
    for plan in plans.values() {
        plan.set_on(false);
    }
    world.run(prepare(&database))?;
    for plan in plans.values() {
        plan.set_on(true);
    }
    let mut covered = world.run(clients(&setup, &world, &database, &mut random));
    for plan in plans.values() {
        plan.set_on(false);
        note_faults(plan, &mut covered);
    }
    covered.replicated = u64::from(setup.replicas > 1);
    // A quiet minute: what was begun ends, and what was written arrives everywhere.
    world.run(world.sleep(Duration::from_mins(1)));
    let events = recording.events();
    let digest = check::digest(&events) ^ world.digest();
    check::serial_order(&events, "accounts")?;
    world.run(check::state(&database, setup.replicas, &covered))?;
    Ok(Report { covered, digest, elapsed: world.elapsed() })
}

fn open(
    setup: &Setup,
    world: &Arc<SimulatedWorld>,
    recording: &Arc<Recording>,
    plans: &BTreeMap<&str, Arc<FaultPlan>>,
    sabotage: Sabotage,
) -> Result<Database, String> {
    let program = mingle::compile(PROGRAM)?;
    let text = format!(
        "[runtime]\ndeadline = \"60s\"\n[stores.notifications]\nreplicas = {}\ndelay = \"{}ms\"",
        setup.replicas,
        setup.delay.as_millis()
    );
    let binding = Binding::parse(&text).map_err(|error| error.to_string())?;
    let wrap = |name: &str, store: Arc<dyn DataStore>| -> Arc<dyn DataStore> {
        let recorded = RecordedStore::new(store, recording.clone(), world.clone());
        let recorded = Sabotaged::wrap(name, recorded, sabotage);
        let faulty = FaultyStore::new(recorded, plans[name].clone());
        let distance = if name == "accounts" { setup.strong } else { setup.weak };
        DistantStore::new(faulty, distance, world.clone())
    };
    Database::open_wrapped(program, &binding, None, world.clone(), wrap)
        .map_err(|error| error.to_string())
}

async fn prepare(database: &Database) -> Result<(), String> {
    for number in 0..ACCOUNTS {
        let (account, owner) = (format!("a{number}"), format!("owner{number}"));
        call(
            database,
            "open_account",
            &[("number", &account), ("owner", &owner)],
            Session::default(),
        )
        .await?
        .map_err(text)?;
        call(database, "deposit", &[("account", &account), ("amount", "100")], Session::default())
            .await?
            .map_err(text)?;
    }
    Ok(())
}

fn text(error: Error) -> String {
    error.to_string()
}

/// Calls a transaction; the outer error is a mistake of the simulation itself.
async fn call(
    database: &Database,
    name: &str,
    arguments: &[(&str, &str)],
    session: Session,
) -> Result<Result<(), Error>, String> {
    let arguments = database.arguments(name, arguments.iter().copied()).map_err(text)?;
    Ok(database.call(name, arguments, session).await.map(|_| ()))
}

async fn clients(
    setup: &Setup,
    world: &Arc<SimulatedWorld>,
    database: &Arc<Database>,
    random: &mut Random,
) -> Covered {
    let done = Arc::new(std::sync::Mutex::new((0, Covered::default())));
    for client in 0..setup.clients {
        let random = Random::new(random.bits());
        let (calls, gives_up) = (setup.calls, setup.gives_up);
        let session = Session::at(format!("r{}", 1 + client % setup.replicas));
        let (world, database, done) = (Arc::clone(world), Arc::clone(database), Arc::clone(&done));
        let task_world = Arc::clone(&world);
        world.spawn(Box::pin(async move {
            let covered =
                client_calls(random, calls, gives_up, session, &task_world, &database).await;
            let mut done = done.lock().expect("no client panics with this lock");
            done.0 += 1;
            done.1.add(&covered);
        }));
    }
    loop {
        world.sleep(Duration::from_millis(100)).await;
        let done = done.lock().expect("no client panics with this lock");
        if done.0 == setup.clients {
            return done.1.clone();
        }
    }
}

async fn client_calls(
    mut random: Random,
    calls: usize,
    gives_up: usize,
    session: Session,
    world: &Arc<SimulatedWorld>,
    database: &Database,
) -> Covered {
    let mut covered = Covered::default();
    for _ in 0..calls {
        let from = random.below(ACCOUNTS);
        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let (from, to) = (format!("a{from}"), format!("a{to}"));
        let amount = (1 + random.below(70)).to_string();
        let arguments = [("from", &*from), ("to", &*to), ("amount", &*amount)];
        let patience =
            random.one_in(gives_up).then(|| Duration::from_millis(random.below(300) as u64));
        let running = call(database, "transfer", &arguments, session.clone());
        match within(world, patience, running).await {
            None => covered.given_up += 1,
            Some(Ok(Ok(()))) => covered.committed += 1,
            Some(Ok(Err(Error::Require { .. }))) => covered.refused += 1,
            Some(Ok(Err(Error::Unknown { .. } | Error::Incomplete { .. }))) => covered.unknown += 1,
            // Out of reach, or given the same fate by a conflict until the deadline.
            Some(Ok(Err(_))) => {}
            Some(Err(message)) => panic!("the simulation calls wrongly: {message}"),
        }
        world.sleep(Duration::from_millis(random.below(30) as u64)).await;
    }
    covered
}

/// Awaits a future for so long; then lets it go.
async fn within<T>(
    world: &Arc<SimulatedWorld>,
    patience: Option<Duration>,
    future: impl Future<Output = T>,
) -> Option<T> {
    let mut future = std::pin::pin!(future);
    let Some(patience) = patience else { return Some(future.await) };
    let mut sleep = world.sleep(patience);
    std::future::poll_fn(|context| {
        if let std::task::Poll::Ready(result) = future.as_mut().poll(context) {
            return std::task::Poll::Ready(Some(result));
        }
        sleep.as_mut().poll(context).map(|()| None)
    })
    .await
}

fn note_faults(plan: &FaultPlan, covered: &mut Covered) {
    for ((call, fault), count) in plan.injected() {
        match (call, fault) {
            (_, Fault::Conflict) => covered.conflicts += count,
            (_, Fault::Unavailable) => covered.unavailable += count,
            (Call::Commit, Fault::LostBefore) => covered.lost_before += count,
            (Call::Commit, Fault::LostAfter) => covered.lost_after += count,
            _ => {}
        }
    }
}
