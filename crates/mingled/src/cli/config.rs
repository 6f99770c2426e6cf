//! The settings of a data center in a file of TOML.
//!
//! ```toml
//! cluster = "5f0c9be2a7d14c3b8e6f1a2b3c4d5e6f"  # the same at all data centers, and for ever
//! data_center = "d1"                            # this one
//! folder = "data"                               # beside this file
//! listen = "127.0.0.1:6399"                     # for clients
//! status = "127.0.0.1:9399"                     # of the status page; without it there is none
//! engine = "127.0.0.1:6398"                     # for Mingle's programs; without it none is served
//!
//! [data_centers]                                # addresses for each other
//! d0 = "10.0.0.1:7399"
//! d1 = "10.0.1.1:7399"
//! d2 = "10.0.2.1:7399"
//! ```
//!
//! A member that is unknown and a value that cannot be are refused with the file, the line, and the
//! expected value.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use mingle_geo::vector::DCS_MAX;
use mingled::access::TlsFiles;
use mingled::process::Durability;
use mingled::resp::Limits;
use serde::Deserialize;
use toml::Spanned;

use super::access::AccessFiles;
use super::founded::new_cluster;
use super::label::Declared;
use super::serve::{Start, TOKEN_LIFETIME};

/// The maximum length of a file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The usual number of milliseconds after which a request is slow.
const SLOW_MS: u64 = mingled::server::SLOW.as_millis() as u64;

/// The maximum number of partitions.
const PARTITIONS_MAX: u64 = 1_024;

type Text = Spanned<String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    cluster: Option<Text>,
    data_center: Text,
    incarnation: Option<Spanned<u32>>,
    folder: PathBuf,
    listen: Option<Text>,
    status: Option<Text>,
    engine: Option<Text>,
    partitions: Option<Spanned<u64>>,
    #[serde(default)]
    strong_only: Vec<Text>,
    durability: Option<Text>,
    token_key_file: Option<PathBuf>,
    token_minutes: Option<Spanned<u64>>,
    slow_ms: Option<Spanned<u64>>,
    users_file: Option<PathBuf>,
    audit_file: Option<PathBuf>,
    #[serde(default)]
    plain_text: bool,
    tls: Option<TlsTable>,
    peer_tls: Option<PeerTlsTable>,
    data_centers: Spanned<BTreeMap<Text, Text>>,
    #[serde(default)]
    labels: BTreeMap<Text, Vec<String>>,
    #[serde(default)]
    limits: LimitsTable,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsTable {
    clients: Option<Spanned<u64>>,
    argument_bytes: Option<Spanned<u64>>,
    request_bytes: Option<Spanned<u64>>,
    arguments: Option<Spanned<u64>>,
    idle_seconds: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsTable {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PeerTlsTable {
    certificate: PathBuf,
    key: PathBuf,
    ca: PathBuf,
}

/// Returns the files of users, certificates and the audit log, each by way of `beside`.
fn access(contents: &mut Contents, beside: impl Fn(PathBuf) -> PathBuf) -> AccessFiles {
    let tls = contents.tls.take();
    let tls = tls.map(|of| (beside(of.certificate), beside(of.key), of.client_ca.map(&beside)));
    let (tls_certificate, tls_key, tls_client_ca) = match tls {
        Some((certificate, key, roots)) => (Some(certificate), Some(key), roots),
        None => (None, None, None),
    };
    let peers_tls = contents.peer_tls.take().map(|files| TlsFiles {
        certificate: beside(files.certificate),
        key: beside(files.key),
        client_ca: Some(beside(files.ca)),
    });
    AccessFiles {
        users: contents.users_file.take().map(&beside),
        tls_certificate,
        tls_key,
        tls_client_ca,
        audit: contents.audit_file.take().map(&beside),
        plain_text: contents.plain_text,
        peers_tls,
    }
}

/// A file with its text, for errors.
struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    /// Returns an error at a place of the text.
    fn error(&self, at: usize, why: impl Display) -> String {
        let line = 1 + self.text[..at.min(self.text.len())].matches('\n').count();
        format!("{}:{line}: {why}", self.path.display())
    }

    fn parsed<T: FromStr>(&self, name: &str, text: &Text, expected: &str) -> Result<T, String> {
        text.get_ref().parse().map_err(|_| {
            let found = text.get_ref().escape_default();
            self.error(text.span().start, format!("{name} is '{found}', expected {expected}"))
        })
    }

    /// Checks the bounds of a number; without one, returns the usual value.
    fn within(
        &self,
        name: &str,
        number: Option<&Spanned<u64>>,
        (least, most): (u64, u64),
        usual: u64,
    ) -> Result<u64, String> {
        let Some(number) = number else { return Ok(usual) };
        let found = *number.get_ref();
        if (least..=most).contains(&found) {
            return Ok(found);
        }
        let why = format!("{name} is {found}, expected {least} to {most}");
        Err(self.error(number.span().start, why))
    }
}

/// Reads the settings in a file.
///
/// # Errors
///
/// The file, the line, the value found and the expected one.
pub fn read(path: &Path) -> Result<Start, String> {
    let fault = |why: String| format!("{} cannot be read: {why}", path.display());
    let length = fs::metadata(path).map_err(|error| fault(error.to_string()))?.len();
    if length > FILE_BYTES_MAX {
        return Err(fault(format!("it has {length} bytes, at most {FILE_BYTES_MAX} are accepted")));
    }
    let text = fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
    let file = File { path, text: &text };
    let contents: Contents = toml::from_str(&text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        file.error(at, error.message())
    })?;
    start(&file, contents)
}

