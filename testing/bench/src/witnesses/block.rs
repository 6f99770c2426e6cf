//! One block: clients that call for a while, and the counts of that time.

use std::ops::{Add, AddAssign, Sub};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mingle::{Binding, Database, Session};
use mingle_lang::Program;
use mingle_runtime::{Call, CallReport, Runtime, TokioWorld};
use mingle_store::wrap::count::{Counters, CountingStore, Counts};
use mingle_store::{DataStore, World};

use super::probe::{Lateness, Probe, Seen};
use super::workload::{Client, Visits, Zipf};
use super::{Options, Series};
use crate::cpu;

/// The stores, in the order in which the program declares them.
pub const STORES: [&str; 2] = ["far", "near"];

/// The counts of one store.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtStore {
    /// Round trips that callers waited for, in the attempts that committed.
    pub awaited: u64,
    /// All round trips, those of cleaning up included.
    pub round_trips: u64,
    /// Single reads and writes.
    pub operations: u64,
    /// Questions for commit witnesses.
    pub checks: u64,
    /// Refusals for unknown witness rows.
    pub witnessed: u64,
    /// Refusals of replicas that were behind.
    pub behind: u64,
}

impl AtStore {
    fn of(counts: &Counts, [checks, witnessed, behind]: [u64; 3]) -> Self {
        let operations = counts.units_read + counts.writes;
        let round_trips = counts.round_trips();
        Self { awaited: 0, round_trips, operations, checks, witnessed, behind }
    }

    /// Combines each count with the same count of the other.
    fn zip(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            awaited: with(self.awaited, other.awaited),
            round_trips: with(self.round_trips, other.round_trips),
            operations: with(self.operations, other.operations),
            checks: with(self.checks, other.checks),
            witnessed: with(self.witnessed, other.witnessed),
            behind: with(self.behind, other.behind),
        }
    }
}

/// The counts of blocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Calls that ended within the time.
    pub calls: u64,
    /// The part of these that visited both stores.
    pub both: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Attempts at phases after the first.
    pub again: u64,
    /// The total time that calls waited for other transactions.
    pub waited: Duration,
    /// The counts of each store.
    pub stores: [AtStore; STORES.len()],
    /// The duration in seconds.
    pub seconds: f64,
    /// The processor time meanwhile; not a number if the system does not report it.
    pub cpu_seconds: f64,
}

impl Tally {
    /// Returns the transactions per second.
    pub fn throughput(&self) -> f64 {
        self.calls as f64 / self.seconds
    }

    /// Returns a count per call.
    pub fn per_call(&self, count: u64) -> f64 {
        count as f64 / self.calls.max(1) as f64
    }

    fn note(&mut self, visits: Visits, report: &CallReport) {
        self.calls += 1;
        self.both += u64::from(visits == Visits::Both);
        for phase in &report.phases {
            self.again += u64::from(phase.attempts.saturating_sub(1));
            self.waited += phase.waited;
            let name = phase.store.as_deref().unwrap_or_default();
            if let Some(at) = STORES.iter().position(|store| *store == name) {
                self.stores[at].awaited += u64::from(phase.round_trips);
            }
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.both += other.both;
        self.failed += other.failed;
        self.again += other.again;
        self.waited += other.waited;
        self.seconds += other.seconds;
        self.cpu_seconds += other.cpu_seconds;
        for (mine, theirs) in self.stores.iter_mut().zip(other.stores) {
            *mine = mine.zip(theirs, u64::add);
        }
    }
}

/// The stores at their distances, with counters, and the application servers before them.
pub struct Site {
    servers: Vec<Arc<Runtime>>,
    watched: Vec<(Arc<Counters>, Arc<Seen>)>,
}

/// A block to run.
pub struct Block<'a> {
    pub options: &'a Options,
    pub program: &'a Arc<Program>,
    pub zipf: &'a Arc<Zipf>,
    pub series: Series,
    /// Causal calls, in percent.
    pub share: usize,
    /// Blocks with the same number make the same calls.
    pub number: u64,
}

impl Site {
    pub async fn open(
        program: &Arc<Program>,
        binding: &Binding,
        lateness: Lateness,
        tracking: bool,
    ) -> Result<Self, String> {
        let world: Arc<dyn World> = Arc::new(TokioWorld::new());
        let (mut stores, mut watched) = (Vec::new(), Vec::new());
        let wrap = |_: &str, store: Arc<dyn DataStore>| -> Arc<dyn DataStore> {
            let (store, seen) = Probe::new(store, world.clone(), lateness);
            let (store, counters) = CountingStore::new(store);
            watched.push((counters, seen));
            stores.push(store.clone() as Arc<dyn DataStore>);
            store
        };
        Database::open_wrapped(program.clone(), binding, None, world.clone(), wrap)
            .await
            .map_err(|error| error.to_string())?;
        let near = stores.last().ok_or("the program has no stores")?;
        let count = near.capabilities().replicas.len();
        let mut settings = binding.settings.clone();
        settings.tracking = tracking;
        let server = |_| {
            let (stores, world) = (stores.clone(), world.clone());
            let runtime = Runtime::new(program.clone(), stores, world, settings.clone());
            if tracking {
                runtime.start_sweeps();
            }
            runtime
        };
        Ok(Self { servers: (0..count).map(server).collect(), watched })
    }

