//! Writes of mapped objects.
//!
//! All that a commit assigns to one object goes into its row at once: a new row must have whatever
//! the table demands.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{Ref, Value};
use mingle_store::{Address, Write};

use super::{Mapped, MappedField, Rows, key_values, names, of_object};
use crate::layout::{Layout, Place};
use crate::session::Step;
use crate::wire::Param;

/// What is assigned to the columns of one object: the last value, or a sum.
pub(crate) type Assigned = BTreeMap<u16, Param>;

/// For each write of a mapped object's columns, what its row gets there: at the first one all, at
/// the others nothing.
#[derive(Default)]
pub(crate) struct Gathered {
    /// By the place of the write.
    first: BTreeMap<usize, Assigned>,
}

/// The mapping of an object, if it is mapped.
fn mapping<'a>(layout: &'a Layout, object: &Ref) -> Option<&'a Mapped> {
    match &layout.kinds.get(object.kind())?.place {
        Place::Mapped(mapped) => Some(mapped),
        Place::Own { .. } => None,
    }
}

impl Gathered {
    /// Looks through a commit's writes. A command sees what was written before it, and a deletion
    /// ends an object, so nothing moves past either.
    ///
    /// # Errors
    ///
    /// When a value cannot stand in its column.
    pub(crate) fn new(layout: &Layout, writes: &[Write]) -> Result<Self, String> {
        let mut gathered = Self::default();
        let mut open: BTreeMap<&Ref, usize> = BTreeMap::new();
        let mut sums: BTreeMap<(usize, u16), i128> = BTreeMap::new();
        for (index, write) in writes.iter().enumerate() {
            if matches!(write, Write::Command { .. }) {
                open.clear();
            }
            let Some(object) = write.object() else { continue };
            let Some(mapped) = mapping(layout, object) else { continue };
            if matches!(write, Write::Delete(_)) {
                open.remove(object);
                continue;
            }
            let first = *open.entry(object).or_insert(index);
            let assigned = gathered.first.entry(first).or_default();
            let column = |address: &Address| match mapped.fields.get(usize::from(address.field)) {
                Some(MappedField::Column { column, .. }) => Some(column),
                _ => None,
            };
            match write {
                Write::Assign(address, value) => {
                    let Some(column) = column(address) else { continue };
                    let kind = &layout.kinds[object.kind()];
                    // What does not fit is refused when its own turn comes.
                    if !layout
                        .schema
                        .conforms(value, kind.fields[usize::from(address.field)].inner())
                    {
                        continue;
                    }
                    assigned.insert(address.field, column.param(layout, value)?);
                }
                Write::Add(address, amount) => {
                    let sum = sums.entry((first, address.field)).or_default();
                    *sum = sum.saturating_add(*amount);
                    assigned.insert(address.field, Param::Text(sum.to_string()));
                }
                _ => {}
            }
        }
        Ok(gathered)
    }

    /// Takes what the write at this place stands for, if it is the first one of its object.
    pub(crate) fn take(&mut self, index: usize) -> Option<Assigned> {
        self.first.remove(&index)
    }
}

impl Mapped {
    /// Adds the statements of a write. `assigned` is what the object's row gets with it.
    ///
    /// # Errors
    ///
    /// When a value cannot stand in its column.
    pub(crate) fn write(
        &self,
        layout: &Layout,
        write: &Write,
        assigned: Option<Assigned>,
        steps: &mut Vec<Step>,
    ) -> Result<(), String> {
        let Some(object) = write.object() else { return Ok(()) };
        let key = self.key(layout, object.key())?;
        if let Write::Delete(_) = write {
            self.delete(&key, steps);
            return Ok(());
        }
        if let Some(assigned) = assigned {
            steps.push(self.upsert(layout, key.clone(), assigned)?);
        }
        let (Write::Insert(address, _)
        | Write::Remove(address, _)
        | Write::Put(address, ..)
        | Write::Erase(address, _)
        | Write::Append(address, _)
        | Write::Clear(address)) = write
        else {
            return Ok(());
        };
        let Some(field) = self.fields.get(usize::from(address.field)) else { return Ok(()) };
        steps.push(field.step(layout, key, write)?);
        Ok(())
    }

    fn delete(&self, key: &[Param], steps: &mut Vec<Step>) {
        for field in &self.fields {
            if let Some(rows) = field.rows() {
                steps.push(Step::new(rows.delete(""), key.to_vec()));
            }
        }
        let sql = format!("DELETE FROM {} WHERE {}", self.table, of_object(&self.keys));
        steps.push(Step::new(sql, key.to_vec()));
    }

