//! The form of a catalog's row, which is JSON, as far as others than the catalog itself read it.

use std::collections::BTreeSet;

use serde_json::Value as Json;

/// The format of a catalog without indexes.
pub const FORMAT: u64 = 3;

/// The format of a catalog with indexes: an engine that knew no indexes would write objects without them.
pub const FORMAT_INDEXED: u64 = 4;

/// The format of a catalog with `unique`s: an engine that knew none would write objects with the same values.
pub const FORMAT_UNIQUE: u64 = 5;

/// Reads a row; none where it is of another format or no catalog at all.
pub fn parse(row: &[u8]) -> Option<Json> {
    let json = serde_json::from_slice(row).ok()?;
    unknown_format(&json).is_none().then_some(json)
}

/// Returns the format, if it has one that this engine does not read.
pub fn unknown_format(catalog: &Json) -> Option<u64> {
    let known = [FORMAT, FORMAT_INDEXED, FORMAT_UNIQUE];
    catalog.get("format")?.as_u64().filter(|format| !known.contains(format))
}

/// Returns the indexes of a catalog: the id of the kind, and the fields; none where they cannot be read.
pub fn indexes(
    catalog: &Json,
    is_wanted: impl Fn(&Json) -> bool,
) -> Option<BTreeSet<(u32, Vec<u16>)>> {
    match catalog.get("indexes") {
        None => Some(BTreeSet::new()),
        Some(indexes) => {
            let indexes = indexes.as_array()?.iter().filter(|index| is_wanted(index));
            indexes.map(index).collect()
        }
    }
}

fn index(json: &Json) -> Option<(u32, Vec<u16>)> {
    let fields = json.get("fields")?.as_array()?.iter();
    let fields = fields.map(|field| u16::try_from(field.as_u64()?).ok()).collect::<Option<_>>()?;
    Some((u32::try_from(json.get("kind")?.as_u64()?).ok()?, fields))
}
