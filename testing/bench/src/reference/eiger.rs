//! The benchmark of Eiger: Tables 7.4 and 7.6, Figures 7.6 and 7.7, and our own store under the same work.

use std::sync::Arc;

use mingle_cops::config::Protocol;
use mingle_cops::locator::Locator;
use mingle_geo::Key;

use super::job::{Answered, Kind, Workload};
use super::measure::{Case, Latency, Sample, Samples, measure};
use super::report::{Section, bytes, per_second, percent, publish, ratio, us};
use super::site::{Plan, System};
use super::workloads::{Facebook, Pair, Rows, Spread};
use super::{Options, Part};
use crate::geo::{Figure, Plot};

/// The servers of each data center.
const SERVERS: u16 = 8;

/// The actors that saturate the two cores.
const ACTORS: usize = 64;

/// The systems that are compared, the baseline first.
const SYSTEMS: [System; 3] = [
    System::Reference(Protocol::EventualColumns),
    System::Reference(Protocol::Eiger),
    System::Core,
];

const GREEN: &str = "#0b7a75";
const RED: &str = "#c1440e";

/// Runs all parts and publishes them.
pub fn run(options: &Options) -> Result<(), String> {
    let (mut sections, mut figures) = (Vec::new(), Vec::new());
    if options.runs(Part::Latency) {
        sections.push(latency(options)?);
    }
    if options.runs(Part::Rows) {
        sections.extend(rows(options, &mut figures)?);
    }
    if options.runs(Part::Sweeps) {
        sections.push(sweeps(options, &mut figures)?);
    }
    if options.runs(Part::Facebook) {
        sections.push(facebook(options, &mut figures)?);
    }
    if options.runs(Part::Writes) {
        sections.push(writes(options)?);
    }
    let title = "Eiger over real sockets, and our own store under the same work";
    publish((title, &options.setting()), &sections, &figures, &options.page("eiger"))
}

/// A line of Table 7.4: the case, the kind of calls, the baseline's line, and the thesis's latencies in
/// ms, half and 99 %.
struct Line {
    name: &'static str,
    case: usize,
    answered: Answered,
    baseline: usize,
    thesis: Option<(f64, f64)>,
}

/// Returns two keys of different servers, in both data centers and for both kinds of systems.
fn apart() -> Result<[u32; 2], String> {
    let locator = Locator::new(2, 2)?;
    let place = |key: u32| {
        let row = Key::new(mingle_geo::Kind::Map, format!("row:{key}"));
        let servers = [0, 1].map(|dc| locator.server(dc, key).server());
        (servers, row.partition(2).0)
    };
    let ([first, second], partition) = place(0);
    let is_apart = |key: &u32| {
        let (servers, other) = place(*key);
        servers[0] != first && servers[1] != second && other != partition
    };
    let other = (1..1_000).find(is_apart).ok_or("all keys have the same server")?;
    Ok([0, other])
}

/// One actor, and a second one that disturbs it: Table 7.4.
fn latency(options: &Options) -> Result<Section, String> {
    let samples = measure("latency", &latency_cases(options)?, options)?;
    let lines = latency_lines();
    Ok(Section {
        title: "Latency of one actor (Table 7.4)".into(),
        text: "Measured. Two servers in each data center, one actor, one column of 1 byte of one key, or of two keys at two \
               servers (2). A disturbed read has a second actor beside it that writes both keys again and again, in \
               transactions where there are some: Eiger's reads by the rounds that they take. Baselines are the lines of \
               `eventual`; the thesis's ratios are by its reads and writes of eventual Cassandra."
            .into(),
        header: vec![
            "operation",
            "calls",
            "50 %",
            "90 %",
            "95 %",
            "99 %",
            "50 % by eventual",
            "thesis, 50 % and 99 %",
            "thesis, 50 % by eventual",
        ],
        rows: lines.iter().map(|line| latency_row(line, &lines, &samples)).collect(),
        plots: Vec::new(),
    })
}

