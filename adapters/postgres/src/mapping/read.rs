//! Reads of mapped objects: one statement for each read, all in one round trip.
//!
//! The version of a row is its `xmin`: the transaction that last wrote it.

use std::collections::BTreeMap;

use mingle_model::{Ref, Value};
use mingle_store::{Address, Data, KeyRange, Read, Refusal};

use super::column::Column;
use super::{Mapped, MappedField, Rows, of_object};
use crate::layout::{Kind, Layout, Place};
use crate::session::Step;
use crate::text::Text;
use crate::wire::{Param, Row, cell, int, text};

/// The reads of mapped objects in a batch.
#[derive(Default)]
pub(crate) struct MappedAsk {
    steps: Vec<Step>,
    /// The index of a read's statement, by the index of the read.
    places: BTreeMap<usize, usize>,
}

const VERSION: &str = "xmin::text::bigint";

impl MappedAsk {
    /// Returns the statements.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// True if the read at this index is one of a mapped object.
    pub(crate) fn has(&self, index: usize) -> bool {
        self.places.contains_key(&index)
    }

    /// Adds a read.
    ///
    /// # Errors
    ///
    /// When a column cannot hold a key or an element.
    pub(crate) fn ask(
        &mut self,
        layout: &Layout,
        mapped: &Mapped,
        index: usize,
        read: &Read,
    ) -> Result<(), Refusal> {
        let step = mapped.step(layout, read)?;
        self.places.insert(index, self.steps.len());
        self.steps.push(step);
        Ok(())
    }

    /// Returns the answer to a read.
    ///
    /// # Errors
    ///
    /// When a row holds a value that is not of the declared type.
    pub(crate) fn answer(
        &self,
        layout: &Layout,
        index: usize,
        read: &Read,
        results: &[Vec<Row>],
    ) -> Result<(Data, i64), String> {
        let rows = self.places.get(&index).and_then(|place| results.get(*place));
        let rows = rows.map_or(&[][..], Vec::as_slice);
        let object = read.object().ok_or("a read of no object")?;
        let Kind { place: Place::Mapped(mapped), .. } = layout.kind(object.kind())? else {
            return Err(format!("object {} is not mapped", object.kind()));
        };
        let of = |why| format!("{object} in {}: {why}", mapped.table_of(read.address()));
        mapped.answer(layout, read, rows).map_err(of)
    }
}

impl Mapped {
    /// Returns the table of a field, or the object's table.
    fn table_of(&self, field: Option<&Address>) -> &str {
        let field = field.and_then(|address| self.fields.get(usize::from(address.field)));
        &field.and_then(MappedField::rows).unwrap_or(&self.rows).table
    }

    fn step(&self, layout: &Layout, read: &Read) -> Result<Step, Refusal> {
        let object = read.object().ok_or("a read of no object")?;
        let mut params = self.key(layout, object.key())?;
        let field = read.address().map(|address| address.field);
        if let (Some(field), Read::MapSlice { range, .. }) = (field, read)
            && let Some(bounds) = self.bounds(layout, field, range)
        {
            params.extend(bounds);
            let text = Text::MappedSlice(object.kind().clone(), field, range.is_last);
            let sql = layout.texts.get(text, || self.slice(field, range.is_last));
            return Ok(Step::new(sql, params));
        }
        if let Some(field) = field {
            self.add_params(layout, field, read, &mut params)?;
        }
        let text = Text::Mapped(object.kind().clone(), field, std::mem::discriminant(read));
        let sql = layout.texts.get(text, || self.text(field, read));
        Ok(Step::new(sql, params))
    }

    /// Returns the parameters of a slice that come after the object's key: the bounds, null where there is none, and
    /// the number of entries. None if the map is read as a whole: the column does not order its values as the language
    /// does, or it cannot hold a bound.
    fn bounds(&self, layout: &Layout, field: u16, range: &KeyRange) -> Option<[Param; 3]> {
        let MappedField::Map { entry, .. } = &self.fields[usize::from(field)] else { return None };
        entry.ordered()?;
        let bound = |key: &Option<Value>| match key {
            Some(key) => entry.unit(layout, key).ok(),
            None => Some(Param::Null),
        };
        // The first entry is left out later, if the range begins after it.
        let count = range.count.saturating_add(range.is_after.into());
        let count = Param::Int(i64::try_from(count).unwrap_or(i64::MAX));
        Some([bound(&range.from)?, bound(&range.before)?, count])
    }

