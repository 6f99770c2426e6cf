//! The arguments of the command, and its parts.

mod access;
mod backup;
mod cluster;
mod config;
mod founded;
mod label;
mod serve;
mod signals;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use mingled::check_log;
use mingled::process::Durability;

use access::AccessFiles;
use label::Declared;

/// The address for clients.
const LISTEN: &str = "127.0.0.1:6399";

/// A data center of Mingle's geo-replicated store, for clients of Redis.
///
/// Without a task it is a single durable data center: `redis-cli -p 6399` talks to it.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    task: Option<Task>,
    #[command(flatten)]
    single: Single,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run several data centers on this machine, each a process of its own.
    Cluster(Cluster),
    /// Run one data center of several, with its settings as arguments or in a file.
    Serve(Serve),
    /// Read the journal in the folder of a data center that does not run, and print what it has, or the damage.
    CheckLog {
        /// The folder of the data center, or of its journal.
        folder: PathBuf,
    },
    /// Copy all items of a data center that runs, at one vector, into a file.
    Backup(backup::Backup),
    /// Read a backup, and print what it has, or the damage.
    CheckBackup {
        /// The backup.
        file: PathBuf,
    },
    /// Found a data center of a new cluster with the items of a backup.
    Restore(backup::Restore),
    /// Print the items of a backup, or of a data center that does not run, as lines of JSON or commands of Redis.
    Dump(backup::Dump),
    /// Check a file with the settings of a data center, and print them.
    CheckConfig {
        /// The file.
        file: PathBuf,
    },
}

/// A single data center.
#[derive(Debug, Args)]
struct Single {
    /// Folder of the data; it is created if it is missing.
    #[arg(long, value_name = "FOLDER", default_value = "mingled-data")]
    dir: PathBuf,
    /// Address for clients. One that is not on loopback needs --users and --tls-certificate.
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN)]
    listen: SocketAddr,
    /// Address of a page with the state, of figures for Prometheus, and of /live and /ready, over HTTP.
    /// Only loopback is accepted.
    #[arg(long, value_name = "ADDRESS")]
    status: Option<SocketAddr>,
    /// Address for Mingle's programs with stores of the engine "mingled". One that is not on loopback needs --users and
    /// --tls-certificate.
    #[arg(long, value_name = "ADDRESS")]
    engine: Option<SocketAddr>,
    #[command(flatten)]
    access: AccessFiles,
    #[command(flatten)]
    shape: Shape,
}

/// Checks a pattern of names.
fn pattern(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("expected a pattern of names, such as 'lock:*'".into());
    }
    Ok(text.to_owned())
}

/// The settings that all data centers share.
#[derive(Clone, Debug, Args)]
struct Shape {
    /// Number of partitions. It is fixed by the first start.
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    partitions: u16,
    /// Writes of keys that match this pattern, such as `lock:*`, are strong; may be repeated.
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    strong_only: Vec<String>,
    /// Label of strong transactions, and the labels with which it conflicts on the same item, such as
    /// `withdraw=withdraw,audit`; may be repeated.
    #[arg(long = "label", value_name = "NAME[=NAME,…]")]
    labels: Vec<Declared>,
    /// Time at which commits of new connections are acknowledged: memory, disk or uniform.
    #[arg(long, value_name = "KIND", default_value_t)]
    durability: Durability,
    /// Maximum number of clients.
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000)]
    clients_max: usize,
    /// Milliseconds after which a request is slow, for SLOWLOG.
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    slow_ms: u64,
}

/// Several data centers on this machine.
#[derive(Debug, Args)]
struct Cluster {
    /// Number of data centers.
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
    dcs: u8,
    /// Folder of the data; it is created if it is missing.
    #[arg(long, value_name = "FOLDER", default_value = "mingled-cluster")]
    dir: PathBuf,
    /// Port for clients of the first data center; the others have the next ones. 0 takes free ports.
    #[arg(long, value_name = "PORT", default_value_t = 6400)]
    port: u16,
    /// Port of the first data center's page with the state, over HTTP; the others have the next ones. 0
    /// takes free ports.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    status_port: u16,
    /// Port for Mingle's programs at the first data center, with stores of the engine "mingled"; the others have the
    /// next ones. 0 takes free ports. Without it no program is served.
    #[arg(long, value_name = "PORT")]
    engine_port: Option<u16>,
    /// Round trip between any two of them, for example 40ms: messages are held back for half of it.
    #[arg(long, value_name = "DURATION", default_value = "0ms", value_parser = duration)]
    between: Duration,
    #[command(flatten)]
    shape: Shape,
}

