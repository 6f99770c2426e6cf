//! The objects of one store, and by which bytes their parts are named in its tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_model::{Field, FieldType, Name, ObjectType, Ref, Schema, Shape, Type, Value};
use mingle_store::{Address, Read, RecordKey, StoreSchema, Write, codec};
use sha2::{Digest, Sha256};

use crate::change::RecordPlace;
use crate::limits::{ADD_MAX, ELEMENT_BYTES_MAX, KEY_BYTES_MAX};
use crate::mapping::Mapped;

/// Bytes as they stand in a cell.
pub type Cell = Vec<u8>;

/// The field of what concerns a whole object: that it exists, and when it was deleted.
pub const HEADER: &str = "";

/// The field that an object's witness rows stand in. No field of a program is called so.
pub const ROWS: &str = "!";

/// The objects of one store.
#[derive(Clone, Debug)]
pub struct Layout {
    store: Name,
    /// What the store is called in its tables.
    pub area: String,
    /// All that the program declares.
    pub schema: Arc<Schema>,
    /// Kinds whose fields are in tables that were there before.
    mapped: BTreeMap<Name, Mapped>,
}

/// A field that was looked up.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Its object's declaration.
    pub kind: &'a ObjectType,
    /// Its declaration.
    pub field: &'a Field,
}

impl Found<'_> {
    /// Type of the register, of an element, a line, or a map's value.
    pub fn inner(&self) -> &Type {
        match &self.field.field_type {
            FieldType::Register(inner) | FieldType::Set(inner) | FieldType::Log(inner) => inner,
            FieldType::Map(_, value) => value,
            FieldType::Counter => &Type::Int,
        }
    }

    /// Type of an element, or of a map's key.
    pub fn unit(&self) -> &Type {
        match &self.field.field_type {
            FieldType::Map(key, _) => key,
            _ => self.inner(),
        }
    }
}

/// An element of a set or key of a map: what names it, and the whole of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// What stands in the column `element`.
    pub name: Cell,
    /// Its text, where the name is a digest.
    pub text: Option<Cell>,
}

impl Layout {
    /// The objects of `schema` that live in its store.
    pub fn new(schema: &StoreSchema, area: String, mapped: BTreeMap<Name, Mapped>) -> Self {
        Self { store: schema.store.clone(), area, schema: Arc::clone(&schema.schema), mapped }
    }

    /// Where the fields of an object are, if they are in tables that were there before.
    pub fn mapped(&self, object: &Ref) -> Option<&Mapped> {
        self.mapped.get(object.kind())
    }

    /// Where the witness rows of the whole store stand.
    pub fn whole(&self) -> Cell {
        self.within(&[])
    }

    /// The key of a partition, apart from those of other stores.
    pub fn within(&self, key: &[u8]) -> Cell {
        [self.area.as_bytes(), &[0], key].concat()
    }

    /// Where a record is.
    pub fn record(&self, key: &RecordKey) -> RecordPlace {
        RecordPlace::of(&self.area, key)
    }

    /// The kind of an object.
    ///
    /// # Errors
    ///
    /// When no such kind lives here.
    pub fn kind(&self, object: &Ref) -> Result<&ObjectType, String> {
        let name = object.kind();
        let found = self.schema.objects.get(name).filter(|kind| kind.store == self.store);
        found.map(|kind| &**kind).ok_or_else(|| format!("no object {name} lives here"))
    }

    /// What names an object: its kind and its key.
    ///
    /// # Errors
    ///
    /// When the key is not of its type, or no such kind lives here.
    pub fn object(&self, object: &Ref) -> Result<Cell, String> {
        let kind = self.kind(object)?;
        let key = codec::encode_key(&self.schema, object.key(), &kind.key_type)
            .map_err(|why| format!("the key of {object}: {why}"))?;
        Ok(self.within(&[kind.name.as_bytes(), &name_of(&key, KEY_BYTES_MAX)].concat()))
    }

    /// What names an object, or the whole store.
    ///
    /// # Errors
    ///
    /// As [`Layout::object`].
    pub fn place(&self, object: Option<&Ref>) -> Result<Cell, String> {
        object.map_or_else(|| Ok(self.whole()), |object| self.object(object))
    }

    /// The field at an address.
    ///
    /// # Errors
    ///
    /// When there is no such field, or it is not of one of these shapes.
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

    /// An element of a set, or key of a map, as it is named.
    ///
    /// # Errors
    ///
    /// When it is not of its type.
    pub fn element(&self, found: Found<'_>, value: &Value) -> Result<Element, String> {
        let text = codec::encode_key(&self.schema, value, found.unit())
            .map_err(|why| format!("{}.{}: {why}", found.kind.name, found.field.name))?;
        let name = name_of(&text, ELEMENT_BYTES_MAX);
        let text = (name[0] != WHOLE).then_some(text);
        Ok(Element { name, text })
    }

    /// A value as text.
    ///
    /// # Errors
    ///
    /// When it is not of its type.
    pub fn value(&self, found: Found<'_>, value: &Value) -> Result<Cell, String> {
        codec::encode(&self.schema, value, found.inner())
            .map_err(|why| format!("{}.{}: {why}", found.kind.name, found.field.name))
    }

    /// Checks that a write fits what is declared; commands are looked at elsewhere.
    ///
    /// # Errors
    ///
    /// What does not fit.
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

    /// The field that a read asks of.
    ///
    /// # Errors
    ///
    /// When it does not fit what is declared.
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
            Read::Entry(address, _) | Read::MapSize(address) | Read::Entries(address) => {
                (address, Shape::Map)
            }
            Read::LogSize(address) | Read::LogLast(address, _) | Read::LogSlice { address, .. } => {
                (address, Shape::Log)
            }
        };
        self.field(address, &[shape]).map(Some)
    }
}

/// In front of what stands there as a whole, and of a digest.
const WHOLE: u8 = 0;
const DIGEST: u8 = 1;

fn name_of(text: &[u8], most: usize) -> Cell {
    if text.len() <= most {
        return [&[WHOLE], text].concat();
    }
    [&[DIGEST], Sha256::digest(text).as_slice()].concat()
}

/// The text of an element from its name, unless that is a digest.
pub fn text_of(name: &[u8]) -> Option<&[u8]> {
    name.split_first().filter(|(tag, _)| **tag == WHOLE).map(|(_, text)| text)
}