/// Returns five cases of each system.
fn latency_cases(options: &Options) -> Result<Vec<Case>, String> {
    let keys = apart()?;
    let pair = |count, kind, is_disturbed| Pair { keys, count, kind, is_disturbed };
    let mut cases = Vec::new();
    for of in SYSTEMS {
        for (name, pair) in [
            ("read", pair(1, Kind::Read, false)),
            ("disturbed read (2)", pair(2, Kind::Read, true)),
            ("write", pair(1, Kind::Write, false)),
            ("write (2)", pair(2, Kind::Write, false)),
            ("transaction (2)", pair(2, Kind::Atomic, false)),
        ] {
            let plan = options.plan(of, 2, 1);
            let plan = Plan { clients: if pair.is_disturbed { 2 } else { 1 }, ..plan };
            let name = format!("{}: {name}", of.name());
            cases.push(Case { name, plan, workload: Arc::new(pair) });
        }
    }
    Ok(cases)
}

/// Returns the lines of the table, by the order of the cases.
fn latency_lines() -> Vec<Line> {
    use Answered::{Atomic, Indirected, Read, TwoRounds, Write};
    let line =
        |name, case, answered, baseline, thesis| Line { name, case, answered, baseline, thesis };
    vec![
        line("eventual: read", 0, Read, 0, Some((0.38, 1.13))),
        line("Eiger: read", 5, Read, 0, Some((0.47, 1.27))),
        line("our core: read", 10, Read, 0, None),
        line("eventual: disturbed read (2)", 1, Read, 3, None),
        line("Eiger: disturbed read (2), one round", 6, Read, 3, None),
        line("Eiger: disturbed read (2), two rounds", 6, TwoRounds, 3, Some((0.68, 1.85))),
        line("Eiger: disturbed read (2), indirected", 6, Indirected, 3, Some((0.78, 2.28))),
        line("our core: disturbed read (2)", 11, Read, 3, None),
        line("eventual: write", 2, Write, 8, Some((0.42, 1.67))),
        line("Eiger: write", 7, Write, 8, Some((0.45, 1.92))),
        line("our core: write", 12, Write, 8, None),
        line("eventual: write (2)", 3, Write, 11, None),
        line("Eiger: write (2)", 8, Write, 11, Some((0.51, 4.05))),
        line("Eiger: transaction (2)", 9, Atomic, 11, Some((0.73, 4.39))),
        line("our core: transaction (2)", 14, Atomic, 11, None),
    ]
}

fn latency_row(line: &Line, lines: &[Line], samples: &[Samples]) -> Vec<String> {
    let of = |line: &Line, quantile: fn(&Latency) -> f64| {
        samples[line.case].latency(line.answered, quantile)
    };
    let at = |quantile: fn(&Latency) -> f64| match of(line, quantile).median() {
        none if none.is_nan() => "none".to_owned(),
        some => us(some),
    };
    let calls = samples[line.case].rounds(|one| one.latency(line.answered).count as f64).median();
    let base = of(&lines[line.baseline], |one| one.p50);
    let by = base.median();
    let by_base = of(line, |one| one.p50).map(|half| half / by);
    let thesis_base = if line.answered < Answered::Write { 0.38 } else { 0.42 };
    let (thesis, by_thesis) = match line.thesis {
        Some((half, most)) => (format!("{half}, {most} ms"), ratio(half / thesis_base)),
        None => (String::new(), String::new()),
    };
    let by_base = if calls > 0.0 { by_base.shown(ratio) } else { String::new() };
    vec![
        line.name.to_owned(),
        format!("{calls:.0}"),
        at(|one| one.p50),
        at(|one| one.p90),
        at(|one| one.p95),
        at(|one| one.p99),
        by_base,
        thesis,
        by_thesis,
    ]
}

/// Returns the cases of all systems with one workload.
fn cases(
    options: &Options,
    name: &str,
    workload: &Arc<dyn Workload>,
    systems: &[System],
) -> Vec<Case> {
    let case = |of: &System| Case {
        name: format!("{}, {name}", of.name()),
        plan: options.plan(*of, SERVERS, ACTORS),
        workload: workload.clone(),
    };
    systems.iter().map(case).collect()
}

