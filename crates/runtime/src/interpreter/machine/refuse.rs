//! Reasons that end a transaction, or make it start over.

use mingle_lang::flat::{Check, Operand};
use mingle_lang::hir::ObjectId;
use mingle_lang::split::Mutation;
use mingle_model::index::indexed;
use mingle_model::{Name, Taken, Value};

use super::Machine;
use crate::api::error::Error;

impl Machine<'_> {
    /// Returns the error with which a `require`, a `new` or the write of a `unique` ends the transaction.
    pub(super) fn refused(
        &self,
        message: &Operand,
        code: Option<&Name>,
        check: Option<&Check>,
    ) -> Error {
        match check {
            Some(Check::New(object)) => {
                if let Value::Ref(object) = self.value(object) {
                    return Error::Exists(object);
                }
            }
            Some(Check::Unique { kind, index, values }) => {
                return Error::Taken(self.taken(*kind, *index, values));
            }
            None => {}
        }
        let message = self.value(message).as_str().unwrap_or_default().to_owned();
        Error::Require { code: code.cloned(), message }
    }

    fn taken(&self, kind: ObjectId, index: u32, values: &[Operand]) -> Taken {
        let object = &self.program.objects[kind.index()];
        let fields = object.indexes[index as usize].fields.iter().map(|(name, _)| name.clone());
        let values = values.iter().map(|value| {
            let value = self.value(value);
            indexed(&value).cloned().unwrap_or(value)
        });
        Taken { object: object.declared.name.clone(), values: fields.zip(values).collect() }
    }

    /// True if the data that was read early, for an endorsement, equals the phase's own read.
    pub(super) fn agree(&self, early: &Operand, late: &Operand) -> bool {
        self.mutation == Mutation::AgreementIgnored || self.value(early) == self.value(late)
    }
}
