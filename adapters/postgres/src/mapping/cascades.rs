//! The rows that the database itself changes when others are deleted.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::Name;
use tokio_postgres::Row;

use super::{Mapped, MappedField};
use crate::name::quote;

/// What a foreign key does to the rows that refer to a deleted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Delete,
    SetNull,
    SetDefault,
}

/// A foreign key by which the deletion of a row reaches rows of another table, or of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cascade {
    /// The table that is reached, quoted and with its schema.
    table: String,
    /// Its schema and name, as they are.
    name: (String, String),
    action: Action,
    /// The foreign key, with its table.
    key: String,
}

impl Cascade {
    /// Reads a row of the query for them.
    pub(super) fn of(row: &Row) -> Self {
        let name: (String, String) = (row.get(0), row.get(1));
        let table = format!("{}.{}", quote(&name.0), quote(&name.1));
        let action = match row.get::<_, &str>(2) {
            "c" => Action::Delete,
            "n" => Action::SetNull,
            _ => Action::SetDefault,
        };
        Self { table, name, action, key: row.get(3) }
    }

    /// Returns what the database does, and why: `deletes rows of pets (FOREIGN KEY pets_owner of pets)`.
    fn text(&self, of: &str) -> String {
        let Self { action, key, .. } = self;
        match action {
            Action::Delete => format!("deletes {of} ({key})"),
            Action::SetNull => format!("sets columns of {of} to null ({key})"),
            Action::SetDefault => format!("sets columns of {of} to their defaults ({key})"),
        }
    }

    /// Returns the schema and name of the table that is reached, and what happens to its rows.
    pub(crate) fn described(self) -> (String, String, String) {
        let text = self.text(&format!("rows of {}", self.name.1));
        (self.name.0, self.name.1, text)
    }
}

/// Notes for each object what its deletion does to other objects of the store.
pub(super) fn mark_reached(found: &mut BTreeMap<Name, Mapped>) {
    let mut places: BTreeMap<String, BTreeSet<Name>> = BTreeMap::new();
    for (name, mapped) in &*found {
        let collections = mapped.fields.iter().filter_map(MappedField::rows);
        for rows in collections.chain([&mapped.rows]) {
            places.entry(rows.table.clone()).or_default().insert(name.clone());
        }
    }
    for (name, mapped) in found {
        for cascade in &mapped.cascades {
            let is_own_row = cascade.table == mapped.rows.table;
            // The rows of its own collections go with it in any case.
            let reached = places.get(&cascade.table).into_iter().flatten();
            let reached = reached.filter(|other| *other != name || is_own_row);
            mapped.constraints.reaches.extend(reached.map(|other| cascade.text(other)));
        }
    }
}
