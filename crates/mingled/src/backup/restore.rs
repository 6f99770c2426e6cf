//! The journal of a data center of a new cluster, founded with the items of a backup.
//!
//! In the new cluster no transaction of the old one is under way, and none was ever seen. So its items are folded below one
//! timestamp, which is above every timestamp of the backup and the same at all data centers: all of them begin with
//! the same items at the same vector, and every new transaction has a later timestamp.
//! As the partitions of the backup have one vector, too, the new cluster may have other partitions and data centers.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mingle_geo::floors::Raised;
use mingle_geo::record::{Install, Record, Vectors};
use mingle_geo::types::State;
use mingle_geo::{Config, DcId, Key, PartitionId, Timestamp, Vector};
use mingle_geo_node::folder::{self, Log, Opened, SEGMENT_BYTES};
use mingle_geo_node::put_entry;
use mingle_geo_node::segment::{ENTRY_BYTES_MAX, Identity};
use mingle_model::Origin;

use super::frame::{Header, Totals};
use super::read::{Content, FileError, Reader};
use crate::files::{Files, sync_names};
use crate::journal::OpenError;

/// The time for which a restore waits for the machine's clock to pass the backup's vector.
const AHEAD_MAX: Duration = Duration::from_secs(5);

/// The data center to found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Founding {
    /// The folder of its journal, which does not exist yet.
    pub journal: PathBuf,
    /// The new cluster.
    pub cluster: u128,
    /// The data center.
    pub dc: DcId,
    /// The number of data centers.
    pub dc_count: u8,
    /// The number of partitions.
    pub partition_count: u16,
}

/// A data center that was founded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The header of the backup.
    pub header: Header,
    /// The totals of the backup.
    pub totals: Totals,
}

/// The reason why a backup cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreError {
    /// The file is damaged, cut off, or no backup.
    File(FileError),
    /// The data center cannot be, such as the fourth one of three.
    Settings(String),
    /// The new cluster has the number of the old one.
    SameCluster(u128),
    /// The clock of this machine is before the backup.
    Clock {
        /// The time by which it is, in microseconds.
        behind_us: u64,
    },
    /// The folder exists already.
    Exists(PathBuf),
    /// The items of a partition are too many for one entry of the journal.
    TooLarge {
        /// The partition.
        partition: u16,
        /// Their bytes.
        found: usize,
    },
    /// The journal cannot be written.
    Journal(OpenError),
    /// The folder cannot be used.
    Folder {
        /// Its path.
        path: PathBuf,
        /// The error of the operating system.
        why: String,
    },
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(why) => why.fmt(f),
            Self::Settings(why) => write!(f, "the settings are not accepted: {why}"),
            Self::SameCluster(cluster) => write!(
                f,
                "{cluster:032x} is the cluster of the backup, and a restored cluster needs a number of its own: the \
                 old one may still run, and its tokens must not be taken for those of the new one"
            ),
            Self::Clock { behind_us } => write!(
                f,
                "the clock of this machine is {} s before the backup, at most {} s are waited for: set the clock",
                behind_us.div_ceil(1_000_000),
                AHEAD_MAX.as_secs()
            ),
            Self::Exists(path) => {
                write!(f, "{} exists already, take an empty folder", path.display())
            }
            Self::TooLarge { partition, found } => write!(
                f,
                "the items of partition {partition} have {found} bytes, at most {ENTRY_BYTES_MAX} are possible: take \
                 more partitions"
            ),
            Self::Journal(why) => why.fmt(f),
            Self::Folder { path, why } => write!(f, "{}: {why}", path.display()),
        }
    }
}

impl std::error::Error for RestoreError {}

impl From<FileError> for RestoreError {
    fn from(why: FileError) -> Self {
        Self::File(why)
    }
}

/// The contents of a backup, for the partitions of a new cluster.
#[derive(Debug)]
struct Contents {
    header: Header,
    totals: Totals,
    items: Vec<Vec<(Key, Arc<State>)>>,
    floors: BTreeMap<Origin, u64>,
}

/// Founds the journal of a data center with the items of a backup. Nothing is written before all of the file is read, and
/// the journal has its name only once it is complete.
///
/// # Errors
///
/// If the file is not a complete backup, the data center does not fit, or the journal cannot be written.
pub fn restore(file: &Path, of: &Founding) -> Result<Restored, RestoreError> {
    let Founding { dc, dc_count, partition_count, .. } = *of;
    Config::new(dc, dc_count, PartitionId(0), partition_count)
        .check()
        .map_err(|why| RestoreError::Settings(why.to_string()))?;
    let contents = read(file, of)?;
    let base = base(&contents.header.at, of.dc_count);
    wait_for_clock(base.highest())?;
    write(of, &base, &contents)?;
    Ok(Restored { header: contents.header, totals: contents.totals })
}

