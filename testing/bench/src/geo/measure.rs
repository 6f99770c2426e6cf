//! The rounds.

use std::time::Duration;

use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};

use super::catch_up::{self, Return};
use super::estimate::Estimate;
use super::plan::{Disk, Distance, Plan};
use super::site::{Reading, Site, histogram};
use super::{Options, Part};

/// The sides that are compared under full load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Remote transactions are visible once uniform; commits are acknowledged in memory.
    Uniform,
    /// Remote transactions are visible once stable.
    Stable,
    /// Uniform, and commits are acknowledged once synced.
    Synced,
    /// Uniform, in memory; transactions that write do so to two keys, so that most are prepared.
    Prepared,
}

impl Side {
    pub const ALL: [Self; 4] = [Self::Uniform, Self::Stable, Self::Synced, Self::Prepared];

    pub fn title(self) -> &'static str {
        match self {
            Self::Uniform => "uniform, acknowledged in memory",
            Self::Stable => "without uniformity (CureFT), in memory",
            Self::Synced => "uniform, acknowledged once synced",
            Self::Prepared => "uniform, in memory, two writes instead of one",
        }
    }

    fn plan(self, plan: Plan) -> Plan {
        match self {
            Self::Uniform => plan,
            Self::Stable => Plan { is_uniform: false, ..plan },
            Self::Synced => Plan { disk: Disk::File, ..plan },
            Self::Prepared => Plan { writes: 2, ..plan },
        }
    }
}

/// The sides that show the cost of floors and of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Registers, and sessions that know nothing of each other.
    Before,
    /// Registers, and sessions above the floor of their data center.
    Floors,
    /// Items of any type, and no floors.
    Items,
    /// Items of any type, and floors.
    Both,
}

impl Model {
    pub const ALL: [Self; 4] = [Self::Before, Self::Floors, Self::Items, Self::Both];

    pub fn title(self) -> &'static str {
        match self {
            Self::Before => "registers without floors",
            Self::Floors => "floors",
            Self::Items => "items",
            Self::Both => "items and floors",
        }
    }

    fn plan(self, plan: Plan) -> Plan {
        let has_items = matches!(self, Self::Items | Self::Both);
        Plan { has_items, has_floors: matches!(self, Self::Floors | Self::Both), ..plan }
    }
}

/// The results of one side, by round.
#[derive(Clone, Debug, Default)]
pub struct Load {
    pub throughput: Estimate,
    pub cpu_us: Estimate,
    /// The processor cores used.
    pub cores: Estimate,
    pub latency_p50_us: Estimate,
    pub latency_p99_us: Estimate,
    /// The sum of all counts.
    pub total: Reading,
}

/// The visibility delays of writes at the first data center.
pub struct Visibility {
    pub distance: Distance,
    /// The delays in nanoseconds, by data center of the reader.
    pub delays_ns: Vec<Histogram<u64>>,
    /// The quantiles of each round in milliseconds, by data center.
    pub p50_ms: Vec<Estimate>,
    pub p99_ms: Vec<Estimate>,
    /// The transactions per second meanwhile.
    pub throughput: Estimate,
}

/// The results of all measurements.
#[derive(Default)]
pub struct Outcome {
    /// The results of each side; empty if this part was not requested.
    pub loads: Vec<Load>,
    /// The ratios of throughput and of processor time per transaction, with uniformity to without.
    pub uniform_throughput: Estimate,
    pub uniform_cpu: Estimate,
    /// The ratios of processor time per transaction, of each [`Model`] to the first; empty if this part
    /// was not requested.
    pub models: Vec<Estimate>,
    pub visibility: Vec<Visibility>,
    pub returns: Vec<Return>,
    /// Idle processor time, in percent of a core.
    pub idle_percent: Estimate,
}

/// The think time that reduces the load while visibility is measured.
const PROBE_CLIENTS_THINK: Duration = Duration::from_millis(3);

/// The number of writers that measure visibility, each with a reader at every data center.
const PROBES: usize = 16;

