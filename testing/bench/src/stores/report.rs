//! The tables: ratios, predictions by round trips, and the statements sent.

use super::mixed::{self, Side};
use super::pair;
use super::single::{self, Cell, TRANSACTIONS};
use super::{Options, Outcome, mixed::Outcome as Mixed, single::Outcome as Single};
use super::{log, log::Outcome as Log};
use crate::groups::MIX;
use crate::predict::PAPER_RATIO;

/// The name of a cell.
pub fn name(cell: &Cell) -> String {
    let (clients, disk) = (cell.clients, disk(cell));
    let plural = if clients == 1 { "" } else { "s" };
    format!("{}, {clients} client{plural}{disk}", TRANSACTIONS[cell.transaction].1)
}

fn disk(cell: &Cell) -> &'static str {
    if cell.is_durable { "" } else { ", not waiting for the disk" }
}

pub fn print(outcome: &Outcome, options: &Options) {
    if let Some(mixed) = &outcome.mixed {
        print_mixed(mixed, options);
    }
    if let Some(single) = &outcome.single {
        print_single(single, options);
    }
    if let Some(log) = &outcome.log {
        print_log(log, options);
    }
    if let Some(pair) = &outcome.pair {
        print_pair(pair, options);
    }
}

fn print_log(log: &Log, options: &Options) {
    println!(
        "\nAppends to a log in a table that was there before, by those of all clients to one log; {} rounds, forwards \
         and backwards, blocks of {} s.\n",
        options.rounds, options.short
    );
    println!("{:<12}{:>26}{:>26}", "", "a log for each client", "INSERT by hand");
    for cell in &log.cells {
        let plural = if cell.clients == 1 { "" } else { "s" };
        let ratio = |side: log::Side| cell.ratios[side as usize].as_ratio();
        let clients = format!("{} client{plural}", cell.clients);
        println!("{clients:<12}{:>26}{:>26}", ratio(log::Side::Own), ratio(log::Side::Plain));
    }
}

fn print_pair(pair: &pair::Outcome, options: &Options) {
    println!(
        "\nA read-modify-write of one row in PostgreSQL and one in Cassandra, 1,000 of each, without a distance, by two \
         plain writes; {} rounds, forwards and backwards, blocks of {} s.\n",
        options.rounds, options.seconds
    );
    println!("{:<42}{:>16}{:>14}{:>14}{:>26}", "", "throughput", "p50", "p99", "ratio");
    for cell in &pair.cells {
        let plural = if cell.clients == 1 { "" } else { "s" };
        for (side, measured) in pair::Side::ALL.iter().zip(&cell.measured) {
            let name = format!("{}, {} client{plural}", side.title(), cell.clients);
            let ratio = match side {
                pair::Side::Plain => String::new(),
                side => cell.ratios[*side as usize].as_ratio(),
            };
            println!(
                "{name:<42}{:>14.0}/s{:>11.1} ms{:>11.1} ms{ratio:>26}",
                measured.throughput(),
                measured.quantile_ms(0.5),
                measured.quantile_ms(0.99)
            );
        }
    }
}

fn print_mixed(mixed: &Mixed, options: &Options) {
    println!(
        "\nMessage Groups, {} clients; a round trip takes {} to PostgreSQL, {} to the near store; {} rounds, \
         forwards and backwards, blocks of {} s.\n",
        options.clients, options.far, options.near, options.rounds, options.seconds
    );
    let row = |name: &str, cell: &dyn Fn(Side) -> String| {
        print!("{name:<30}");
        for side in Side::ALL {
            print!("{:>20}", cell(side));
        }
        println!();
    };
    row("", &|side| side.title().to_owned());
    let of = |side: Side| &mixed.measured[side as usize];
    row("throughput", &|side| format!("{:.0}/s", of(side).throughput()));
    row("mean latency", &|side| format!("{:.1} ms", of(side).mean_ms()));
    for (index, (name, share)) in MIX.iter().enumerate() {
        row(&format!("{name} ({share} %) p50"), &|side| {
            format!("{:.1} ms", of(side).quantile_ms(index, 0.5))
        });
        row("  as explain counts", &|side| predicted(&mixed.predicted, side, index));
        row("  p99", &|side| format!("{:.1} ms", of(side).quantile_ms(index, 0.99)));
    }
    row("tried again, of 1,000 calls", &|side| format!("{:.0}", of(side).again_per_thousand()));
    row("failed calls", &|side| of(side).failed.to_string());
    println!(
        "\nmixed by all in PostgreSQL: {}; round trips as explain counts them predict {:.2} ({:+.1} %); the paper measured {PAPER_RATIO} \
         on its own stores\nmixed by mixed by hand: {}",
        mixed.by_all_far.as_ratio(),
        mixed.predicted_ratio(),
        mixed.departure(),
        mixed.by_hand.as_ratio(),
    );
}

fn predicted(predicted: &[Vec<f64>; 2], side: mixed::Side, index: usize) -> String {
    predicted.get(side as usize).map_or_else(String::new, |ms| format!("{:.0} ms", ms[index]))
}

fn print_single(single: &Single, options: &Options) {
    println!(
        "\nSmall transactions at PostgreSQL without a distance; {} rounds, forwards and backwards, blocks of {} s.\n\
         Time of Mingle by that of the same by hand: all statements that the adapter sends, in as many round trips; \
         those for data alone, in as few as it takes; what one would write for a table of one's own.\n",
        options.rounds, options.short
    );
    println!(
        "{:<66}{:>24}{:>24}{:>24}",
        "", "all statements", "data statements", "a table of one's own"
    );
    for cell in &single.cells {
        let ratio = |side: single::Side| cell.ratios[side as usize].as_ratio();
        println!(
            "{:<66}{:>24}{:>24}{:>24}",
            name(cell),
            ratio(single::Side::Replayed),
            ratio(single::Side::Data),
            ratio(single::Side::Plain)
        );
    }
    println!("\nWhat is sent: statements in round trips, BEGIN and COMMIT included.\n");
    for ((_, what), sent) in TRANSACTIONS.iter().zip(&single.sent) {
        print!("{what:<32}");
        for side in single::Side::ALL {
            let trips = &sent[side as usize];
            print!("{}: {}   ", side.title(), count(trips));
        }
        println!();
    }
}

/// The number of statements, and of round trips.
pub fn count(trips: &[mingle_proxy::statements::Trip]) -> String {
    let statements: usize = trips.iter().map(Vec::len).sum();
    format!("{statements} in {}", trips.len())
}
