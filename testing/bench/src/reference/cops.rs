//! The benchmark of the COPS family: Table 7.2, and Figures 7.3 to 7.5.

use std::sync::Arc;

use mingle_cops::config::Protocol;

use super::job::{Answered, Kind};
use super::measure::{Case, Samples, measure};
use super::report::{Section, per_second, publish, ratio, us};
use super::workloads::{Groups, Single};
use super::{Options, Part, system};
use crate::geo::{Figure, Plot};
use crate::rounds::Rounds;

/// The keys of the microbenchmark; the thesis has 2^18.
const KEYS: u32 = 1 << 16;

/// The actors that saturate one server.
const ACTORS: usize = 64;

const GREEN: &str = "#0b7a75";
const RED: &str = "#c1440e";
const GREY: &str = "#8a8a84";

/// Runs all parts and publishes them.
pub fn run(options: &Options) -> Result<(), String> {
    let (mut sections, mut figures) = (Vec::new(), Vec::new());
    if options.runs(Part::Latency) {
        sections.push(latency(options)?);
    }
    if options.runs(Part::Saturated) {
        sections.push(saturated(options)?);
    }
    if options.runs(Part::Groups) {
        sections.push(groups(options, &mut figures)?);
    }
    if options.runs(Part::Scaling) {
        sections.push(scaling(options, &mut figures)?);
    }
    let title = "COPS, COPS-RT and LOG over real sockets";
    publish((title, &options.setting()), &sections, &figures, &options.page("cops"))
}

/// An operation of Table 7.2.
struct Operation {
    protocol: Protocol,
    kind: Kind,
    /// The keys that calls access: so a write has as many dependencies in COPS-RT.
    deps: u32,
    /// The thesis's latencies in ms, half, 99 % and 99.9 %, and throughput in 1,000 a second.
    thesis: Thesis,
}

/// The operations of Table 7.2, the baseline of each kind first.
#[expect(clippy::approx_constant, reason = "a latency of the thesis")]
const OPERATIONS: [Operation; 7] = [
    Operation::new(Protocol::Eventual, Kind::Read, KEYS, None),
    Operation::new(Protocol::Cops, Kind::Read, KEYS, Some(([0.37, 3.08, 11.29], 52.0))),
    Operation::new(Protocol::CopsRt, Kind::Read, KEYS, Some(([0.38, 3.14, 9.52], 52.0))),
    Operation::new(Protocol::Eventual, Kind::Write, 1, None),
    Operation::new(Protocol::Cops, Kind::Write, 1, Some(([0.57, 6.91, 11.37], 30.0))),
    Operation::new(Protocol::CopsRt, Kind::Write, 1, Some(([0.91, 5.37, 7.37], 24.0))),
    Operation::new(Protocol::CopsRt, Kind::Write, 130, Some(([1.03, 7.45, 11.54], 20.0))),
];

/// The thesis's latencies in ms and throughput in 1,000 a second.
type Thesis = Option<([f64; 3], f64)>;

impl Operation {
    const fn new(protocol: Protocol, kind: Kind, deps: u32, thesis: Thesis) -> Self {
        Self { protocol, kind, deps, thesis }
    }

    fn name(&self) -> String {
        let system = system(self.protocol).name();
        match self.kind {
            Kind::Read => format!("{system}: read"),
            _ => format!("{system}: write ({})", self.deps),
        }
    }

    fn answered(&self) -> Answered {
        if self.kind == Kind::Read { Answered::Read } else { Answered::Write }
    }

    /// Returns the place of the baseline: `eventual` with the same kind.
    fn baseline(&self) -> usize {
        if self.kind == Kind::Read { 0 } else { 3 }
    }

    fn case(&self, options: &Options, actors: usize) -> Case {
        let workload = Arc::new(Single { keys: KEYS, kind: self.kind, accessed: self.deps });
        let plan = options.plan(system(self.protocol), 1, actors);
        Case { name: self.name(), plan, workload }
    }
}

