//! Objects in tables that were there before.

use std::collections::{BTreeMap, BTreeSet};

/// Which table an object is in, and where its parts are. It reads from the binding as it stands
/// there; a `key` of one column may be a string.
///
/// # Examples
///
/// ```
/// use mingle_store_postgres::ObjectMapping;
///
/// let text = r#"{"table": "customers", "key": "email", "columns": {"name": "full_name"}}"#;
/// let mapping: ObjectMapping = serde_json::from_str(text).unwrap();
/// assert_eq!(mapping.key, ["email"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectMapping {
    /// The table, with its schema if that is not `public`: `customers` or `shop.customers`.
    pub table: String,
    /// The columns of the key: one, or for a struct one for each of its fields, in order.
    #[serde(deserialize_with = "one_or_many")]
    pub key: Vec<String>,
    /// Columns of registers and counters whose names differ from the fields', by field.
    #[serde(default)]
    pub columns: BTreeMap<String, String>,
    /// Tables of sets, maps and logs, by field.
    #[serde(default)]
    pub fields: BTreeMap<String, CollectionMapping>,
}

/// Which table a set, map or log is in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectionMapping {
    /// The table.
    pub table: String,
    /// The columns that hold the object's key.
    #[serde(deserialize_with = "one_or_many")]
    pub key: Vec<String>,
    /// The column of the elements, of the values of a map, or of the lines of a log.
    pub value: String,
    /// For a map: the column of its keys.
    pub entry: Option<String>,
    /// For a log: the column that says the order, a number.
    pub order: Option<String>,
}

/// What of tables that were there before may refuse a change of an object, whatever a program
/// checks: constraints, triggers, columns that must be given something and are not mapped, and
/// types that hold less than those of the language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MayRefuse {
    /// Where one of its fields is written, or it is created.
    pub writes: BTreeSet<String>,
    /// Where it is deleted.
    pub deletions: BTreeSet<String>,
}

impl MayRefuse {
    /// Whether nothing can.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.deletions.is_empty()
    }

    fn add(&mut self, other: Self) {
        self.writes.extend(other.writes);
        self.deletions.extend(other.deletions);
    }
}

pub(crate) mod column;
pub(crate) mod inspect;
pub(crate) mod read;
pub(crate) mod write;

use mingle_model::Value;
use serde::{Deserialize, Deserializer};

use crate::layout::Layout;
use crate::wire::Param;
use column::Column;

/// One name, or a list of them.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a column, or a list of columns")]
    enum Names {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Names::deserialize(deserializer)? {
        Names::One(name) => vec![name],
        Names::Many(names) => names,
    })
}

/// A mapping that was checked against the tables.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    /// The table, quoted and with its schema.
    pub(crate) table: String,
    /// The columns of the key.
    pub(crate) keys: Vec<Column>,
    /// The column of the key that the database alone gives, if it does: then rows are changed and
    /// deleted, but not made.
    pub(crate) numbered: Option<String>,
    /// The fields, in the order of the program's declaration.
    pub(crate) fields: Vec<MappedField>,
    /// What may refuse a change.
    pub(crate) constraints: MayRefuse,
    /// Unique indexes of keys, elements and entries, by schema and name.
    pub(crate) key_indexes: Vec<(String, String)>,
}

/// Where a field is.
#[derive(Clone, Debug)]
pub(crate) enum MappedField {
    /// A register or counter, in the object's row.
    Column {
        column: Column,
        /// What a new row gets where the field is not written: its column must have something.
        fill: Option<Value>,
    },
    /// A set, in rows of its own.
    Set { rows: Rows, element: Column },
    /// A map, in rows of its own.
    Map { rows: Rows, entry: Column, value: Column },
    /// A log, in rows of its own.
    Log {
        rows: Rows,
        line: Column,
        /// The column of the order, quoted.
        order: String,
        /// Whether the database numbers new lines itself.
        is_numbered: bool,
    },
}

/// The table of a collection.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    pub(crate) table: String,
    /// The columns that hold the object's key.
    pub(crate) keys: Vec<Column>,
}

/// The condition that rows are those of the object whose key comes as the first parameters.
pub(crate) fn of_object(keys: &[Column]) -> String {
    let equal =
        |(index, key): (usize, &Column)| format!("{} = {}", key.name, key.parameter(index + 1));
    keys.iter().enumerate().map(equal).collect::<Vec<_>>().join(" AND ")
}

/// The names of columns, with commas.
pub(crate) fn names(keys: &[Column]) -> String {
    keys.iter().map(|key| &*key.name).collect::<Vec<_>>().join(", ")
}

/// The first parameters, which are an object's key, as values of its columns.
pub(crate) fn key_values(keys: &[Column]) -> String {
    let value = |(index, key): (usize, &Column)| key.parameter(index + 1);
    keys.iter().enumerate().map(value).collect::<Vec<_>>().join(", ")
}

impl Mapped {
    /// The parameters of an object's key.
    pub(crate) fn key(&self, layout: &Layout, key: &Value) -> Result<Vec<Param>, String> {
        let parts = match key {
            Value::Struct(parts) => &parts[..],
            single => std::slice::from_ref(single),
        };
        self.keys.iter().zip(parts).map(|(column, part)| column.param(layout, part)).collect()
    }
}
