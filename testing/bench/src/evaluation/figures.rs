//! The table: each figure with its bar and the verdict.

use std::fmt::Write as _;

use mingle_geo::Baseline;

use super::Options;
use super::calibrate::{Cost, cost_clients};
use super::curve::{Curve, Mix, Outcome};
use super::tally::{SLICE_US, Tally};
use crate::geo::{Distance, Figure, thousands};

/// The required values: the paper's ratios (§8.1), and the design's promises.
struct Bars {
    /// The required ratios of throughput to that of `RedBlue` and of `Strong`.
    over_red_blue: f64,
    over_strong: f64,
    /// The required ratio of `Strong`'s average latency to that of the full system.
    latency: f64,
    /// The upper bound of the median strong commit, relative to the time that the distance
    /// requires.
    commit: f64,
}

impl Bars {
    fn new(options: &Options) -> Self {
        if options.quick {
            // With few partitions, a central service holds back little.
            return Self { over_red_blue: 0.3, over_strong: 1.0, latency: 2.0, commit: 20.0 };
        }
        Self { over_red_blue: 1.72, over_strong: 2.83, latency: 7.0, commit: 1.15 }
    }
}

/// Returns all figures in the order of the table.
pub fn figures(outcome: &Outcome, options: &Options) -> Vec<Figure> {
    let bars = Bars::new(options);
    let mut figures = Vec::new();
    for cost in &outcome.costs {
        let name = format!("processor time of a transaction, measured: {}", cost.system.name());
        let value = format!("{:.1} µs (at most {:.1})", cost.least_us(), cost.most_us());
        figures.push(Figure::plain(name, value));
    }
    let of = |system| outcome.site.iter().find(|curve| curve.system == system);
    if let (Some(full), Some(strong), Some(red_blue), Some(causal)) =
        (of(Baseline::UniStore), of(Baseline::Strong), of(Baseline::RedBlue), of(Baseline::Causal))
    {
        throughput(full, strong, red_blue, causal, &bars, &mut figures);
        latency(full, strong, red_blue, &bars, &mut figures);
    }
    for (mix, curve) in &outcome.micro {
        figures.push(micro(mix, curve));
    }
    if let Some(loss) = &outcome.loss {
        let first = loss.first_strong_us;
        let shown = first.map_or("none".into(), |us| format!("{:.2} s", us as f64 / 1e6));
        figures.push(Figure::plain(
            "first commit of a strong transaction that began after the leader's data center was lost",
            shown,
        ));
    }
    if let Some(contention) = &outcome.contention {
        let least = least_of_a_second(contention, &|slice| slice[0] + slice[1]);
        figures.push(Figure::barred(
            "20 % contention: commits in the worst of six seconds",
            thousands(least as f64),
            "above 0".into(),
            least > 0,
        ));
        let strong = least_of_a_second(contention, &|slice| slice[1]);
        figures.push(Figure::barred(
            "of them strong ones",
            thousands(strong as f64),
            "above 0".into(),
            strong > 0,
        ));
        let aborted = format!("{:.2} %", contention.abort_percent());
        figures.push(Figure::plain("strong transactions aborted there", aborted));
    }
    figures
}

/// Returns the value of the worst second.
pub fn least_of_a_second(tally: &Tally, of: &dyn Fn(&[u64; 2]) -> u64) -> u64 {
    let slices = (1_000_000 / SLICE_US) as usize;
    let seconds = tally.slices.chunks_exact(slices);
    seconds.map(|second| second.iter().map(of).sum::<u64>()).min().unwrap_or(0)
}

fn ratio(name: &str, value: f64, least: f64) -> Figure {
    let (shown, bar) = (format!("{value:.2}"), format!("at least {least}"));
    Figure::barred(name, shown, bar, value >= least)
}

fn throughput(
    full: &Curve,
    strong: &Curve,
    red_blue: &Curve,
    causal: &Curve,
    bars: &Bars,
    figures: &mut Vec<Figure>,
) {
    let peak = |curve: &Curve| curve.peak().tally.throughput();
    figures.push(ratio(
        "RUBiS: peak throughput by that of RedBlue",
        peak(full) / peak(red_blue),
        bars.over_red_blue,
    ));
    figures.push(ratio(
        "RUBiS: peak throughput by that of Strong",
        peak(full) / peak(strong),
        bars.over_strong,
    ));
    // Causal need not be driven to its limit: the processor time of a transaction on all cores says
    // more.
    let core = |curve: &Curve| curve.peak().tally.core_us();
    figures.push(Figure::plain(
        "RUBiS: processor time of a transaction of Causal by that of the full system (the paper: 0.55)",
        format!("{:.2}", core(causal) / core(full)),
    ));
    for curve in [strong, red_blue] {
        let (_, busy) = curve.peak().tally.busiest();
        let name = format!("RUBiS: busiest core of {} at its peak", curve.system.name());
        figures.push(Figure::plain(name, format!("{:.0} %", busy * 100.0)));
    }
}

