//! A store that refuses all that does not fit its declarations.
//!
//! Stores trust the runtime, which runs checked programs. If reads and writes come over a network,
//! this wrapper checks them first.

use std::sync::Arc;

use mingle_model::{Field, FieldType, Name, Ref, Stamp, TransactionId, Type, Value};

use crate::declared::StoreSchema;
use crate::listing::{Listed, Listing};
use crate::operation::{Address, Answer, Read, Write};
use crate::store::{
    Capabilities, Commit, Committed, DataStore, Outcome, Session, StoreError, Transaction,
};
use crate::world::BoxFuture;

/// A store with its declarations.
pub struct CheckedStore {
    inner: Arc<dyn DataStore>,
    schema: Arc<StoreSchema>,
}

impl CheckedStore {
    /// Puts the check before a store.
    pub fn around(inner: Arc<dyn DataStore>, schema: StoreSchema) -> Arc<Self> {
        Arc::new(Self { inner, schema: Arc::new(schema) })
    }
}

impl DataStore for CheckedStore {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.health()
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(async move {
            let replicas = &self.inner.capabilities().replicas;
            if let Some(replica) = session.replica.as_ref().filter(|name| !replicas.contains(name))
            {
                let why = format!("there is no replica {replica:?}");
                return Err(refused(&self.schema, why));
            }
            let inner = self.inner.begin(session).await?;
            let checked: Box<dyn Transaction> =
                Box::new(Checked { inner, schema: self.schema.clone() });
            Ok(checked)
        })
    }

    fn list<'a>(
        &'a self,
        session: &'a Session,
        listing: &'a Listing,
    ) -> BoxFuture<'a, Result<Listed, StoreError>> {
        self.inner.list(session, listing)
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        self.inner.outcome(id)
    }

    fn time(&self) -> u64 {
        self.inner.time()
    }

    fn place(&self, replica: Option<&Name>) -> Option<String> {
        self.inner.place(replica)
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        self.inner.everywhere()
    }

    fn departed(&self) -> Vec<Name> {
        self.inner.departed()
    }

    fn kept(&self, seen: &Stamp) -> Stamp {
        self.inner.kept(seen)
    }
}

struct Checked {
    inner: Box<dyn Transaction>,
    schema: Arc<StoreSchema>,
}