/// One data center of several.
#[derive(Debug, Args)]
struct Serve {
    /// File of TOML with all settings of the data center.
    #[arg(long, value_name = "FILE", exclusive = true)]
    config: Option<PathBuf>,
    #[command(flatten)]
    given: Given,
}

/// The settings of one data center of several as arguments.
#[derive(Debug, Args)]
struct Given {
    /// Folder of the data; it is created if it is missing.
    #[arg(long, value_name = "FOLDER", required_unless_present = "config")]
    dir: Option<PathBuf>,
    /// Address for clients. One that is not on loopback needs --users and --tls-certificate.
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN)]
    listen: SocketAddr,
    /// Address of a page with the state, of figures for Prometheus, and of /live and /ready, over HTTP.
    /// Only loopback is accepted.
    #[arg(long, value_name = "ADDRESS")]
    status: Option<SocketAddr>,
    /// Address for Mingle's programs with stores of the engine "mingled". One that is not on loopback needs --users and
    /// --tls-certificate.
    #[arg(long, value_name = "ADDRESS")]
    engine: Option<SocketAddr>,
    /// Number of this data center, from 0.
    #[arg(long, value_name = "NUMBER", required_unless_present = "config")]
    dc: Option<u8>,
    /// Incarnation of this data center: the number that ADMIT returned. Without it, that of the folder.
    #[arg(long, value_name = "NUMBER")]
    incarnation: Option<u32>,
    /// File with the key of SESSION tokens, which all data centers have. Without it there are none.
    #[arg(long, value_name = "FILE")]
    token_key: Option<PathBuf>,
    /// Addresses for the other data centers, of all of them in their order.
    #[arg(long, value_name = "ADDRESS", required_unless_present = "config", num_args = 1.., value_delimiter = ',')]
    peers: Vec<SocketAddr>,
    /// The cluster's number, which all data centers have: up to 32 hexadecimal digits.
    #[arg(long, value_name = "NUMBER", required_unless_present = "config")]
    cluster: Option<String>,
    /// Time for which messages of other data centers are held back, for trials on one machine.
    #[arg(long, value_name = "DURATION", default_value = "0ms", value_parser = duration)]
    delay: Duration,
    /// End at the end of the standard input.
    #[arg(long, hide = true)]
    ends_with_input: bool,
    #[command(flatten)]
    access: AccessFiles,
    #[command(flatten)]
    shape: Shape,
}

/// The longest delay between two data centers.
const DELAY_MAX: Duration = Duration::from_secs(2);

/// Reads a duration such as `40ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let refused = || "expected a number with `us`, `ms` or `s`, such as `40ms`".to_owned();
    let end = text.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(refused)?;
    let number: u32 = text[..end].parse().map_err(|_| refused())?;
    let unit = match &text[end..] {
        "us" => Duration::from_micros(1),
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        _ => return Err(refused()),
    };
    let found = unit.saturating_mul(number);
    let is_within = found <= DELAY_MAX;
    is_within.then_some(found).ok_or_else(|| format!("expected at most {DELAY_MAX:?}"))
}

/// Runs the command.
pub fn run(arguments: Arguments) -> Result<(), String> {
    match arguments.task {
        None => serve::single(&arguments.single),
        Some(Task::Serve(Serve { config: Some(file), .. })) => serve::run(&config::read(&file)?),
        Some(Task::Serve(of)) => serve::serve(&of.given),
        Some(Task::CheckConfig { file }) => {
            let start = config::read(&file)?;
            serve::check(&start)?;
            println!("{}", config::summary(&start));
            Ok(())
        }
        Some(Task::CheckLog { folder }) => {
            let inner = founded::journal(&folder);
            let found = check_log::check(if inner.is_dir() { &inner } else { &folder });
            let report = found.map_err(|error| error.to_string())?;
            println!("{report}");
            report.verdict()
        }
        Some(Task::Cluster(of)) => cluster::run(&of),
        Some(Task::Backup(of)) => backup::make(&of),
        Some(Task::CheckBackup { file }) => backup::check(&file),
        Some(Task::Restore(of)) => backup::restore(&of),
        Some(Task::Dump(of)) => backup::print(&of),
    }
}
