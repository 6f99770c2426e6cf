//! Columns with a list of values, and the enumerations of the program in them.

use mingle_model::{EnumType, ObjectType, Schema};

use super::super::column::Described;
use super::super::labels::Labels;
use super::{ObjectMapping, Table};

/// Reads a row of the query of columns.
pub(super) fn described(row: &tokio_postgres::Row) -> Described {
    let mut found = Described {
        name: row.get(0),
        base: row.get(1),
        shown: row.get(2),
        sql_type: row.get(3),
        type_name: row.get(12),
        labels: None,
        is_enum: row.get(4),
        is_not_null: row.get(5),
        has_default: row.get(6),
        is_generated: row.get(7),
        digits: row.get::<_, Option<i64>>(8).map(super::super::column::digits_of),
        second_digits: row.get::<_, Option<i32>>(9).map_or(6, i32::unsigned_abs),
        has_enum_items: row.get(10),
        is_deterministic: row.get(11),
    };
    let (of_domain, of_column): (Vec<String>, Vec<String>) = (row.get(14), row.get(15));
    found.labels = Labels::of(&found, row.get(13), &of_domain, &of_column);
    found
}

/// The columns of an object that list their values, and hold all that the program has.
#[derive(Default)]
pub(super) struct Listed<'t>(Vec<&'t Described>);

impl Listed<'_> {
    /// Returns those of these columns, other than the listed ones, whose types hold less than those of the language.
    pub(super) fn bounds(&self, table: &Table, used: &[String]) -> Vec<String> {
        let is_listed = |name: &&String| self.0.iter().any(|listed| listed.name == **name);
        let others: Vec<String> = used.iter().filter(|name| !is_listed(name)).cloned().collect();
        table.bounds(&others)
    }

    /// True if a constraint is the check that lists the values of one of the columns.
    pub(super) fn explains(&self, constraint: &str) -> bool {
        let mut checks = self.0.iter().filter_map(|listed| listed.labels.as_ref()?.check.as_ref());
        checks.any(|check| constraint.ends_with(&format!(": {check}")))
    }
}

/// Returns the enumeration of the program whose values a key or register holds, if it holds some.
fn enumeration<'s>(schema: &'s Schema, object: &str, member: &str) -> Option<&'s EnumType> {
    let mut all = schema.enums.iter();
    let found = all.find(|(of, name, _)| **of == *object && **name == *member);
    found.map(|(_, _, declared)| &**declared)
}

impl Table {
    /// Checks that the columns of a key and of registers hold each value of their enumerations; returns those that
    /// list their values.
    ///
    /// # Errors
    ///
    /// The first value that a column would refuse, and the values that the column has.
    pub(super) fn listed(
        &self,
        schema: &Schema,
        object: &ObjectType,
        mapping: &ObjectMapping,
    ) -> Result<Listed<'_>, String> {
        let mut listed = Listed::default();
        if schema.enums.is_empty() {
            return Ok(listed);
        }
        if let (Some(declared), [column]) =
            (enumeration(schema, &object.name, &object.key_name), &mapping.key[..])
        {
            let what = format!("the key of {}", object.name);
            self.hold(&mut listed, column, declared, &what)?;
        }
        for field in &object.fields {
            let name = field.name.to_string();
            let declared = enumeration(schema, &object.name, &name);
            let Some(declared) = declared.filter(|_| !mapping.fields.contains_key(&name)) else {
                continue;
            };
            for column in mapping.columns_of(&name) {
                self.hold(&mut listed, column, declared, &format!("{}.{name}", object.name))?;
            }
        }
        Ok(listed)
    }

    fn hold<'t>(
        &'t self,
        listed: &mut Listed<'t>,
        column: &str,
        declared: &EnumType,
        what: &str,
    ) -> Result<(), String> {
        let column = self.column(column)?;
        let Some(labels) = &column.labels else { return Ok(()) };
        let Some(missing) = labels.lacks(declared) else {
            listed.0.push(column);
            return Ok(());
        };
        let shown: Vec<String> = labels.list.iter().take(20).map(|it| format!("{it:?}")).collect();
        let more = if labels.list.len() > 20 { ", …" } else { "" };
        Err(format!(
            "column {} of {} cannot hold {missing:?}, which {what} can be: {} has it, and the column has {}{more}",
            column.name,
            self.name,
            declared.name,
            shown.join(", ")
        ))
    }
}
