//! Reasons that end a transaction, or make it start over.

use mingle_lang::flat::Operand;
use mingle_lang::split::Mutation;
use mingle_model::{Name, Value};

use super::Machine;
use crate::api::error::Error;

impl Machine<'_> {
    /// Returns the error with which a `require` or `new` ends the transaction.
    pub(super) fn refused(
        &self,
        message: &Operand,
        code: Option<&Name>,
        must_be_new: Option<&Operand>,
    ) -> Error {
        if let Some(Value::Ref(object)) = must_be_new.map(|object| self.value(object)) {
            return Error::Exists(object);
        }
        let message = self.value(message).as_str().unwrap_or_default().to_owned();
        Error::Require { code: code.cloned(), message }
    }

    /// True if the data that was read early, for an endorsement, equals the phase's own read.
    pub(super) fn agree(&self, early: &Operand, late: &Operand) -> bool {
        self.mutation == Mutation::AgreementIgnored || self.value(early) == self.value(late)
    }
}
