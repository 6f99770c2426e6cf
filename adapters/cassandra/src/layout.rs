//! The objects of one store, and the bytes that name their parts in its tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_model::{Field, FieldType, Name, ObjectType, Ref, Schema, Shape, Type, Value};
use mingle_store::{Address, Read, RecordKey, StoreSchema, Write, codec};
use sha2::{Digest, Sha256};

use crate::change::RecordPlace;
use crate::limits::{ADD_MAX, ELEMENT_BYTES_MAX, KEY_BYTES_MAX};
use crate::mapping::Mapped;

/// The bytes of a cell.
pub type Cell = Vec<u8>;

/// The field of facts about a whole object: that it exists, and the time of its deletion.
pub const HEADER: &str = "";

/// The field of an object's witness rows. No field of a program has this name.
pub const ROWS: &str = "!";

/// The objects of one store.
#[derive(Clone, Debug)]
pub struct Layout {
    store: Name,
    /// The store's name in its tables.
    pub area: String,
    /// All declarations of the program.
    pub schema: Arc<Schema>,
    /// Kinds with fields in tables of the application.
    mapped: BTreeMap<Name, Mapped>,
}

/// A field found by its address.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Its object's declaration.
    pub kind: &'a ObjectType,
    /// Its declaration.
    pub field: &'a Field,
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

/// An element of a set or key of a map: its name, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// The value of the column `element`.
    pub name: Cell,
    /// Its text, if the name is a digest.
    pub text: Option<Cell>,
}

impl Layout {
    /// Creates the layout for the objects of `schema` that live in its store.
    pub fn new(schema: &StoreSchema, area: String, mapped: BTreeMap<Name, Mapped>) -> Self {
        Self { store: schema.store.clone(), area, schema: Arc::clone(&schema.schema), mapped }
    }

    /// Returns the mapping of an object's fields, if they are in tables of the application.
    pub fn mapped(&self, object: &Ref) -> Option<&Mapped> {
        self.mapped.get(object.kind())
    }

    /// Returns the key of the partition with the witness rows of the whole store.
    pub fn whole(&self) -> Cell {
        self.within(&[])
    }

    /// Returns the key of a partition, distinct from those of other stores.
    pub fn within(&self, key: &[u8]) -> Cell {
        [self.area.as_bytes(), &[0], key].concat()
    }

    /// Returns the place of a record.
    pub fn record(&self, key: &RecordKey) -> RecordPlace {
        RecordPlace::of(&self.area, key)
    }

    /// Returns the kind of an object.
    ///
    /// # Errors
    ///
    /// When no such kind lives here.
    pub fn kind(&self, object: &Ref) -> Result<&ObjectType, String> {
        let name = object.kind();
        let found = self.schema.objects.get(name).filter(|kind| kind.store == self.store);
        found.map(|kind| &**kind).ok_or_else(|| format!("no object {name} lives here"))
    }

    /// Returns the name of an object: its kind and its key.
    ///
    /// # Errors
    ///
    /// When the key does not have its declared type, or no such kind lives here.
    pub fn object(&self, object: &Ref) -> Result<Cell, String> {
        let kind = self.kind(object)?;
        let key = codec::encode_key(&self.schema, object.key(), &kind.key_type)
            .map_err(|why| format!("the key of {object}: {why}"))?;
        Ok(self.within(&[kind.name.as_bytes(), &name_of(&key, KEY_BYTES_MAX)].concat()))
    }

    /// Returns the name of an object, or of the whole store.
    ///
    /// # Errors
    ///
    /// As [`Layout::object`].
    pub fn place(&self, object: Option<&Ref>) -> Result<Cell, String> {
        object.map_or_else(|| Ok(self.whole()), |object| self.object(object))
    }