fn latency(full: &Curve, strong: &Curve, red_blue: &Curve, bars: &Bars, figures: &mut Vec<Figure>) {
    let mean = |curve: &Curve| curve.calm().tally.latency_ms();
    figures.push(ratio(
        "RUBiS: average latency of Strong by that of the full system, at the lowest load",
        mean(strong) / mean(full),
        bars.latency,
    ));
    let tally = &full.calm().tally;
    for (dc, commits) in tally.commit_us.iter().enumerate() {
        let half_ms = commits.value_at_quantile(0.5) as f64 / 1e3;
        let promised_ms = promised_us(dc as u8) as f64 / 1e3;
        figures.push(Figure::barred(
            format!("RUBiS: half of the strong commits, {}", SITES[dc]),
            format!("{half_ms:.1} ms, {:.2} of the distance", half_ms / promised_ms),
            format!("at most {} of {promised_ms:.0} ms", bars.commit),
            half_ms <= promised_ms * bars.commit,
        ));
    }
    let aborted = [full, red_blue, strong].map(|curve| {
        let (calm, peak) = (&curve.calm().tally, &curve.peak().tally);
        let name = curve.system.name();
        format!("{name} {:.3} %, {:.2} %", calm.abort_percent(), peak.abort_percent())
    });
    let name = "RUBiS: strong transactions aborted, at the lowest load and at the peak";
    figures.push(Figure::plain(name, aborted.join("; ")));
}

/// The locations of the data centers.
pub const SITES: [&str; 3] = ["Virginia (leader)", "California", "Frankfurt"];

/// Returns the time that the design promises for a strong commit: one round trip to the leader or,
/// at the leader, to the nearest majority.
fn promised_us(dc: u8) -> u64 {
    let distance = |to: u8| 2 * Distance::Continents.one_way_us(0, to);
    if dc == 0 { distance(1).min(distance(2)) } else { distance(dc) }
}

fn micro(mix: &Mix, curve: &Curve) -> Figure {
    let Mix { strong, updates, contention } = mix;
    let peak = &curve.peak().tally;
    let contention = match contention {
        0 => String::new(),
        percent => format!(", {percent} % of them on one partition"),
    };
    Figure::plain(
        format!(
            "microbenchmark, {}: {updates} % updates, {strong} % strong{contention}",
            curve.system.name()
        ),
        format!("{} tx/s, {:.1} ms", thousands(peak.throughput()), peak.latency_ms()),
    )
}

/// Formats the processor time of a transaction in all systems as a table.
pub fn costs(costs: &[Cost], options: &Options) -> String {
    let clients = 3 * cost_clients(options);
    let mut text = format!(
        "Measured: processor time of a transaction at all replicas, what they do whatever the load is \
         included; {} clients of the auction site; the least of {} rounds, and the most.\n\n",
        thousands(clients as f64),
        costs.first().map_or(0, |cost| cost.rounds_us.len())
    );
    let full = costs.iter().find(|cost| cost.system == Baseline::UniStore);
    let _ = writeln!(text, "{:<10} {:>10} {:>10} {:>14}", "", "µs", "at most", "by UniStore's");
    for cost in costs {
        let by = full.map_or(1.0, |full| cost.least_us() / full.least_us());
        let (name, least, most) = (cost.system.name(), cost.least_us(), cost.most_us());
        let _ = writeln!(text, "{name:<10} {least:>10.1} {most:>10.1} {by:>14.2}");
    }
    text
}

/// Prints the curves and the table.
pub fn print(outcome: &Outcome, figures: &[Figure], options: &Options) {
    if !outcome.costs.is_empty() {
        println!("\n{}", costs(&outcome.costs, options));
    }
    println!("\n{}\n", setting(options));
    println!(
        "{:<10} {:>8} {:>10} {:>10} {:>10} {:>9} {:>8} {:>9} {:>10}",
        "RUBiS",
        "clients",
        "tx/s",
        "mean ms",
        "causal ms",
        "strong ms",
        "aborted",
        "busiest",
        "model µs"
    );
    for curve in &outcome.site {
        for point in &curve.points {
            let tally = &point.tally;
            let strong = tally.strong_us.iter().map(|each| each.mean() * each.len() as f64);
            let strong = strong.sum::<f64>() / tally.strong.max(1) as f64 / 1e3;
            println!(
                "{:<10} {:>8} {:>10} {:>10.2} {:>10.2} {:>9.1} {:>7.3}% {:>8.0}% {:>10.1}",
                curve.system.name(),
                point.clients * 3,
                thousands(tally.throughput()),
                tally.latency_ms(),
                tally.causal_us.mean() / 1e3,
                strong,
                tally.abort_percent(),
                tally.busiest().1 * 100.0,
                tally.core_us() / options.slower,
            );
        }
    }
    println!();
    for figure in figures {
        let met = match figure.is_met {
            None => "",
            Some(true) => "met",
            Some(false) => "MISSED",
        };
        println!("{:<95} {:>28}  {:<22} {met}", figure.name, figure.value, figure.bar);
    }
}

/// Describes the setting of the run in a sentence.
pub fn setting(options: &Options) -> String {
    format!(
        "Modelled: three data centers of {} partitions, a simulated core each, {} times slower than this \
         machine's; {} items, {} users, clients that think {} ms. Measured: the service times.",
        options.partitions, options.slower, options.items, options.users, options.think_ms
    )
}