pub fn measure(options: &Options) -> Result<Outcome, String> {
    let mut outcome = Outcome::default();
    let blocks = |part, count: usize| if options.runs(part) { count } else { 0 };
    let each = blocks(Part::Throughput, 2 * Side::ALL.len())
        + blocks(Part::Items, 2 * Model::ALL.len())
        + blocks(Part::Visibility, 2)
        + blocks(Part::CatchUp, 1)
        + blocks(Part::Idle, 1);
    let progress = ProgressBar::new((options.rounds * each) as u64);
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {eta} {msg}");
    progress.set_style(style.map_err(|error| error.to_string())?);
    for round in 0..options.rounds {
        let plan = options.plan(round);
        if options.runs(Part::Throughput) {
            throughput(options, &plan, &mut outcome, &progress)?;
        }
        if options.runs(Part::Items) {
            models(options, &plan, &mut outcome, &progress)?;
        }
        if options.runs(Part::Visibility) {
            visibility(options, &plan, &mut outcome, &progress)?;
        }
        if options.runs(Part::CatchUp) {
            progress.set_message("a data center comes back");
            let back = catch_up::measure(&plan, options.warm_up_time(), options.time())?;
            outcome.returns.push(back);
            progress.inc(1);
        }
        if options.runs(Part::Idle) {
            progress.set_message("idle");
            outcome.idle_percent.push(idle(options, &plan)?);
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    Ok(outcome)
}

/// Runs a round under full load: all sides forwards, then backwards.
fn throughput(
    options: &Options,
    plan: &Plan,
    outcome: &mut Outcome,
    progress: &ProgressBar,
) -> Result<(), String> {
    outcome.loads.resize(Side::ALL.len(), Load::default());
    let mut sums = [Reading::default(); Side::ALL.len()];
    for side in Side::ALL.into_iter().chain(Side::ALL.into_iter().rev()) {
        progress.set_message(side.title());
        let site = Site::start(&side.plan(plan.clone()))?;
        site.let_all_clients();
        std::thread::sleep(options.warm_up_time());
        let reading = site.count(options.time());
        let rest = site.end()?;
        let load = &mut outcome.loads[side as usize];
        load.latency_p50_us.push(rest.latencies_us.value_at_quantile(0.5) as f64);
        load.latency_p99_us.push(rest.latencies_us.value_at_quantile(0.99) as f64);
        load.total = load.total.and(&reading);
        sums[side as usize] = sums[side as usize].and(&reading);
        progress.inc(1);
    }
    for (load, sum) in outcome.loads.iter_mut().zip(&sums) {
        load.throughput.push(sum.throughput());
        load.cpu_us.push(sum.cpu_us());
        load.cores.push(sum.cpu_seconds / sum.seconds);
    }
    let [uniform, stable, ..] = &sums;
    outcome.uniform_throughput.push(uniform.throughput() / stable.throughput());
    outcome.uniform_cpu.push(uniform.cpu_us() / stable.cpu_us());
    Ok(())
}

/// Runs a round under full load that compares the data models: all forwards, then backwards.
fn models(
    options: &Options,
    plan: &Plan,
    outcome: &mut Outcome,
    progress: &ProgressBar,
) -> Result<(), String> {
    outcome.models.resize(Model::ALL.len(), Estimate::default());
    let mut sums = [Reading::default(); Model::ALL.len()];
    for model in Model::ALL.into_iter().chain(Model::ALL.into_iter().rev()) {
        progress.set_message(model.title());
        let site = Site::start(&model.plan(plan.clone()))?;
        site.let_all_clients();
        std::thread::sleep(options.warm_up_time());
        let reading = site.count(options.time());
        site.end()?;
        if reading.failed + reading.alarms > 0 {
            return Err(format!("{}: a transaction failed: {reading:?}", model.title()));
        }
        sums[model as usize] = sums[model as usize].and(&reading);
        progress.inc(1);
    }
    for (ratio, sum) in outcome.models.iter_mut().zip(&sums) {
        ratio.push(sum.cpu_us() / sums[0].cpu_us());
    }
    Ok(())
}

/// Runs a round at part of the load, without a distance and with one.
fn visibility(
    options: &Options,
    plan: &Plan,
    outcome: &mut Outcome,
    progress: &ProgressBar,
) -> Result<(), String> {
    for (index, distance) in [Distance::None, Distance::Continents].into_iter().enumerate() {
        progress.set_message("visibility");
        let dcs = usize::from(plan.dcs);
        if outcome.visibility.len() <= index {
            outcome.visibility.push(Visibility {
                distance,
                delays_ns: (0..dcs).map(|_| histogram()).collect(),
                p50_ms: vec![Estimate::default(); dcs],
                p99_ms: vec![Estimate::default(); dcs],
                throughput: Estimate::default(),
            });
        }
        let think = PROBE_CLIENTS_THINK;
        let site = Site::start(&Plan { distance, think, probes: PROBES, ..plan.clone() })?;
        site.let_all_clients();
        std::thread::sleep(options.warm_up_time());
        // At a distance each write takes longer to be seen, so there are fewer per second.
        let reading = site.count(options.time() * (index as u32 + 1));
        let rest = site.end()?;
        let visibility = &mut outcome.visibility[index];
        visibility.throughput.push(reading.throughput());
        for (dc, delays_ns) in rest.delays_ns.iter().enumerate() {
            let ms = |quantile| delays_ns.value_at_quantile(quantile) as f64 / 1e6;
            visibility.p50_ms[dc].push(ms(0.5));
            visibility.p99_ms[dc].push(ms(0.99));
            visibility.delays_ns[dc].add(delays_ns).map_err(|error| error.to_string())?;
        }
        progress.inc(1);
    }
    Ok(())
}

/// Returns the idle processor time, in percent of a core.
fn idle(options: &Options, plan: &Plan) -> Result<f64, String> {
    let site = Site::start(plan)?;
    site.let_all_clients();
    std::thread::sleep(options.warm_up_time() / 2);
    site.settle()?;
    // Waits until all finished transactions are folded.
    std::thread::sleep(options.warm_up_time() + Duration::from_millis(plan.transaction_ms_max));
    let reading = site.count(options.time());
    site.end()?;
    Ok(reading.cpu_seconds / reading.seconds * 100.0)
}