impl Transaction for Checked {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        match self.schema.check_reads(reads) {
            Ok(()) => self.inner.read(reads),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn read_last<'a>(
        &'a mut self,
        reads: &'a [Read],
    ) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        match self.schema.check_reads(reads) {
            Ok(()) => self.inner.read_last(reads),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        match self.schema.check_writes(&writes) {
            Ok(()) => self.inner.flush(writes),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        match self.schema.check_writes(&commit.writes) {
            Ok(()) => self.inner.commit(commit),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

fn refused(schema: &StoreSchema, reason: String) -> StoreError {
    StoreError::Refused { store: schema.store.clone(), reason }
}

impl StoreSchema {
    fn check_reads(&self, reads: &[Read]) -> Result<(), StoreError> {
        match reads.iter().find(|read| !self.fits_read(read)) {
            Some(read) => Err(refused(self, format!("{read:?} does not fit what it declares"))),
            None => Ok(()),
        }
    }

    fn check_writes(&self, writes: &[Write]) -> Result<(), StoreError> {
        match writes.iter().find(|write| !self.fits_write(write)) {
            Some(write) => Err(refused(self, format!("{write:?} does not fit what it declares"))),
            None => Ok(()),
        }
    }

    /// True if a read fits the declarations.
    fn fits_read(&self, read: &Read) -> bool {
        let is = |address, fits: fn(&FieldType) -> bool| self.is_field(address, fits);
        match read {
            Read::Exists(object) => self.is_object(object),
            Read::Register(address) => is(address, |field| matches!(field, FieldType::Register(_))),
            Read::Counter(address) => is(address, |field| *field == FieldType::Counter),
            Read::SetSize(address) | Read::Elements(address) => {
                is(address, |field| matches!(field, FieldType::Set(_)))
            }
            Read::MapSize(address) | Read::Entries(address) => {
                is(address, |field| matches!(field, FieldType::Map(..)))
            }
            Read::LogSize(address) | Read::LogLast(address, _) | Read::LogSlice { address, .. } => {
                is(address, |field| matches!(field, FieldType::Log(_)))
            }
            Read::Contains(address, element) => match self.field(address) {
                Some(FieldType::Set(inner)) => self.is_value(element, inner),
                _ => false,
            },
            Read::Entry(address, key) => match self.field(address) {
                Some(FieldType::Map(inner, _)) => self.is_value(key, inner),
                _ => false,
            },
            Read::MapSlice { address, range } => match self.field(address) {
                Some(FieldType::Map(inner, _)) => {
                    range.from.iter().chain(&range.before).all(|key| self.is_value(key, inner))
                }
                _ => false,
            },
            Read::Query { operation, arguments } => self.is_operation(operation, arguments, false),
            Read::Record(_) | Read::Records { .. } | Read::Witnesses { .. } => true,
        }
    }

    /// True if a write fits the declarations.
    fn fits_write(&self, write: &Write) -> bool {
        match write {
            Write::Create(object) | Write::Delete(object) => self.is_object(object),
            Write::Add(address, _) => self.is_field(address, |field| *field == FieldType::Counter),
            Write::Clear(address) => self.is_field(address, |field| {
                matches!(field, FieldType::Set(_) | FieldType::Map(..) | FieldType::Log(_))
            }),
            Write::Assign(address, value) => match self.field(address) {
                Some(FieldType::Register(inner)) => self.is_value(value, inner),
                _ => false,
            },
            Write::Insert(address, value) | Write::Remove(address, value) => {
                match self.field(address) {
                    Some(FieldType::Set(inner)) => self.is_value(value, inner),
                    _ => false,
                }
            }
            Write::Append(address, value) => match self.field(address) {
                Some(FieldType::Log(inner)) => self.is_value(value, inner),
                _ => false,
            },
            Write::Put(address, key, value) => match self.field(address) {
                Some(FieldType::Map(inner, held)) => {
                    self.is_value(key, inner) && self.is_value(value, held)
                }
                _ => false,
            },
            Write::Erase(address, key) => match self.field(address) {
                Some(FieldType::Map(inner, _)) => self.is_value(key, inner),
                _ => false,
            },
            Write::Command { operation, arguments } => {
                self.is_operation(operation, arguments, true)
            }
            Write::Witness(row) => row.object.as_ref().is_none_or(|object| self.is_object(object)),
            Write::Forget(_) | Write::Record(..) | Write::Discard(_) => true,
        }
    }

    fn is_object(&self, object: &Ref) -> bool {
        let declared = self.schema.objects.get(object.kind());
        declared.is_some_and(|declared| {
            declared.store == self.store && self.is_value(object.key(), &declared.key_type)
        })
    }

    fn field(&self, address: &Address) -> Option<&FieldType> {
        let declared = self.schema.objects.get(address.object.kind())?;
        let field: Option<&Field> = declared.fields.get(usize::from(address.field));
        field.filter(|_| self.is_object(&address.object)).map(|field| &field.field_type)
    }

    fn is_field(&self, address: &Address, fits: fn(&FieldType) -> bool) -> bool {
        self.field(address).is_some_and(fits)
    }

    fn is_value(&self, value: &Value, value_type: &Type) -> bool {
        self.schema.conforms(value, value_type) && value.check().is_ok()
    }

    fn is_operation(&self, name: &str, arguments: &[Value], is_command: bool) -> bool {
        self.operations.get(name).is_some_and(|declared| {
            declared.is_command == is_command
                && declared.parameters.len() == arguments.len()
                && declared
                    .parameters
                    .iter()
                    .zip(arguments)
                    .all(|((_, expected), argument)| self.is_value(argument, expected))
        })
    }
}
