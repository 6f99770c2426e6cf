//! The contents of a backup, counted.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use mingle_geo::Kind;
use mingle_geo::types::State;
use mingle_geo::types::item::ItemType;

use super::frame::{Header, Totals};
use super::read::{Content, FileError, Reader};

/// The contents of a backup that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The header.
    pub header: Header,
    /// The totals.
    pub totals: Totals,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// The number of items of each type.
    pub types: BTreeMap<&'static str, u64>,
}

/// Returns the type of an item for a reader at this time, in microseconds since 1970.
pub(super) fn type_of(state: &State, now_us: u64) -> &'static str {
    match state.kind() {
        Kind::Register => "registers of programs",
        Kind::Counter => "counters of programs",
        Kind::Set => "sets of programs",
        Kind::Map => "maps of programs",
        Kind::Log => "logs of programs",
        Kind::Item => match state.as_item().and_then(|item| item.at(now_us).shown_type()) {
            None => "deleted or expired",
            Some(ItemType::Value) => "strings",
            Some(ItemType::Hash) => "hashes",
            Some(ItemType::Set) => "sets",
            Some(ItemType::SortedSet) => "sorted sets",
            Some(ItemType::List) => "lists",
        },
    }
}

/// Reads a backup from its beginning to its end.
///
/// # Errors
///
/// If it is damaged, cut off, or no backup.
///
/// # Examples
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("other");
/// std::fs::write(&file, "a letter to somewhere else")?;
/// let refused = mingled::backup::check(&file).unwrap_err();
/// assert!(refused.to_string().ends_with("it is no backup of mingled"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn check(file: &Path) -> Result<Report, FileError> {
    let mut reader = Reader::open(file)?;
    let header = *reader.header();
    let now_us = header.at.highest().micros();
    let mut types = BTreeMap::new();
    while let Some(content) = reader.next_content()? {
        let Content::Items(items) = content else { continue };
        for (_, state) in items {
            *types.entry(type_of(&state, now_us)).or_default() += 1;
        }
    }
    Ok(Report { header, totals: reader.totals(), bytes: reader.bytes(), types })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { header, totals, bytes, types } = self;
        let Header { cluster, dc, incarnation, dc_count, partition_count, wall_us, at, .. } =
            header;
        writeln!(
            f,
            "backup of {dc}, incarnation {incarnation}, in cluster {cluster:032x}; data centers: {dc_count}, partitions: \
             {partition_count}"
        )?;
        let time = mingle_model::Time::from_micros(i64::try_from(*wall_us).unwrap_or(i64::MAX));
        writeln!(f, "begun at {time}, at the vector {at}")?;
        for (name, count) in types {
            writeln!(f, "  {count:>12} {name}")?;
        }
        write!(
            f,
            "complete; items: {}, floors of operation ids: {}, bytes: {bytes}",
            totals.items, totals.floors
        )
    }
}
