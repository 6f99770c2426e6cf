//! Changes of tables of the application, as statements with timestamps.

use mingle_model::{FieldType, Ref, Value};
use mingle_store::{Refusal, codec};
use sha2::{Digest, Sha256};

use super::read::TABLE_ROW;
use super::{Collection, Column, Mapped};
use crate::change::Change;
use crate::fetch::Row;
use crate::layout::{Found, Layout, text_of};
use crate::scalar::{self, Scalar};

/// Returns a statement with its timestamp among the values.
fn timed(text: String, values: Vec<Scalar>) -> Change {
    Change::Cql { text, values, time: None }
}

fn key_of(layout: &Layout, object: &Ref, column: &Column) -> Result<Scalar, Refusal> {
    let kind = layout.kind(object)?;
    scalar::encode(&layout.schema, column.kind, object.key(), &kind.key_type)
        .map_err(|why| in_place(why, column).within(&format!("the key of {object}")))
}

fn in_column(
    layout: &Layout,
    found: Found<'_>,
    column: &Column,
    value: &Value,
    of: &mingle_model::Type,
) -> Result<Scalar, Refusal> {
    scalar::encode(&layout.schema, column.kind, value, of).map_err(|why| {
        in_place(why, column).within(&format!("{}.{}", found.kind.name, found.field.name))
    })
}

/// Adds the column to a refusal because of a value that it cannot hold.
pub(super) fn in_place(why: Refusal, column: &Column) -> Refusal {
    match why {
        Refusal::Broken(mut violation) => {
            violation.column = Some(unquoted(&column.name));
            Refusal::Broken(violation)
        }
        plain @ Refusal::Plain(_) => plain,
    }
}

/// Returns a name without its quotes.
fn unquoted(name: &str) -> String {
    let inner = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    inner.unwrap_or(name).replace("\"\"", "\"")
}

impl Mapped {
    /// Creates the object's row.
    pub fn create(&self, layout: &Layout, object: &Ref, time: i64) -> Result<Change, Refusal> {
        let (table, key) = (&self.table, &self.key);
        let text = format!("INSERT INTO {table} ({}) VALUES (?) USING TIMESTAMP ?", key.name);
        Ok(timed(text, vec![key_of(layout, object, key)?, Scalar::Big(time)]))
    }

    /// Writes a register.
    pub fn assign(
        &self,
        layout: &Layout,
        object: &Ref,
        found: Found<'_>,
        value: &Value,
        time: i64,
    ) -> Result<Change, Refusal> {
        let column = &self.registers[&*found.field.name];
        let value = in_column(layout, found, column, value, found.inner())?;
        let (table, key, name) = (&self.table, &self.key, &column.name);
        let text =
            format!("INSERT INTO {table} ({}, {name}) VALUES (?, ?) USING TIMESTAMP ?", key.name);
        Ok(timed(text, vec![key_of(layout, object, key)?, value, Scalar::Big(time)]))
    }

    /// Inserts into a set, puts into a map, or appends to a log; `at` is the element, the key, or
    /// the line's dot.
    pub fn insert(
        &self,
        layout: &Layout,
        object: &Ref,
        found: Found<'_>,
        at: At<'_>,
        time: i64,
    ) -> Result<Change, Refusal> {
        let Collection { table, key, clustering, value } = &self.collections[&*found.field.name];
        let mut names = vec![key.name.as_str(), &clustering.name];
        let mut values = vec![key_of(layout, object, key)?];
        // Equal values must name one row, but the server distinguishes the two zeros.
        let unit;
        let (first, second) = match at {
            At::Element(element) => {
                unit = element.canonical();
                (&unit, None)
            }
            At::Entry(entry, put) => {
                unit = entry.canonical();
                (&unit, Some(put))
            }
            At::Line(dot, position, line) => {
                values.push(Scalar::TimeUuid(time_uuid(time, position, dot)));
                (line, Some(line))
            }
        };
        if !matches!(at, At::Line(..)) {
            values.push(in_column(layout, found, clustering, first, found.unit())?);
        }
        if let (Some(column), Some(second)) = (value, second) {
            names.push(&column.name);
            values.push(in_column(layout, found, column, second, found.inner())?);
        }
        let marks = vec!["?"; names.len()].join(", ");
        let names = names.join(", ");
        values.push(Scalar::Big(time));
        let text = format!("INSERT INTO {table} ({names}) VALUES ({marks}) USING TIMESTAMP ?");
        Ok(timed(text, values))
    }

    /// Removes a row as it was seen; if the write time of the row is not readable, removes it as it
    /// was before a commit at `time`.
    pub fn remove(
        &self,
        layout: &Layout,
        object: &Ref,
        row: &Row,
        time: i64,
    ) -> Result<Option<Change>, Refusal> {
        let until = Scalar::Big(if row.time > 0 { row.time } else { time - 1 });
        if row.field == TABLE_ROW {
            let (table, key) = (&self.table, &self.key);
            let text = format!("DELETE FROM {table} USING TIMESTAMP ? WHERE {} = ?", key.name);
            return Ok(Some(timed(text, vec![until, key_of(layout, object, key)?])));
        }
        let Some(Collection { table, key, clustering, .. }) = self.collections.get(&row.field)
        else {
            // A register is removed with its row.
            return Ok(None);
        };
        let kind = layout.kind(object)?;
        let field = kind.fields.iter().find(|field| *field.name == row.field);
        let found = Found { kind, field: field.ok_or("no such field")? };
        let at = if matches!(found.field.field_type, FieldType::Log(_)) {
            Scalar::TimeUuid(row.dot[..].try_into().map_err(|_| "a line has no timeuuid")?)
        } else {
            let text = text_of(&row.element).ok_or("a name is too long for this table")?;
            let value = codec::decode(&layout.schema, text, found.unit())?;
            in_column(layout, found, clustering, &value, found.unit())?
        };
        let text = format!(
            "DELETE FROM {table} USING TIMESTAMP ? WHERE {} = ? AND {} = ?",
            key.name, clustering.name
        );
        Ok(Some(timed(text, vec![until, key_of(layout, object, key)?, at])))
    }
}

/// The item to insert.
#[derive(Clone, Copy)]
pub enum At<'a> {
    /// An element.
    Element(&'a Value),
    /// A key of a map, and its value.
    Entry(&'a Value, &'a Value),
    /// A line: the name of its commit, its position there, and its value.
    Line(&'a [u8], u32, &'a Value),
}

/// Ticks of 100 ns from the beginning of the Gregorian calendar to 1970.
const GREGORIAN: u64 = 0x01b2_1dd2_1381_4000;

/// Returns a timeuuid for a time, the same for all copies (RFC 9562, version 1).
fn time_uuid(time: i64, position: u32, dot: &[u8]) -> [u8; 16] {
    let ticks = (time.unsigned_abs() * 10 + u64::from(position)).wrapping_add(GREGORIAN);
    let (low, middle, high) = (ticks & 0xffff_ffff, (ticks >> 32) & 0xffff, (ticks >> 48) & 0x0fff);
    let head = (low << 32) | (middle << 16) | 0x1000 | high;
    let mut id = [0; 16];
    id[..8].copy_from_slice(&head.to_be_bytes());
    id[8..].copy_from_slice(&Sha256::digest(dot)[..8]);
    id[8] = 0x80 | (id[8] & 0x3f);
    // This bit marks the node as not being the address of a network card.
    id[10] |= 1;
    id
}
