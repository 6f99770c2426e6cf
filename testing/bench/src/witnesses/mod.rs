//! The cost of tracking: throughput with witnesses and sessions, relative to throughput without
//! (MixT §8.3, Figure 15).
//!
//! The counter benchmark: clients are causal or linearizable for a while, and the first call after
//! a change visits both stores. Without tracking the runtime is the same, but writes and requests
//! no witnesses ([`mingle_runtime::Settings`]). Both sides make the same calls, in alternating
//! blocks of one process.
//!
//! # Departures
//!
//! - Clients wait for each call before they make the next one; the paper's draw pauses.
//! - The paper forces a witness into each transaction after a change of level. Here such a
//!   transaction writes or reads at both stores and leaves the rows of the protocol; the client's
//!   session tracks the following ones.
//! - Checks of commit witnesses are rare over the paper's 400,000 counters: only a client that has
//!   met a witness row asks. So the effect of late answers is measured over few counters.

mod block;
mod page;
mod probe;
mod report;
mod workload;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use mingle::Binding;
use mingle_store::wrap::distance::Distance;

use crate::rounds::Rounds;
use block::{Block, STORES, Tally};
use probe::Lateness;
use workload::Zipf;

/// The size of the measurements.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Rounds; each runs the compared series forwards and then backwards.
    #[arg(long, default_value_t = 4)]
    rounds: usize,
    /// Seconds of each block that count.
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// Seconds of warm-up of each block.
    #[arg(long, default_value_t = 0.8)]
    warm_up: f64,
    /// Clients, each with one call at a time and one session for all its calls.
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Counters at each store (MixT §8.2).
    #[arg(long, default_value_t = 400_000)]
    counters: usize,
    /// Counters at each store where they are few, so that clients meet each other's witness rows.
    #[arg(long, default_value_t = 1_000)]
    few: usize,
    /// Application servers, each near a replica of the causal store.
    #[arg(long, default_value_t = 4)]
    servers: usize,
    /// Causal calls, in percent.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 20, 40, 60, 80, 90, 100])]
    shares: Vec<usize>,
    /// Round trip to the linearizable store (MixT §8.1).
    #[arg(long, default_value = "85ms±10ms")]
    linearizable: Distance,
    /// Round trip to the causal store (MixT §8.1).
    #[arg(long, default_value = "1ms")]
    causal: Distance,
    /// The delay until an update has reached the other replicas of the causal store.
    #[arg(long, default_value = "40ms±10ms")]
    delay: Distance,
    /// Without the series over few counters.
    #[arg(long)]
    plain: bool,
    /// The path of the page.
    #[arg(long, default_value = "target/witnesses.html")]
    page: PathBuf,
    /// Seed of the calls.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Half a minute at two shares, with lenient bars: enough to notice a collapse.
    #[arg(long)]
    quick: bool,
}

impl Options {
    fn hurried(mut self) -> Self {
        if self.quick {
            (self.rounds, self.seconds, self.warm_up) = (2, 1.5, 0.75);
            (self.shares, self.plain) = (vec![60, 90], true);
        }
        self
    }

    fn block_ms(&self) -> u64 {
        (self.seconds * 1e3) as u64
    }

    fn warm_up_ms(&self) -> u64 {
        (self.warm_up * 1e3) as u64
    }

    /// Returns the series to run, in groups.
    fn groups(&self) -> &'static [&'static [Series]] {
        if self.plain { &GROUPS[..1] } else { &GROUPS }
    }

    /// Returns the lower bound of throughput with tracking, as a fraction of that without.
    fn bar(&self, share: usize) -> f64 {
        match share {
            _ if self.quick => 0.85,
            0..=60 => 0.97,
            _ => 0.93,
        }
    }

    fn binding(&self) -> Result<Binding, String> {
        let Self { linearizable, causal, delay, servers, .. } = self;
        let [far, near] = STORES;
        let text = format!(
            "[stores.{far}]\ndistance = \"{linearizable}\"\n\
             [stores.{near}]\ndistance = \"{causal}\"\nreplicas = {servers}\ndelay = \"{delay}\"\n"
        );
        Binding::parse(&text).map_err(|error| error.to_string())
    }
}

/// The compared series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// Nothing is tracked.
    Untracked,
    /// Everything is tracked.
    Tracked,
    /// Nothing is tracked, and there are few counters.
    FewUntracked,
    /// Everything is tracked, and there are few counters.
    Few,
    /// Like `Few`, and one in a hundred questions for commit witnesses at the causal store is
    /// answered late.
    SomeLate,
    /// Like `Few`, and all of these questions are answered late.
    AllLate,
}

