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
        let Data::Register(written) = self.written(object, field)? else { return None };
        Some(written.unwrap_or_else(|| {
            self.program.objects[kind.index()].declared.fields[usize::from(field)].default.clone()
        }))
    }

    /// Returns a register as an index has it, an option; none if the store's answer is missing.
    pub(super) fn indexed(&self, object: &Ref, field: u16) -> Option<Value> {
        let Data::Register(written) = self.written(object, field)? else { return None };
        let value = written.as_ref().and_then(indexed).cloned();
        Some(value.map_or(Value::NONE, Value::some))
    }

    /// Returns the register as it was written last, by this phase or at the store; none if the store's answer is missing.
    fn written(&self, object: &Ref, field: u16) -> Option<Data> {
        match self.view(object, field) {
            FieldView { writes: Some(FieldWrites::Register(value)), .. } => {
                Some(Data::Register(Some(value.clone())))
            }
            FieldView { hidden: true, .. } => Some(Data::Register(None)),
            _ => {
                let address = Address { object: object.clone(), field };
                self.fetched.get(&Read::Register(address)).cloned()
            }
        }
    }
}
