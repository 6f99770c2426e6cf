//! Objects in existing tables.

use std::collections::{BTreeMap, BTreeSet};

/// The table of an object, and the columns of its parts. It is deserialized from the binding; a
/// `key` of one column may be a string.
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
    /// Columns of registers and counters whose names differ from the fields', by field. A ref to objects whose key is
    /// a struct has one for each part of that key; some of them may be columns of `key`.
    #[serde(default, deserialize_with = "by_field")]
    pub columns: BTreeMap<String, Vec<String>>,
    /// Tables of sets, maps and logs, by field.
    #[serde(default)]
    pub fields: BTreeMap<String, CollectionMapping>,
}

impl ObjectMapping {
    /// Returns the columns of a register or counter.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_store_postgres::ObjectMapping;
    ///
    /// let text = r#"{"table": "lines", "key": ["shop", "id"], "columns": {"order": ["shop", "order_id"]}}"#;
    /// let mapping: ObjectMapping = serde_json::from_str(text).unwrap();
    /// assert_eq!(mapping.columns_of("order"), ["shop", "order_id"]);
    /// assert_eq!(mapping.columns_of("count"), ["count"]);
    /// ```
    pub fn columns_of<'a>(&'a self, field: &'a str) -> Vec<&'a str> {
        match self.columns.get(field) {
            Some(columns) => columns.iter().map(String::as_str).collect(),
            None => vec![field],
        }
    }
}

/// The table of a set, map or log.
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
    /// For a log: the column of the order, a number.
    pub order: Option<String>,
}

/// The parts of existing tables that may refuse a change of an object, even if the program has
/// checked it: constraints, triggers, unmapped columns that must have a value, and types that hold
/// less than those of the language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MayRefuse {
    /// Obstacles to writing a field of the object, and to its creation.
    pub writes: BTreeSet<String>,
    /// Obstacles to its deletion.
    pub deletions: BTreeSet<String>,
    /// Fields that can only be read, as the database alone sets their columns, with the reason.
    pub read_only: BTreeMap<Name, String>,
    /// What the database itself does to other objects of the store when this one is deleted
    /// (`ON DELETE CASCADE`, `SET NULL` and `SET DEFAULT`).
    pub reaches: BTreeSet<String>,
    /// What the database itself does to objects of the store when a field is written to whose column foreign keys refer
    /// (`ON UPDATE CASCADE`, `SET NULL` and `SET DEFAULT`), by field.
    pub written: BTreeMap<Name, BTreeSet<String>>,
}

impl MayRefuse {
    /// True if nothing can refuse a change, and no deletion or write reaches other objects.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
            && self.deletions.is_empty()
            && self.read_only.is_empty()
            && self.reaches.is_empty()
            && self.written.is_empty()
    }

    fn add(&mut self, other: Self) {
        self.writes.extend(other.writes);
        self.deletions.extend(other.deletions);
        self.read_only.extend(other.read_only);
        self.reaches.extend(other.reaches);
        for (field, texts) in other.written {
            self.written.entry(field).or_default().extend(texts);
        }
    }
}

pub(crate) mod cascades;
mod circles;
pub(crate) mod column;
pub(crate) mod form;
pub(crate) mod inspect;
mod items;
pub(crate) mod joined;
mod labels;
mod queries;
pub(crate) mod read;
pub(crate) mod write;

use mingle_model::{Name, Value};
use mingle_store::Refusal;
use serde::{Deserialize, Deserializer};

use crate::layout::Layout;
use crate::wire::Param;
use cascades::Cascade;
use column::Column;
use joined::Joined;

/// One column or several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a column, or a list of columns")]
enum Names {
    One(String),
    Many(Vec<String>),
}

impl Names {
    fn listed(self) -> Vec<String> {
        match self {
            Self::One(name) => vec![name],
            Self::Many(names) => names,
        }
    }
}

/// Deserializes one name, or a list of names.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Names::deserialize(deserializer).map(Names::listed)
}

/// Deserializes one name or a list of names for each field.
fn by_field<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    let names = BTreeMap::<String, Names>::deserialize(deserializer)?;
    Ok(names.into_iter().map(|(field, names)| (field, names.listed())).collect())
}

/// A mapping that has been checked against the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    /// The row of an object.
    pub(crate) rows: Rows,
    /// The key column that only the database fills, if there is one: rows are then changed and
    /// deleted, and created only with a key that was drawn.
    pub(crate) numbered: Option<String>,
    /// The sequence that numbers the keys, if one does.
    pub(crate) sequence: Option<Sequence>,
    /// The fields, in the order of the program's declaration.
    pub(crate) fields: Vec<MappedField>,
    /// The parts of the tables that may refuse a change.
    pub(crate) constraints: MayRefuse,
    /// The foreign keys by which the deletion of an object reaches other rows.
    pub(crate) cascades: Vec<Cascade>,
    /// The foreign keys by which a write of a field reaches other rows.
    pub(crate) updates: Vec<(Name, Cascade)>,
    /// Unique indexes of keys, `unique`s, elements and entries, by schema and name.
    pub(crate) key_indexes: Vec<(String, String)>,
}

