//! `cargo xtask sim outage`: a minute without one replica or store.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use mingle_sim::Flaw;
use mingle_sim::workload::outage::Outage;

/// A minute without one replica, or one store, under a steady load, second by second.
#[derive(Args)]
pub struct Options {
    /// The missing part: a store, or one of its replicas.
    #[arg(long, default_value = "feed/r3", value_parser = ["bank", "shop", "wall", "feed", "wall/r3", "feed/r3"])]
    away: String,
    /// The feed is causal instead of eventual.
    #[arg(long)]
    causal: bool,
    /// The duration of the outage in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The number of clients, each with four calls a second.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u64).range(1..=200))]
    clients: u64,
    /// The number of objects of each kind.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u8).range(1..))]
    objects: u8,
    /// The seed of the world's random source.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub fn run(options: &Options) -> ExitCode {
    let outage = Outage {
        seed: options.seed,
        away: options.away.as_str().into(),
        is_eventual: !options.causal,
        lasts: Duration::from_secs(options.seconds),
        clients: options.clients as usize,
        objects: options.objects,
        ..Outage::default()
    };
    let report = outage.run(Flaw::None);
    print!("{report}");
    println!("at most {:.1} witness rows for each open transaction", report.rows_per_open());
    if report.rest.is_some() && report.wrong.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
