//! Labels in stores that the program does not declare.
//!
//! Stores keep the values of an enumeration as text, so a store can hold a label that this program lacks: a newer
//! program declared it, an older one did, or the table is shared with other programs. The phase that reads such a
//! label ends with an error that names the label, the field and the object; reads of other fields go on. After
//! the first commit of a transaction nothing of the program's own may fail, so later phases take the label as
//! it is: programs only compare labels, store them, and give them back.

use mingle_model::{FieldType, Type, Undeclared, Value};
use mingle_store::{Address, Data, Read, StoreError};

use super::Machine;
use crate::api::error::Error;

impl Machine<'_> {
    /// Refuses an answer with a label that no value of its enumeration has.
    pub(super) fn check_labels(&self, read: &Read, data: &Data) -> Result<(), Error> {
        if self.unbounded || self.program.enums.is_empty() {
            return Ok(());
        }
        match read {
            Read::Query { operation, .. } => self.check_result(operation, data),
            Read::Register(address)
            | Read::Elements(address)
            | Read::Entry(address, _)
            | Read::Entries(address)
            | Read::LogLast(address, _)
            | Read::LogSlice { address, .. }
            | Read::MapSlice { address, .. } => self.check_field(address, data),
            _ => Ok(()),
        }
    }

    fn check_field(&self, address: &Address, data: &Data) -> Result<(), Error> {
        let schema = &self.program.schema;
        let declared = schema.objects.get(address.object.kind());
        let field = declared.and_then(|known| known.fields.get(usize::from(address.field)));
        let Some(field) = field else { return Ok(()) };
        let find = |value: &Value, of: &Type| schema.undeclared(value, of);
        let found = match (&field.field_type, data) {
            (FieldType::Register(of) | FieldType::Map(_, of), Data::Register(Some(value))) => {
                find(value, of)
            }
            (FieldType::Set(of) | FieldType::Log(of), Data::Values(values)) => {
                values.iter().find_map(|value| find(value, of))
            }
            (FieldType::Map(key, of), Data::Entries(entries)) => {
                entries.iter().find_map(|(k, value)| find(k, key).or_else(|| find(value, of)))
            }
            _ => None,
        };
        let place = || format!("{} of {}", field.name, address.object);
        found.map_or(Ok(()), |found| Err(self.unknown_label(&found, &place())))
    }

    fn check_result(&self, operation: &str, data: &Data) -> Result<(), Error> {
        let Some(store) = self.store else { return Ok(()) };
        let mut known = self.program.stores[store.index()].operations.iter();
        let result =
            known.find(|known| *known.name == *operation).and_then(|it| it.result.as_ref());
        let found = match (result, data) {
            (Some(of), Data::Result(value)) => self.program.schema.undeclared(value, of),
            _ => None,
        };
        let place = || format!("the result of {operation}");
        found.map_or(Ok(()), |found| Err(self.unknown_label(&found, &place())))
    }

    fn unknown_label(&self, found: &Undeclared, place: &str) -> Error {
        let store = self
            .store
            .map_or_else(|| "".into(), |store| self.program.stores[store.index()].name.clone());
        Error::Store(StoreError::Refused { store, reason: format!("{place} holds {found}") })
    }
}