fn read(file: &Path, of: &Founding) -> Result<Contents, RestoreError> {
    let mut reader = Reader::open(file)?;
    let header = *reader.header();
    if header.cluster == of.cluster {
        return Err(RestoreError::SameCluster(of.cluster));
    }
    if of.journal.exists() {
        return Err(RestoreError::Exists(of.journal.clone()));
    }
    let mut items: Vec<Vec<(Key, Arc<State>)>> =
        (0..of.partition_count).map(|_| Vec::new()).collect();
    let mut floors: BTreeMap<Origin, u64> = BTreeMap::new();
    while let Some(content) = reader.next_content()? {
        match content {
            Content::Items(states) => {
                for (key, state) in states {
                    let partition = usize::from(key.partition(of.partition_count).0);
                    items[partition].push((key, state));
                }
            }
            // No operation of an origin at or below a floor is under way anywhere.
            Content::Floors(raised) => {
                for (_, Raised { origin, sequence, .. }) in raised {
                    let highest = floors.entry(origin).or_default();
                    *highest = (*highest).max(sequence);
                }
            }
        }
    }
    // Partitions of the old cluster are one after the other.
    for items in &mut items {
        items.sort_by(|(one, _), (other, _)| one.cmp(other));
    }
    Ok(Contents { header, totals: reader.totals(), items, floors })
}

/// Returns the vector at which the new cluster begins. Data centers that it does not have keep their entries, so that it
/// covers all their operations.
fn base(at: &Vector, dc_count: u8) -> Vector {
    let above = Timestamp::new(at.highest().micros() + 1, PartitionId(0));
    let mut base = at.with(DcId::STRONG, above);
    for dc in (0..dc_count).map(DcId) {
        base[dc] = above;
    }
    base
}

/// Waits until the machine's clock has passed a timestamp: no transaction that begins earlier is accepted.
fn wait_for_clock(base: Timestamp) -> Result<(), RestoreError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let behind = Duration::from_micros(base.micros() + 1).saturating_sub(now);
    if behind > AHEAD_MAX {
        return Err(RestoreError::Clock { behind_us: behind.as_micros() as u64 });
    }
    sleep(behind);
    Ok(())
}

/// Returns the records of a partition, as a checkpoint has them.
fn records(
    of: &Founding,
    base: &Vector,
    floors: &BTreeMap<Origin, u64>,
    states: Vec<(Key, Arc<State>)>,
) -> Vec<Record> {
    let above = base.highest();
    let at = *base;
    let raised = (0..of.dc_count).map(DcId).flat_map(|dc| {
        floors.iter().map(move |(origin, sequence)| {
            (dc, Raised { origin: *origin, sequence: *sequence, at: above })
        })
    });
    let install =
        Install { at, states, suffix: Vec::new(), known_vec: at, cut: at, forward: Vec::new() };
    vec![
        Record::ClockCeiling(above),
        Record::OpFloors(raised.collect()),
        Record::Install(install),
        Record::Vectors(Vectors { known_vec: at, stable_vec: at, uniform_vec: at }),
        // No transaction that began before is accepted or known.
        Record::AgeFloor(above.micros()),
    ]
}

fn write(of: &Founding, base: &Vector, contents: &Contents) -> Result<(), RestoreError> {
    let Founding { journal, cluster, dc, .. } = of;
    let fault = |path: &Path, error: std::io::Error| RestoreError::Folder {
        path: path.to_owned(),
        why: error.to_string(),
    };
    let unfinished = journal.with_extension("unfinished");
    if unfinished.exists() {
        // A restore that was interrupted has left it.
        return Err(RestoreError::Exists(unfinished));
    }
    let identity = Identity { cluster: *cluster, dc: *dc, node: 0, incarnation: 0 };
    let (files, lock) = Files::lock(&unfinished).map_err(RestoreError::Journal)?;
    let wrong = |why: folder::OpenError| {
        let path = unfinished.display().to_string();
        RestoreError::Journal(OpenError::Journal { path, why: Box::new(why) })
    };
    let opened = Log::open(files, identity, true, SEGMENT_BYTES, crate::random());
    let Opened { mut log, .. } = opened.map_err(wrong)?;
    for (number, states) in contents.items.iter().enumerate() {
        let partition = number as u16;
        let records = records(of, base, &contents.floors, states.clone());
        let entries = records.iter().map(|record| put_entry(PartitionId(partition), record));
        let entries: Vec<Vec<u8>> = entries.collect();
        let found = entries.iter().map(Vec::len).max().unwrap_or_default();
        if found > ENTRY_BYTES_MAX {
            return Err(RestoreError::TooLarge { partition, found });
        }
        log.append(&entries).map_err(|why| wrong(why.into()))?;
    }
    drop((log, lock));
    fs::rename(&unfinished, journal).map_err(|error| fault(journal, error))?;
    sync_names(journal.parent()).map_err(|error| fault(journal, error))
}
