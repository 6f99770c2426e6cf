//! The runs: for each system, throughput against latency with an increasing number of clients, and
//! the paper's other experiments.

use std::sync::{Mutex, PoisonError};

use mingle_geo::Baseline;

use super::calibrate::Cost;
use super::micro::Micro;
use super::model::{Model, Setup};
use super::rubis::Rubis;
use super::tally::Tally;
use super::times::Times;
use super::workload::Workload;
use super::{Options, Part};

/// A point of a curve.
#[derive(Clone, Debug)]
pub struct Point {
    /// The number of clients at each data center.
    pub clients: usize,
    pub tally: Tally,
}

/// A system under increasing load.
#[derive(Clone, Debug)]
pub struct Curve {
    pub system: Baseline,
    pub points: Vec<Point>,
}

impl Curve {
    /// Returns the point of highest throughput.
    pub fn peak(&self) -> &Point {
        let most = |a: &&Point, b: &&Point| a.tally.throughput().total_cmp(&b.tally.throughput());
        self.points.iter().max_by(most).expect("a curve has points")
    }

    /// Returns the point of lowest load.
    pub fn calm(&self) -> &Point {
        &self.points[0]
    }
}

/// A run of the microbenchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Strong transactions, in percent.
    pub strong: usize,
    /// Updating transactions, in percent.
    pub updates: usize,
    /// Strong transactions with a key of the designated partition, in percent of the strong ones.
    pub contention: usize,
}

/// The results of all runs.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The measured processor time of a transaction.
    pub costs: Vec<Cost>,
    /// The auction site's curve of each system.
    pub site: Vec<Curve>,
    /// The microbenchmark, in the order of [`MIXES`].
    pub micro: Vec<(Mix, Curve)>,
    /// The run in which the leader's data center is lost.
    pub loss: Option<Tally>,
    /// The run with contention, for some seconds.
    pub contention: Option<Tally>,
}

/// The runs of the microbenchmark.
pub const MIXES: [(Baseline, Mix); 4] = [
    (Baseline::UniStore, Mix { strong: 0, updates: 100, contention: 0 }),
    (Baseline::UniStore, Mix { strong: 10, updates: 100, contention: 0 }),
    (Baseline::UniStore, Mix { strong: 100, updates: 100, contention: 0 }),
    (Baseline::UniStore, Mix { strong: 10, updates: 100, contention: 20 }),
];

/// The loads, as fractions of the busiest core's limit as extrapolated from the first two points.
const LOADS: [f64; 2] = [0.8, 1.15];

/// The loads of a quick run.
const LOADS_QUICK: [f64; 1] = [1.15];

/// The ratio of the second point's clients to the first point's.
const MORE: usize = 3;

/// The maximum number of clients at each data center, so that a point takes at most about a minute.
const CLIENTS_MAX: f64 = 30_000.0;

/// The clients of the first point at each data center: with think time, per partition; without, in
/// total.
const SITE_CLIENTS: usize = 60;
const MICRO_CLIENTS: usize = 24;

/// The clients of the runs with trouble, and the durations of these runs in nanoseconds.
const TROUBLED_CLIENTS: usize = 24;
const LOST_AFTER_NS: u64 = 1_500_000_000;
const LOST_NS: u64 = 6_000_000_000;
const CONTENTION_NS: u64 = 6_000_000_000;

const SECOND_NS: f64 = 1e9;

pub fn rubis(options: &Options) -> Box<dyn Workload> {
    Box::new(Rubis::new(options.items, options.users))
}

pub fn micro(
    options: &Options,
    strong_percent: usize,
    updates_percent: usize,
    contention_percent: usize,
) -> Box<dyn Workload> {
    let micro = Micro::new(options.keys, options.partitions, strong_percent);
    Box::new(micro.with_updates(updates_percent).with_contention(contention_percent))
}

/// A run to be done.
#[derive(Clone, Copy, Debug)]
enum Task {
    Site(Baseline),
    Micro(Baseline, Mix),
    Loss,
    Contention,
}

/// The result of a run.
enum Ran {
    Site(Curve),
    Micro(Mix, Curve),
    Loss(Tally),
    Contention(Tally),
}