    /// Returns the field at an address.
    ///
    /// # Errors
    ///
    /// When there is no such field, or it does not have one of these shapes.
    pub fn field(&self, address: &Address, shapes: &[Shape]) -> Result<Found<'_>, String> {
        let kind = self.kind(&address.object)?;
        let (index, name) = (usize::from(address.field), address.object.kind());
        let field = kind.fields.get(index).ok_or_else(|| {
            let count = kind.fields.len();
            format!("object {name} has {count} fields, and no field {index}")
        })?;
        if shapes.is_empty() || shapes.contains(&Shape::of(&field.field_type)) {
            return Ok(Found { kind, field });
        }
        let (field, shown) = (&field.name, &field.field_type);
        Err(format!("{name}.{field} is a {shown}, which has no such operation"))
    }

    /// Returns the name of an element of a set, or of a key of a map.
    ///
    /// # Errors
    ///
    /// When it does not have its declared type.
    pub fn element(&self, found: Found<'_>, value: &Value) -> Result<Element, String> {
        let text = codec::encode_key(&self.schema, value, found.unit())
            .map_err(|why| format!("{}.{}: {why}", found.kind.name, found.field.name))?;
        let name = name_of(&text, ELEMENT_BYTES_MAX);
        let text = (name[0] != WHOLE).then_some(text);
        Ok(Element { name, text })
    }

    /// Returns a value as text.
    ///
    /// # Errors
    ///
    /// When it does not have its declared type.
    pub fn value(&self, found: Found<'_>, value: &Value) -> Result<Cell, String> {
        codec::encode(&self.schema, value, found.inner())
            .map_err(|why| format!("{}.{}: {why}", found.kind.name, found.field.name))
    }

    /// Checks that a write fits the declarations; commands are checked elsewhere.
    ///
    /// # Errors
    ///
    /// The mismatch.
    pub fn check_write(&self, write: &Write) -> Result<(), String> {
        let (address, shapes): (&Address, &[Shape]) = match write {
            Write::Create(object) | Write::Delete(object) => {
                return self.object(object).map(|_| ());
            }
            Write::Witness(row) => return self.place(row.object.as_ref()).map(|_| ()),
            Write::Forget(_) | Write::Record(..) | Write::Discard(_) | Write::Command { .. } => {
                return Ok(());
            }
            Write::Assign(address, _) => (address, &[Shape::Register]),
            Write::Add(address, _) => (address, &[Shape::Counter]),
            Write::Insert(address, _) | Write::Remove(address, _) => (address, &[Shape::Set]),
            Write::Put(address, ..) | Write::Erase(address, _) => (address, &[Shape::Map]),
            Write::Append(address, _) => (address, &[Shape::Log]),
            Write::Clear(address) => (address, &[Shape::Set, Shape::Map, Shape::Log]),
        };
        let found = self.field(address, shapes)?;
        self.object(&address.object)?;
        match write {
            Write::Assign(_, value) | Write::Append(_, value) => self.value(found, value).map(drop),
            Write::Insert(_, value) | Write::Remove(_, value) | Write::Erase(_, value) => {
                self.element(found, value).map(drop)
            }
            Write::Put(_, key, value) => {
                self.element(found, key)?;
                self.value(found, value).map(drop)
            }
            Write::Add(_, amount) if amount.unsigned_abs() > ADD_MAX.unsigned_abs() => {
                let (kind, field) = (&found.kind.name, &found.field.name);
                Err(format!("{kind}.{field}: an add of {amount} is beyond 2^90"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the field of a read; none if the read is not of a field.
    ///
    /// # Errors
    ///
    /// When it does not fit the declarations.
    pub fn read(&self, read: &Read) -> Result<Option<Found<'_>>, String> {
        let (address, shape) = match read {
            Read::Exists(object) => return self.object(object).map(|_| None),
            Read::Query { .. }
            | Read::Record(_)
            | Read::Records { .. }
            | Read::Witnesses { .. } => return Ok(None),
            Read::Register(address) => (address, Shape::Register),
            Read::Counter(address) => (address, Shape::Counter),
            Read::Contains(address, _) | Read::SetSize(address) | Read::Elements(address) => {
                (address, Shape::Set)
            }
            Read::Entry(address, _)
            | Read::MapSize(address)
            | Read::Entries(address)
            | Read::MapSlice { address, .. } => (address, Shape::Map),
            Read::LogSize(address) | Read::LogLast(address, _) | Read::LogSlice { address, .. } => {
                (address, Shape::Log)
            }
        };
        self.field(address, &[shape]).map(Some)
    }
}

/// The first byte of a name that holds the whole text, and of one that holds a digest.
const WHOLE: u8 = 0;
const DIGEST: u8 = 1;

fn name_of(text: &[u8], most: usize) -> Cell {
    if text.len() <= most {
        return [&[WHOLE], text].concat();
    }
    [&[DIGEST], Sha256::digest(text).as_slice()].concat()
}

/// Returns the text of an element from its name, unless the name is a digest.
pub fn text_of(name: &[u8]) -> Option<&[u8]> {
    name.split_first().filter(|(tag, _)| **tag == WHOLE).map(|(_, text)| text)
}
