//! The objects of one store, and the places of their fields.

use std::collections::BTreeMap;
use std::sync::Arc;

pub use mingle_model::Shape;
use mingle_model::{Field, FieldType, IndexRead, Name, ObjectType, Ref, Schema, Type};
use mingle_store::{Address, StoreSchema};

use crate::index::{Indexes, places};
use crate::mapping::Mapped;
use crate::request::Word;
use mingle_store::codec;

/// The objects of one store.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The program's declarations.
    pub schema: Arc<Schema>,
    /// Kinds by name.
    pub kinds: BTreeMap<Name, Kind>,
    /// The indexes of objects in keys of our own.
    pub indexes: Indexes,
}

/// One kind of object.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Its declaration.
    pub declared: Arc<ObjectType>,
    /// The places of its fields, if they are in keys of another application.
    pub mapped: Option<Mapped>,
}

/// The result of a field lookup.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The kind of its object.
    pub kind: &'a Kind,
    /// Its declaration.
    pub field: &'a Field,
    /// Its index.
    pub index: usize,
}

impl Found<'_> {
    /// Returns the type of the register, of an element, a line, or a map's value.
    pub fn inner(&self) -> &Type {
        match &self.field.field_type {
            FieldType::Register(inner) | FieldType::Set(inner) | FieldType::Log(inner) => inner,
            FieldType::Map(_, value) => value,
            FieldType::Counter => &Type::Int,
        }
    }

    /// Returns the type of an element, or of a map's key.
    pub fn unit(&self) -> &Type {
        match &self.field.field_type {
            FieldType::Map(key, _) => key,
            _ => self.inner(),
        }
    }
}

impl Layout {
    /// Collects the objects of the store; `mapped` has the places of those in keys of other
    /// applications.
    pub fn new(schema: &StoreSchema, mut mapped: BTreeMap<Name, Mapped>, indexes: Indexes) -> Self {
        let objects = schema.schema.objects.values();
        let own = objects.filter(|object| object.store == schema.store);
        let kinds = own.map(|declared| {
            let mapped = mapped.remove(&declared.name);
            (declared.name.clone(), Kind { declared: Arc::clone(declared), mapped })
        });
        Self { schema: Arc::clone(&schema.schema), kinds: kinds.collect(), indexes }
    }

    /// Returns the kind of an object.
    ///
    /// # Errors
    ///
    /// When the store has no such kind.
    pub fn kind(&self, object: &Ref) -> Result<&Kind, String> {
        let name = object.kind();
        self.kinds.get(name).ok_or_else(|| format!("no object {name} lives here"))
    }

    /// Returns the fields of an index, by their places in the object's declaration.
    ///
    /// # Errors
    ///
    /// When its object or one of them is not in this store.
    pub fn fields_of(&self, read: &IndexRead) -> Result<Vec<u16>, String> {
        let lacking = || format!("no object {} lives here", read.object);
        let kind = self.kinds.get(&read.object).ok_or_else(lacking)?;
        places(&kind.declared, read.fields.iter().map(|name| &**name))
    }

    /// Returns the stored form of an object's key.
    ///
    /// # Errors
    ///
    /// When it is not of the key's type, or the store has no such kind.
    pub fn key(&self, object: &Ref) -> Result<Word, String> {
        let declared = &self.kind(object)?.declared;
        codec::encode_key(&self.schema, object.key(), &declared.key_type)
            .map_err(|why| format!("the key of {object}: {why}"))
    }

    /// Returns the field at an address.
    ///
    /// # Errors
    ///
    /// When there is no such field, or it is not of one of these shapes.
    pub fn field(&self, address: &Address, shapes: &[Shape]) -> Result<Found<'_>, String> {
        let kind = self.kind(&address.object)?;
        let (index, name) = (usize::from(address.field), address.object.kind());
        let field = kind.declared.fields.get(index).ok_or_else(|| {
            let count = kind.declared.fields.len();
            format!("object {name} has {count} fields, and no field {index}")
        })?;
        if shapes.contains(&Shape::of(&field.field_type)) {
            return Ok(Found { kind, field, index });
        }
        let (field, shown) = (&field.name, &field.field_type);
        Err(format!("{name}.{field} is a {shown}, which has no such operation"))
    }
}
