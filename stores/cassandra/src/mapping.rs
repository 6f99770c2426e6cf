//! Objects in tables that were there before.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Which table an object is in, and where its parts are. It reads from the binding as it stands
/// there.
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

/// Which table a set, map or log is in: the object's key is its partition key, and one clustering
/// column has the elements, the keys of the map, or the order of the lines.
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
    /// For a log: the clustering column that says the order, a `timeuuid`.
    pub order: Option<String>,
}