/// Runs everything on several threads.
///
/// # Errors
///
/// The core's objection to the settings.
pub fn run_all(options: &Options, times: &Times) -> Result<Outcome, String> {
    let mut tasks: Vec<Task> = Vec::new();
    if options.runs(Part::Site) {
        tasks.extend(Baseline::ALL.map(Task::Site));
    }
    if options.runs(Part::Micro) {
        tasks.extend(MIXES.map(|(system, mix)| Task::Micro(system, mix)));
    }
    if options.runs(Part::Trouble) {
        tasks.extend([Task::Loss, Task::Contention]);
    }
    // Tasks are taken from the end, so the longest come first.
    tasks.reverse();
    let count = tasks.len();
    let (tasks, done) = (Mutex::new(tasks), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..options.threads {
            scope.spawn(|| {
                loop {
                    let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).pop();
                    let Some(task) = task else { return };
                    let ran = run(options, times, task);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done.push(ran);
                    println!("{} of {count}: {task:?}", done.len());
                }
            });
        }
    });
    let mut outcome = Outcome::default();
    for ran in done.into_inner().unwrap_or_else(PoisonError::into_inner) {
        match ran? {
            Ran::Site(curve) => outcome.site.push(curve),
            Ran::Micro(mix, curve) => outcome.micro.push((mix, curve)),
            Ran::Loss(tally) => outcome.loss = Some(tally),
            Ran::Contention(tally) => outcome.contention = Some(tally),
        }
    }
    outcome.site.sort_by_key(|curve| curve.system);
    outcome.micro.sort_by_key(|(mix, curve)| {
        MIXES.iter().position(|(system, of)| *system == curve.system && of == mix)
    });
    Ok(outcome)
}

fn run(options: &Options, times: &Times, task: Task) -> Result<Ran, String> {
    let setup = |system: Baseline| {
        let setup = Setup::new(system, options.partitions, times.clone());
        Setup { seed: options.seed, ..setup }
    };
    Ok(match task {
        Task::Site(system) => {
            let think_us = options.think_ms * 1_000;
            let clients = SITE_CLIENTS * usize::from(options.partitions);
            let setup = Setup { clients, think_us, ..setup(system) };
            Ran::Site(curve(options, &setup, &|| rubis(options))?)
        }
        Task::Micro(system, mix) => {
            let setup = Setup { clients: MICRO_CLIENTS, ..setup(system) };
            let Mix { strong, updates, contention } = mix;
            let workload = || micro(options, strong, updates, contention);
            Ran::Micro(mix, curve(options, &setup, &workload)?)
        }
        Task::Loss => {
            let setup = Setup { clients: TROUBLED_CLIENTS, ..setup(Baseline::UniStore) };
            let mut model = Model::new(setup, micro(options, 10, 100, 0))?;
            model.elect()?;
            model.start_clients();
            model.run_for(LOST_AFTER_NS);
            model.lose(0);
            model.count();
            model.run_for(LOST_NS);
            Ran::Loss(model.counted(LOST_NS as f64 / SECOND_NS))
        }
        Task::Contention => {
            let setup = Setup { clients: TROUBLED_CLIENTS, ..setup(Baseline::UniStore) };
            let mut model = Model::new(setup, micro(options, 10, 100, 20))?;
            model.elect()?;
            model.start_clients();
            model.count();
            model.run_for(CONTENTION_NS);
            Ran::Contention(model.counted(CONTENTION_NS as f64 / SECOND_NS))
        }
    })
}

/// Runs a system at a low load, at a higher one, and near the limit of its busiest core as
/// extrapolated from these two.
fn curve(
    options: &Options,
    setup: &Setup,
    workload: &dyn Fn() -> Box<dyn Workload>,
) -> Result<Curve, String> {
    let mut points = vec![point(options, setup, workload())?];
    let more = Setup { clients: setup.clients * MORE, ..setup.clone() };
    points.push(point(options, &more, workload())?);
    let loads: &[f64] = if options.quick { &LOADS_QUICK } else { &LOADS };
    for load in loads {
        let clients = (load * clients_at_most(setup, &points)).clamp(1.0, CLIENTS_MAX) as usize;
        if points.last().is_some_and(|last| clients <= last.clients) {
            // A previous point had the same load already.
            continue;
        }
        let setup = Setup { clients, ..setup.clone() };
        points.push(point(options, &setup, workload())?);
    }
    Ok(Curve { system: setup.system, points })
}

/// Returns the number of clients at each data center that keeps the busiest core always busy,
/// extrapolated from the first two points; periodic work is contained in both.
fn clients_at_most(setup: &Setup, points: &[Point]) -> f64 {
    let (first, second) = (&points[0].tally, &points[1].tally);
    let (busy, then) = (first.busiest().1, second.busiest().1);
    let more = second.throughput() - first.throughput();
    let most = first.throughput() + (1.0 - busy) * more / (then - busy).max(1e-3);
    let each_us = setup.think_us as f64 + second.latency_us.mean();
    most * each_us / 1e6 / f64::from(setup.dcs)
}

fn point(options: &Options, setup: &Setup, workload: Box<dyn Workload>) -> Result<Point, String> {
    let mut model = Model::new(setup.clone(), workload)?;
    model.elect()?;
    model.start_clients();
    model.run_for((options.warm_up * SECOND_NS) as u64);
    model.count();
    model.run_for((options.seconds * SECOND_NS) as u64);
    Ok(Point { clients: setup.clients, tally: model.counted(options.seconds) })
}
