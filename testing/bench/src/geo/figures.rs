//! The table: each figure with its bar and the verdict.

use super::Options;
use super::catch_up::Return;
use super::client::KEYS_READ;
use super::estimate::Estimate;
use super::measure::{Load, Model, Outcome, Side, Visibility};
use super::plan::Plan;

/// One figure.
pub struct Figure {
    pub name: String,
    pub value: String,
    /// The required value, if there is one.
    pub bar: String,
    pub is_met: Option<bool>,
}

impl Figure {
    /// Creates a figure without a required value.
    pub fn plain(name: impl Into<String>, value: String) -> Self {
        Self { name: name.into(), value, bar: String::new(), is_met: None }
    }

    /// Creates a figure with a required value.
    pub fn barred(name: impl Into<String>, value: String, bar: String, is_met: bool) -> Self {
        Self { name: name.into(), value, bar, is_met: Some(is_met) }
    }

    /// Describes a missed figure in a sentence.
    pub fn missed(&self) -> String {
        format!("{}: {}, {} is demanded", self.name, self.value, self.bar)
    }
}

/// The required values.
struct Bars {
    /// Transactions a second.
    throughput: f64,
    /// Processor time of a transaction, in microseconds.
    cpu_us: f64,
    /// Reads that waited, in percent.
    waited_percent: f64,
    /// The cost of uniformity, in percent of throughput.
    uniform_percent: f64,
    /// The processor time with items or floors, by that without.
    model_ratio: f64,
    /// The fraction of their throughput that the others keep while a data center catches up.
    kept: f64,
    /// Processor time with nothing to do, in percent of a core.
    idle_percent: f64,
}

impl Bars {
    fn new(options: &Options) -> Self {
        if options.quick {
            return Self {
                throughput: 2_000.0,
                cpu_us: 100.0,
                waited_percent: 5.0,
                uniform_percent: 90.0,
                model_ratio: 4.0,
                kept: 0.05,
                idle_percent: 20.0,
            };
        }
        Self {
            throughput: 100_000.0,
            cpu_us: 20.0,
            waited_percent: 1.0,
            uniform_percent: 5.0,
            model_ratio: 1.05,
            kept: 0.9,
            idle_percent: 1.0,
        }
    }
}

/// Returns the required number of transactions per second.
pub fn demanded(options: &Options) -> f64 {
    Bars::new(options).throughput
}

/// All figures, in the order of the table.
pub fn figures(outcome: &Outcome, options: &Options) -> Vec<Figure> {
    let bars = Bars::new(options);
    let mut figures = Vec::new();
    if let [uniform, stable, synced, prepared] = &outcome.loads[..] {
        throughput(uniform, &bars, &mut figures);
        for (side, load) in
            [(Side::Stable, stable), (Side::Synced, synced), (Side::Prepared, prepared)]
        {
            let name = format!("transactions a second, {}", side.title());
            figures.push(Figure::plain(name, load.throughput.shown(thousands)));
        }
        // These are mostly a session's own transactions, just after a write, for a transaction
        // prepared before it.
        figures.push(Figure::plain(
            "reads that waited, or were refused, with two writes instead of one",
            format!("{:.2} %", waited_percent(prepared)),
        ));
        uniformity(outcome, &bars, &mut figures);
        wire(uniform, &options.plan(0), &mut figures);
    }
    for (model, ratio) in Model::ALL.into_iter().zip(&outcome.models).skip(1) {
        let upper = ratio.interval().1;
        figures.push(Figure::barred(
            format!("processor time with {}, by that without; 95 % upper bound", model.title()),
            format!("{}; {upper:.2}", ratio.shown(|value| format!("{value:.2}"))),
            format!("at most {}", bars.model_ratio),
            upper <= bars.model_ratio,
        ));
    }
    for visibility in &outcome.visibility {
        seen(visibility, &mut figures);
    }
    if !outcome.returns.is_empty() {
        caught_up(&outcome.returns, &bars, &mut figures);
    }
    if !outcome.idle_percent.mean().is_nan() {
        let idle = &outcome.idle_percent;
        figures.push(Figure::barred(
            "processor time with nothing to do, all data centers",
            idle.shown(|value| format!("{value:.2} %")),
            format!("at most {} % of a core", bars.idle_percent),
            idle.mean() <= bars.idle_percent,
        ));
    }
    figures
}

