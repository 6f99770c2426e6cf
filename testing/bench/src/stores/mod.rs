//! Stores in PostgreSQL and Cassandra: the gain from mixing, and the cost of Mingle.
//!
//! Message Groups with `groups` far away and `inboxes` near, against all of it in PostgreSQL and
//! against the same written by hand with an outbox; then small transactions at PostgreSQL alone,
//! against the same statements sent by hand; appends to a log in a table of the application; and
//! transactions over one row in PostgreSQL and one in Cassandra, against two plain writes. All sides use one server
//! that the benchmark starts, in blocks that alternate, forwards and backwards.
//!
//! # Departures
//!
//! - MixT's near store is a server, Cassandra; here it is the embedded engine at a distance.

mod by_hand;
mod log;
mod mixed;
mod outbox;
mod page;
mod pair;
mod report;
pub mod servers;
mod single;

pub use mixed::write;

use std::path::PathBuf;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use mingle_store::wrap::distance::Distance;

use crate::groups::Size;
use servers::Servers;

/// The options of the measurements.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Rounds; each runs the compared sides forwards and then backwards.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each block of Message Groups that count.
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Seconds of each block before that.
    #[arg(long, default_value_t = 1.0)]
    warm_up: f64,
    /// Seconds of load of each side of a row in PostgreSQL and a row in Cassandra, before the first
    /// block: the nodes of Cassandra compile the code that they run.
    #[arg(long, default_value_t = 60.0)]
    node_warm_up: f64,
    /// Seconds of each block of small transactions that count.
    #[arg(long, default_value_t = 0.6)]
    short: f64,
    /// Seconds of each block before that.
    #[arg(long, default_value_t = 0.15)]
    short_warm_up: f64,
    /// Clients of Message Groups, each with one call at a time.
    #[arg(long, default_value_t = 32)]
    clients: usize,
    /// Round trip to PostgreSQL for Message Groups (MixT §8.1).
    #[arg(long, default_value = "85ms±10ms")]
    far: Distance,
    /// Round trip to the near store (MixT §8.1).
    #[arg(long, default_value = "1ms")]
    near: Distance,
    /// Measure only one of the four: `mixed`, `single`, `log` or `pair`.
    #[arg(long)]
    only: Option<Part>,
    /// Path of the page.
    #[arg(long, default_value = "target/stores.html")]
    page: PathBuf,
    /// Seed of the calls and of the distances.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One round of a few seconds with lenient bars: enough to see that everything runs.
    #[arg(long)]
    quick: bool,
}

/// A part of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Message Groups.
    Mixed,
    /// Small transactions.
    Single,
    /// Appends to a mapped log.
    Log,
    /// One row in PostgreSQL and one in Cassandra.
    Pair,
}

impl Options {
    fn hurried(mut self) -> Self {
        if self.quick {
            (self.rounds, self.clients) = (1, 16);
            (self.seconds, self.warm_up) = (0.4, 0.2);
            (self.short, self.short_warm_up) = (0.03, 0.01);
            self.node_warm_up = 0.6;
        }
        self
    }

    /// Enough users and groups that calls seldom meet.
    fn size(&self) -> Size {
        let groups = if self.quick { 200 } else { 2_000 };
        Size { users: groups * 10, groups, members: 8 }
    }

    /// Enough accounts that clients seldom meet.
    fn accounts(&self) -> usize {
        if self.quick { 1_000 } else { 10_000 }
    }

    fn runs(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }

    fn bars(&self) -> Bars {
        if self.quick {
            return Bars { departure: 95.0, by_hand: 0.05, cost: 10.0, pair: 0.01 };
        }
        Bars { departure: 10.0, by_hand: 0.95, cost: 1.1, pair: 0.5 }
    }
}

/// The bars.
#[derive(Clone, Copy, Debug)]
pub struct Bars {
    /// The largest departure, in percent, of the throughput ratio of mixed to all in PostgreSQL from the
    /// prediction by round trips.
    departure: f64,
    /// The least throughput of mixed, as a part of the throughput by hand.
    by_hand: f64,
    /// The longest time of a small transaction, as a multiple of the time of its data statements by
    /// hand.
    cost: f64,
    /// The least throughput of a transaction over a row in PostgreSQL and a row in Cassandra, as a part of
    /// the throughput of two plain writes.
    pair: f64,
}

/// The progress of the measurements.
pub struct Progress(ProgressBar);