    /// Writes columns of the object's row, which is made if it is not there.
    fn upsert(
        &self,
        layout: &Layout,
        mut params: Vec<Param>,
        assigned: Assigned,
    ) -> Result<Step, String> {
        let (mut changes, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let written: BTreeSet<u16> = assigned.keys().copied().collect();
        for (field, param) in assigned {
            let MappedField::Column { column, .. } = &self.fields[usize::from(field)] else {
                continue;
            };
            params.push(param);
            let (name, value) = (&column.name, column.parameter(params.len()));
            let is_sum = is_counter(self, field);
            changes.push(if is_sum {
                format!("{name} = coalesce({name}, 0) + {value}")
            } else {
                format!("{name} = {value}")
            });
            columns.push(name.clone());
            values.push(value);
        }
        let (table, condition) = (&self.table, of_object(&self.keys));
        let found = if changes.is_empty() {
            format!("WITH found AS (SELECT FROM {table} WHERE {condition})")
        } else {
            let changes = changes.join(", ");
            format!("WITH found AS (UPDATE {table} SET {changes} WHERE {condition} RETURNING 1)")
        };
        if let Some(column) = &self.numbered {
            return Ok(self.change(layout, column, &found, params));
        }
        for (index, field) in (0u16..).zip(&self.fields) {
            if let MappedField::Column { column, fill: Some(fill) } = field
                && !written.contains(&index)
            {
                params.push(match fill {
                    Value::Int(zero) if is_counter(self, index) => Param::Text(zero.to_string()),
                    fill => column.param(layout, fill)?,
                });
                columns.push(column.name.clone());
                values.push(column.parameter(params.len()));
            }
        }
        let columns = [vec![names(&self.keys)], columns].concat().join(", ");
        let values = [vec![key_values(&self.keys)], values].concat().join(", ");
        let sql = format!(
            "{found} INSERT INTO {table} ({columns}) SELECT {values} \
             WHERE NOT EXISTS (SELECT FROM found)"
        );
        Ok(Step::new(sql, params))
    }
}

impl Mapped {
    /// Changes a row, which must be there: the database alone gives this column of the key.
    fn change(&self, layout: &Layout, column: &str, found: &str, mut params: Vec<Param>) -> Step {
        params.push(Param::Text(format!(
            "no such row is in {}, and a new one cannot be made here: the database alone gives its \
             {column} (GENERATED ALWAYS)",
            self.table
        )));
        let (refuse, reason) = (layout.system("refuse"), params.len());
        let sql = format!(
            "{found} SELECT {refuse}(${reason}::text) WHERE NOT EXISTS (SELECT FROM found)"
        );
        Step::new(sql, params)
    }
}

/// Whether a field is a counter.
fn is_counter(mapped: &Mapped, field: u16) -> bool {
    matches!(
        mapped.fields.get(usize::from(field)),
        Some(MappedField::Column { column, .. }) if column.is_counter()
    )
}

impl MappedField {
    fn rows(&self) -> Option<&Rows> {
        match self {
            Self::Column { .. } => None,
            Self::Set { rows, .. } | Self::Map { rows, .. } | Self::Log { rows, .. } => Some(rows),
        }
    }

    fn step(&self, layout: &Layout, mut key: Vec<Param>, write: &Write) -> Result<Step, String> {
        let next = key.len() + 1;
        let sql = match (self, write) {
            (Self::Set { rows, element }, Write::Insert(_, value)) => {
                key.push(element.param(layout, value)?);
                let (name, value) = (&element.name, element.parameter(next));
                rows.insert_unless_there(name, &value, &format!("{name} = {value}"))
            }
            (Self::Set { rows, element: column }, Write::Remove(_, value))
            | (Self::Map { rows, entry: column, .. }, Write::Erase(_, value)) => {
                key.push(column.param(layout, value)?);
                rows.delete(&format!(" AND {} = {}", column.name, column.parameter(next)))
            }
            (Self::Map { rows, entry, value }, Write::Put(_, at, put)) => {
                key.extend([entry.param(layout, at)?, value.param(layout, put)?]);
                let (at, put) = (entry.parameter(next), value.parameter(next + 1));
                rows.put((&entry.name, &at), (&value.name, &put))
            }
            (Self::Log { rows, line, order, is_numbered }, Write::Append(_, appended)) => {
                key.push(line.param(layout, appended)?);
                rows.append((&line.name, &line.parameter(next)), order, *is_numbered)
            }
            (field, _) => match field.rows() {
                Some(rows) => rows.delete(""),
                None => return Err("a column has no elements".into()),
            },
        };
        Ok(Step::new(sql, key))
    }
}

impl Rows {
    fn delete(&self, condition: &str) -> String {
        format!("DELETE FROM {} WHERE {}{condition}", self.table, of_object(&self.keys))
    }

    fn insert_unless_there(&self, column: &str, value: &str, condition: &str) -> String {
        let (table, keys, values) = (&self.table, names(&self.keys), key_values(&self.keys));
        let object = of_object(&self.keys);
        format!(
            "INSERT INTO {table} ({keys}, {column}) SELECT {values}, {value} \
             WHERE NOT EXISTS (SELECT FROM {table} WHERE {object} AND {condition})"
        )
    }

    fn put(&self, entry: (&str, &str), value: (&str, &str)) -> String {
        let (table, keys, values) = (&self.table, names(&self.keys), key_values(&self.keys));
        let object = of_object(&self.keys);
        let ((entry, at), (value, put)) = (entry, value);
        format!(
            "WITH updated AS (UPDATE {table} SET {value} = {put} \
             WHERE {object} AND {entry} = {at} RETURNING 1) \
             INSERT INTO {table} ({keys}, {entry}, {value}) SELECT {values}, {at}, {put} \
             WHERE NOT EXISTS (SELECT FROM updated)"
        )
    }

    fn append(&self, line: (&str, &str), order: &str, is_numbered: bool) -> String {
        let (table, keys, values) = (&self.table, names(&self.keys), key_values(&self.keys));
        let (column, value) = line;
        if is_numbered {
            return format!("INSERT INTO {table} ({keys}, {column}) VALUES ({values}, {value})");
        }
        let object = of_object(&self.keys);
        format!(
            "INSERT INTO {table} ({keys}, {column}, {order}) SELECT {values}, {value}, \
             coalesce((SELECT max({order}) + 1 FROM {table} WHERE {object}), 1)"
        )
    }
}