    /// Returns the server of this client, and the client's session at the server's replica.
    pub fn client(&self, number: usize) -> (Arc<Runtime>, Session) {
        let index = number % self.servers.len();
        (self.servers[index].clone(), Session::at(format!("r{}", index + 1)))
    }

    pub fn counted(&self) -> Vec<AtStore> {
        self.watched
            .iter()
            .map(|(counters, seen)| AtStore::of(&counters.now(), seen.now()))
            .collect()
    }
}

impl Block<'_> {
    pub async fn run(&self) -> Result<Tally, String> {
        let options = self.options;
        let binding = options.binding()?;
        let site = Site::open(self.program, &binding, self.series.lateness(), self.series.tracks())
            .await?;
        let start = Instant::now();
        let from = start + Duration::from_millis(options.warm_up_ms());
        let until = from + Duration::from_millis(options.block_ms());
        let first_failure = Arc::new(Mutex::new(None));
        let mut clients = Vec::new();
        for number in 0..options.clients {
            let (runtime, session) = site.client(number);
            let seed = self.number.wrapping_mul(1_000_003).wrapping_add(number as u64);
            let client = Client::new(options.seed.wrapping_mul(1_000_000_007) ^ seed, self.share);
            let calling = Calling { runtime, session, client, zipf: self.zipf.clone() };
            clients.push(tokio::spawn(calling.run(from, until, first_failure.clone())));
        }
        tokio::time::sleep_until(from.into()).await;
        let (before, cpu_before, began) = (site.counted(), cpu::used(), Instant::now());
        tokio::time::sleep_until(until.into()).await;
        let (after, cpu_after, ended) = (site.counted(), cpu::used(), Instant::now());
        let mut tally = Tally::default();
        for client in clients {
            tally += client.await.map_err(|error| error.to_string())?;
        }
        if let Some(why) = first_failure.lock().expect("no client panics").take() {
            return Err(why);
        }
        tally.seconds = (until - from).as_secs_f64();
        tally.cpu_seconds =
            (cpu_after - cpu_before) * tally.seconds / (ended - began).as_secs_f64();
        for ((store, after), before) in tally.stores.iter_mut().zip(after).zip(before) {
            *store = AtStore { awaited: store.awaited, ..after.zip(before, u64::sub) };
        }
        Ok(tally)
    }
}

/// A running client: one call at a time, in one session.
struct Calling {
    runtime: Arc<Runtime>,
    session: Session,
    client: Client,
    zipf: Arc<Zipf>,
}

impl Calling {
    async fn run(
        mut self,
        from: Instant,
        until: Instant,
        first_failure: Arc<Mutex<Option<String>>>,
    ) -> Tally {
        let mut tally = Tally::default();
        loop {
            let drawn = self.client.draw(&self.zipf);
            let call = Call {
                session: self.session.clone(),
                ..Call::new(drawn.transaction, drawn.arguments)
            };
            let called = self.runtime.call(call).await;
            let now = Instant::now();
            if now >= until {
                return tally;
            }
            match called {
                Ok(report) if now >= from => tally.note(drawn.visits, &report),
                Ok(_) => {}
                Err(error) => {
                    tally.failed += 1;
                    let why = format!("{}: {error}", drawn.transaction);
                    first_failure.lock().expect("no client panics").get_or_insert(why);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mingle_model::{Ref, Value};

    use super::*;

    /// Counts the store operations of three calls of one client that changes from causal to
    /// linearizable.
    async fn operations(tracking: bool) -> [u64; 2] {
        let program = mingle::compile(super::super::workload::PROGRAM).unwrap();
        let binding = Binding::parse("[stores.far]\n[stores.near]\nreplicas = 3\ndelay = \"60s\"");
        let opened = Site::open(&program, &binding.unwrap(), Lateness::default(), tracking).await;
        let site = opened.unwrap();
        let (runtime, session) = site.client(0);
        let strong = Value::Ref(Ref::new("Strong", Value::Int(1)));
        let weak = Value::Ref(Ref::new("Weak", Value::Int(1)));
        for (name, arguments) in [
            ("add_weak", vec![weak.clone()]),
            ("add_strong", vec![strong.clone()]),
            ("add_both", vec![strong, weak]),
        ] {
            let call = Call { session: session.clone(), ..Call::new(name, arguments) };
            runtime.call(call).await.unwrap();
        }
        let counted = site.counted();
        [counted[0].operations, counted[1].operations]
    }

    #[tokio::test]
    async fn without_tracking_nothing_but_data_is_sent() {
        assert_eq!(operations(false).await, [2, 2]);
        let tracked = operations(true).await;
        assert!(tracked[0] > 2 && tracked[1] > 2, "{tracked:?}");
    }
}
