//! A running system: its processes, and readings of its counters.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mingle_cops::config::{Config, Protocol, keep_all};
use mingle_cops::locator::Locator;
use mingle_cops::message::ClientId;
use mingle_model::random::{Random, mix};
use tokio::runtime::Runtime;

use super::core::{SessionsProcess, replicas};
use super::hub::{Hub, Process};
use super::job::{Control, Tally, Workload};
use super::protocols::{ClientProcess, ServerProcess, filled};
use super::topology::Topology;
use crate::cpu;

/// The longest time of a read-only transaction. Longer than a measurement, so that no operation of a
/// measurement is collected within it: the thesis collects after 6 s.
const TRANS_TIME_US: u64 = 8_000_000;

/// The time after which servers send messages again without an answer.
const RETRY_US: u64 = 5_000_000;

/// The threads that run all processes.
const THREADS: usize = 2;

/// The time limit until a system has come to rest.
const PATIENCE: Duration = Duration::from_mins(1);

/// A measured system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// A reference protocol.
    Reference(Protocol),
    /// The project's own geo-replicated store.
    Core,
}

impl System {
    pub fn name(self) -> &'static str {
        match self {
            Self::Reference(Protocol::Eventual | Protocol::EventualColumns) => "eventual",
            Self::Reference(Protocol::Cops) => "COPS",
            Self::Reference(Protocol::CopsRt) => "COPS-RT",
            Self::Reference(Protocol::CopsCd) => "COPS-CD",
            Self::Reference(Protocol::Eiger) => "Eiger",
            Self::Reference(Protocol::Log) => "LOG",
            Self::Core => "our core",
        }
    }
}

/// The plan of a system.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub system: System,
    /// The servers of each of two data centers.
    pub servers: u16,
    /// The client processes, at the first data center.
    pub clients: u16,
    /// The actors of each client, each with one call at a time.
    pub actors: usize,
    /// The one-way delay between the data centers.
    pub delay_us: u64,
    pub seed: u64,
}

/// The counts between two moments.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    pub seconds: f64,
    /// The processor time of the whole process.
    pub cpu_seconds: f64,
    /// The processor time of each server.
    pub busy_seconds: Vec<f64>,
    /// The bytes sent between clients and servers, within data centers, and between them.
    pub bytes: [u64; 3],
    pub deps: u64,
    pub replicated: u64,
    pub tally: Tally,
}

impl Reading {
    /// Returns the calls per second.
    pub fn throughput(&self) -> f64 {
        self.tally.calls() as f64 / self.seconds
    }

    /// Returns the processor time of a call with all that it causes, in microseconds.
    pub fn cpu_us(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.tally.calls().max(1) as f64
    }

    /// Returns the calls per second that the busiest server could carry with a core of its own.
    pub fn capacity(&self) -> f64 {
        let busiest = self.busy_seconds.iter().copied().fold(0.0, f64::max);
        self.tally.calls() as f64 / busiest
    }

    /// Returns the average number of dependencies of a replicated write.
    pub fn deps(&self) -> f64 {
        self.deps as f64 / self.replicated.max(1) as f64
    }

    /// Returns the bytes of a call over connections of one span.
    pub fn bytes_per_call(&self, span: super::hub::Span) -> f64 {
        self.bytes[span as usize] as f64 / self.tally.calls().max(1) as f64
    }
}

/// A running system.
pub struct Site {
    topology: Topology,
    hub: Arc<Hub>,
    control: Arc<Control>,
    /// Ends with the site, and all connections with it.
    runtime: Runtime,
}

impl Site {
    /// Starts a system with the initial contents of a workload; clients wait.
    ///
    /// # Errors
    ///
    /// If the plan is out of bounds or a connection fails.
    pub fn start(plan: &Plan, workload: &Arc<dyn Workload>) -> Result<Self, String> {
        let Plan { servers, clients, delay_us, .. } = *plan;
        let topology = Topology { dcs: 2, servers, clients, delay_us };
        let control = Arc::new(Control::default());
        let processes = processes(plan, topology, &control, workload)?;
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(THREADS).enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let hub = runtime.block_on(async {
            let hub = topology.connect(processes).await.map_err(|error| error.to_string())?;
            hub.run();
            Ok::<_, String>(hub)
        })?;
        Ok(Self { topology, hub, control, runtime })
    }

