//! Objects in tables of the application.
//!
//! Registers are columns of one table; sets, maps and logs are partitions of others. Rows read from
//! them take the form of rows of the store's own table, and writes become statements with the same
//! timestamps. Counters, and collections without a table, stay in the store's own tables.

mod check;
mod read;
mod write;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::scalar::Kind;

pub(crate) use check::{declared, mapped};
pub(crate) use read::{TABLE_ROW, rows};
pub(crate) use write::At;

/// The table of an object, and the places of its parts. It can be deserialized from the binding as
/// written there.
///
/// # Examples
///
/// ```
/// use mingle_store_cassandra::ObjectMapping;
///
/// let text = r#"{"table": "shop.customers", "key": "email", "columns": {"name": "full_name"}}"#;
/// let mapping: ObjectMapping = serde_json::from_str(text).unwrap();
/// assert_eq!(mapping.columns["name"], "full_name");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectMapping {
    /// The table, with its keyspace: `shop.customers`.
    pub table: String,
    /// The column of the key, which alone is the table's primary key.
    pub key: String,
    /// Columns of registers whose names differ from the fields', by field.
    #[serde(default)]
    pub columns: BTreeMap<String, String>,
    /// Tables of sets, maps and logs, by field.
    #[serde(default)]
    pub fields: BTreeMap<String, CollectionMapping>,
}

/// The table of a set, map or log: the object's key is its partition key, and one clustering column
/// has the elements, the keys of the map, or the order of the lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectionMapping {
    /// The table, with its keyspace.
    pub table: String,
    /// The column that holds the object's key: the partition key.
    pub key: String,
    /// The column of the elements (a clustering column), of the values of a map, or of the lines
    /// of a log.
    pub value: String,
    /// For a map: the clustering column of its keys.
    pub entry: Option<String>,
    /// For a log: the clustering column with the order, a `timeuuid`.
    pub order: Option<String>,
}

/// A column, quoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    name: String,
    kind: Kind,
}

/// A mapping that was checked against the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    /// The table, quoted and with its keyspace.
    table: String,
    key: Column,
    /// Columns of registers, by field.
    registers: BTreeMap<String, Column>,
    /// Tables of sets, maps and logs, by field.
    collections: BTreeMap<String, Collection>,
}

/// The table of a set, map or log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Collection {
    table: String,
    key: Column,
    /// The clustering column: elements, keys of a map, or the order of lines.
    clustering: Column,
    /// Values of a map, or lines.
    value: Option<Column>,
}

impl Mapped {
    /// True if a field is in a table of the application.
    pub fn holds(&self, field: &str) -> bool {
        self.registers.contains_key(field) || self.collections.contains_key(field)
    }
}
