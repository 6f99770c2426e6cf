//! Reads a journal without a process: before a start, after a disk had errors, or in a copy.
//!
//! Nothing is changed. What a start would refuse is refused here, with the same words.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use mingle_geo::Record;
use mingle_geo_node::folder::{Folder as _, Name, RecoverError, Recovered, recover};
use mingle_geo_node::segment::{HEADER_BYTES, Header, Identity, Kind, scan};
use mingle_geo_node::take_entry;

use super::files::Files;

/// The reason why a journal cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckError {
    /// The folder or a file cannot be read.
    Folder {
        /// The path.
        path: String,
        /// The error of the operating system.
        why: String,
    },
    /// A process has the folder open.
    Locked {
        /// The path.
        path: String,
        /// The number of the process; 0 if it is not known.
        process: u32,
    },
    /// The folder has no file of a journal with a header that can be read.
    Empty {
        /// The path.
        path: String,
    },
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder { path, why } => write!(f, "{path}: {why}"),
            Self::Locked { path, process } => write!(
                f,
                "{path}: process {process} has opened this folder: stop it, or check a copy"
            ),
            Self::Empty { path } => write!(
                f,
                "{path} has no journal, expected files such as {} and {}",
                Name::Checkpoint(1),
                Name::Log(1)
            ),
        }
    }
}

impl std::error::Error for CheckError {}

/// A file of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its header, or why it has none.
    pub header: Result<Header, String>,
    /// The number of its entries that can be read; `None` if it is damaged.
    pub entries: Option<usize>,
    /// The number of bytes behind the last entry that are not zeros, in a torn file.
    pub torn: u64,
}

/// The contents of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogReport {
    /// The process that it belongs to.
    pub identity: Identity,
    /// Its files, in the order of their names.
    pub files: Vec<FileReport>,
    /// The names of files without meaning, which a start removes.
    pub stale: Vec<String>,
    /// The number of starts.
    pub boot: u32,
    /// True if the end is torn, as a crash leaves it: a start drops it.
    pub is_torn: bool,
    /// The number of records of each kind, and their bytes.
    pub records: BTreeMap<&'static str, (u64, u64)>,
    /// The number of records of each partition.
    pub partitions: BTreeMap<u16, u64>,
    /// The damage, if a start would refuse the journal.
    pub damage: Option<String>,
}

impl LogReport {
    /// Returns the damage as an error.
    ///
    /// # Errors
    ///
    /// The damage.
    pub fn verdict(&self) -> Result<(), String> {
        self.damage.clone().map_or(Ok(()), Err)
    }
}

/// Checks the journal in a folder.
///
/// # Errors
///
/// If the folder cannot be read, is in use, or has no journal. Damage is part of the report.
///
/// # Examples
///
/// ```
/// use mingle_geo::DcId;
/// use mingle_geo::record::Record;
/// use mingle_geo_node::segment::Identity;
/// use mingle_geo_node::{Journal as _, put_entry};
/// use mingled::check_log::check;
/// use mingled::{FileJournal, JournalSettings};
///
/// let folder = tempfile::tempdir()?;
/// let identity = Identity { cluster: 7, dc: DcId(0), node: 0, incarnation: 0 };
/// let settings = JournalSettings::new(folder.path(), identity, true);
/// let (mut journal, _) = FileJournal::open(&settings, Box::new(|_| {}))?;
/// journal.append(&put_entry(mingle_geo::PartitionId(3), &Record::AgeFloor(9)));
/// journal.sync();
/// assert!(check(folder.path()).is_err(), "it is open");
/// drop(journal);
/// let report = check(folder.path())?;
/// assert_eq!((report.identity, report.partitions[&3]), (identity, 1));
/// assert_eq!(report.verdict(), Ok(()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn check(folder: &Path) -> Result<LogReport, CheckError> {
    let path = folder.display().to_string();
    let fault =
        |error: std::io::Error| CheckError::Folder { path: path.clone(), why: error.to_string() };
    if let Some(process) = Files::user(folder) {
        return Err(CheckError::Locked { path, process });
    }
    let files = Files::read_only(folder);
    let mut names = files.names().map_err(fault)?;
    names.sort();
    let mut reports = Vec::new();
    for name in names.iter().filter(|name| Name::parse(name).is_some()) {
        reports.push(of_file(name, &files.read(name).map_err(fault)?));
    }
    // A journal of several processes is damaged: it is held against the first one.
    let identity = reports.iter().find_map(|report| report.header.as_ref().ok());
    let Some(identity) = identity.map(|header| header.identity) else {
        if reports.is_empty() {
            return Err(CheckError::Empty { path });
        }
        let why = reports.iter().find_map(|report| report.header.as_ref().err().cloned());
        return Err(CheckError::Folder { path, why: why.unwrap_or_default() });
    };
    let mut report = LogReport {
        identity,
        files: reports,
        stale: Vec::new(),
        boot: 0,
        is_torn: false,
        records: BTreeMap::new(),
        partitions: BTreeMap::new(),
        damage: None,
    };
    let headers = report.files.iter().filter_map(|file| file.header.as_ref().ok());
    report.boot = headers.map(|header| header.boot).max().unwrap_or_default();
    match recover(identity, names, |name| files.read(name)) {
        Ok(recovered) => report.count(recovered),
        Err(RecoverError::Damaged(damaged)) => report.damage = Some(damaged.to_string()),
        Err(RecoverError::Fault(why)) => {
            return Err(CheckError::Folder { path, why: why.to_string() });
        }
    }
    Ok(report)
}