fn throughput(load: &Load, bars: &Bars, figures: &mut Vec<Figure>) {
    let total = &load.total;
    figures.push(Figure::barred(
        format!("transactions a second, {}", Side::Uniform.title()),
        load.throughput.shown(thousands),
        format!("at least {}", thousands(bars.throughput)),
        load.throughput.mean() >= bars.throughput,
    ));
    figures.push(Figure::barred(
        "processor time of a transaction, clients included",
        load.cpu_us.shown(|value| format!("{value:.2} µs")),
        format!("at most {} µs", bars.cpu_us),
        load.cpu_us.mean() <= bars.cpu_us,
    ));
    figures.push(Figure::plain(
        "cores that the machine gave meanwhile",
        load.cores.shown(|value| format!("{value:.2}")),
    ));
    let waited = waited_percent(load);
    figures.push(Figure::barred(
        "reads that waited, or were refused",
        format!("{waited:.4} %"),
        format!("at most {} %", bars.waited_percent),
        waited <= bars.waited_percent,
    ));
    figures.push(Figure::barred(
        "transactions that failed, messages that were not accepted",
        format!("{}, {}", total.failed, total.alarms),
        "none".into(),
        total.failed + total.alarms == 0,
    ));
    let us = |estimate: &Estimate| estimate.shown(thousands);
    figures.push(Figure::plain(
        "latency of a transaction under full load, half and 99 %, in µs",
        format!("{}; {}", us(&load.latency_p50_us), us(&load.latency_p99_us)),
    ));
}

fn waited_percent(load: &Load) -> f64 {
    let total = &load.total;
    (total.waited + total.refused) as f64 / total.reads.max(1) as f64 * 100.0
}

fn uniformity(outcome: &Outcome, bars: &Bars, figures: &mut Vec<Figure>) {
    let lost = |ratio: f64| (1.0 - ratio) * 100.0;
    let percent = |value: f64| format!("{value:.1} %");
    // Other load on the machine slows one side and not the other. So the processor time of a
    // transaction is judged, and the observed throughput is shown beside it.
    let cost = outcome.uniform_cpu.map(|ratio| lost(1.0 / ratio));
    figures.push(Figure::barred(
        "throughput that uniformity costs, of the same processor time (the paper: 7.97 %)",
        cost.shown(percent),
        format!("at most {} %", bars.uniform_percent),
        cost.mean() <= bars.uniform_percent,
    ));
    figures.push(Figure::plain(
        "the same, as measured with whatever else ran on the machine",
        outcome.uniform_throughput.map(lost).shown(percent),
    ));
}

/// Adds the figures of traffic between data centers, for each data center that a transaction is
/// sent to.
fn wire(load: &Load, plan: &Plan, figures: &mut Vec<Figure>) {
    let total = &load.total;
    let copies = (total.writes * (u64::from(plan.dcs) - 1)).max(1) as f64;
    let bytes = total.link_bytes as f64 / copies;
    let payload = payload(plan);
    figures.push(Figure::plain(
        "bytes of an update on a link, all that links carry",
        format!("{bytes:.1}, of which {payload:.1} are its key and value"),
    ));
    figures.push(Figure::plain(
        "metadata of an update on a link",
        format!("{:.1} bytes", bytes - payload),
    ));
    figures.push(Figure::plain(
        "metadata of a transaction, reads included, on all links",
        format!("{:.1} bytes", (bytes - payload) * copies / total.total().max(1) as f64),
    ));
    figures.push(Figure::plain(
        "bytes of an update in the logs of all data centers",
        format!("{:.0}", total.log_bytes as f64 / total.writes.max(1) as f64),
    ));
}

/// Returns the mean size of a key and a value in bytes.
fn payload(plan: &Plan) -> f64 {
    let names = (0..plan.keys).map(|index| plan.key(index).name.len());
    names.sum::<usize>() as f64 / plan.keys.max(1) as f64 + plan.value_bytes as f64
}

