//! The design of a program for an existing database.

use super::names::{Taken, identifier};

/// The design of a program.
#[derive(Clone, Debug, Default)]
pub struct Design {
    /// The store.
    pub store: String,
    /// The kind of places that the objects are in.
    pub kind: Kind,
    /// The schema or keyspace of the tables.
    pub schema: String,
    /// The declarations of the enumerations.
    pub enums: Vec<String>,
    /// The objects, in order of their places.
    pub objects: Vec<Object>,
    /// The parts of the database that are left out.
    pub left_out: Vec<LeftOut>,
}

/// A kind of places for objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Tables of PostgreSQL.
    #[default]
    Postgres,
    /// Tables of Cassandra.
    Cassandra,
    /// Keys of Redis.
    Redis,
}

/// A part of a schema that has no place in the program.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// A column, or the name of a table or view.
    pub name: String,
    /// The type of the column, or the kind of the relation.
    pub kind: String,
    /// The reason.
    pub why: String,
}

/// An object that is mapped to a table or to keys.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// Its table, or the pattern of its keys.
    pub table: String,
    /// The number of its keys in a sample, with an example.
    pub found: Option<String>,
    /// Its key.
    pub key: Key,
    /// Its registers.
    pub fields: Vec<Field>,
    /// Its sets and maps.
    pub collections: Vec<Collection>,
    /// The declarations of its indexes.
    pub indexes: Vec<String>,
    /// The columns of its table, or parts of its hash, that are left out.
    pub left_out: Vec<LeftOut>,
    /// Remarks on its table: a line each.
    pub remarks: Vec<String>,
}

/// The key of an object.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its name.
    pub name: String,
    /// Its type.
    pub declared: String,
    /// Its columns. If there are several, its type is a struct of them.
    pub parts: Vec<Field>,
}

/// A register or part of a key, in a column or a field of a hash.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its column.
    pub column: String,
    /// The further columns, of a ref to an object whose key is a struct.
    pub more: Vec<String>,
    /// Its type, `option` included.
    pub declared: String,
    /// True if only the database can set it.
    pub is_read_only: bool,
}

/// A field with a place of its own: a set, map or log, or in Redis a register, too.
#[cfg_attr(
    not(feature = "cassandra"),
    allow(dead_code, reason = "no engine but Cassandra has all of these columns")
)]
#[derive(Clone, Debug)]
pub struct Collection {
    /// Its name.
    pub name: String,
    /// Its type.
    pub declared: String,
    /// The table, or the pattern of its keys.
    pub table: String,
    /// The column of the object's key; empty in Redis.
    pub key: String,
    /// The column of a map's keys; none for a set.
    pub entry: Option<String>,
    /// The column of the order of a log's lines; none for a set and a map.
    pub order: Option<String>,
    /// The column of the elements, values or lines; in Redis the type of the key.
    pub value: String,
    /// A remark on it.
    pub remark: Option<String>,
}

impl Field {
    /// Returns its columns.
    pub fn columns(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.column).chain(&self.more)
    }
}

impl Object {
    /// Adds a set, map or log, under a name that is free.
    pub fn add(&mut self, mut collection: Collection) {
        let mut taken = Taken::default();
        taken.take(self.key.name.clone());
        let fields = self.fields.iter().map(|field| &field.name);
        for name in fields.chain(self.collections.iter().map(|collection| &collection.name)) {
            taken.take(name.clone());
        }
        collection.name = taken.take(identifier(&collection.name, "rows"));
        self.collections.push(collection);
    }
}