/// One actor: the latencies of Table 7.2.
fn latency(options: &Options) -> Result<Section, String> {
    let cases: Vec<Case> = OPERATIONS.iter().map(|one| one.case(options, 1)).collect();
    let samples = measure("latency", &cases, options)?;
    let half = |index: usize| samples[index].latency(OPERATIONS[index].answered(), |one| one.p50);
    let rows = OPERATIONS.iter().enumerate().map(|(index, operation)| {
        let at = |of: fn(&super::measure::Latency) -> f64| {
            us(samples[index].latency(operation.answered(), of).median())
        };
        let (thesis, by_ping) = match operation.thesis {
            Some(([half, most, longest], _)) => {
                (format!("{half}, {most}, {longest} ms"), ratio(half / PING_MS))
            }
            None => (String::new(), String::new()),
        };
        vec![
            operation.name(),
            at(|one| one.p50),
            at(|one| one.p99),
            at(|one| one.p999),
            half(index).by(&half(operation.baseline())).shown(ratio),
            thesis,
            by_ping,
        ]
    });
    Ok(Section {
        title: "Latency of one actor (Table 7.2)".into(),
        text: format!(
            "Measured. One server in each data center, one actor, {KEYS} keys (the thesis: 262144), values of 1 byte. In \
             brackets the dependencies that a write has in COPS-RT. The thesis's system was saturated, and its \
             baseline is a ping of 0.26 ms; ours is the same operation of `eventual`."
        ),
        header: vec![
            "operation",
            "50 %",
            "99 %",
            "99.9 %",
            "50 % by eventual",
            "thesis",
            "thesis, 50 % by ping",
        ],
        rows: rows.collect(),
        plots: Vec::new(),
    })
}

/// The thesis's latency of a ping, half of them, in ms.
const PING_MS: f64 = 0.26;

/// Many actors: the throughputs of Table 7.2.
fn saturated(options: &Options) -> Result<Section, String> {
    let cases: Vec<Case> = OPERATIONS.iter().map(|one| one.case(options, ACTORS)).collect();
    let samples = measure("saturated", &cases, options)?;
    let rows = OPERATIONS.iter().enumerate().map(|(index, operation)| {
        let (one, base) = (&samples[index], &samples[operation.baseline()]);
        vec![
            operation.name(),
            one.rounds(|sample| sample.calls_per_s).shown(per_second),
            one.cpu_us().shown(us),
            one.cpu_us().by(&base.cpu_us()).shown(ratio),
            operation.thesis.map(|(_, kops)| format!("{kops},000/s")).unwrap_or_default(),
        ]
    });
    Ok(Section {
        title: "Throughput of single operations (Table 7.2)".into(),
        text: format!(
            "Measured. As above with {ACTORS} actors. The processor time of an operation counts all that it causes, in both \
             data centers and at the client."
        ),
        header: vec!["operation", "throughput", "processor time", "by eventual", "thesis"],
        rows: rows.collect(),
        plots: Vec::new(),
    })
}

/// The variances and the numbers of writes and reads of the groups.
const VARIANCES: [f64; 3] = [0.0, 1.0, 512.0];
const MIXES: [(usize, usize); 4] = [(4, 1), (1, 1), (1, 4), (1, 16)];

/// The systems of the dynamic workload.
const DYNAMIC: [Protocol; 3] = [Protocol::Eventual, Protocol::Cops, Protocol::CopsRt];

