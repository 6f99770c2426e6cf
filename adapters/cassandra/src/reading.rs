//! From reads to the rows they need, and from rows to answers.

use std::collections::BTreeMap;

use mingle_model::{Value, Version, WitnessRow};
use mingle_store::{Data, Read, codec};

use crate::change::{Content, content};
use crate::fetch::{Asked, Found as Fetched, Part, Row};
use crate::fold::is_intention;
use crate::layout::{Cell, Found, HEADER, Layout, ROWS, text_of};

/// The dot of the row with the time of an object's deletion.
pub const DELETED: &[u8] = &[1];

/// Adds the parts that a read of an object needs.
///
/// # Errors
///
/// When it does not fit the declarations.
pub fn ask(layout: &Layout, read: &Read, asked: &mut Asked) -> Result<(), String> {
    let found = layout.read(read)?;
    let Some(object) = read.object() else { return Ok(()) };
    let cell = layout.object(object)?;
    asked.note(layout, &cell, object);
    for part in parts(layout, read, found)? {
        asked.add(&cell, part);
    }
    for field in [HEADER, ROWS] {
        asked.add(&cell, Part::Field(field.to_owned()));
    }
    Ok(())
}

fn parts(layout: &Layout, read: &Read, found: Option<Found<'_>>) -> Result<Vec<Part>, String> {
    let Some(found) = found else { return Ok(vec![Part::Any]) };
    let field = || found.field.name.to_string();
    Ok(match read {
        Read::Contains(_, value) | Read::Entry(_, value) => {
            vec![Part::Element(field(), layout.element(found, value)?.name)]
        }
        Read::SetSize(_) | Read::MapSize(_) | Read::LogSize(_) => vec![Part::Names(field())],
        Read::LogLast(_, count) => vec![Part::Last(field(), at_most((*count).max(1)))],
        Read::LogSlice { from, count, .. } => vec![
            Part::First(field(), at_most(from.saturating_add(*count).max(1))),
            Part::Last(field(), 1),
        ],
        _ => vec![Part::Field(field())],
    })
}

fn at_most(count: u64) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Returns the answer to a read of an object.
///
/// # Errors
///
/// When this crate did not write the rows.
pub fn answer(layout: &Layout, read: &Read, found: &Fetched) -> Result<(Data, Version), String> {
    let object = read.object().ok_or("it reads no object")?;
    let object = layout.object(object)?;
    let header = found.rows(&object, &Part::Field(HEADER.to_owned()));
    let field = layout.read(read)?;
    let parts = parts(layout, read, field)?;
    let rows = found.rows(&object, &parts[0]);
    let newest = parts.iter().flat_map(|part| found.rows(&object, part)).map(|row| row.time);
    let newest = newest.max().unwrap_or(0);
    let deleted = header.iter().filter(|row| row.dot == DELETED).map(|row| row.time).max();
    let version = |time: i64| Version(time.max(deleted.unwrap_or(0)).max(0) as u64);
    let Some(field) = field else {
        let present = header.iter().find(|row| row.dot.is_empty());
        let exists = present.is_some() || !rows.is_empty();
        let time = present.map_or(newest, |row| row.time);
        return Ok((Data::Bool(exists), version(time)));
    };
    let context = |why: String| format!("{}.{}: {why}", field.kind.name, field.field.name);
    let data = data(layout, read, field, rows).map_err(context)?;
    Ok((data, version(newest)))
}

