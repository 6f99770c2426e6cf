//! Writes of mapped objects.
//!
//! All values that a commit assigns to one object go into its row in one statement: a new row must
//! satisfy the table's constraints at once.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{Ref, Value};
use mingle_store::{Refusal, Write};

use super::{Mapped, MappedField, Order, Positions, Rows, key_values, names, of_object};
use crate::error::{REFUSED, UNWRITTEN};
use crate::layout::{Layout, Place};
use crate::session::Step;
use crate::wire::Param;

/// The values assigned to the columns of one object, by field: the last value, or a sum.
pub(crate) type Assigned = BTreeMap<u16, Vec<Param>>;

/// The combined assignments to the row of each mapped object. The first write of an object carries
/// all of them, its later writes carry none.
#[derive(Default)]
pub(crate) struct Gathered {
    /// By the index of the write.
    first: BTreeMap<usize, Assigned>,
}

/// Returns the mapping of an object, if it is mapped.
fn mapping<'a>(layout: &'a Layout, object: &Ref) -> Option<&'a Mapped> {
    match &layout.kinds.get(object.kind())?.place {
        Place::Mapped(mapped) => Some(mapped),
        Place::Own { .. } => None,
    }
}

impl Gathered {
    /// Combines a commit's writes. A command sees the writes before it, and a deletion ends an
    /// object, so no assignment moves past either. An object that is only emptied before it is deleted gets no row.
    ///
    /// # Errors
    ///
    /// When a column cannot hold a value.
    pub(crate) fn new(layout: &Layout, writes: &[Write]) -> Result<Self, Refusal> {
        let mut gathered = Self::default();
        let mut open: BTreeMap<&Ref, usize> = BTreeMap::new();
        let mut emptied: BTreeMap<&Ref, usize> = BTreeMap::new();
        let mut sums: BTreeMap<(usize, u16), i128> = BTreeMap::new();
        for (index, write) in writes.iter().enumerate() {
            if matches!(write, Write::Command { .. }) {
                open.clear();
                emptied.clear();
            }
            let Some(object) = write.object() else { continue };
            let Some(mapped) = mapping(layout, object) else { continue };
            if matches!(write, Write::Delete(_)) {
                open.remove(object);
                if let Some(first) = emptied.remove(object) {
                    gathered.first.remove(&first);
                }
                continue;
            }
            let first = *open.entry(object).or_insert(index);
            match write {
                Write::Clear(_) if first == index => drop(emptied.insert(object, first)),
                Write::Clear(_) => {}
                _ => drop(emptied.remove(object)),
            }
            let assigned = gathered.first.entry(first).or_default();
            match write {
                Write::Assign(address, value) => {
                    let Some(field) = mapped.fields.get(usize::from(address.field)) else {
                        continue;
                    };
                    let kind = &layout.kinds[object.kind()];
                    // A value that does not fit is refused when its own write is handled.
                    if !layout
                        .schema
                        .conforms(value, kind.fields[usize::from(address.field)].inner())
                    {
                        continue;
                    }
                    let Some(params) = field.assigned(layout, object, value) else { continue };
                    let table = || crate::name::unquoted(&mapped.rows.table);
                    let params = params.map_err(|why| why.of_table(&table()))?;
                    assigned.insert(address.field, params);
                }
                Write::Add(address, amount) => {
                    let sum = sums.entry((first, address.field)).or_default();
                    *sum = sum.saturating_add(*amount);
                    assigned.insert(address.field, vec![Param::Text(sum.to_string())]);
                }
                _ => {}
            }
        }
        Ok(gathered)
    }

    /// Takes the assignments of the write at this index, if it is the first of its object.
    pub(crate) fn take(&mut self, index: usize) -> Option<Assigned> {
        self.first.remove(&index)
    }
}

