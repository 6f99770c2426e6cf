//! The demonstration: what a crash amid writes to two stores leaves, and then Message Groups at MixT's
//! distances, mixed against all linearizable.

mod back;
mod kill;
mod kill_page;
mod load;
mod page;
mod reasons;
pub mod shop;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use mingle::{Binding, Database};
use mingle_lang::Program;
use mingle_lang::explain::{Explained, ExplainedPhase};
use mingle_store::wrap::distance::{Distance, parse_duration};

use crate::groups::{self, MIX, Size};
use crate::measured::Measured;
use crate::predict::{self, PAPER_RATIO};
use load::Load;
use shop::Left;

/// The options of the demonstration.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Seconds for each of the two sides: 20 if nothing is said. With --kill, seconds of the whole run:
    /// twice as long as --at.
    #[arg(long)]
    seconds: Option<u64>,
    /// Clients, each with one call at a time.
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Round trip to a linearizable store (MixT §8.1).
    #[arg(long, default_value = "85ms±10ms")]
    linearizable: Distance,
    /// Round trip to a causal store (MixT §8.1).
    #[arg(long, default_value = "1ms")]
    causal: Distance,
    /// How often the process of each shop is killed that writes to two stores. 0 leaves this part out.
    #[arg(long, default_value_t = 8)]
    kills: u32,
    /// The path of the page.
    #[arg(long, default_value = "target/demo.html")]
    page: PathBuf,
    /// Seed of the calls.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Fail if the measured ratio departs from the predicted one by more than this many percent.
    #[arg(long)]
    within: Option<f64>,
    /// Run over three data centers, oslo, rome and lima, and stop this one during the run, to show
    /// the availability of the rest and the fate of its clients.
    #[arg(long)]
    kill: Option<String>,
    /// When to stop it: 20s if nothing is said.
    #[arg(long, requires = "kill", value_parser = parse_duration)]
    at: Option<Duration>,
    /// When to give it up for good and admit it again, with empty disks: not at all if nothing is said.
    #[arg(long, requires = "kill", value_parser = parse_duration)]
    back: Option<Duration>,
}

impl Options {
    fn side_seconds(&self) -> u64 {
        self.seconds.unwrap_or(20)
    }
}

/// Enough users and groups that calls seldom conflict.
const SIZE: Size = Size { users: 20_000, groups: 2_000, members: 8 };

/// One side of the comparison.
pub struct Side {
    pub title: &'static str,
    pub phases: Vec<Explained>,
    pub measured: Measured,
    /// Mean latency that the round-trip counts predict for the calls that were made, in ms.
    pub predicted_ms: f64,
    /// The same for each transaction.
    pub predicted_by_transaction: Vec<f64>,
}

impl Side {
    fn mean_ms(&self) -> f64 {
        self.measured.mean_ms()
    }
}

pub fn run(options: &Options) -> Result<(), String> {
    if let Some(killed) = &options.kill {
        return kill::run(killed, options);
    }
    let shops = if options.kills > 0 { Some(killed_shops(options)?) } else { None };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let (mixed, linearizable) = runtime.block_on(async {
        let mixed = side("mixed", groups::PROGRAM, options).await?;
        let linearizable = side("all linearizable", &groups::all_linearizable(), options).await?;
        Ok::<_, String>((mixed, linearizable))
    })?;
    report(&mixed, &linearizable, options)?;
    write_page(
        &page::render(shops.as_ref(), &mixed, &linearizable, options, PAPER_RATIO),
        options,
    )?;
    println!("\nplots and phases: {}", options.page.display());
    let departure =
        (ratio(&mixed, &linearizable) / predicted_ratio(&mixed, &linearizable) - 1.0).abs() * 100.0;
    match options.within {
        Some(limit) if departure > limit => Err(format!(
            "the ratio departs by {departure:.1} % from the predicted one, at most {limit} % is allowed"
        )),
        _ => Ok(()),
    }
}

/// Runs the first part, and prints what the shops have left.
fn killed_shops(options: &Options) -> Result<[Left; 2], String> {
    println!(
        "A shop writes each sale to two stores, `stock` (linearizable) and `feed` (causal), with two writes or with one\n\
         transaction. Its process is killed {} times (kill -9), each time amid sales.\n",
        options.kills
    );
    let shops = shop::compare(options.kills, options.seed)?;
    let [two, one] = &shops;
    println!("{:<28}{:>16}{:>20}", "", two.way.title(), one.way.title());
    let row =
        |name: &str, of: fn(&Left) -> String| println!("{name:<28}{:>16}{:>20}", of(two), of(one));
    row("sales at `stock`", |left| left.sold.to_string());
    row("sales at `feed`", |left| left.told.to_string());
    row("at one of them alone", |left| left.halves().to_string());
    println!("\nNow the speed: Message Groups, {} s a side.", options.side_seconds());
    match one.halves() {
        0 => Ok(shops),
        halves => {
            Err(format!("{halves} sales are at one store alone, although each was one transaction"))
        }
    }
}