fn data(layout: &Layout, read: &Read, field: Found<'_>, rows: &[Row]) -> Result<Data, String> {
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    Ok(match read {
        Read::Register(_) | Read::Entry(..) => {
            let value = rows.first().map(|row| value(layout, field, row)).transpose()?;
            Data::Register(value)
        }
        Read::Counter(_) => Data::Counter(sum(rows)?),
        Read::Contains(..) => Data::Bool(!rows.is_empty()),
        Read::SetSize(_) | Read::MapSize(_) => {
            let mut names: Vec<&Cell> = rows.iter().map(|row| &row.element).collect();
            names.sort_unstable();
            names.dedup();
            Data::Count(names.len() as u64)
        }
        Read::LogSize(_) => Data::Count(rows.len() as u64),
        Read::Elements(_) => {
            let elements: Result<Vec<Value>, String> =
                rows.iter().map(|row| element(layout, field, row)).collect();
            let mut elements = elements?;
            elements.sort_unstable();
            elements.dedup();
            Data::Values(elements)
        }
        Read::Entries(_) | Read::MapSlice { .. } => {
            let mut entries = BTreeMap::new();
            for row in rows {
                entries.insert(element(layout, field, row)?, value(layout, field, row)?);
            }
            // Rows are in the order of the elements' names, which is not that of all types of keys.
            Data::Entries(match read {
                Read::MapSlice { range, .. } => range.slice(&entries),
                _ => entries.into_iter().collect(),
            })
        }
        Read::LogLast(_, count) => {
            let last = rows.iter().take(size(*count)).rev();
            Data::Values(last.map(|row| value(layout, field, row)).collect::<Result<_, _>>()?)
        }
        Read::LogSlice { from, count, .. } => {
            let slice = rows.iter().skip(size(*from)).take(size(*count));
            Data::Values(slice.map(|row| value(layout, field, row)).collect::<Result<_, _>>()?)
        }
        _ => return Err("it reads no field".into()),
    })
}

/// Returns the sum of a counter's rows.
///
/// # Errors
///
/// When a row holds no amount.
pub fn sum(rows: &[Row]) -> Result<i128, String> {
    let mut sum = 0i128;
    for row in rows.iter().filter(|row| !is_intention(row)) {
        let amount: [u8; 16] =
            payload(row)?.try_into().map_err(|_| "a row holds no amount".to_owned())?;
        sum = sum.saturating_add(i128::from_be_bytes(amount));
    }
    Ok(sum)
}

fn payload(row: &Row) -> Result<&[u8], String> {
    match content(&row.value) {
        Some(Content::Inline(value)) => Ok(value),
        _ => Err("a row holds no value of this version".into()),
    }
}

/// Splits a row into its element's text and the rest. If the element's name is a digest, the row
/// holds the text.
fn split(row: &Row) -> Result<(&[u8], &[u8]), String> {
    let payload = payload(row)?;
    if let Some(text) = text_of(&row.element) {
        return Ok((text, payload));
    }
    let short = || "an element has no text".to_owned();
    let (size, rest) = payload.split_first_chunk().ok_or_else(short)?;
    rest.split_at_checked(u32::from_be_bytes(*size) as usize).ok_or_else(short)
}

fn element(layout: &Layout, field: Found<'_>, row: &Row) -> Result<Value, String> {
    codec::decode(&layout.schema, split(row)?.0, field.unit())
}

fn value(layout: &Layout, field: Found<'_>, row: &Row) -> Result<Value, String> {
    let bytes = if row.element.is_empty() { payload(row)? } else { split(row)?.1 };
    codec::decode(&layout.schema, bytes, field.inner())
}

/// Returns the witness rows found for an object, or for the whole store.
///
/// # Errors
///
/// When one has another version.
pub fn witnesses(found: &Fetched, object: &Cell) -> Result<Vec<WitnessRow>, String> {
    let rows = found.rows(object, &Part::Field(ROWS.to_owned()));
    rows.iter().map(|row| witness(&row.value)).collect()
}

const FORMAT: u8 = 1;

/// Encodes a witness row for storage.
pub fn encode_witness(row: &WitnessRow) -> Cell {
    postcard::to_extend(row, vec![FORMAT]).expect("a row has a form for every value in it")
}

/// Decodes a stored witness row.
///
/// # Errors
///
/// When it does not have this version.
pub fn witness(kept: &[u8]) -> Result<WitnessRow, String> {
    let body = kept.split_first().filter(|(format, _)| **format == FORMAT);
    body.and_then(|(_, body)| postcard::from_bytes(body).ok())
        .ok_or_else(|| "a witness row is corrupt, or of a newer version".into())
}