impl Mapped {
    /// Adds the statements of a write. `assigned` holds the values for the object's row. The keys of the objects in
    /// `drawn` were drawn, and their rows are not made yet.
    ///
    /// # Errors
    ///
    /// When a column cannot hold a value.
    pub(crate) fn write(
        &self,
        layout: &Layout,
        write: &Write,
        assigned: Option<Assigned>,
        (drawn, steps): (&mut BTreeSet<Ref>, &mut Vec<Step>),
    ) -> Result<(), Refusal> {
        let Some(object) = write.object() else { return Ok(()) };
        let key = self.key(layout, object.key())?;
        if let Write::Delete(_) = write {
            self.delete(layout, &key, steps);
            return Ok(());
        }
        if let Some(assigned) = assigned {
            let is_drawn = drawn.remove(object);
            steps.push(self.upsert(layout, key.clone(), (assigned, is_drawn))?);
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
        let step = field.step(layout, key, write);
        let table = || crate::name::unquoted(&field.rows().unwrap_or(&self.rows).table);
        steps.push(step.map_err(|why| why.of_table(&table()))?);
        Ok(())
    }

    fn delete(&self, layout: &Layout, key: &[Param], steps: &mut Vec<Step>) {
        let rows = self.fields.iter().filter_map(MappedField::rows);
        for rows in rows.chain([&self.rows]) {
            steps.push(rows.delete(layout, "", key.to_vec()));
        }
    }

    /// Writes columns of the object's row; the row is created if it does not exist. If its key was drawn, it is created
    /// without a look at the rows that there are.
    fn upsert(
        &self,
        layout: &Layout,
        mut params: Vec<Param>,
        (assigned, is_drawn): (Assigned, bool),
    ) -> Result<Step, Refusal> {
        let (mut changes, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let written: BTreeSet<u16> = assigned.keys().copied().collect();
        for (field, given) in assigned {
            for (column, param) in self.fields[usize::from(field)].written().into_iter().zip(given)
            {
                params.push(param);
                let (name, value) = (&column.name, column.parameter(params.len()));
                let sum = is_counter(self, field).then(|| format!("coalesce({name}, 0) + "));
                changes.push(format!("{name} = {}{value}", sum.unwrap_or_default()));
                columns.push(name.clone());
                values.push(value);
            }
        }
        let Rows { table, keys, .. } = &self.rows;
        let condition = of_object(keys);
        // A trigger may give the row another key. Without triggers the key is not checked: row
        // policies may hide a new row.
        let kept = if self.rows.triggers.is_empty() { "true" } else { &condition };
        let mut first = vec![format!("found AS (SELECT FROM {table} WHERE {condition})")];
        if !changes.is_empty() {
            let changes = changes.join(", ");
            first.push(format!(
                "changed AS (UPDATE {table} SET {changes} WHERE {condition} RETURNING {kept} AS is_kept)"
            ));
        }
        if let Some(column) = self.numbered.as_ref().filter(|_| !is_drawn) {
            return Ok(self.change(layout, column, &first, params));
        }
        self.fill(layout, &written, (&mut params, &mut columns, &mut values))?;
        let columns = [vec![names(keys)], columns].concat().join(", ");
        let values = [vec![key_values(keys)], values].concat().join(", ");
        if is_drawn {
            let made = format!(
                "made AS (INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE SELECT {values} \
                 RETURNING {kept} AS is_kept)"
            );
            let is_written = "EXISTS (SELECT FROM made WHERE is_kept)";
            return Ok(self.rows.expect(layout, &[made], is_written, params));
        }
        first.push(format!(
            "made AS (INSERT INTO {table} ({columns}) SELECT {values} \
             WHERE NOT EXISTS (SELECT FROM found) RETURNING {kept} AS is_kept)"
        ));
        let is_written = if changes.is_empty() {
            "EXISTS (SELECT FROM found) OR EXISTS (SELECT FROM made WHERE is_kept)"
        } else {
            "EXISTS (SELECT FROM changed WHERE is_kept) OR EXISTS (SELECT FROM made WHERE is_kept)"
        };
        Ok(self.rows.expect(layout, &first, is_written, params))
    }
}

impl Mapped {
    /// Adds the values of a new row's columns that must have one and that the program does not write.
    fn fill(
        &self,
        layout: &Layout,
        written: &BTreeSet<u16>,
        (params, columns, values): (&mut Vec<Param>, &mut Vec<String>, &mut Vec<String>),
    ) -> Result<(), Refusal> {
        for (index, field) in (0u16..).zip(&self.fields) {
            if written.contains(&index) {
                continue;
            }
            let given = match field {
                MappedField::Column { fill: Some(Value::Int(zero)), .. }
                    if is_counter(self, index) =>
                {
                    vec![Param::Text(zero.to_string())]
                }
                MappedField::Column { column, fill: Some(fill) } => {
                    vec![column.param(layout, fill)?]
                }
                MappedField::Joined { joined, fill: Some(fill) } => joined.filled(layout, fill)?,
                _ => continue,
            };
            for (column, param) in field.written().into_iter().zip(given) {
                params.push(param);
                columns.push(column.name.clone());
                values.push(column.parameter(params.len()));
            }
        }
        Ok(())
    }
}

impl Mapped {
    /// Changes a row, which must exist: only the database can set this key column.
    fn change(
        &self,
        layout: &Layout,
        column: &str,
        first: &[String],
        mut params: Vec<Param>,
    ) -> Step {
        let Rows { table, .. } = &self.rows;
        params.push(Param::Text(format!(
            "no such row is in {table}, and a new one cannot be made here: the database alone gives its \
             {column} (GENERATED ALWAYS)"
        )));
        params.push(Param::Text(self.rows.unwritten()));
        let (stop, none, unwritten) = (layout.system("stop"), params.len() - 1, params.len());
        let changed = match first.len() {
            1 => "found",
            _ => "changed WHERE is_kept",
        };
        let first = first.join(", ");
        let sql = format!(
            "WITH {first} SELECT CASE WHEN EXISTS (SELECT FROM found) THEN {stop}(${unwritten}::text, '{UNWRITTEN}') \
             ELSE {stop}(${none}::text, '{REFUSED}') END WHERE NOT EXISTS (SELECT FROM {changed})"
        );
        Step::new(sql, params)
    }
}

/// True if a field is a counter.
fn is_counter(mapped: &Mapped, field: u16) -> bool {
    matches!(
        mapped.fields.get(usize::from(field)),
        Some(MappedField::Column { column, .. }) if column.is_counter()
    )
}

impl MappedField {
    /// Returns the parameters for a value that a register is given; none if it is no register.
    fn assigned(
        &self,
        layout: &Layout,
        object: &Ref,
        value: &Value,
    ) -> Option<Result<Vec<Param>, Refusal>> {
        match self {
            Self::Column { column, .. } => {
                Some(column.assigned(layout, value).map(|param| vec![param]))
            }
            Self::Joined { joined, .. } => Some(joined.assigned(layout, object, value)),
            _ => None,
        }
    }

    fn step(&self, layout: &Layout, mut key: Vec<Param>, write: &Write) -> Result<Step, Refusal> {
        let next = key.len() + 1;
        Ok(match (self, write) {
            (Self::Set { rows, element }, Write::Insert(_, value)) => {
                key.push(element.unit(layout, value)?);
                rows.insert_unless_there(layout, (&element.name, &element.parameter(next)), key)
            }
            (Self::Set { rows, element: column }, Write::Remove(_, value))
            | (Self::Map { rows, entry: column, .. }, Write::Erase(_, value)) => {
                key.push(column.unit(layout, value)?);
                let condition = format!(" AND {} = {}", column.name, column.parameter(next));
                rows.delete(layout, &condition, key)
            }
            (Self::Map { rows, entry, value }, Write::Put(_, at, put)) => {
                key.extend([entry.unit(layout, at)?, value.param(layout, put)?]);
                let (at, put) = (entry.parameter(next), value.parameter(next + 1));
                rows.put(layout, (&entry.name, &at), (&value.name, &put), key)
            }
            (Self::Log { rows, line, order }, Write::Append(_, appended)) => {
                key.push(line.param(layout, appended)?);
                rows.append(layout, (&line.name, &line.parameter(next)), order, key)
            }
            (field, _) => match field.rows() {
                Some(rows) => rows.delete(layout, "", key),
                None => return Err("a column has no elements".into()),
            },
        })
    }
}

impl Rows {
    /// Returns the message for a row that should have been written but was not, although no
    /// statement failed.
    fn unwritten(&self) -> String {
        let (table, triggers) = (&self.table, self.triggers.join(", "));
        let by = match self.triggers.len() {
            0 => "a trigger, a rule or a policy of the table".to_owned(),
            1 => format!("trigger {triggers}, a rule or a policy of the table"),
            _ => format!("one of the triggers {triggers}, a rule or a policy of the table"),
        };
        format!("{by} kept a row of {table} from being written as it was given")
    }

    /// Returns a statement that fails unless `holds` is true after its first parts have run.
    fn expect(
        &self,
        layout: &Layout,
        first: &[String],
        holds: &str,
        mut params: Vec<Param>,
    ) -> Step {
        params.push(Param::Text(self.unwritten()));
        let (first, stop, reason) = (first.join(", "), layout.system("stop"), params.len());
        let sql = format!(
            "WITH {first} SELECT {stop}(${reason}::text, '{UNWRITTEN}') WHERE NOT ({holds})"
        );
        Step::new(sql, params)
    }

    fn delete(&self, layout: &Layout, condition: &str, params: Vec<Param>) -> Step {
        let (table, object) = (&self.table, of_object(&self.keys));
        let first = [
            format!("found AS (SELECT count(*) AS rows FROM {table} WHERE {object}{condition})"),
            format!("gone AS (DELETE FROM {table} WHERE {object}{condition} RETURNING 1)"),
        ];
        let holds = "(SELECT rows FROM found) <= (SELECT count(*) FROM gone)";
        self.expect(layout, &first, holds, params)
    }

    fn insert_unless_there(
        &self,
        layout: &Layout,
        (column, value): (&str, &str),
        params: Vec<Param>,
    ) -> Step {
        let (table, keys, values) = (&self.table, names(&self.keys), key_values(&self.keys));
        let object = of_object(&self.keys);
        let first = [
            format!("found AS (SELECT FROM {table} WHERE {object} AND {column} = {value})"),
            format!(
                "made AS (INSERT INTO {table} ({keys}, {column}) SELECT {values}, {value} \
                 WHERE NOT EXISTS (SELECT FROM found) RETURNING 1)"
            ),
        ];
        let holds = "EXISTS (SELECT FROM found) OR EXISTS (SELECT FROM made)";
        self.expect(layout, &first, holds, params)
    }

    fn put(
        &self,
        layout: &Layout,
        (entry, at): (&str, &str),
        (value, put): (&str, &str),
        params: Vec<Param>,
    ) -> Step {
        let (table, keys, values) = (&self.table, names(&self.keys), key_values(&self.keys));
        let condition = format!("{} AND {entry} = {at}", of_object(&self.keys));
        let first = [
            format!("found AS (SELECT FROM {table} WHERE {condition})"),
            format!(
                "changed AS (UPDATE {table} SET {value} = {put} WHERE {condition} RETURNING 1)"
            ),
            format!(
                "made AS (INSERT INTO {table} ({keys}, {entry}, {value}) SELECT {values}, {at}, {put} \
                 WHERE NOT EXISTS (SELECT FROM found) RETURNING 1)"
            ),
        ];
        let holds = "EXISTS (SELECT FROM changed) OR EXISTS (SELECT FROM made)";
        self.expect(layout, &first, holds, params)
    }

    /// Appends a line. Other appends to the log wait until this commit has ended: the object's
    /// anchor is locked.
    fn append(
        &self,
        layout: &Layout,
        (column, value): (&str, &str),
        order: &Order,
        params: Vec<Param>,
    ) -> Step {
        let (table, keys, values) = (&self.table, names(&self.keys), key_values(&self.keys));
        let (name, object) = (&order.name, of_object(&self.keys));
        let last = format!("(SELECT max({name}) FROM {table} WHERE {object})");
        let position = match &order.positions {
            Positions::Sequence => None,
            Positions::Counted => Some(format!("coalesce({last} + 1, 1)")),
            Positions::Clock { sql_type, step_us } => Some(format!(
                "greatest(clock_timestamp()::{sql_type}, {last} + interval '{step_us} microseconds')"
            )),
        };
        let (more, position) = match position {
            Some(position) => (format!(", {name}"), format!(", {position}")),
            None => Default::default(),
        };
        let made = format!(
            "made AS (INSERT INTO {table} ({keys}, {column}{more}) SELECT {values}, {value}{position} RETURNING 1)"
        );
        self.expect(layout, &[made], "EXISTS (SELECT FROM made)", params)
    }
}
