//! The checks before a write: that the object of a `new` does not exist, and that no other object has the values
//! of a `unique`.
//!
//! A write that gives an object values that another object has ends the transaction. For each `unique` that a
//! write concerns, the values that the object will have are collected, the store is asked for another object
//! with these values ([`ReadKind::Free`]), and a `require` fails if there is one. The values of fields that the
//! statement does not write are read from the object, as an index has them.

use mingle_model::{Type, Value};

use super::lower::Lowering;
use super::{Check, Kind, Operand, ReadKind};
use crate::hir::{Index, ObjectId};
use crate::ops::Op;
use crate::syntax::Span;

/// A field that a statement writes, its value, and the span of the value.
pub(super) type Written = (u16, Operand, Span);

impl Lowering<'_> {
    /// Checks that the object of a `new` does not exist.
    pub(super) fn must_be_new(&mut self, kind: ObjectId, object: &(Operand, Span), span: Span) {
        let exists = self.slot(None, Type::Bool);
        let (read, store) = (ReadKind::ExistsForNew(kind), self.program.store_of(kind));
        let at = Some(object.clone());
        let exists = self.read(read, store, at, Vec::new(), vec![exists], span);
        let condition = self.local(Op::Not, vec![exists], Type::Bool, span);
        self.promise(condition, "it exists already", Check::New(object.0.clone()), span);
    }

    /// Ends the transaction unless a condition holds on which a promise rests.
    fn promise(&mut self, condition: Operand, message: &str, check: Check, span: Span) {
        let require = Kind::Require {
            condition,
            condition_span: span,
            message: Operand::Const(Value::from(message)),
            message_span: span,
            code: None,
            check: Some(check),
        };
        self.push(require, span);
    }

    /// Checks each `unique` of which a write of `object` writes a field. A new object has no other fields.
    pub(super) fn uniques(
        &mut self,
        kind: ObjectId,
        object: &(Operand, Span),
        written: &[Written],
        is_new: bool,
        span: Span,
    ) {
        let program = self.program;
        let declared = &program.objects[kind.index()];
        let indexes = declared.indexes.iter().enumerate();
        for (at, index) in indexes.filter(|(_, index)| index.is_unique) {
            let fields = declared.fields_of(index);
            let is_written = |field: &u16| written.iter().any(|(known, ..)| known == field);
            let is_concerned = fields.iter().any(is_written);
            if is_concerned && (!is_new || fields.iter().all(is_written)) {
                self.check_unique((kind, at as u32, index), &fields, object, written, span);
            }
        }
    }

    fn check_unique(
        &mut self,
        (kind, at, index): (ObjectId, u32, &Index),
        fields: &[u16],
        object: &(Operand, Span),
        written: &[Written],
        span: Span,
    ) {
        let known = |field: &u16| written.iter().find(|(known, ..)| known == field);
        let is_none = |field: &u16| {
            known(field).is_some_and(|(_, value, _)| *value == Operand::Const(Value::NONE))
        };
        // An object one of whose fields is `none` is in no index.
        if fields.iter().any(is_none) {
            return;
        }
        let store = self.program.store_of(kind);
        let mut args = Vec::new();
        for (field, (_, inner)) in fields.iter().zip(&index.fields) {
            args.push(match known(field) {
                Some((_, value, span)) => (value.clone(), *span),
                None => {
                    let dst = self.slot(None, Type::Option(std::sync::Arc::new(inner.clone())));
                    let read = ReadKind::Indexed(kind, *field);
                    let object = Some(object.clone());
                    (self.read(read, store, object, Vec::new(), vec![dst], span), span)
                }
            });
        }
        let dst = self.slot(None, Type::Bool);
        let values = args.iter().map(|(value, _)| value.clone()).collect();
        let read = ReadKind::Free { kind, index: at, fields: fields.to_vec() };
        let condition = self.read(read, store, Some(object.clone()), args, vec![dst], span);
        let check = Check::Unique { kind, index: at, values };
        self.promise(condition, "another object has these values", check, span);
    }
}
