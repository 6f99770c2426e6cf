//! Foreign keys of several columns: refs to objects whose keys are structs.

use std::collections::BTreeSet;

use mingle_store_postgres::{ColumnDescription, ForeignKey, TableDescription};

use super::names::{Taken, identifier, of_variable};
use super::objects::{Field, Known};

/// The refs of a table that have several columns, and remarks on foreign keys that become none.
#[derive(Default)]
pub struct Refs {
    /// The refs.
    pub fields: Vec<Field>,
    /// The columns that only these refs hold.
    pub columns: BTreeSet<String>,
    /// A line for each foreign key that stays plain.
    pub remarks: Vec<String>,
}

impl Refs {
    /// Returns the refs of a table. Their names are taken.
    pub fn of(table: &TableDescription, known: &Known<'_>, taken: &mut Taken) -> Self {
        let mut found = Self::default();
        for key in table.foreign_keys.iter().filter(|key| key.columns.len() > 1) {
            let Some((object, columns)) = known.joined(table, key) else { continue };
            match found.field(table, key, (object, columns), taken) {
                Ok(field) => found.fields.push(field),
                Err(why) => found.remarks.push(format!(
                    "the foreign key over {} is no ref to {object}: {why}",
                    key.columns.join(", ")
                )),
            }
        }
        found
    }

    /// Returns the ref of a foreign key.
    ///
    /// # Errors
    ///
    /// The reason why its columns stay plain.
    fn field(
        &mut self,
        table: &TableDescription,
        key: &ForeignKey,
        (object, columns): (&str, Vec<String>),
        taken: &mut Taken,
    ) -> Result<Field, String> {
        let is_own = |name: &&String| !table.key.contains(name);
        let own: Vec<&String> = columns.iter().filter(is_own).collect();
        let shared = |name: &&&String| {
            let others = table.foreign_keys.iter().filter(|other| *other != key);
            others.flat_map(|other| &other.columns).any(|column| column == **name)
        };
        if let Some(column) = own.iter().find(shared) {
            return Err(format!("{column} belongs to another foreign key as well"));
        }
        let described: Vec<&ColumnDescription> =
            table.columns.iter().filter(|column| own.contains(&&column.name)).collect();
        let nullable = described.iter().filter(|column| !column.is_not_null).count();
        if nullable != 0 && nullable != described.len() {
            return Err("some of its columns may be null, and others not".into());
        }
        let name = match &own[..] {
            [column] => identifier(column, "column"),
            _ => of_variable(object),
        };
        self.columns.extend(own.into_iter().cloned());
        let declared = format!("ref {object}");
        Ok(Field {
            name: taken.take(name),
            column: columns[0].clone(),
            more: columns[1..].to_vec(),
            declared: if nullable > 0 { format!("option<{declared}>") } else { declared },
            is_read_only: described.iter().any(|column| column.is_read_only),
        })
    }
}

impl Known<'_> {
    /// Returns the object to whose key a foreign key refers, and its columns in the order of that key; none if the
    /// object has no such key, or a column is compared otherwise.
    fn joined(&self, table: &TableDescription, key: &ForeignKey) -> Option<(&str, Vec<String>)> {
        let (target, object) = self.of_struct(&key.schema, &key.table)?;
        if key.target.len() != target.key.len() {
            return None;
        }
        let column_of = |part: &String| {
            let at = key.target.iter().position(|column| column == part)?;
            let (one, other) = (named(table, &key.columns[at])?, named(target, part)?);
            self.are_alike((table, one), (target, other)).then(|| one.name.clone())
        };
        let columns = target.key.iter().map(column_of).collect::<Option<Vec<String>>>()?;
        Some((object, columns))
    }

    /// True if the values of a column are compared like those of the key to which it refers.
    fn are_alike(
        &self,
        (table, one): (&TableDescription, &ColumnDescription),
        (target, other): (&TableDescription, &ColumnDescription),
    ) -> bool {
        one.key_obstacle.is_none()
            && one.folds_case == other.folds_case
            && self.plain(table, one).is_ok_and(|it| Ok(it) == self.plain(target, other))
    }
}

fn named<'t>(table: &'t TableDescription, name: &str) -> Option<&'t ColumnDescription> {
    table.columns.iter().find(|column| column.name == name)
}
