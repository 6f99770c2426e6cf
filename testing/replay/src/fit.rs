//! Checks of reads and writes against the program's declarations.

use std::sync::Arc;

use mingle_model::{Field, FieldType, Name, ObjectType, Ref, Schema};
use mingle_store::{Address, Read, StoreSchema, Write};

/// The objects of one store.
#[derive(Clone, Debug)]
pub struct Fit {
    store: Name,
    schema: Arc<Schema>,
}

impl Fit {
    /// Creates the checks for the objects that live in the store of this schema.
    pub fn new(schema: &StoreSchema) -> Self {
        Self { store: schema.store.clone(), schema: Arc::clone(&schema.schema) }
    }

    /// Returns a kind of object that lives here.
    ///
    /// # Errors
    ///
    /// When no kind has this name.
    pub fn kind(&self, kind: &str) -> Result<&ObjectType, String> {
        let declared = self.schema.objects.get(kind).filter(|o| o.store == self.store);
        declared.map(|o| &**o).ok_or_else(|| format!("no object {kind} lives in this store"))
    }

    /// Returns a field of a kind that lives here.
    ///
    /// # Errors
    ///
    /// When no field has this number.
    pub fn field(&self, address: &Address) -> Result<&Field, String> {
        let kind = self.kind(address.object.kind())?;
        let field = kind.fields.get(usize::from(address.field));
        field.ok_or_else(|| format!("object {} has no field {}", kind.name, address.field))
    }

    fn has(&self, address: &Address, shape: &str, is: fn(&FieldType) -> bool) -> Fits {
        let field = self.field(address)?;
        if is(&field.field_type) {
            return Ok(());
        }
        let (kind, name, found) = (address.object.kind(), &field.name, &field.field_type);
        Err(format!("{kind}.{name} is a {found}, not a {shape}"))
    }

    fn lives_here(&self, object: &Ref) -> Fits {
        self.kind(object.kind()).map(|_| ())
    }

    /// Checks a write.
    ///
    /// # Errors
    ///
    /// The reason why it does not fit.
    pub fn write(&self, write: &Write) -> Fits {
        match write {
            Write::Create(object) | Write::Delete(object) => self.lives_here(object),
            Write::Assign(address, _) => self.has(address, "register", is_register),
            Write::Add(address, _) => self.has(address, "counter", is_counter),
            Write::Insert(address, _) | Write::Remove(address, _) => {
                self.has(address, "set", is_set)
            }
            Write::Put(address, ..) | Write::Erase(address, _) => self.has(address, "map", is_map),
            Write::Append(address, _) => self.has(address, "log", is_log),
            Write::Clear(address) => {
                self.has(address, "set, map or log", |t| is_set(t) || is_map(t) || is_log(t))
            }
            Write::Command { operation, .. } => {
                Err(format!("no command {operation} has a body that this store understands"))
            }
            Write::Witness(row) => row.object.as_ref().map_or(Ok(()), |of| self.lives_here(of)),
            Write::Forget(_) | Write::Record(..) | Write::Discard(_) => Ok(()),
        }
    }

    /// Checks a read.
    ///
    /// # Errors
    ///
    /// The reason why it does not fit.
    pub fn read(&self, read: &Read) -> Fits {
        match read {
            Read::Exists(object) => self.lives_here(object),
            Read::Register(address) => self.has(address, "register", is_register),
            Read::Counter(address) => self.has(address, "counter", is_counter),
            Read::Contains(address, _) | Read::SetSize(address) | Read::Elements(address) => {
                self.has(address, "set", is_set)
            }
            Read::Entry(address, _)
            | Read::MapSize(address)
            | Read::Entries(address)
            | Read::MapSlice { address, .. } => self.has(address, "map", is_map),
            Read::LogSize(address) | Read::LogLast(address, _) | Read::LogSlice { address, .. } => {
                self.has(address, "log", is_log)
            }
            Read::Query { .. }
            | Read::Record(_)
            | Read::Records { .. }
            | Read::Witnesses { .. } => Ok(()),
        }
    }
}

type Fits = Result<(), String>;

fn is_register(field: &FieldType) -> bool {
    matches!(field, FieldType::Register(_))
}

fn is_counter(field: &FieldType) -> bool {
    matches!(field, FieldType::Counter)
}

fn is_set(field: &FieldType) -> bool {
    matches!(field, FieldType::Set(_))
}

fn is_map(field: &FieldType) -> bool {
    matches!(field, FieldType::Map(..))
}

fn is_log(field: &FieldType) -> bool {
    matches!(field, FieldType::Log(_))
}
