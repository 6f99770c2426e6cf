//! The tables and columns of each object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use mingle_model::Shape;
use mingle_model::{FieldType, IndexRead, Name, Ref, Schema, Type, Value};
use mingle_store::Address;

use crate::codec::Codec;
use crate::mapping::Mapped;
use crate::text::Texts;

/// The places of everything in a store.
#[derive(Clone)]
pub struct Layout {
    /// The program's declarations.
    pub schema: Arc<Schema>,
    /// The schema of Mingle's own tables, unquoted.
    pub own: String,
    /// The kinds of objects in this store, by name.
    pub kinds: BTreeMap<Name, Kind>,
    /// Unique indexes on the `unique`s of the program, and those of existing tables on keys, elements and entries, by
    /// schema and index name.
    pub key_indexes: BTreeSet<(String, String)>,
    /// The cached texts of statements.
    pub texts: Arc<Texts>,
}

/// One kind of object.
#[derive(Clone)]
pub struct Kind {
    /// Its name.
    pub name: Name,
    /// Type of the key.
    pub key_type: Type,
    /// The fields, in the order of the program's declaration.
    pub fields: Vec<Field>,
    /// The kind's tables.
    pub place: Place,
}

/// The tables of a kind.
#[derive(Clone)]
pub enum Place {
    /// Mingle's own tables.
    Own {
        /// The table, quoted and with its schema.
        table: String,
        /// The key column, quoted.
        key: String,
        /// The column format of keys.
        key_codec: Codec,
    },
    /// Existing tables.
    Mapped(Box<Mapped>),
}

/// One field of a kind.
#[derive(Clone, Debug)]
#[expect(clippy::struct_field_names, reason = "`type` is a word of the language")]
pub struct Field {
    /// Its name.
    pub name: Name,
    /// Its declared type.
    pub field_type: FieldType,
    /// Its position in a row's versions, from 1. It is assigned once and never reused.
    pub slot: i32,
    /// Its column in the kind's table, or the table of a collection; quoted. A log has both.
    pub column: String,
    /// The table of a set, map or log, quoted and with its schema.
    pub table: String,
}

impl Layout {
    /// Returns the kind called `name`.
    ///
    /// # Errors
    ///
    /// When the store has no such kind.
    pub fn kind(&self, name: &str) -> Result<&Kind, String> {
        self.kinds.get(name).ok_or_else(|| format!("no object {name} lives in this store"))
    }

    /// Returns the kind of an object, after checking the type of its key.
    ///
    /// # Errors
    ///
    /// When the store has no such kind, or the key is of another type.
    pub fn kind_of(&self, object: &Ref) -> Result<&Kind, String> {
        let kind = self.kind(object.kind())?;
        self.check(object.key(), &kind.key_type, || format!("the key of {}", kind.name))?;
        Ok(kind)
    }

    /// Returns the kind and the field of an address, if the field has one of these shapes.
    ///
    /// # Errors
    ///
    /// When there is no such field, or it has another shape.
    pub fn field(&self, address: &Address, shapes: &[Shape]) -> Result<(&Kind, &Field), String> {
        let kind = self.kind_of(&address.object)?;
        let field = kind
            .fields
            .get(usize::from(address.field))
            .ok_or_else(|| format!("object {} has no field number {}", kind.name, address.field))?;
        let shape = Shape::of(&field.field_type);
        if !shapes.contains(&shape) {
            let wanted: Vec<String> = shapes.iter().map(ToString::to_string).collect();
            return Err(format!(
                "{}.{} is {}, not {}",
                kind.name,
                field.name,
                shape,
                wanted.join(" or ")
            ));
        }
        Ok((kind, field))
    }

    /// Checks that a value is of a type.
    ///
    /// # Errors
    ///
    /// When it is not; the message names the use of the value.
    pub fn check(
        &self,
        value: &Value,
        value_type: &Type,
        what: impl Fn() -> String,
    ) -> Result<(), String> {
        if self.schema.conforms(value, value_type) {
            return Ok(());
        }
        let shown: String = value.to_string().chars().take(80).collect();
        Err(format!("{} is of type {value_type}, but was given {shown}", what()))
    }

    /// Returns the format of values of a type in Mingle's own columns.
    pub fn codec(&self, value_type: &Type) -> Codec {
        Codec::of(&self.schema, value_type)
    }

    /// Returns the name of a system table, quoted and with its schema.
    pub fn system(&self, table: &str) -> String {
        system(&self.own, table)
    }
}

/// Returns the sequence that numbers the keys of a kind in Mingle's own tables, quoted and with its schema.
pub fn numbers(schema: &str, kind: &Name) -> String {
    use crate::name::{fit, quote};
    // No other table has a blank in its name.
    format!("{}.{}", quote(schema), quote(&fit(&format!("{kind} number"))))
}

/// The start of the names of indexes of `unique`s: no table has such a name, since it has a blank.
pub const UNIQUE_INDEX: &str = "unique ";

/// Returns the name of a system table in a schema, quoted.
pub fn system(schema: &str, table: &str) -> String {
    format!("{}.mingle_{table}", crate::name::quote(schema))
}

impl Kind {
    /// Returns the columns of an index on these fields in a table of Mingle's own, as the server compares them: those of
    /// the fields, and of an index that is no `unique` the key.
    pub fn index_columns(&self, schema: &Schema, read: &IndexRead) -> Vec<String> {
        let Place::Own { key, key_codec, .. } = &self.place else { return Vec::new() };
        let key = (!read.is_unique).then(|| key_codec.compared(key));
        let of = |name: &Name| {
            let field = self.fields.iter().find(|field| field.name == *name);
            field.map(|field| Codec::of(schema, field.inner()).compared(&field.column))
        };
        read.fields.iter().filter_map(of).chain(key).collect()
    }
}

impl Field {
    /// Returns the first type that the field names: that of its elements, lines, keys or value.
    pub fn inner(&self) -> &Type {
        match &self.field_type {
            FieldType::Register(inner)
            | FieldType::Set(inner)
            | FieldType::Log(inner)
            | FieldType::Map(inner, _) => inner,
            FieldType::Counter => &Type::Int,
        }
    }

    /// Returns the type of a map's values.
    pub fn map_value(&self) -> &Type {
        match &self.field_type {
            FieldType::Map(_, value) => value,
            _ => self.inner(),
        }
    }

    /// Returns the field's shape.
    pub fn shape(&self) -> Shape {
        Shape::of(&self.field_type)
    }
}