fn start(file: &File<'_>, mut contents: Contents) -> Result<Start, String> {
    let cluster = cluster(file, contents.cluster.as_ref())?;
    let peers = peers(file, &contents.data_centers)?;
    let dc = number_of(file, &contents.data_center)?;
    if usize::from(dc) >= peers.len() {
        let why = format!(
            "data_center is 'd{dc}', expected one of [data_centers], d0 to d{}",
            peers.len() - 1
        );
        return Err(file.error(contents.data_center.span().start, why));
    }
    let beside = |path: PathBuf| file.path.parent().unwrap_or(Path::new("")).join(path);
    let listen = match &contents.listen {
        Some(text) => file.parsed("listen", text, "an address such as 127.0.0.1:6399")?,
        None => super::LISTEN.parse().map_err(|_| "the usual address cannot be read")?,
    };
    let status = match &contents.status {
        Some(text) => Some(file.parsed("status", text, "an address such as 127.0.0.1:9399")?),
        None => None,
    };
    let engine = match &contents.engine {
        Some(text) => Some(file.parsed("engine", text, "an address such as 127.0.0.1:6398")?),
        None => None,
    };
    let durability = match &contents.durability {
        Some(text) => file.parsed("durability", text, "memory, disk or uniform")?,
        None => Durability::default(),
    };
    let minutes = contents.token_minutes.as_ref();
    let usual = TOKEN_LIFETIME.as_secs() / 60;
    let minutes = file.within("token_minutes", minutes, (1, 1_000_000), usual)?;
    let slow = file.within("slow_ms", contents.slow_ms.as_ref(), (0, 1_000_000_000), SLOW_MS)?;
    let most = PARTITIONS_MAX;
    let partitions = file.within("partitions", contents.partitions.as_ref(), (1, most), 4)?;
    let access = access(&mut contents, beside);
    let (clients_max, limits, idle) = limits(file, &contents.limits)?;
    Ok(Start {
        folder: beside(contents.folder),
        listen,
        status,
        engine,
        dc,
        incarnation: contents.incarnation.map(Spanned::into_inner),
        peers,
        cluster,
        ends_with_input: false,
        delay: Duration::ZERO,
        partitions: partitions as u16,
        strong_only: strong_only(file, &contents.strong_only)?,
        labels: labels(file, contents.labels)?,
        durability,
        token_key: contents.token_key_file.map(beside),
        token_lifetime: Duration::from_secs(60 * minutes),
        clients_max,
        slow: Duration::from_millis(slow),
        limits,
        access,
        idle,
    })
}

fn cluster(file: &File<'_>, text: Option<&Text>) -> Result<u128, String> {
    let Some(text) = text else {
        return Err(file.error(
            0,
            format!(
                "cluster is missing, expected 32 hexadecimal digits, which are the same at all data \
                 centers; for a new cluster, for example '{:032x}'",
                new_cluster()
            ),
        ));
    };
    let digits = text.get_ref();
    let number = u128::from_str_radix(digits, 16).ok();
    number.filter(|_| digits.len() == 32 && !digits.starts_with('+')).ok_or_else(|| {
        let found = digits.escape_default();
        let why = format!("cluster is '{found}', expected 32 hexadecimal digits");
        file.error(text.span().start, why)
    })
}

/// Reads the name of a data center.
fn number_of(file: &File<'_>, name: &Text) -> Result<u8, String> {
    let number = name.get_ref().strip_prefix('d').and_then(|text| text.parse::<u8>().ok());
    let number = number.filter(|number| format!("d{number}") == *name.get_ref());
    number.ok_or_else(|| {
        let found = name.get_ref().escape_default();
        file.error(name.span().start, format!("found data center '{found}', expected d0, d1, …"))
    })
}