fn of_file(name: &str, bytes: &[u8]) -> FileReport {
    let header = Header::take(bytes).map_err(|why| format!("{name} cannot be used: {why}"));
    // A checkpoint is complete once it has its name.
    let is_whole = |kind, end, length| kind != Kind::Checkpoint || end == length;
    let scanned = scan(bytes)
        .ok()
        .filter(|scanned| is_whole(scanned.header.kind, scanned.end, scanned.header.length));
    let torn = scanned.as_ref().map_or(0, |scanned| {
        let first = match scanned.header.kind {
            Kind::Checkpoint => 0,
            Kind::Log | Kind::Start => scanned.header.position,
        };
        let end = HEADER_BYTES + (scanned.end - first) as usize;
        let last = bytes[end..].iter().rposition(|byte| *byte != 0);
        last.map_or(0, |last| last as u64 + 1)
    });
    let entries = scanned.map(|scanned| scanned.entries.len());
    FileReport { name: name.to_owned(), bytes: bytes.len() as u64, header, entries, torn }
}

impl LogReport {
    fn count(&mut self, recovered: Recovered) {
        let Recovered { entries, boot, is_torn, stale, .. } = recovered;
        (self.is_torn, self.stale) = (is_torn, stale);
        if boot == 0 {
            self.damage = Some(
                "the first start ended before its journal was founded: nothing is lost, and the next start \
                 founds it"
                    .into(),
            );
        }
        for (number, entry) in entries.iter().enumerate() {
            match take_entry(entry) {
                Ok((partition, record)) => {
                    let (count, bytes) = self.records.entry(kind(&record)).or_default();
                    (*count, *bytes) = (*count + 1, *bytes + entry.len() as u64);
                    *self.partitions.entry(partition.0).or_default() += 1;
                }
                Err(why) => {
                    self.damage =
                        Some(format!("entry {number} of the journal cannot be read: {why}"));
                    return;
                }
            }
        }
    }
}

/// Returns the name of a record's kind.
fn kind(record: &Record) -> &'static str {
    match record {
        Record::ClockCeiling(_) => "clock ceilings",
        Record::AgeFloor(_) => "age floors",
        Record::Vectors(_) => "vectors",
        Record::Prepare(_) => "prepared transactions",
        Record::Decide(_) => "decisions",
        Record::Commit(_) => "commits of one partition",
        Record::Replicated(_) => "transactions of other data centers",
        Record::Delivered(_) => "strong transactions",
        Record::OpFloors(_) => "floors of operation ids",
        Record::Install(_) => "states",
        Record::Remembered(_) => "outcomes",
        Record::Group(_) => "order of strong transactions",
        Record::Members(_) => "epochs",
        Record::Blind(_) => "bounds of unknown outcomes",
    }
}

impl fmt::Display for LogReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { identity, boot, .. } = self;
        writeln!(f, "journal of {identity}, started {boot} times")?;
        let width = self.files.iter().map(|file| file.name.len()).max().unwrap_or_default();
        for FileReport { name, bytes, header, entries, torn } in &self.files {
            write!(f, "  {name:width$} {bytes:>12} bytes")?;
            match (header, entries) {
                (Ok(Header { kind, boot, position, .. }), Some(entries)) => {
                    let from = match kind {
                        Kind::Checkpoint => "up to",
                        Kind::Log | Kind::Start => "from",
                    };
                    write!(f, ", start {boot}, {entries} entries {from} position {position}")?;
                    if *torn > 0 {
                        write!(f, ", then {torn} torn bytes")?;
                    }
                }
                (Ok(_), None) => f.write_str(", damaged")?,
                (Err(_), _) => f.write_str(", its header is damaged")?,
            }
            let is_stale = self.stale.contains(name);
            writeln!(f, "{}", if is_stale { ", without meaning" } else { "" })?;
        }
        for (kind, (count, bytes)) in &self.records {
            writeln!(f, "  {count:>12} {kind}, {bytes} bytes")?;
        }
        let of = self.partitions.iter().map(|(number, count)| format!("{number}: {count}"));
        let of: Vec<String> = of.collect();
        if !of.is_empty() {
            writeln!(f, "  entries of partitions {}", of.join(", "))?;
        }
        match (&self.damage, self.is_torn) {
            (Some(_), _) => f.write_str("a start would refuse this journal"),
            (None, true) => f.write_str(
                "sound; its end is torn, as a crash leaves it, and the next start drops what was never \
                 acknowledged",
            ),
            (None, false) => f.write_str("sound"),
        }
    }
}