fn seen(visibility: &Visibility, figures: &mut Vec<Figure>) {
    let title = visibility.distance.title();
    let ms = |estimate: &Estimate| estimate.shown(|value| format!("{value:.1}"));
    for (dc, name) in ["at its data center", "at the second", "at the third"].iter().enumerate() {
        let (p50, p99) = (ms(&visibility.p50_ms[dc]), ms(&visibility.p99_ms[dc]));
        let one_way = visibility.distance.one_way_us(0, dc as u8) as f64 / 1e3;
        let away =
            if one_way > 0.0 && dc > 0 { format!(", {one_way:.1} ms away") } else { String::new() };
        figures.push(Figure::plain(
            format!("{title}: a write is seen {name}{away}, half and 99 %, in ms"),
            format!("{p50}; {p99}"),
        ));
    }
    figures.push(Figure::plain(
        format!("{title}: transactions a second meanwhile"),
        visibility.throughput.shown(thousands),
    ));
}

fn caught_up(returns: &[Return], bars: &Bars, figures: &mut Vec<Figure>) {
    let of = |value: fn(&Return) -> f64| {
        let mut estimate = Estimate::default();
        for back in returns {
            estimate.push(value(back));
        }
        estimate
    };
    let kept = of(Return::kept);
    figures.push(Figure::barred(
        "throughput that others keep while one that was away an hour catches up",
        kept.shown(|value| format!("{value:.2}")),
        format!("at least {}", bars.kept),
        kept.mean() >= bars.kept,
    ));
    figures.push(Figure::plain(
        "processor time for each of their transactions meanwhile, by that before and after",
        of(|back| back.cpu_ratio).shown(|value| format!("{value:.2}")),
    ));
    figures.push(Figure::plain(
        "throughput that they keep, by what they had while it was away",
        of(|back| back.during / back.away).shown(|value| format!("{value:.2}")),
    ));
    figures.push(Figure::plain(
        "until it has caught up",
        of(|back| back.seconds).shown(|value| format!("{value:.1} s")),
    ));
    let transfers: Vec<String> = returns.iter().map(|back| back.transfers.to_string()).collect();
    figures.push(Figure::plain("partitions whose state was transferred", transfers.join(", ")));
    let differing: usize = returns.iter().map(|back| back.differing).sum();
    figures.push(Figure::barred(
        "items that were not the same everywhere in the end",
        differing.to_string(),
        "none".into(),
        differing == 0,
    ));
}

/// Formats a number with commas between thousands.
pub fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut shown = String::new();
    for (index, digit) in digits.chars().enumerate() {
        let left = digits.len() - index;
        if index > 0 && left % 3 == 0 && !shown.ends_with('-') {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Describes the measurement in a few sentences.
pub fn setting(options: &Options) -> String {
    let plan = options.plan(0);
    format!(
        "{dcs} data centers of {partitions} partitions in one process on {threads} threads; {clients} clients at each, each a \
         session with one transaction at a time; {reads} % of the transactions read {KEYS_READ} keys, {writes} % read \
         {KEYS_READ} and write one; {keys} keys with values of {bytes} bytes. {rounds} rounds, forwards and backwards, blocks of \
         {seconds} s after {warm_up} s; means of rounds with 95 % confidence; seed {seed}.",
        dcs = plan.dcs,
        partitions = plan.partitions,
        threads = plan.threads,
        clients = plan.clients,
        reads = 100 - plan.writes_percent,
        writes = plan.writes_percent,
        keys = thousands(plan.keys as f64),
        bytes = plan.value_bytes,
        rounds = options.rounds,
        seconds = options.seconds,
        warm_up = options.warm_up,
        seed = options.seed,
    )
}

pub fn print(figures: &[Figure], options: &Options) {
    println!("\n{}\n", setting(options));
    for figure in figures {
        let met = match figure.is_met {
            None => "",
            Some(true) => "met",
            Some(false) => "MISSED",
        };
        println!("{:<84}{:<34}{:<26}{met}", figure.name, figure.value, figure.bar);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_marked() {
        for (number, shown) in
            [(0.0, "0"), (999.4, "999"), (1_000.0, "1,000"), (-123_456.0, "-123,456")]
        {
            assert_eq!(thousands(number), shown);
        }
    }
}