/// The default workload, and the bytes of its calls.
fn rows(options: &Options, figures: &mut Vec<Figure>) -> Result<[Section; 2], String> {
    let workload: Arc<dyn Workload> = Arc::new(Rows::default());
    let samples = measure("rows", &cases(options, "defaults", &workload, &SYSTEMS), options)?;
    let bar = if options.quick { 0.95 } else { 0.15 };
    let overhead = samples[1].overhead(&samples[0]);
    figures.push(Figure::barred(
        "Eiger's overhead against eventual, defaults (the thesis: 15 %)",
        overhead.shown(percent),
        format!("at most {}", percent(bar)),
        overhead.median() <= bar,
    ));
    let rows = SYSTEMS.iter().zip(&samples).map(|(of, one)| defaults_row(*of, one, &samples[0]));
    let defaults = Section {
        title: "Eiger's default workload".into(),
        text: "Measured, all servers on the two cores. 8 servers in each data center, 64 actors; 60,000 keys (the thesis: a million; of \
               so many about as large a part is written within a measurement as of a million on its machines until \
               dependencies are collected), 5 columns of 128 bytes, 5 keys a call, 10 % writes, half of them transactions. \
               Overhead is of processor time: the calls that a system loses against `eventual` on the same machine. Our core \
               is other code than `eventual`, with one map for a row and one message for each server of a call, so its difference \
               is not the price of its promises."
            .into(),
        header: vec![
            "system",
            "throughput",
            "processor time",
            "overhead",
            "read, 50 %",
            "read, 99 %",
            "reads of two rounds",
        ],
        rows: rows.collect(),
        plots: Vec::new(),
    };
    Ok([defaults, metadata(&samples)])
}

fn defaults_row(of: System, one: &Samples, baseline: &Samples) -> Vec<String> {
    let latency = |kind, quantile: fn(&Latency) -> f64| us(one.latency(kind, quantile).median());
    let is_two_rounds = |sample: &Sample| {
        let reads = [Answered::Read, Answered::TwoRounds, Answered::Indirected];
        let [once, twice, indirected] = reads.map(|kind| sample.latency(kind).count as f64);
        (twice + indirected) / (once + twice + indirected)
    };
    vec![
        of.name().to_owned(),
        one.rounds(|sample| sample.calls_per_s).shown(per_second),
        one.cpu_us().shown(us),
        one.overhead(baseline).shown(percent),
        latency(Answered::Read, |one| one.p50),
        latency(Answered::Read, |one| one.p99),
        one.rounds(is_two_rounds).shown(percent),
    ]
}

/// The bytes of the calls of the default workload.
fn metadata(samples: &[Samples]) -> Section {
    let traffic = SYSTEMS.iter().zip(samples).map(|(of, one)| {
        let span = |span: usize| bytes(one.rounds(|sample| sample.bytes[span]).median());
        let all = |of: &Samples| of.rounds(|sample| sample.bytes.iter().sum());
        let added = all(one).median() - all(&samples[0]).median();
        let deps = match of {
            System::Core => "a vector".to_owned(),
            System::Reference(_) => format!("{:.1}", one.rounds(|sample| sample.deps).median()),
        };
        vec![of.name().to_owned(), span(0), span(1), span(2), bytes(added), deps]
    });
    Section {
        title: "Metadata".into(),
        text: "Measured in the same run: the bytes of a call on all connections, its part of the work at intervals included, without \
               the headers of TCP. Those beyond the bytes of `eventual` are metadata; our core encodes rows in its own way, so \
               its difference is not of metadata alone."
            .into(),
        header: vec![
            "system",
            "client and servers",
            "within a data center",
            "between data centers",
            "beyond eventual",
            "dependencies of a replicated write",
        ],
        rows: traffic.collect(),
        plots: Vec::new(),
    }
}

