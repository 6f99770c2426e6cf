//! The tables: throughput and ratios, and the additions of tracking to a call.

use super::block::{STORES, Tally};
use super::workload::{READS, REDRAWS};
use super::{Options, Point, Series};

/// Returns the used share of all processor time, in percent.
pub fn cpu_percent(tally: &Tally) -> f64 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    tally.cpu_seconds / tally.seconds / cores as f64 * 100.0
}

/// The additions of tracking to a call, at one store.
pub struct Added {
    /// Round trips that the caller waits for.
    pub awaited: f64,
    /// All round trips, those of cleaning up included.
    pub round_trips: f64,
    /// Reads and writes.
    pub operations: f64,
}

/// Returns the additions of tracking to a call at each store: the difference between two tallies.
pub fn added(off: &Tally, on: &Tally) -> [Added; STORES.len()] {
    std::array::from_fn(|at| {
        let (before, after) = (&off.stores[at], &on.stores[at]);
        let more = |before: u64, after: u64| on.per_call(after) - off.per_call(before);
        Added {
            awaited: more(before.awaited, after.awaited),
            round_trips: more(before.round_trips, after.round_trips),
            operations: more(before.operations, after.operations),
        }
    })
}

/// Returns a count per 1,000 calls.
pub fn per_thousand(tally: &Tally, count: u64) -> f64 {
    tally.per_call(count) * 1e3
}

/// Returns the milliseconds that 1,000 calls wait for other transactions.
pub fn waited_ms(tally: &Tally) -> f64 {
    tally.waited.as_secs_f64() * 1e6 / tally.calls.max(1) as f64
}

pub fn print(points: &[Point], options: &Options) {
    println!(
        "\n{} clients at {} servers, {READS} % reads; a round trip takes {} to the linearizable store, {} to the \
         causal one, an update {} to its other replicas.\n\
         Before {REDRAWS} % of its calls a client draws anew whether it is causal; the first call after it has \
         gone over visits both stores.\n\
         {} rounds, forwards and backwards, blocks of {} s.",
        options.clients,
        options.servers,
        options.linearizable,
        options.causal,
        options.delay,
        options.rounds,
        options.seconds,
    );
    println!("\n{} counters at each store\n", options.counters);
    print_ratios(points, Series::Untracked, Series::Tracked);
    println!();
    print_costs(points, Series::Untracked, Series::Tracked);
    if options.plain {
        return;
    }
    println!("\n{} counters at each store\n", options.few);
    print_ratios(points, Series::FewUntracked, Series::Few);
    println!();
    print_costs(points, Series::FewUntracked, Series::Few);
    println!();
    for series in [Series::SomeLate, Series::AllLate] {
        print!("{}:", series.title());
        for point in points {
            let (low, high) = point.spread(series);
            print!("  {} % {:.3} ({low:.3} to {high:.3})", point.share, point.ratio(series));
        }
        println!();
    }
}

fn print_ratios(points: &[Point], off: Series, on: Series) {
    print!("{:>7}{:>8}{:>12}{:>12}", "causal", "both", "untracked", "tracked");
    println!("{:>8}{:>18}{:>7}{:>13}", "ratio", "rounds", "bar", "CPU");
    for point in points {
        let (before, after) = (point.tally(off), point.tally(on));
        let (low, high) = point.spread(on);
        let ratio = point.ratio(on);
        println!(
            "{:>5} %{:>6.1} %{:>10.0}/s{:>10.0}/s{ratio:>8.3}{:>18}{:>7.2}{}{:>12}",
            point.share,
            after.per_call(after.both) * 100.0,
            before.throughput(),
            after.throughput(),
            format!("{low:.3} to {high:.3}"),
            point.bar,
            if ratio >= point.bar { " " } else { "!" },
            format!("{:.0}, {:.0} %", cpu_percent(before), cpu_percent(after)),
        );
    }
}

fn print_costs(points: &[Point], off: Series, on: Series) {
    println!(
        "added to a call at each store: round trips waited for, all of them (with cleaning up), reads and writes;\n\
         of a thousand calls: phases tried again, commits refused for witness rows, replicas behind, checks late or \
         not, ms waited"
    );
    print!("{:>7}", "causal");
    for store in STORES {
        print!("{store:>9}{:>8}{:>8}", "all", "ops");
    }
    println!("{:>8}{:>9}{:>8}{:>8}{:>8}", "again", "refused", "behind", "checks", "waited");
    for point in points {
        print!("{:>5} %", point.share);
        let on = point.tally(on);
        for added in added(point.tally(off), on) {
            print!("{:>9.3}{:>8.3}{:>8.3}", added.awaited, added.round_trips, added.operations);
        }
        let [far, near] = &on.stores;
        println!(
            "{:>8.1}{:>9.1}{:>8.1}{:>8.1}{:>8.1}",
            per_thousand(on, on.again),
            per_thousand(on, far.witnessed + near.witnessed),
            per_thousand(on, near.behind),
            per_thousand(on, near.checks),
            waited_ms(on),
        );
    }
}
