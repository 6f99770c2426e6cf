//! Writes of objects in Mingle's own tables.

use mingle_model::{Ref, Value};
use mingle_store::{Address, Refusal, Write};

use super::Writing;
use crate::encoding::{element_digest, object_digest};
use crate::layout::{Field, Kind, Place, Shape};
use crate::session::Step;
use crate::text::Text;
use crate::wire::Param;

/// Returns the field of a write that changes a column of its object's row.
fn column_of(write: &Write) -> Option<&Address> {
    match write {
        Write::Assign(address, _) | Write::Add(address, _) => Some(address),
        _ => None,
    }
}

impl Writing<'_> {
    /// Counts the leading writes that change different columns of one object's row: a single
    /// statement does them all.
    pub(super) fn of_one_row(&self, writes: &[Write]) -> usize {
        let Some(first) = writes.first().and_then(column_of) else { return 0 };
        let place = self.layout.kinds.get(first.object.kind()).map(|kind| &kind.place);
        if !matches!(place, Some(Place::Own { .. })) {
            return 0;
        }
        let mut fields = std::collections::BTreeSet::new();
        let is_together = |write: &&Write| {
            column_of(write).is_some_and(|address| {
                address.object == first.object && fields.insert(address.field)
            })
        };
        writes.iter().take_while(is_together).count()
    }

    /// Changes columns of an object's row; the object exists afterwards.
    ///
    /// # Errors
    ///
    /// When a write does not fit its field.
    pub(super) fn columns(&mut self, writes: &[Write]) -> Result<(), Refusal> {
        let Some(object) = writes.first().and_then(Write::object) else { return Ok(()) };
        let kind = self.layout.kind_of(object)?;
        let Place::Own { key_codec, .. } = &kind.place else { return Ok(()) };
        if self.drawn.contains(object) {
            self.touch(kind, object);
        }
        let schema = &self.layout.schema;
        let is_there = self.is_there(kind, object);
        let mut params = vec![Param::Bytes(object_digest(object))];
        if !is_there {
            params.push(key_codec.param(schema, object.key()));
        }
        let mut fields = Vec::with_capacity(writes.len());
        for write in writes {
            match write {
                Write::Assign(address, value) => {
                    let (_, field) = self.layout.field(address, &[Shape::Register])?;
                    self.check(kind, field, write)?;
                    params.push(self.layout.codec(field.inner()).param(schema, value));
                    fields.push(address.field);
                }
                Write::Add(address, amount) => {
                    let (_, field) = self.layout.field(address, &[Shape::Counter])?;
                    self.check(kind, field, write)?;
                    params.push(Param::Text(amount.to_string()));
                    fields.push(address.field);
                }
                _ => return Err("a write that changes no column".into()),
            }
        }
        let text = Text::Columns(kind.name.clone(), is_there, fields);
        let sql = self.layout.texts.get(text.clone(), || self.columns_text(kind, &text));
        self.touched.insert(object.clone());
        // One statement can change a row only once.
        let is_first = self.changed.insert(object.clone());
        self.steps.push(Step { is_part: is_first, ..Step::new(sql, params) });
        Ok(())
    }

    fn columns_text(&self, kind: &Kind, text: &Text) -> String {
        let (Place::Own { table, key, key_codec }, Text::Columns(_, is_there, fields)) =
            (&kind.place, text)
        else {
            unreachable!("the columns of a mapped kind are written otherwise")
        };
        let version = self.version();
        let (mut changed, mut columns, mut given) = (Vec::new(), String::new(), String::new());
        let mut versions: Vec<&str> = Vec::new();
        let first = if *is_there { 2 } else { 3 };
        for (number, field) in (first..).zip(fields) {
            let field = &kind.fields[usize::from(*field)];
            let column = &field.column;
            let value = if field.shape() == Shape::Counter {
                let value = format!("${number}::text::numeric");
                changed.push(format!("{column} = coalesce({column}, 0) + {value}"));
                value
            } else {
                let value = self.layout.codec(field.inner()).parameter(number);
                changed.push(format!("{column} = {value}"));
                value
            };
            changed.push(format!("mingle_versions[{}] = {version}", field.slot));
            columns.extend([", ", &field.column]);
            given.extend([", ", &value]);
            let slot = usize::try_from(field.slot).unwrap_or_default();
            versions.resize(versions.len().max(slot), "0");
            versions[slot - 1] = &version;
        }
        let (changed, versions) = (changed.join(", "), versions.join(", "));
        if *is_there {
            return format!("UPDATE {table} SET {changed} WHERE mingle_id = $1::bytea");
        }
        format!(
            "WITH updated AS (UPDATE {table} SET {changed}, mingle_exists = true, \
             mingle_changed = CASE WHEN mingle_exists THEN mingle_changed ELSE {version} END \
             WHERE mingle_id = $1::bytea RETURNING 1) \
             INSERT INTO {table} \
             (mingle_id, {key}, mingle_exists, mingle_changed, mingle_versions{columns}) \
             SELECT $1::bytea, {}, true, {version}, ARRAY[{versions}]::bigint[]{given} \
             WHERE NOT EXISTS (SELECT FROM updated)",
            key_codec.parameter(2)
        )
    }

    /// True if the object is known to exist at this point.
    fn is_there(&self, kind: &Kind, object: &Ref) -> bool {
        self.touched.contains(object)
            || self.existing.contains(&(kind.name.clone(), object_digest(object)))
    }

    /// Makes the object exist.
    pub(super) fn touch(&mut self, kind: &Kind, object: &Ref) {
        if self.is_there(kind, object) {
            return;
        }
        self.touched.insert(object.clone());
        let Place::Own { table, key, key_codec } = &kind.place else { return };
        let version = self.version();
        let id = Param::Bytes(object_digest(object));
        let row = key_codec.param(&self.layout.schema, object.key());
        if self.drawn.remove(object) {
            let sql = format!(
                "INSERT INTO {table} (mingle_id, {key}, mingle_exists, mingle_changed) \
                 VALUES ($1::bytea, {}, true, {version})",
                key_codec.parameter(2)
            );
            self.push(sql, vec![id, row]);
            return;
        }
        let sql = format!(
            "WITH revived AS (UPDATE {table} SET mingle_exists = true, mingle_changed = {version} \
             WHERE mingle_id = $1::bytea AND NOT mingle_exists) \
             INSERT INTO {table} (mingle_id, {key}, mingle_exists, mingle_changed) \
             VALUES ($1::bytea, {}, true, {version}) ON CONFLICT DO NOTHING",
            key_codec.parameter(2)
        );
        self.push(sql, vec![id, row]);
    }

    pub(super) fn delete(&mut self, kind: &Kind, object: &Ref) {
        let Place::Own { table, .. } = &kind.place else { return };
        let id = Param::Bytes(object_digest(object));
        let mut columns = String::new();
        for field in &kind.fields {
            if !field.table.is_empty() {
                let sql = format!("DELETE FROM {} WHERE mingle_object = $1::bytea", field.table);
                self.push(sql, vec![id.clone()]);
            }
            if matches!(field.shape(), Shape::Register | Shape::Counter | Shape::Log) {
                columns.extend([", ", &*field.column, " = NULL"]);
            }
        }
        let version = self.version();
        let sql = format!(
            "UPDATE {table} SET mingle_exists = false, mingle_changed = {version}, \
             mingle_deleted = {version}, mingle_versions = '{{0}}'{columns} \
             WHERE mingle_id = $1::bytea AND mingle_exists"
        );
        self.push(sql, vec![id]);
        self.touched.remove(object);
        self.existing.remove(&(kind.name.clone(), object_digest(object)));
    }

    /// Inserts an element of a set, or an entry of a map.
    pub(super) fn insert(
        &mut self,
        kind: &Kind,
        field: &Field,
        object: &Ref,
        element: &Value,
        value: Option<&Value>,
    ) {
        let Place::Own { key, key_codec, .. } = &kind.place else { return };
        let (schema, version) = (&self.layout.schema, self.version());
        let (table, inner) = (&field.table, self.layout.codec(field.inner()));
        let digest = object_digest(object);
        let mut params = vec![
            Param::Bytes(element_digest(&digest, element)),
            Param::Bytes(digest),
            key_codec.param(schema, object.key()),
            inner.param(schema, &element.canonical()),
        ];
        let (changed, column, given) = match value {
            Some(value) => {
                let codec = self.layout.codec(field.map_value());
                params.push(codec.param(schema, value));
                let given = codec.parameter(5);
                (format!("mingle_value = {given}, "), "mingle_entry, mingle_value", given)
            }
            None => (String::new(), "mingle_element", String::new()),
        };
        let comma = if value.is_some() { ", " } else { "" };
        let sql = format!(
            "WITH updated AS (UPDATE {table} SET {changed}mingle_version = {version} \
             WHERE mingle_id = $1::bytea RETURNING 1) \
             INSERT INTO {table} (mingle_id, mingle_object, {key}, {column}, mingle_version) \
             SELECT $1::bytea, $2::bytea, {}, {}{comma}{given}, {version} \
             WHERE NOT EXISTS (SELECT FROM updated)",
            key_codec.parameter(3),
            inner.parameter(4),
        );
        self.push(sql, params);
    }

    /// Removes the rows that meet a condition, and records the version of the removal if there were
    /// any.
    pub(super) fn remove(
        &mut self,
        kind: &Kind,
        field: &Field,
        condition: &str,
        params: Vec<Param>,
    ) {
        let Place::Own { table: row, .. } = &kind.place else { return };
        let (table, slot, version) = (&field.table, field.slot, self.version());
        let length = match field.shape() {
            Shape::Log => format!("{} = 0, ", field.column),
            _ => String::new(),
        };
        let sql = format!(
            "WITH removed AS (DELETE FROM {table} WHERE {condition} RETURNING 1) \
             UPDATE {row} SET {length}mingle_versions[{slot}] = {version} \
             WHERE mingle_id = $1::bytea AND EXISTS (SELECT FROM removed)"
        );
        self.push(sql, params);
    }

    pub(super) fn append(&mut self, kind: &Kind, field: &Field, object: &Ref, line: &Value) {
        let Place::Own { table: row, key, key_codec } = &kind.place else { return };
        let (schema, version) = (&self.layout.schema, self.version());
        let (table, column, slot) = (&field.table, &field.column, field.slot);
        let codec = self.layout.codec(field.inner());
        let sql = format!(
            "WITH longer AS (UPDATE {row} SET {column} = coalesce({column}, 0) + 1, \
             mingle_versions[{slot}] = {version} WHERE mingle_id = $1::bytea \
             RETURNING {column} - 1 AS at) \
             INSERT INTO {table} (mingle_object, mingle_index, {key}, mingle_line, mingle_version) \
             SELECT $1::bytea, longer.at, {}, {}, {version} FROM longer",
            key_codec.parameter(2),
            codec.parameter(3)
        );
        let params = vec![
            Param::Bytes(object_digest(object)),
            key_codec.param(schema, object.key()),
            codec.param(schema, line),
        ];
        self.push(sql, params);
    }
}