    /// Returns the statement for a slice of a map.
    fn slice(&self, field: u16, is_last: bool) -> String {
        let MappedField::Map { rows, entry, value } = &self.fields[usize::from(field)] else {
            return String::new();
        };
        let (order, first) = (entry.ordered().unwrap_or_default(), self.rows.keys.len() + 1);
        let (from, before) = (entry.bound(first), entry.bound(first + 1));
        let rest = format!(
            " AND ({from} IS NULL OR {order} >= {from}) AND ({before} IS NULL OR {order} < {before}) \
             ORDER BY {order}{} LIMIT ${}::bigint",
            if is_last { " DESC" } else { "" },
            first + 2
        );
        rows.select(&format!("{VERSION}, {}, {}", entry.selected(), value.selected()), &rest)
    }

    /// Adds the parameters of a read that come after the object's key.
    fn add_params(
        &self,
        layout: &Layout,
        field: u16,
        read: &Read,
        params: &mut Vec<Param>,
    ) -> Result<(), Refusal> {
        let whole = |number: u64| Param::Int(i64::try_from(number).unwrap_or(i64::MAX));
        match (&self.fields[usize::from(field)], read) {
            (MappedField::Set { element: key, .. }, Read::Contains(_, one))
            | (MappedField::Map { entry: key, .. }, Read::Entry(_, one)) => {
                params.push(key.unit(layout, one)?);
            }
            (MappedField::Log { .. }, Read::LogSize(_)) => {}
            (MappedField::Log { .. }, Read::LogLast(_, count)) => params.push(whole(*count)),
            (MappedField::Log { .. }, Read::LogSlice { from, count, .. }) => {
                params.extend([whole(*from), whole(*count)]);
            }
            (MappedField::Log { .. }, _) => return Err("a log is read otherwise".into()),
            _ => {}
        }
        Ok(())
    }

    /// Returns the statement that reads a field, or the existence of an object. All reads of the
    /// same variant have the same text.
    fn text(&self, field: Option<u16>, read: &Read) -> String {
        let (table, condition) = (&self.rows.table, of_object(&self.rows.keys));
        let Some(field) = field.map(|field| &self.fields[usize::from(field)]) else {
            return format!("SELECT {VERSION} FROM {table} WHERE {condition}");
        };
        let next = self.rows.keys.len() + 1;
        match (field, read) {
            (MappedField::Column { column, .. }, _) => {
                format!("SELECT {VERSION}, {} FROM {table} WHERE {condition}", column.selected())
            }
            (MappedField::Joined { joined, .. }, _) => {
                let columns: Vec<String> =
                    joined.own().map(|column| format!(", {}", column.selected())).collect();
                format!("SELECT {VERSION}{} FROM {table} WHERE {condition}", columns.concat())
            }
            (MappedField::Set { rows, element: key }, Read::Contains(..))
            | (MappedField::Map { rows, entry: key, .. }, Read::Entry(..)) => {
                let value = match field {
                    MappedField::Map { value, .. } => format!(", {}", value.selected()),
                    _ => String::new(),
                };
                let condition = format!("{} = {}", key.name, key.parameter(next));
                rows.select(&format!("{VERSION}{value}"), &format!(" AND {condition}"))
            }
            (MappedField::Set { rows, element: key }, Read::SetSize(_))
            | (MappedField::Map { rows, entry: key, .. }, Read::MapSize(_)) => {
                let count = format!("max({VERSION}), count(DISTINCT {})", key.name);
                rows.select(&count, "")
            }
            (MappedField::Set { rows, element }, _) => {
                rows.select(&format!("{VERSION}, {}", element.selected()), "")
            }
            (MappedField::Map { rows, entry, value }, _) => {
                let (entry, value) = (entry.selected(), value.selected());
                rows.select(&format!("{VERSION}, {entry}, {value}"), "")
            }
            (MappedField::Log { rows, .. }, Read::LogSize(_)) => {
                rows.select(&format!("max({VERSION}), count(*)"), "")
            }
            (MappedField::Log { rows, line, order }, read) => {
                let order = &order.name;
                let window = if matches!(read, Read::LogLast(..)) {
                    format!(" ORDER BY {order} DESC LIMIT ${next}::bigint")
                } else {
                    let limit = next + 1;
                    format!(" ORDER BY {order} OFFSET ${next}::bigint LIMIT ${limit}::bigint")
                };
                rows.select(&format!("{VERSION}, {}", line.selected()), &window)
            }
        }
    }