/// Groups of keys: Figures 7.3 and 7.4(b).
fn groups(options: &Options, figures: &mut Vec<Figure>) -> Result<Section, String> {
    let mut cases = Vec::new();
    for variance in VARIANCES {
        for (writes, reads) in MIXES {
            for protocol in DYNAMIC {
                let groups = Groups { variance, writes, reads, ..Groups::default() };
                let plan = options.plan(system(protocol), 2, groups.count);
                let name = format!("{}, variance {variance}", system(protocol).name());
                cases.push(Case { name, plan, workload: Arc::new(groups) });
            }
        }
    }
    let samples = measure("groups", &cases, options)?;
    let at = |variance: usize, mix: usize| {
        let first = (variance * MIXES.len() + mix) * DYNAMIC.len();
        &samples[first..first + DYNAMIC.len()]
    };
    let mut rows = Vec::new();
    for (index, variance) in VARIANCES.iter().enumerate() {
        for (mix, (writes, reads)) in MIXES.iter().enumerate() {
            let [eventual, cops, rt] = at(index, mix) else { continue };
            rows.push(vec![
                variance.to_string(),
                format!("{writes}:{reads}"),
                cops.rounds(|sample| sample.calls_per_s).shown(per_second),
                eventual.cpu_us().by(&cops.cpu_us()).shown(ratio),
                cops.cpu_us().by(&rt.cpu_us()).shown(ratio),
                format!("{:.1}", cops.rounds(|sample| sample.deps).median()),
                format!("{:.1}", rt.rounds(|sample| sample.deps).median()),
            ]);
        }
    }
    let of_mix = |mix: usize| [0, 1, 2].map(|variance| &at(variance, mix)[1]);
    flat(of_mix(1), options, figures);
    let [_, cops, rt] = at(1, 1) else { return Err("a system is missing".into()) };
    let kept = cops.cpu_us().by(&rt.cpu_us());
    figures.push(Figure::plain(
        "COPS-RT by COPS, defaults (the design expects two thirds)",
        kept.shown(ratio),
    ));
    Ok(Section {
        title: "Groups of keys: writes to reads, and variance (Figures 7.3 and 7.4)".into(),
        text: "Measured. Two servers in each data center, 256 actors with a group of 128 keys each (the thesis: 4 servers, 1,024 \
               actors each, 512 keys), values of 1 byte. Ratios are of processor time, so of the throughput that one \
               machine has. Dependencies are those of a replicated write; nothing is collected within a measurement, so \
               those of COPS-RT grow with its length."
            .into(),
        header: vec![
            "variance",
            "writes:reads",
            "COPS",
            "COPS by eventual",
            "COPS-RT by COPS",
            "dependencies, COPS",
            "COPS-RT",
        ],
        rows,
        plots: vec![dependency_plot(&at)],
    })
}

/// Adds the figure of COPS over variance.
fn flat(by_variance: [&Samples; 3], options: &Options, figures: &mut Vec<Figure>) {
    let [none, usual, much] = by_variance.map(|samples| usual_by(by_variance[1], samples));
    let far = [none.median(), usual.median(), much.median()].map(|ratio| (ratio - 1.0).abs());
    let most = far.into_iter().fold(0.0, f64::max);
    let bar = if options.quick { 0.9 } else { 0.05 };
    figures.push(Figure::barred(
        "COPS with variance 0 and 512 by that with 1, at 1:1",
        format!("{}; {}", none.shown(ratio), much.shown(ratio)),
        format!("within {:.0} %", bar * 100.0),
        most <= bar,
    ));
}

fn usual_by(usual: &Samples, samples: &Samples) -> Rounds {
    usual.cpu_us().by(&samples.cpu_us())
}

/// Plots COPS-RT by COPS over the fraction of reads.
fn dependency_plot<'s>(at: &impl Fn(usize, usize) -> &'s [Samples]) -> (String, String) {
    let mut plot = Plot::new("COPS-RT by COPS", (0.0, 1.0), (0.0, 1.2), false);
    plot.axes("fraction of reads", |value| format!("{value:.1}"));
    let names = ["variance 0", "variance 1", "variance 512"];
    for ((index, name), color) in names.into_iter().enumerate().zip([GREY, GREEN, RED]) {
        let point = |(mix, (writes, reads)): (usize, &(usize, usize))| {
            let of = at(index, mix);
            let kept = of[1].cpu_us().by(&of[2].cpu_us()).median();
            (*reads as f64 / (writes + reads) as f64, kept)
        };
        let points: Vec<(f64, f64)> = MIXES.iter().enumerate().map(point).collect();
        plot.line(name, color, &points, "");
    }
    ("Throughput of COPS-RT by that of COPS, for the same processor time".into(), plot.done())
}

/// The actors for each server, so that a server has as much to do in a small system as in a large one.
const ACTORS_PER_SERVER: usize = 128;

/// The numbers of servers in each data center.
const SERVERS: [u16; 5] = [1, 2, 4, 8, 16];

