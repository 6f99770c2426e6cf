//! Backups: made of a data center that runs, checked, restored, and printed.

use std::io::{BufWriter, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use mingle_geo::DcId;
use mingled::backup::{self, Access, Founding, Link, dump};

use super::config;
use super::founded::{self, journal, new_cluster};

/// The variable with the password, if no file has it.
const PASSWORD: &str = "MINGLED_PASSWORD";

/// A backup of a data center that runs.
#[derive(Debug, Args)]
pub struct Backup {
    /// Address of the data center, as clients use it.
    #[arg(long, value_name = "ADDRESS")]
    from: SocketAddr,
    /// File to write; it must not exist.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Read the file back before it gets its name.
    #[arg(long)]
    verify: bool,
    /// User with the right to run BACKUP. The password is in --password-file, or in the variable MINGLED_PASSWORD.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// File with the password of the user.
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// File of PEM with the roots of the server's certificate: the connection is encrypted.
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Name in the server's certificate; without it, its address.
    #[arg(long, value_name = "NAME", requires = "tls_ca")]
    tls_name: Option<String>,
    /// File of PEM with a certificate of this client.
    #[arg(long, value_name = "FILE", requires = "tls_ca", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// File of PEM with the key of this client's certificate.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
}

/// A data center of a new cluster.
#[derive(Debug, Args)]
pub struct Restore {
    /// The backup.
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// File of TOML with the settings of the data center, whose folder must be new or empty.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dir", "dc", "dcs", "cluster", "partitions"])]
    config: Option<PathBuf>,
    /// Folder of the data center, which must be new or empty.
    #[arg(long, value_name = "FOLDER", required_unless_present = "config")]
    dir: Option<PathBuf>,
    /// Number of this data center, from 0.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    dc: u8,
    /// Number of data centers of the new cluster.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=7))]
    dcs: u8,
    /// The new cluster's number, which all of its data centers have: up to 32 hexadecimal digits. A single data center gets
    /// a random one.
    #[arg(long, value_name = "NUMBER")]
    cluster: Option<String>,
    /// Number of partitions, the same at all data centers.
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    partitions: u16,
    /// Read the whole file before anything is made. It is read before the journal gets its name in any case.
    #[arg(long)]
    verify: bool,
}

/// The items of a backup, or of a data center that does not run.
#[derive(Debug, Args)]
pub struct Dump {
    /// The backup, or the folder of the data center.
    from: PathBuf,
    /// Form of the items.
    #[arg(long, value_name = "FORM", default_value = "json")]
    form: Form,
}

/// The form of a dump.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// A line of JSON for each item.
    Json,
    /// Commands of Redis, for `redis-cli`.
    Commands,
}

/// Returns the user and the encryption of a connection.
fn access(of: &Backup) -> Result<Access, String> {
    let password =
        match &of.password_file {
            _ if of.user.is_none() => None,
            Some(file) => {
                let text = std::fs::read_to_string(file);
                let text =
                    text.map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
                Some(text.trim_end_matches(['\r', '\n']).to_owned())
            }
            None => {
                let found = std::env::var(PASSWORD);
                Some(found.map_err(|_| {
                    format!("--user needs --password-file, or the variable {PASSWORD}")
                })?)
            }
        };
    Ok(Access {
        user: of.user.clone().zip(password),
        ca: of.tls_ca.clone(),
        name: of.tls_name.clone(),
        certificate: of.tls_certificate.clone().zip(of.tls_key.clone()),
    })
}

/// Makes a backup.
pub fn make(of: &Backup) -> Result<(), String> {
    if of.to.exists() {
        return Err(format!("{} exists already", of.to.display()));
    }
    let mut link = Link::open(of.from, &access(of)?)?;
    let fetched = backup::fetch(&mut link, &of.to, of.verify)?;
    match fetched.report {
        Some(report) => println!("{report}"),
        None => println!("{} bytes are in {}", fetched.bytes, of.to.display()),
    }
    Ok(())
}

/// Checks a backup.
pub fn check(file: &Path) -> Result<(), String> {
    let report = backup::check(file).map_err(|error| error.to_string())?;
    println!("{report}");
    Ok(())
}

/// The place of a data center to restore.
struct Place {
    folder: PathBuf,
    cluster: u128,
    dc: u8,
    dcs: u8,
    partitions: u16,
}

fn place(of: &Restore) -> Result<Place, String> {
    if let Some(file) = &of.config {
        let start = config::read(file)?;
        if start.incarnation.is_some_and(|incarnation| incarnation > 0) {
            return Err(format!("{}: a new cluster begins with incarnation 0", file.display()));
        }
        return Ok(Place {
            folder: start.folder,
            cluster: start.cluster,
            dc: start.dc,
            dcs: start.peers.len().max(1) as u8,
            partitions: start.partitions,
        });
    }
    let Some(folder) = of.dir.clone() else { return Err("expected --config or --dir".into()) };
    if of.dc >= of.dcs {
        return Err(format!("--dc is {}, expected less than --dcs, {}", of.dc, of.dcs));
    }
    let cluster = match &of.cluster {
        Some(text) => u128::from_str_radix(text, 16)
            .map_err(|_| format!("--cluster is '{text}', expected up to 32 hexadecimal digits"))?,
        None if of.dcs > 1 => {
            return Err(format!(
                "--cluster is missing, expected a number that all data centers have, for example '{:032x}'",
                new_cluster()
            ));
        }
        None => new_cluster(),
    };
    Ok(Place { folder, cluster, dc: of.dc, dcs: of.dcs, partitions: of.partitions })
}

/// Restores a data center.
pub fn restore(of: &Restore) -> Result<(), String> {
    let Place { folder, cluster, dc, dcs, partitions } = place(of)?;
    founded::check_empty(&folder)?;
    if of.verify {
        println!("{}", backup::check(&of.file).map_err(|error| error.to_string())?);
    }
    let founding = Founding {
        journal: journal(&folder),
        cluster,
        dc: DcId(dc),
        dc_count: dcs,
        partition_count: partitions,
    };
    let restored = backup::restore(&of.file, &founding).map_err(|error| error.to_string())?;
    founded::found(&folder, &founded::shape(cluster, dc, dcs, partitions))?;
    println!(
        "{} items of {} are in {}: data center d{dc} of {dcs} in cluster {cluster:032x}",
        restored.totals.items,
        of.file.display(),
        folder.display(),
    );
    Ok(())
}

/// Prints items.
pub fn print(of: &Dump) -> Result<(), String> {
    let form = match of.form {
        Form::Json => dump::Form::Json,
        Form::Commands => dump::Form::Commands,
    };
    let mut out = BufWriter::new(std::io::stdout().lock());
    let printed = if of.from.is_dir() {
        let inner = journal(&of.from);
        dump::journal(if inner.is_dir() { &inner } else { &of.from }, form, &mut out)
    } else {
        dump::backup(&of.from, form, &mut out)
    };
    // What was printed before an error is of use, too.
    out.flush().map_err(|error| error.to_string())?;
    drop(out);
    let left_out = printed?.left_out;
    if left_out > 0 {
        eprintln!(
            "{left_out} items of programs of Mingle have no commands and were left out: --form json has them"
        );
    }
    Ok(())
}