    fn answer(&self, layout: &Layout, read: &Read, rows: &[Row]) -> Result<(Data, i64), String> {
        let newest = rows.iter().map(|row| int(row, 0)).max().unwrap_or(0);
        let count = || u64::try_from(rows.first().map_or(0, |row| int(row, 1))).unwrap_or(0);
        let Some(address) = read.address() else {
            return Ok((Data::Bool(!rows.is_empty()), newest));
        };
        let must = |column: &Column, row: &Row, index: usize| {
            let found = column.read(layout, cell(row, index))?;
            found.ok_or_else(|| format!("column {} holds null", column.name))
        };
        let many = |column: &Column| -> Result<Vec<Value>, String> {
            rows.iter().map(|row| must(column, row, 1)).collect()
        };
        let data = match (&self.fields[usize::from(address.field)], read) {
            (MappedField::Column { column, .. }, Read::Counter(_)) => {
                let sum = rows.first().and_then(|row| text(row, 1)).unwrap_or("0");
                let sum = sum.parse();
                Data::Counter(sum.map_err(|_| format!("column {} is too large", column.name))?)
            }
            (field @ (MappedField::Column { .. } | MappedField::Joined { .. }), _) => {
                Data::Register(field.register(layout, &address.object, rows.first())?)
            }
            (_, Read::Contains(..)) => Data::Bool(!rows.is_empty()),
            (MappedField::Map { value, .. }, Read::Entry(..)) => {
                Data::Register(match rows.first() {
                    Some(row) => value.read(layout, cell(row, 1))?,
                    None => None,
                })
            }
            (_, Read::SetSize(_) | Read::MapSize(_) | Read::LogSize(_)) => Data::Count(count()),
            (MappedField::Set { element, .. }, _) => {
                let mut values = many(element)?;
                values.sort();
                values.dedup();
                Data::Values(values)
            }
            (MappedField::Map { entry, value, .. }, _) => {
                let pair = |row: &Row| Ok((must(entry, row, 1)?, must(value, row, 2)?));
                let entries: Result<Vec<(Value, Value)>, String> = rows.iter().map(pair).collect();
                let mut entries = entries?;
                entries.sort();
                if let Read::MapSlice { range, .. } = read {
                    entries = range.slice(entries.iter().map(|(key, value)| (key, value)));
                }
                Data::Entries(entries)
            }
            (MappedField::Log { line, .. }, read) => {
                let mut lines = many(line)?;
                if matches!(read, Read::LogLast(..)) {
                    lines.reverse();
                }
                Data::Values(lines)
            }
        };
        Ok((data, newest))
    }
}

impl MappedField {
    /// Returns the value of a register in the row of an object, if there is one.
    fn register(
        &self,
        layout: &Layout,
        object: &Ref,
        row: Option<&Row>,
    ) -> Result<Option<Value>, String> {
        match (self, row) {
            (Self::Column { column, .. }, Some(row)) => column.read(layout, cell(row, 1)),
            (Self::Joined { joined, .. }, Some(row)) => joined.read(layout, object, (row, 1)),
            _ => Ok(None),
        }
    }
}

impl Rows {
    /// Returns a query on an object's rows.
    fn select(&self, columns: &str, rest: &str) -> String {
        let (table, condition) = (&self.table, of_object(&self.keys));
        format!("SELECT {columns} FROM {table} WHERE {condition}{rest}")
    }
}
