//! The rows that the database itself changes when others are deleted or written.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::Name;
use tokio_postgres::Row;

use super::{Mapped, MappedField};
use crate::name::quote;

/// What a foreign key does to the rows that refer to a deleted or changed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Delete,
    /// Writes the new values of the columns to which it refers.
    Follow,
    SetNull,
    SetDefault,
}

/// A foreign key by which the deletion of a row, or a write of its columns, reaches rows of another table, or of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cascade {
    /// The table that is reached, quoted and with its schema.
    table: String,
    /// Its schema and name, as they are.
    name: (String, String),
    action: Action,
    /// The foreign key, with its table.
    key: String,
    /// The columns whose writes reach the other table; empty for deletions.
    pub(super) written: Vec<String>,
}

impl Cascade {
    /// Reads a row of the query for deletions.
    pub(super) fn of_deletion(row: &Row) -> Self {
        Self::of(row, Action::Delete, Vec::new())
    }

    /// Reads a row of the query for writes.
    pub(super) fn of_write(row: &Row) -> Self {
        Self::of(row, Action::Follow, row.get(4))
    }

    /// Reads a row; `CASCADE` means `cascade`.
    fn of(row: &Row, cascade: Action, written: Vec<String>) -> Self {
        let name: (String, String) = (row.get(0), row.get(1));
        let table = format!("{}.{}", quote(&name.0), quote(&name.1));
        let action = match row.get::<_, &str>(2) {
            "c" => cascade,
            "n" => Action::SetNull,
            _ => Action::SetDefault,
        };
        Self { table, name, action, key: row.get(3), written }
    }

    /// Returns what the database does, and why: `deletes rows of pets (FOREIGN KEY pets_owner of pets)`.
    fn text(&self, of: &str) -> String {
        let Self { action, key, .. } = self;
        match action {
            Action::Delete => format!("deletes {of} ({key})"),
            Action::Follow => format!("changes columns of {of} ({key})"),
            Action::SetNull => format!("sets columns of {of} to null ({key})"),
            Action::SetDefault => format!("sets columns of {of} to their defaults ({key})"),
        }
    }

    /// Returns a remark on the columns of a table with this key whose writes reach another table; none if they are
    /// columns of the key, which no program writes.
    pub(crate) fn remark(&self, key: &[String]) -> Option<String> {
        let written = self.written.iter().filter(|column| !key.contains(column));
        let written: Vec<&str> = written.map(String::as_str).collect();
        let text = self.text(&format!("rows of {}", self.name.1));
        (!written.is_empty())
            .then(|| format!("when {} is written, the database {text}", written.join(" or ")))
    }

    /// Returns the schema and name of the table that is reached, and what happens to its rows.
    pub(crate) fn described(self) -> (String, String, String) {
        let text = self.text(&format!("rows of {}", self.name.1));
        (self.name.0, self.name.1, text)
    }
}

/// Notes for each object what its deletion, and a write of its fields, does to other objects of the store.
pub(super) fn mark_reached(found: &mut BTreeMap<Name, Mapped>) {
    let mut places: BTreeMap<String, BTreeSet<Name>> = BTreeMap::new();
    for (name, mapped) in &*found {
        let collections = mapped.fields.iter().filter_map(MappedField::rows);
        for rows in collections.chain([&mapped.rows]) {
            places.entry(rows.table.clone()).or_default().insert(name.clone());
        }
    }
    for (name, mapped) in found {
        let own = mapped.rows.table.clone();
        let reached = |cascade: &Cascade| -> Vec<String> {
            // The rows of its own collections go with it in any case.
            let is_own_row = cascade.table == own;
            let others = places.get(&cascade.table).into_iter().flatten();
            let others = others.filter(|other| *other != name || is_own_row);
            others.map(|other| cascade.text(other)).collect()
        };
        for cascade in &mapped.cascades {
            mapped.constraints.reaches.extend(reached(cascade));
        }
        for (field, cascade) in &mapped.updates {
            let texts = reached(cascade);
            if !texts.is_empty() {
                mapped.constraints.written.entry(field.clone()).or_default().extend(texts);
            }
        }
    }
}