fn write_page(page: &str, options: &Options) -> Result<(), String> {
    if let Some(folder) = options.page.parent() {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    std::fs::write(&options.page, page)
        .map_err(|error| format!("{}: {error}", options.page.display()))
}

/// Returns the measured ratio of throughput, mixed over linearizable.
pub fn ratio(mixed: &Side, linearizable: &Side) -> f64 {
    mixed.measured.throughput() / linearizable.measured.throughput()
}

/// Returns the same ratio as predicted by the round-trip counts: with a fixed number of clients,
/// throughput is inversely proportional to the mean latency.
pub fn predicted_ratio(mixed: &Side, linearizable: &Side) -> f64 {
    linearizable.predicted_ms / mixed.predicted_ms
}

async fn side(title: &'static str, text: &str, options: &Options) -> Result<Side, String> {
    let program = groups::compile(text)?;
    let phases = predict::phases(text, &program);
    let far = Database::open(program.clone(), &binding(&program, options)?, None)
        .await
        .map_err(|error| error.to_string())?;
    let load = Load {
        title,
        clients: options.clients,
        time: Duration::from_secs(options.side_seconds()),
        seed: options.seed,
        size: SIZE,
    };
    let measured = load.run(Arc::new(far)).await?;
    let distance =
        |phase: &ExplainedPhase| distance_of(phase.level.as_deref().unwrap_or_default(), options);
    let predicted_by_transaction = predict::by_transaction(&phases, &distance);
    let predicted_ms = predict::mean_ms(&predicted_by_transaction, &measured);
    Ok(Side { title, phases, measured, predicted_ms, predicted_by_transaction })
}

fn distance_of(level: &str, options: &Options) -> Distance {
    if level == "causal" { options.causal } else { options.linearizable }
}

fn binding(program: &Program, options: &Options) -> Result<Binding, String> {
    let mut text = String::new();
    for store in &program.checked.stores {
        let distance = distance_of(program.checked.levels.name(store.level), options);
        let _ = write!(
            text,
            "[stores.{}]\nengine = \"embedded\"\ndistance = \"{distance}\"\n",
            store.name
        );
    }
    Binding::parse(&text).map_err(|error| error.to_string())
}

fn report(mixed: &Side, linearizable: &Side, options: &Options) -> Result<(), String> {
    println!(
        "\nMessage Groups, {} clients, {} s a side; a round trip takes {} to a linearizable store, {} to a causal one\n",
        options.clients,
        options.side_seconds(),
        options.linearizable,
        options.causal
    );
    println!("{:<28}{:>16}{:>20}", "", mixed.title, linearizable.title);
    let row = |name: &str, a: String, b: String| println!("{name:<28}{a:>16}{b:>20}");
    let per_second = |side: &Side| format!("{:.0}/s", side.measured.throughput());
    row("throughput", per_second(mixed), per_second(linearizable));
    let ms = |side: &Side| format!("{:.1} ms", side.mean_ms());
    row("mean latency", ms(mixed), ms(linearizable));
    let predicted = |side: &Side| format!("{:.1} ms", side.predicted_ms);
    row("  by round trips alone", predicted(mixed), predicted(linearizable));
    for (index, (name, share)) in MIX.iter().enumerate() {
        let median = |side: &Side| format!("{:.1} ms", side.measured.quantile_ms(index, 0.5));
        let tail = |side: &Side| format!("{:.1} ms", side.measured.quantile_ms(index, 0.99));
        row(&format!("{name} ({share} %) p50"), median(mixed), median(linearizable));
        row("  p99", tail(mixed), tail(linearizable));
    }
    println!(
        "\nmixed carries {:.2} times as many transactions; the round-trip counts predict {:.2} (the paper measured {PAPER_RATIO} on its own stores)",
        ratio(mixed, linearizable),
        predicted_ratio(mixed, linearizable)
    );
    let failed = mixed.measured.failed + linearizable.measured.failed;
    if failed > 0 { Err(format!("{failed} calls failed")) } else { Ok(()) }
}