/// COPS and COPS-RT on several servers against LOG on one: Figure 7.5.
fn scaling(options: &Options, figures: &mut Vec<Figure>) -> Result<Section, String> {
    let case = |protocol, servers: u16| {
        let plural = if servers == 1 { "" } else { "s" };
        let name = format!("{}, {servers} server{plural}", system(protocol).name());
        let groups =
            Groups { count: ACTORS_PER_SERVER * usize::from(servers), ..Groups::default() };
        let plan = options.plan(system(protocol), servers, groups.count);
        Case { name, plan, workload: Arc::new(groups) }
    };
    let mut cases = vec![case(Protocol::Log, 1)];
    for servers in SERVERS {
        cases.extend([case(Protocol::Cops, servers), case(Protocol::CopsRt, servers)]);
    }
    let samples = measure("scaling", &cases, options)?;
    let log = &samples[0];
    let capacity = |samples: &Samples| samples.rounds(|sample| sample.capacity);
    let row = |(case, of): (&Case, &Samples)| {
        vec![
            case.name.clone(),
            of.rounds(|sample| sample.calls_per_s).shown(per_second),
            of.cpu_us().shown(us),
            capacity(of).shown(per_second),
            capacity(of).by(&capacity(log)).shown(ratio),
        ]
    };
    let rows = cases.iter().zip(&samples).map(row).collect();
    let by_log = log.cpu_us().by(&samples[1].cpu_us());
    figures.push(Figure::barred(
        "COPS by LOG on one server, processor time",
        by_log.shown(ratio),
        if options.quick { "at least 0.3".into() } else { "at least 0.97".into() },
        by_log.median() >= if options.quick { 0.3 } else { 0.97 },
    ));
    for (first, protocol) in [(1, Protocol::Cops), (2, Protocol::CopsRt)] {
        let steps = (0..SERVERS.len()).map(|step| capacity(&samples[first + 2 * step]));
        let steps: Vec<Rounds> = steps.collect();
        let doubled: Vec<f64> = steps.windows(2).map(|two| two[1].by(&two[0]).median()).collect();
        let least = doubled.iter().copied().fold(f64::INFINITY, f64::min);
        let shown: Vec<String> = doubled.iter().map(|factor| ratio(*factor)).collect();
        let name = format!("{}: capacity with twice the servers, 1 to 16", system(protocol).name());
        let bar = if options.quick { 0.2 } else { 1.8 };
        figures.push(match protocol {
            Protocol::Cops => {
                Figure::barred(name, shown.join(", "), format!("at least {bar}"), least >= bar)
            }
            _ => Figure::plain(name, shown.join(", ")),
        });
    }
    Ok(Section {
        title: "COPS against one log, on 1 to 16 servers (Figure 7.5)".into(),
        text: "Defaults of the groups, 1:1, with 128 actors for each server. Throughput and processor time are measured, on the two cores that all servers share. \
               Capacity is modelled: the calls by the processor time of the busiest server, with its part of the kernel's \
               work, as if each server had a core of its own."
            .into(),
        header: vec!["system", "throughput", "processor time", "capacity", "capacity by LOG"],
        rows,
        plots: vec![capacity_plot(&samples)],
    })
}

fn capacity_plot(samples: &[Samples]) -> (String, String) {
    let capacity = |index: usize| samples[index].rounds(|sample| sample.capacity).median();
    let log = capacity(0);
    let points = |first: usize| -> Vec<(f64, f64)> {
        let point = |(step, servers): (usize, &u16)| {
            (f64::from(*servers), capacity(first + 2 * step) / log)
        };
        SERVERS.iter().enumerate().map(point).collect()
    };
    let (cops, rt) = (points(1), points(2));
    let most = cops.iter().chain(&rt).map(|(_, value)| *value).fold(1.0, f64::max) * 1.1;
    let mut plot = Plot::new("capacity by LOG", (1.0, 16.0), (0.0, most), true);
    plot.axes("servers in each data center", |value| format!("{value:.0}"));
    plot.line("COPS", GREEN, &cops, "");
    plot.line("COPS-RT", RED, &rt, "");
    ("Capacity, modelled, by that of LOG on one server".into(), plot.done())
}
