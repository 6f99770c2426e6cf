//! The engine's view of a program's objects: durable ids and shapes.

use std::collections::BTreeMap;

pub use mingle_model::Shape;
use mingle_model::{FieldType, Name, Ref, Type, Value};
use mingle_store::Address;

use crate::encoding::key;

/// The objects of one store.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Kinds by name.
    pub kinds: BTreeMap<Name, KindLayout>,
    /// Shapes of all fields that were ever declared, by ids of kind and field. Rows of
    /// fields that the program no longer has stay until their objects are deleted.
    pub shapes: BTreeMap<(u32, u16), Shape>,
    /// Names of all kinds that were ever declared, by id.
    pub names: BTreeMap<u32, Name>,
    /// The fields of each index, by the id of its kind.
    pub indexes: BTreeMap<u32, Vec<Vec<u16>>>,
}

/// One kind of object.
#[derive(Clone, Debug)]
pub struct KindLayout {
    /// The id under which its objects are kept.
    pub id: u32,
    /// Type of the key.
    pub key_type: Type,
    /// Fields in the order of the program.
    pub fields: Vec<FieldLayout>,
}

/// One field.
#[derive(Clone, Debug)]
pub struct FieldLayout {
    /// The id under which it is kept; never 0.
    pub id: u16,
    /// The field's name.
    pub name: Name,
    /// The type of its content.
    pub field_type: FieldType,
    /// The value of a register that was never written.
    pub default: Value,
}

/// An object's place in the rows of one replica.
#[derive(Clone, Debug)]
pub struct Place {
    /// The kind's id.
    pub kind: u32,
    /// The prefix of all its rows.
    pub prefix: Vec<u8>,
}

impl Layout {
    /// Returns the kind of an object.
    ///
    /// # Errors
    ///
    /// When no such kind lives here.
    pub fn kind(&self, name: &str) -> Result<&KindLayout, String> {
        self.kinds.get(name).ok_or_else(|| format!("no object {name} lives here"))
    }

    /// Returns the shape of a field, also if no program declares the field any more.
    pub fn shape(&self, kind: u32, field: u16) -> Shape {
        *self
            .shapes
            .get(&(kind, field))
            .expect("the catalog knows every field that has rows: it is corrupt")
    }

    /// Returns the ids of all counters of a kind.
    pub fn counters(&self, kind: u32) -> impl Iterator<Item = u16> {
        let fields = self.shapes.range((kind, 0)..=(kind, u16::MAX));
        fields.filter_map(|((_, id), shape)| (*shape == Shape::Counter).then_some(*id))
    }

    /// Returns the place of an object in the rows of `replica`.
    ///
    /// # Errors
    ///
    /// When no such kind lives here.
    pub fn place(&self, replica: u8, object: &Ref) -> Result<Place, String> {
        let kind = self.kind(object.kind())?.id;
        let prefix = key::object(replica, kind, object.key());
        Ok(Place { kind, prefix })
    }

    /// Returns the field at an address.
    ///
    /// # Errors
    ///
    /// When there is no such field, or it is not of one of these shapes.
    pub fn field(&self, address: &Address, shapes: &[Shape]) -> Result<&FieldLayout, String> {
        let kind = self.kind(address.object.kind())?;
        let field = kind.fields.get(usize::from(address.field)).ok_or_else(|| {
            format!(
                "object {} has {} fields, and no field {}",
                address.object.kind(),
                kind.fields.len(),
                address.field
            )
        })?;
        if shapes.contains(&Shape::of(&field.field_type)) {
            return Ok(field);
        }
        Err(format!(
            "{}.{} is a {}, which has no such operation",
            address.object.kind(),
            field.name,
            field.field_type
        ))
    }
}