/// Returns the addresses of all data centers, in order.
fn peers(
    file: &File<'_>,
    table: &Spanned<BTreeMap<Text, Text>>,
) -> Result<Vec<SocketAddr>, String> {
    let mut all = BTreeMap::new();
    for (name, address) in table.get_ref() {
        let dc = number_of(file, name)?;
        let expected = "an address such as 10.0.0.1:7399";
        let address: SocketAddr = file.parsed(name.get_ref(), address, expected)?;
        if address.port() == 0 {
            let why = format!("{} has port 0, expected a fixed one", name.get_ref());
            return Err(file.error(name.span().start, why));
        }
        if let Some(other) = all.iter().find(|(_, other)| **other == address) {
            let why = format!("{} has the address {address} of d{}", name.get_ref(), other.0);
            return Err(file.error(name.span().start, why));
        }
        all.insert(dc, address);
    }
    let (found, last) = (all.len(), all.keys().last().copied().unwrap_or_default());
    if found == 0 || found > DCS_MAX || usize::from(last) + 1 != found {
        let names: Vec<String> = all.keys().map(|dc| format!("d{dc}")).collect();
        let why = format!(
            "[data_centers] has '{}', expected d0 and the next ones without a gap, at most {DCS_MAX}",
            names.join(", ")
        );
        return Err(file.error(table.span().start, why));
    }
    Ok(all.into_values().collect())
}

/// Checks the patterns of `strong_only`.
fn strong_only(file: &File<'_>, patterns: &[Text]) -> Result<Vec<String>, String> {
    let checked = |pattern: &Text| {
        super::pattern(pattern.get_ref()).map_err(|why| {
            let why = format!("strong_only has '', {why}");
            file.error(pattern.span().start, why)
        })
    };
    patterns.iter().map(checked).collect()
}

fn labels(file: &File<'_>, table: BTreeMap<Text, Vec<String>>) -> Result<Vec<Declared>, String> {
    let names: Vec<String> = table.keys().map(|name| name.get_ref().clone()).collect();
    let declared = |(name, conflicts): (Text, Vec<String>)| {
        if let Some(unknown) = conflicts.iter().find(|other| !names.contains(other)) {
            let (known, unknown) = (names.join(", "), unknown.escape_default());
            let why = format!(
                "label {} conflicts with '{unknown}', expected one of {known}",
                name.get_ref()
            );
            return Err(file.error(name.span().start, why));
        }
        Ok(Declared { name: name.into_inner(), conflicts })
    };
    table.into_iter().map(declared).collect()
}

/// Returns the maximum number of clients, the bounds of requests, and the time after which an idle
/// connection is closed.
fn limits(
    file: &File<'_>,
    table: &LimitsTable,
) -> Result<(usize, Limits, Option<Duration>), String> {
    let usual = Limits::default();
    let within = |name: &str, number: &Option<Spanned<u64>>, bounds, usual| {
        file.within(&format!("limits.{name}"), number.as_ref(), bounds, usual)
    };
    let clients = within("clients", &table.clients, (1, 100_000), 1_000)?;
    let bytes = (1, 1 << 30);
    let limits = Limits {
        argument_bytes: within(
            "argument_bytes",
            &table.argument_bytes,
            bytes,
            usual.argument_bytes,
        )?,
        request_bytes: within("request_bytes", &table.request_bytes, bytes, usual.request_bytes)?,
        arguments: within("arguments", &table.arguments, (1, 1 << 24), usual.arguments)?,
        ..usual
    };
    let idle = within("idle_seconds", &table.idle_seconds, (1, 1_000_000_000), 0)?;
    let idle = table.idle_seconds.as_ref().map(|_| Duration::from_secs(idle));
    Ok((clients as usize, limits, idle))
}

/// Returns a summary of the settings.
pub fn summary(start: &Start) -> String {
    let Start { folder, listen, dc, cluster, partitions, durability, .. } = start;
    let peers: Vec<String> =
        start.peers.iter().enumerate().map(|(dc, address)| format!("d{dc} {address}")).collect();
    let strong = start.strong_only.clone();
    let labels: Vec<String> = start.labels.iter().map(super::label::shown).collect();
    let or_none = |list: Vec<String>, between: &str| {
        if list.is_empty() { "none".to_owned() } else { list.join(between) }
    };
    let tokens = match &start.token_key {
        Some(file) => format!("{} s, key {}", start.token_lifetime.as_secs(), file.display()),
        None => "none".into(),
    };
    format!(
        "cluster       {cluster:032x}\n\
         data center   d{dc}, {partitions} partitions\n\
         data centers  {}\n\
         clients       {listen}, at most {}\n\
         programs      {}\n\
         status page   {}\n\
         folder        {}\n\
         durability    {durability}\n\
         strong only   {}\n\
         labels        {}\n\
         tokens        {tokens}\n\
         {}",
        peers.join(", "),
        start.clients_max,
        start
            .engine
            .map_or("none".into(), |address| format!("{address}, {}", start.access.guard())),
        start.status.map_or("none".into(), |address| format!("http://{address}/")),
        folder.display(),
        or_none(strong, ", "),
        or_none(labels, " "),
        start.access.summary(),
    )
}
