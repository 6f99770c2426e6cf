//! The server against Redis, and three data centers under load.
//!
//! Servers and clients share the cores of one machine, so only ratios within one run mean something. The
//! sides of a comparison run in turn, in several rounds, and the medians count. Both servers are given the
//! same promise: `always` is Redis with `appendfsync always` against `mingled` with durability `disk`, and
//! `everysec` is Redis's usual setting against durability `memory`. The rate of raw appends with
//! `fdatasync` is measured beside the durable figures, in the same folder.
//!
//! # Departures
//!
//! - The processor time of a server is its own, without the kernel's work for others.
//! - One data center of `mingled` replicates nothing; the price of replication is in the last table.

mod disk;
mod drive;
mod report;
mod servers;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use drive::{Load, Measured};
use report::Report;
use servers::{Promise, Server};

/// The size of the measurements.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The program mingled, built for release.
    #[arg(long, value_name = "FILE")]
    mingled: PathBuf,
    /// The folder of Redis, with the program `server` and `libraries`.
    #[arg(long, value_name = "FOLDER")]
    redis: PathBuf,
    /// The folder for data: the disk matters. Usually one for temporary files.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Rounds; each runs all sides once.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Connections of the comparison with Redis.
    #[arg(long, default_value_t = 16)]
    connections: usize,
}

/// The connections of the load on three data centers.
const CONNECTIONS_OF_THREE: usize = 48;

/// Runs the measurements.
pub fn run(options: &Options) -> Result<(), String> {
    let folder = match &options.folder {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    };
    let folder = folder.map_err(|error| format!("no folder: {error}"))?;
    let time = Duration::from_secs_f64(options.seconds);
    let mut report = Report::default();
    for promise in [Promise::EverySecond, Promise::Always] {
        for round in 0..options.rounds {
            let place = folder.path().join(format!("{promise:?}-{round}"));
            compare(options, promise, &place, time, &mut report)?;
        }
    }
    let mut rates = Vec::new();
    for _ in 0..options.rounds {
        rates.push(disk::appends_per_second(folder.path(), time)?);
    }
    report.disk(&rates);
    for durability in ["memory", "disk"] {
        for round in 0..options.rounds {
            let place = folder.path().join(format!("three-{durability}-{round}"));
            report.three(durability, three(options, durability, &place, time)?);
        }
    }
    println!("{}", report.shown(options));
    Ok(())
}

/// Measures one round of both servers with one promise.
fn compare(
    options: &Options,
    promise: Promise,
    place: &std::path::Path,
    time: Duration,
    report: &mut Report,
) -> Result<(), String> {
    let sides = [
        ("redis", Server::redis(&options.redis, &place.join("redis"), promise)?),
        ("mingled", Server::mingled(&options.mingled, &place.join("mingled"), promise)?),
    ];
    for (_, server) in &sides {
        drive::fill(server.address())?;
    }
    for depth in [1, 16] {
        for load in [Load::Get, Load::Set] {
            for (name, server) in &sides {
                let before = server.cpu()?;
                let measured =
                    drive::run(&[server.address()], load, options.connections, depth, time)?;
                let cpu = server.cpu()?.saturating_sub(before);
                report.add(promise, load, depth, name, Measured { cpu, ..measured });
            }
        }
    }
    sides.into_iter().try_for_each(|(_, server)| server.stop())
}

/// Measures three data centers with 90 % reads of three keys.
fn three(
    options: &Options,
    durability: &str,
    place: &std::path::Path,
    time: Duration,
) -> Result<Measured, String> {
    let more = ["--durability", durability];
    let cluster = crate::center::Cluster::start(&options.mingled, place, 3, &more)?;
    let addresses: Vec<_> = (0..3).filter_map(|dc| cluster.address(dc)).collect();
    drive::fill(addresses[0])?;
    drive::filled(addresses[2])?;
    let cpu = |cluster: &crate::center::Cluster| {
        let all = cluster.running.iter().flatten().map(crate::center::Running::cpu);
        all.sum::<Result<Duration, String>>()
    };
    let before = cpu(&cluster)?;
    let measured = drive::run(&addresses, Load::Mixed, CONNECTIONS_OF_THREE, 1, time)?;
    let used = cpu(&cluster)?.saturating_sub(before);
    cluster.stop()?;
    Ok(Measured { cpu: used, ..measured })
}