impl Progress {
    fn new(options: &Options) -> Result<Self, String> {
        let blocks = |part, count| if options.runs(part) { count * options.rounds } else { 0 };
        let single = blocks(Part::Single, if options.quick { 48 } else { 80 });
        let pair = blocks(Part::Pair, 2 * pair::SIDES * pair::CLIENTS.len());
        let log = blocks(Part::Log, 2 * log::Side::ALL.len() * log::CLIENTS.len());
        let count = blocks(Part::Mixed, 6) + single + log + pair;
        let progress = ProgressBar::new(count as u64);
        let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg}");
        progress.set_style(style.map_err(|error| error.to_string())?);
        Ok(Self(progress))
    }

    fn say(&self, message: &str) {
        self.0.set_message(message.to_owned());
    }

    fn step(&self) {
        self.0.inc(1);
    }
}

/// The measurements of the parts that ran.
pub struct Outcome {
    mixed: Option<mixed::Outcome>,
    single: Option<single::Outcome>,
    log: Option<log::Outcome>,
    pair: Option<pair::Outcome>,
}

impl Outcome {
    /// The missed bars.
    fn missed(&self, bars: Bars) -> Vec<String> {
        let mut missed = Vec::new();
        if let Some(mixed) = &self.mixed {
            let departure = mixed.departure();
            if departure.is_nan() || departure.abs() > bars.departure {
                missed.push(format!(
                    "the ratio of mixed to all in PostgreSQL departs by {departure:.1} % from the predicted one, at \
                     most {} % is allowed",
                    bars.departure
                ));
            }
            for (side, measured) in mixed::Side::ALL.iter().zip(&mixed.measured) {
                if let Some(why) = &measured.why {
                    missed.push(format!(
                        "{}: {} calls failed, such as {why}",
                        side.title(),
                        measured.failed
                    ));
                }
            }
            let by_hand = mixed.by_hand.median();
            if by_hand.is_nan() || by_hand < bars.by_hand {
                missed.push(format!(
                    "mixed carries {by_hand:.2} times as many transactions as by hand, at least {} is demanded",
                    bars.by_hand
                ));
            }
        }
        for cell in self.single.iter().flat_map(|single| &single.cells) {
            let cost = cell.ratios[single::Side::Data as usize].median();
            if cost.is_nan() || cost > bars.cost {
                missed.push(format!(
                    "{} takes {cost:.2} times as long as its data statements by hand, at most {} is allowed",
                    report::name(cell),
                    bars.cost
                ));
            }
        }
        for cell in self.pair.iter().flat_map(|pair| &pair.cells) {
            let ratio = cell.ratios[pair::Side::Mingle as usize].median();
            if ratio.is_nan() || ratio < bars.pair {
                missed.push(format!(
                    "a row in PostgreSQL and one in Cassandra, clients: {}: {ratio:.2} times the throughput of two \
                     plain writes, at least {} is demanded",
                    cell.clients, bars.pair
                ));
            }
        }
        missed
    }
}

pub fn run(options: &Options) -> Result<(), String> {
    let options = &options.clone().hurried();
    if options.rounds == 0 || options.clients == 0 {
        return Err("there must be rounds and clients".into());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let outcome = runtime.block_on(measure(options))?;
    let missed = outcome.missed(options.bars());
    report::print(&outcome, options);
    if let Some(folder) = options.page.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    std::fs::write(&options.page, page::render(&outcome, options, &missed))
        .map_err(|error| format!("{}: {error}", options.page.display()))?;
    println!("\nplots: {}", options.page.display());
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n")) }
}

async fn measure(options: &Options) -> Result<Outcome, String> {
    let servers = Servers::start(options.seed).await?;
    let progress = Progress::new(options)?;
    let (mut mixed, mut single, mut log, mut pair) = (None, None, None, None);
    if options.runs(Part::Single) {
        single = Some(single::measure(options, &servers, &progress).await?);
    }
    if options.runs(Part::Log) {
        log = Some(log::measure(options, &servers, &progress).await?);
    }
    if options.runs(Part::Mixed) {
        mixed = Some(mixed::measure(options, &servers, &progress).await?);
    }
    if options.runs(Part::Pair) {
        pair = Some(pair::measure(options, &servers, &progress).await?);
    }
    progress.0.finish_and_clear();
    Ok(Outcome { mixed, single, log, pair })
}
