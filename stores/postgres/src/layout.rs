//! Where the parts of objects are in our own tables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use mingle_model::Shape;
use mingle_model::{FieldType, Name, Ref, Schema, Type, Value};
use mingle_store::Address;

use crate::codec::Codec;
use crate::mapping::Mapped;
use crate::text::Texts;

/// Everything that a store keeps.
#[derive(Clone)]
pub struct Layout {
    /// The program's declarations.
    pub schema: Arc<Schema>,
    /// The schema of our own tables, not quoted.
    pub own: String,
    /// Kinds of objects that live here, by name.
    pub kinds: BTreeMap<Name, Kind>,
    /// Unique indexes of tables that were there before, by schema and name: those of keys, elements
    /// and entries.
    pub key_indexes: BTreeSet<(String, String)>,
    /// Texts of statements.
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
    /// Which tables it is in.
    pub place: Place,
}

/// Which tables a kind is in.
#[derive(Clone)]
pub enum Place {
    /// Tables of our own.
    Own {
        /// The table, quoted and with its schema.
        table: String,
        /// The column of the key, quoted.
        key: String,
        /// How keys stand there.
        key_codec: Codec,
    },
    /// Tables that were there before.
    Mapped(Box<Mapped>),
}

/// One field of a kind.
#[derive(Clone, Debug)]
#[expect(clippy::struct_field_names, reason = "`type` is a word of the language")]
pub struct Field {
    /// Its name.
    pub name: Name,
    /// What it holds.
    pub field_type: FieldType,
    /// Its place in a row's versions, from 1: given once, and never again.
    pub slot: i32,
    /// Its column in the kind's table, or the table of a collection; quoted. A log has both.
    pub column: String,
    /// The table of a set, map or log, quoted and with its schema.
    pub table: String,
}

impl Layout {
    /// The kind called `name`.
    ///
    /// # Errors
    ///
    /// When no such kind lives here.
    pub fn kind(&self, name: &str) -> Result<&Kind, String> {
        self.kinds.get(name).ok_or_else(|| format!("no object {name} lives in this store"))
    }

    /// The kind of an object whose key fits.
    ///
    /// # Errors
    ///
    /// When no such kind lives here, or the key is of another type.
    pub fn kind_of(&self, object: &Ref) -> Result<&Kind, String> {
        let kind = self.kind(object.kind())?;
        self.check(object.key(), &kind.key_type, || format!("the key of {}", kind.name))?;
        Ok(kind)
    }

    /// The kind and the field of an address, if the field has one of these shapes.
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
    /// When it is not, naming what it is for.
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

    /// How values of a type stand in columns of ours.
    pub fn codec(&self, value_type: &Type) -> Codec {
        Codec::of(&self.schema, value_type)
    }

    /// A table of the runtime's own, quoted and with its schema.
    pub fn system(&self, table: &str) -> String {
        system(&self.own, table)
    }
}

/// A table of the runtime's own in a schema, quoted.
pub fn system(schema: &str, table: &str) -> String {
    format!("{}.mingle_{table}", crate::name::quote(schema))
}

impl Field {
    /// What stands for its elements, lines, keys or value: the first type that it names.
    pub fn inner(&self) -> &Type {
        match &self.field_type {
            FieldType::Register(inner)
            | FieldType::Set(inner)
            | FieldType::Log(inner)
            | FieldType::Map(inner, _) => inner,
            FieldType::Counter => &Type::Int,
        }
    }

    /// The values of a map.
    pub fn map_value(&self) -> &Type {
        match &self.field_type {
            FieldType::Map(_, value) => value,
            _ => self.inner(),
        }
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        Shape::of(&self.field_type)
    }
}