/// The points of the sweeps: the parameter, its value, and the workload.
fn points() -> Vec<(&'static str, String, Rows)> {
    let usual = Rows::default();
    let mut points = Vec::new();
    for bytes in [1, 4_096] {
        points.push(("value size", format!("{bytes} B"), Rows { bytes, ..usual }));
    }
    for columns in [1, 32] {
        // As many columns in all.
        let keys = usual.keys * usual.columns / columns.max(usual.columns);
        points.push(("columns of a key", columns.to_string(), Rows { keys, columns, ..usual }));
    }
    for keys_per_call in [1, 32] {
        points.push(("keys of a call", keys_per_call.to_string(), Rows { keys_per_call, ..usual }));
    }
    for writes_per_mille in [10, 500, 1_000] {
        let shown = format!("{} %", writes_per_mille / 10);
        points.push(("writes", shown, Rows { writes_per_mille, ..usual }));
    }
    for atomic_percent in [0, 100] {
        let shown = format!("{atomic_percent} %");
        points.push(("transactions among writes", shown, Rows { atomic_percent, ..usual }));
    }
    points
}

/// One parameter after the other: Figure 7.7.
fn sweeps(options: &Options, figures: &mut Vec<Figure>) -> Result<Section, String> {
    let points = points();
    let mut all = Vec::new();
    for (name, value, rows) in &points {
        let workload: Arc<dyn Workload> = Arc::new(*rows);
        all.extend(cases(options, &format!("{name} {value}"), &workload, &SYSTEMS));
    }
    let samples = measure("sweeps", &all, options)?;
    let (mut rows, mut overheads) = (Vec::new(), Vec::new());
    for ((name, value, _), of) in points.iter().zip(samples.chunks(SYSTEMS.len())) {
        let [eventual, eiger, core] = of else { continue };
        let overhead = eiger.overhead(eventual);
        overheads.push(overhead.median());
        rows.push(vec![
            (*name).to_owned(),
            value.clone(),
            eventual.rounds(|sample| sample.calls_per_s).shown(per_second),
            eventual.cpu_us().shown(us),
            overhead.shown(percent),
            core.overhead(eventual).shown(percent),
        ]);
    }
    let least = overheads.iter().copied().fold(f64::INFINITY, f64::min);
    let most = overheads.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    figures.push(Figure::plain(
        "Eiger's overhead with one parameter varied (the thesis: 0.5 to 25 %)",
        format!("{} to {}", percent(least), percent(most)),
    ));
    Ok(Section {
        title: "One parameter after the other (Figure 7.7)".into(),
        text: "Measured. The other parameters are the defaults, with 9,375 keys of 32 columns. Overhead is of processor \
               time; a negative one means that less than that of `eventual` was taken."
            .into(),
        header: vec![
            "parameter",
            "value",
            "eventual",
            "processor time",
            "Eiger's overhead",
            "our core's overhead",
        ],
        rows,
        plots: Vec::new(),
    })
}

/// The Facebook workload: Table 7.6.
fn facebook(options: &Options, figures: &mut Vec<Figure>) -> Result<Section, String> {
    let workload =
        |is_atomic| -> Arc<dyn Workload> { Arc::new(Facebook { keys: 10_000, is_atomic }) };
    let mut all = cases(options, "no transactions", &workload(false), &SYSTEMS);
    all.extend(cases(options, "all writes are transactions", &workload(true), &SYSTEMS[1..]));
    let samples = measure("facebook", &all, options)?;
    let thesis =
        ["23,657; 94,502; 498,239", "22,088; 88,238; 466,844", "", "22,891; 91,439; 480,904", ""];
    let rows = all.iter().zip(&samples).zip(thesis).map(|((case, of), thesis)| {
        vec![
            case.name.clone(),
            of.rounds(|sample| sample.calls_per_s).shown(per_second),
            format!("{:.0}", of.rounds(|sample| sample.keys_per_s).median()),
            format!("{:.0}", of.rounds(|sample| sample.columns_per_s).median()),
            of.cpu_us().shown(us),
            of.overhead(&samples[0]).shown(percent),
            thesis.to_owned(),
        ]
    });
    let rows = rows.collect();
    for (index, name, bar) in [(3, "Eiger", 0.066), (4, "our core", 0.03)] {
        let bar = if options.quick { 0.99 } else { bar };
        let overhead = samples[index].overhead(&samples[0]);
        figures.push(Figure::barred(
            format!("{name}'s overhead against eventual, Facebook, all writes in transactions"),
            overhead.shown(percent),
            format!("at most {}", percent(bar)),
            overhead.median() <= bar,
        ));
    }
    Ok(Section {
        title: "The Facebook workload (Table 7.6)".into(),
        text: "Measured, as above, with 10,000 keys. Value sizes 16, 32 and 4,096 bytes, columns of a key 1, 2 and 128, keys of a read 1, 16 \
               and 128 at the 50th, 90th and 99th percentile; between them the logarithm is linear, which is ours: the thesis \
               names the percentiles. 0.2 % of the calls write one key."
            .into(),
        header: vec![
            "system",
            "calls",
            "keys/s",
            "columns/s",
            "processor time",
            "overhead",
            "thesis: calls, keys, columns a second",
        ],
        rows,
        plots: Vec::new(),
    })
}