/// A sequence of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    /// Its name, quoted and with its schema.
    pub(crate) name: String,
    /// True if this user may draw from it.
    pub(crate) is_permitted: bool,
}

/// The place of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MappedField {
    /// A register or counter, in the object's row.
    Column {
        column: Column,
        /// The column's value in a new row if the field is not written; for columns that must have
        /// a value.
        fill: Option<Value>,
    },
    /// A register that is a ref, in several columns of the object's row.
    Joined {
        joined: Joined,
        /// As for a column.
        fill: Option<Value>,
    },
    /// A set, in rows of its own.
    Set { rows: Rows, element: Column },
    /// A map, in rows of its own.
    Map { rows: Rows, entry: Column, value: Column },
    /// A log, in rows of its own.
    Log { rows: Rows, line: Column, order: Order },
}

/// The column that orders a log's lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// Its name, quoted.
    pub(crate) name: String,
    pub(crate) positions: Positions,
}

/// The source of the positions of new lines. Positions are assigned while the object's anchor is
/// locked, so that lines commit in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Positions {
    /// A sequence of the database.
    Sequence,
    /// One more than the last.
    Counted,
    /// The server's clock; at least the last line's position plus the smallest step that a column
    /// of the type keeps.
    Clock { sql_type: String, step_us: u32 },
}

impl MappedField {
    /// Returns the rows of a collection.
    pub(crate) fn rows(&self) -> Option<&Rows> {
        match self {
            Self::Column { .. } | Self::Joined { .. } => None,
            Self::Set { rows, .. } | Self::Map { rows, .. } | Self::Log { rows, .. } => Some(rows),
        }
    }

    /// Returns its columns, but those of the object's key and of an order.
    fn columns(&self) -> impl Iterator<Item = &Column> {
        let columns = match self {
            Self::Column { column, .. } => vec![column],
            Self::Joined { joined, .. } => joined.columns().collect(),
            Self::Set { element, .. } => vec![element],
            Self::Map { entry, value, .. } => vec![entry, value],
            Self::Log { line, .. } => vec![line],
        };
        columns.into_iter()
    }

    /// Returns the columns of the object's row that it writes.
    pub(crate) fn written(&self) -> Vec<&Column> {
        match self {
            Self::Column { column, .. } => vec![column],
            Self::Joined { joined, .. } => joined.own().collect(),
            _ => Vec::new(),
        }
    }

    fn rows_mut(&mut self) -> Option<&mut Rows> {
        match self {
            Self::Column { .. } | Self::Joined { .. } => None,
            Self::Set { rows, .. } | Self::Map { rows, .. } | Self::Log { rows, .. } => Some(rows),
        }
    }
}

/// The rows of an object in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) table: String,
    /// The columns that hold the object's key.
    pub(crate) keys: Vec<Column>,
    /// Triggers that run before a row is changed, and may prevent the change.
    pub(crate) triggers: Vec<String>,
    pub(crate) references: Vec<Reference>,
}

/// A foreign key of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The other table.
    pub(crate) table: String,
    /// The columns that refer to it, quoted.
    pub(crate) columns: Vec<String>,
    /// True if foreign keys lead from there back to this table: their rows have no order.
    pub(crate) is_circle: bool,
}

/// Returns the condition that rows belong to the object whose key is in the first parameters.
pub(crate) fn of_object(keys: &[Column]) -> String {
    let equal =
        |(index, key): (usize, &Column)| format!("{} = {}", key.name, key.parameter(index + 1));
    keys.iter().enumerate().map(equal).collect::<Vec<_>>().join(" AND ")
}

/// Returns the names of columns, joined by commas.
pub(crate) fn names(keys: &[Column]) -> String {
    keys.iter().map(|key| &*key.name).collect::<Vec<_>>().join(", ")
}

/// Returns the first parameters, an object's key, cast to the types of its columns.
pub(crate) fn key_values(keys: &[Column]) -> String {
    let value = |(index, key): (usize, &Column)| key.parameter(index + 1);
    keys.iter().enumerate().map(value).collect::<Vec<_>>().join(", ")
}

impl Mapped {
    /// Returns all its columns, but those that order logs.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &Column> {
        let own = self.rows.keys.iter();
        own.chain(self.fields.iter().flat_map(|field| {
            let keys = field.rows().map_or(&[][..], |rows| &rows.keys[..]);
            keys.iter().chain(field.columns())
        }))
    }

    /// Returns the columns that hold a part of a ref: each with the kind that is referred to, and the place of the part
    /// in its key.
    fn referring(&self) -> impl Iterator<Item = (&Column, &str, usize)> {
        let single = self.columns().filter_map(|column| Some((column, column.target()?, 0)));
        let joined = self.fields.iter().filter_map(|field| match field {
            MappedField::Joined { joined, .. } => Some(joined),
            _ => None,
        });
        single.chain(joined.flat_map(|joined| {
            joined.columns().enumerate().map(|(at, column)| (column, joined.kind(), at))
        }))
    }

    /// Returns the tables of the object, quoted and with their schemas.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &str> {
        let rows = self.fields.iter().filter_map(MappedField::rows);
        [&self.rows].into_iter().chain(rows).map(|rows| &*rows.table)
    }

    /// Returns the parameters of an object's key.
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