/// The groups of series; the first of each is the base of the comparison.
const GROUPS: [&[Series]; 2] = [
    &[Series::Untracked, Series::Tracked],
    &[Series::FewUntracked, Series::Few, Series::SomeLate, Series::AllLate],
];

impl Series {
    const COUNT: usize = 6;

    pub fn title(self) -> &'static str {
        match self {
            Self::Untracked | Self::FewUntracked => "without tracking",
            Self::Tracked | Self::Few => "with tracking",
            Self::SomeLate => "1 % of checks 30 ms late",
            Self::AllLate => "all checks 30 ms late",
        }
    }

    fn tracks(self) -> bool {
        !matches!(self, Self::Untracked | Self::FewUntracked)
    }

    fn has_many(self) -> bool {
        matches!(self, Self::Untracked | Self::Tracked)
    }

    fn lateness(self) -> Lateness {
        let percent = match self {
            Self::SomeLate => 1,
            Self::AllLate => 100,
            _ => 0,
        };
        Lateness { percent, by: Duration::from_millis(30) }
    }
}

/// The measurements at one share.
pub struct Point {
    /// Causal calls, in percent.
    pub share: usize,
    tallies: [Tally; Series::COUNT],
    ratios: [Rounds; Series::COUNT],
    /// The lower bound of the ratio.
    pub bar: f64,
}

impl Point {
    fn new(share: usize, bar: f64) -> Self {
        Self { share, tallies: Default::default(), ratios: Default::default(), bar }
    }

    /// Returns the counts of all rounds.
    pub fn tally(&self, series: Series) -> &Tally {
        &self.tallies[series as usize]
    }

    /// Returns the ratio of throughput to that without tracking: the median of the rounds.
    pub fn ratio(&self, series: Series) -> f64 {
        self.ratios[series as usize].median()
    }

    /// Returns the lowest and the highest ratio of a round.
    pub fn spread(&self, series: Series) -> (f64, f64) {
        self.ratios[series as usize].interval()
    }

    /// True if the cost of tracking stays within the bound.
    pub fn is_met(&self) -> bool {
        self.ratio(Series::Tracked) >= self.bar
    }

    fn add(&mut self, group: &[Series], round: &[Tally]) {
        for (series, tally) in group.iter().zip(round) {
            self.tallies[*series as usize] += *tally;
            self.ratios[*series as usize].push(tally.throughput() / round[0].throughput());
        }
    }
}

pub fn run(options: &Options) -> Result<(), String> {
    let options = &options.clone().hurried();
    if options.shares.iter().any(|share| *share > 100)
        || options.servers == 0
        || options.counters.min(options.few) == 0
    {
        return Err("shares are percents, and there must be servers and counters".into());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let points = runtime.block_on(measure(options))?;
    report::print(&points, options);
    if let Some(folder) = options.page.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    std::fs::write(&options.page, page::render(&points, options))
        .map_err(|error| format!("{}: {error}", options.page.display()))?;
    println!("\nplots: {}", options.page.display());
    let missed = points.iter().filter(|point| !point.is_met());
    let missed: Vec<String> = missed.map(|point| format!("{} %", point.share)).collect();
    if missed.is_empty() {
        return Ok(());
    }
    Err(format!("tracking costs more than it may at {} causal", missed.join(", ")))
}

/// Measures all shares in each round, so that a disturbance from outside does not hit one share
/// alone.
async fn measure(options: &Options) -> Result<Vec<Point>, String> {
    let program = mingle::compile(workload::PROGRAM)?;
    let (many, few) = (Arc::new(Zipf::new(options.counters)), Arc::new(Zipf::new(options.few)));
    let mut points: Vec<Point> =
        options.shares.iter().map(|share| Point::new(*share, options.bar(*share))).collect();
    let count: usize = options.groups().iter().map(|group| group.len() * 2).sum();
    let progress = ProgressBar::new((options.rounds * points.len() * count) as u64);
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {eta} {msg}")
        .map_err(|error| error.to_string())?;
    progress.set_style(style);
    for round in 0..options.rounds {
        for point in &mut points {
            for group in options.groups() {
                let mut tallies = vec![Tally::default(); group.len()];
                let there_and_back = (0..group.len()).chain((0..group.len()).rev());
                for (place, index) in there_and_back.enumerate() {
                    let (series, share) = (group[index], point.share);
                    progress.set_message(format!("{share} % {}", series.title()));
                    let number = (round * 2 + place / group.len()) as u64;
                    let zipf = if series.has_many() { &many } else { &few };
                    let block = Block { options, program: &program, zipf, series, share, number };
                    tallies[index] += block.run().await?;
                    progress.inc(1);
                }
                point.add(group, &tallies);
            }
        }
    }
    progress.finish_and_clear();
    Ok(points)
}