    /// Lets clients run, and counts for `time` after `warm_up`.
    ///
    /// # Errors
    ///
    /// If a call or a connection fails, or no call was answered.
    pub fn count(&self, warm_up: Duration, time: Duration) -> Result<Reading, String> {
        self.control.runs.store(true, Ordering::Relaxed);
        std::thread::sleep(warm_up);
        *self.control.tally() = Tally::default();
        let (before, began) = (self.counters(), Instant::now());
        self.control.is_counted.store(true, Ordering::Relaxed);
        std::thread::sleep(time);
        self.control.is_counted.store(false, Ordering::Relaxed);
        let mut reading = self.counters();
        reading.seconds = began.elapsed().as_secs_f64();
        reading.tally = self.control.tally().clone();
        reading.cpu_seconds -= before.cpu_seconds;
        for (now, before) in reading.busy_seconds.iter_mut().zip(&before.busy_seconds) {
            *now -= before;
        }
        for (now, before) in reading.bytes.iter_mut().zip(&before.bytes) {
            *now -= before;
        }
        reading.deps -= before.deps;
        reading.replicated -= before.replicated;
        if let Some(why) = self.hub.failure().or_else(|| reading.tally.why.clone()) {
            return Err(format!("{} calls failed: {why}", reading.tally.failed));
        }
        if reading.tally.calls() == 0 {
            return Err(format!("no call was answered within {time:?}"));
        }
        Ok(reading)
    }

    fn counters(&self) -> Reading {
        let servers = 0..self.topology.server_count();
        let of = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        Reading {
            cpu_seconds: cpu::used(),
            busy_seconds: servers.map(|server| self.hub.busy_seconds(server)).collect(),
            bytes: [0, 1, 2].map(|span| of(&self.hub.bytes[span])),
            deps: of(&self.control.deps),
            replicated: of(&self.control.replicated),
            ..Reading::default()
        }
    }

    /// Stops the clients, and waits until both data centers have the same contents. Returns the time that
    /// this took.
    ///
    /// # Errors
    ///
    /// If calls are not answered, or the contents still differ after a minute.
    pub fn settle(&self) -> Result<Duration, String> {
        self.control.runs.store(false, Ordering::Relaxed);
        let began = Instant::now();
        let digest = |dc| {
            let servers = (0..self.topology.servers).map(|server| self.topology.server(dc, server));
            servers.fold(0, |all, server| all ^ self.hub.digest(server))
        };
        while self.control.running.load(Ordering::Acquire) > 0 || digest(0) != digest(1) {
            if began.elapsed() > PATIENCE {
                let running = self.control.running.load(Ordering::Acquire);
                return Err(format!("{running} calls run and contents differ after {PATIENCE:?}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        match self.hub.failure() {
            Some(why) => Err(why),
            None => Ok(began.elapsed()),
        }
    }

    /// Stops everything.
    pub fn end(self) {
        self.control.runs.store(false, Ordering::Relaxed);
        self.hub.end();
        self.runtime.shutdown_timeout(Duration::from_secs(5));
    }
}

/// Creates the processes of a system, in the order of the topology.
fn processes(
    plan: &Plan,
    topology: Topology,
    control: &Arc<Control>,
    workload: &Arc<dyn Workload>,
) -> Result<Vec<Box<dyn Process>>, String> {
    let rows = workload.rows();
    let randoms = |client: u16| -> Vec<Random> {
        let seed = |actor: usize| mix(plan.seed ^ ((u64::from(client) << 32) | (actor as u64 + 1)));
        (0..plan.actors).map(|actor| Random::new(seed(actor))).collect()
    };
    let mut processes: Vec<Box<dyn Process>> = Vec::new();
    let System::Reference(protocol) = plan.system else {
        for replica in replicas(topology, &rows)? {
            processes.push(Box::new(replica));
        }
        for number in 0..plan.clients {
            let (control, workload) = (control.clone(), workload.clone());
            let client = SessionsProcess::new(number, topology, control, workload, randoms(number));
            processes.push(Box::new(client));
        }
        return Ok(processes);
    };
    let locator = Locator::new(topology.dcs, topology.servers)?;
    let (trans_time_us, retry_us) = (TRANS_TIME_US, RETRY_US);
    let config =
        Config { protocol, locator, trans_time_us, retry_us, handler: keep_all, flaw: None };
    let (servers, checkpoint) = filled(config, &rows);
    for (id, server) in servers {
        let control = control.clone();
        processes.push(Box::new(ServerProcess { server, id, topology, control }));
    }
    for number in 0..plan.clients {
        let id = (ClientId { dc: 0, number }, checkpoint);
        let (control, workload) = (control.clone(), workload.clone());
        let client = ClientProcess::new(config, id, topology, control, workload, randoms(number));
        processes.push(Box::new(client));
    }
    Ok(processes)
}
