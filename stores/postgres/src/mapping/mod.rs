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
use mingle_store::Refusal;
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    /// The row of an object.
    pub(crate) rows: Rows,
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    Log { rows: Rows, line: Column, order: Order },
}

/// The column that says the order of a log's lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// Its name, quoted.
    pub(crate) name: String,
    pub(crate) positions: Positions,
}

/// Where the positions of new lines come from. They are given while the object's anchor is locked, so that lines
/// commit in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Positions {
    /// A sequence of the database.
    Sequence,
    /// One more than the last.
    Counted,
    /// The server's clock, or after the last line by the least that a column of the type keeps.
    Clock { sql_type: String, step_us: u32 },
}

impl MappedField {
    /// The rows of a collection.
    pub(crate) fn rows(&self) -> Option<&Rows> {
        match self {
            Self::Column { .. } => None,
            Self::Set { rows, .. } | Self::Map { rows, .. } | Self::Log { rows, .. } => Some(rows),
        }
    }
}

/// Rows of an object in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) table: String,
    /// The columns that hold the object's key.
    pub(crate) keys: Vec<Column>,
    /// Triggers that run before a row is changed, and may keep it from being.
    pub(crate) triggers: Vec<String>,
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
    /// The tables that it is in, quoted and with their schemas.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &str> {
        let rows = self.fields.iter().filter_map(MappedField::rows);
        [&self.rows].into_iter().chain(rows).map(|rows| &*rows.table)
    }

    /// The parameters of an object's key.
    pub(crate) fn key(&self, layout: &Layout, key: &Value) -> Result<Vec<Param>, Refusal> {
        let parts = match key {
            Value::Struct(parts) => &parts[..],
            single => std::slice::from_ref(single),
        };
        let columns = self.rows.keys.iter().zip(parts);
        let params: Result<_, Refusal> =
            columns.map(|(column, part)| column.param(layout, part)).collect();
        params.map_err(|why| why.of_table(&crate::name::unquoted(&self.rows.table)))
    }
}