/// Write transactions over several servers: Figure 7.6.
fn writes(options: &Options) -> Result<Section, String> {
    let locator = Locator::new(2, SERVERS)?;
    let partition = |key: u32| {
        let row = Key::new(mingle_geo::Kind::Map, format!("row:{key}"));
        row.partition(SERVERS).0
    };
    let mut points = Vec::new();
    let mut all = Vec::new();
    for keys in [1, 5, 10] {
        for servers in [1, 2, 4, 8] {
            points.push((keys, servers));
            for of in SYSTEMS {
                let spread = match of {
                    System::Core => Spread::new(locator, (servers, keys), Kind::Atomic, partition),
                    System::Reference(_) => {
                        let server = |key| locator.server(0, key).server();
                        Spread::new(locator, (servers, keys), Kind::Atomic, server)
                    }
                };
                let name = format!("{}, {servers} servers, {keys} keys each", of.name());
                let plan = options.plan(of, SERVERS, ACTORS / 2);
                all.push(Case { name, plan, workload: Arc::new(spread) });
            }
        }
    }
    let samples = measure("writes", &all, options)?;
    let mut rows = Vec::new();
    for ((keys, servers), of) in points.iter().zip(samples.chunks(SYSTEMS.len())) {
        let [eventual, eiger, core] = of else { continue };
        rows.push(vec![
            keys.to_string(),
            servers.to_string(),
            eventual.rounds(|sample| sample.keys_per_s).shown(per_second),
            eiger.rounds(|sample| sample.keys_per_s).shown(per_second),
            eventual.cpu_us().by(&eiger.cpu_us()).shown(ratio),
            eventual.cpu_us().by(&core.cpu_us()).shown(ratio),
        ]);
    }
    Ok(Section {
        title: "Write transactions over 1 to 8 servers (Figure 7.6)".into(),
        text: "Measured. 8 servers in each data center, 32 actors that only write, in transactions; `eventual` writes the same keys each \
               by itself. Keys have 5 columns of 128 bytes. Ratios are of processor time: 1 is as fast as `eventual`."
            .into(),
        header: vec![
            "keys at each server",
            "servers",
            "eventual, keys",
            "Eiger, keys",
            "Eiger by eventual",
            "our core by eventual",
        ],
        rows,
        plots: vec![writes_plot(&points, &samples)],
    })
}

fn writes_plot(points: &[(usize, usize)], samples: &[Samples]) -> (String, String) {
    let mut plot = Plot::new("write transactions", (1.0, 8.0), (0.0, 1.6), true);
    plot.axes("servers of a transaction", |value| format!("{value:.1}"));
    let lines =
        [(1, 1, "Eiger, 1 key each", GREEN, "4 3"), (10, 1, "Eiger, 10 keys each", GREEN, "")];
    let core =
        [(1, 2, "our core, 1 key each", RED, "4 3"), (10, 2, "our core, 10 keys each", RED, "")];
    for (keys, place, name, color, dash) in lines.into_iter().chain(core) {
        let of = points.iter().zip(samples.chunks(SYSTEMS.len()));
        let of = of.filter(|((of_keys, _), _)| *of_keys == keys);
        let line: Vec<(f64, f64)> = of
            .map(|((_, servers), of)| {
                (*servers as f64, of[0].cpu_us().by(&of[place].cpu_us()).median())
            })
            .collect();
        plot.line(name, color, &line, dash);
    }
    (
        "Throughput by that of eventual writes of the same keys, for the same processor time"
            .into(),
        plot.done(),
    )
}
