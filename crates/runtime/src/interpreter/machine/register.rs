//! Reads of registers, seen through the transaction's own writes.

use mingle_lang::hir::ObjectId;
use mingle_model::index::indexed;
use mingle_model::{Ref, Value};
use mingle_store::{Address, Data, Read};

use super::Machine;
use crate::interpreter::write_buffer::{FieldView, FieldWrites};

impl Machine<'_> {
    /// Returns the value of a register, its default if it was never written; none if the store's answer is missing.
    pub(super) fn register(&self, object: &Ref, kind: ObjectId, field: u16) -> Option<Value> {
        let written = self.written(object, field)?;
        Some(written.unwrap_or_else(|| {
            self.program.objects[kind.index()].declared.fields[usize::from(field)].default.clone()
        }))
    }

    /// Returns a register as an index has it, an option; none if the store's answer is missing.
    pub(super) fn indexed(&self, object: &Ref, field: u16) -> Option<Value> {
        let written = self.written(object, field)?;
        let value = written.as_ref().and_then(indexed).cloned();
        Some(value.map_or(Value::NONE, Value::some))
    }

    /// Returns the value that was written last, if any was; none if the store's answer is missing.
    fn written(&self, object: &Ref, field: u16) -> Option<Option<Value>> {
        match self.view(object, field) {
            FieldView { writes: Some(FieldWrites::Register(value)), .. } => {
                Some(Some(value.clone()))
            }
            FieldView { hidden: true, .. } => Some(None),
            _ => match self
                .fetched
                .get(&Read::Register(Address { object: object.clone(), field }))?
            {
                Data::Register(value) => Some(value.clone()),
                _ => None,
            },
        }
    }
}
