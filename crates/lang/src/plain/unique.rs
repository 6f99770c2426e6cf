//! The promise of a `unique`: no two objects have the same values.

use mingle_model::index::indexed;
use mingle_model::{Ref, Taken, Value};

use super::{Abort, FieldState, Run};
use crate::hir::ObjectId;

impl Run<'_> {
    /// Checks that an object may get these values of fields: no other object has the same in a `unique`.
    pub(super) fn uniques(
        &self,
        kind: ObjectId,
        object: &Ref,
        written: &[(u16, Value)],
    ) -> Result<(), Abort> {
        let declared = &self.program.objects[kind.index()];
        for index in declared.indexes.iter().filter(|index| index.is_unique) {
            let fields = declared.fields_of(index);
            if !written.iter().any(|(field, _)| fields.contains(field)) {
                continue;
            }
            let now = |object: &Ref, field: u16| match self.state.field(object, field) {
                Some(FieldState::Register(value)) => indexed(value).cloned(),
                _ => None,
            };
            let then = |field: u16| match written.iter().find(|(known, _)| *known == field) {
                Some((_, value)) => indexed(value).cloned(),
                None => now(object, field),
            };
            let Some(values) = fields.iter().map(|field| then(*field)).collect::<Option<Vec<_>>>()
            else {
                continue;
            };
            let is_other = |other: &Ref| {
                other.kind() == object.kind()
                    && other != object
                    && fields
                        .iter()
                        .zip(&values)
                        .all(|(field, value)| now(other, *field).as_ref() == Some(value))
            };
            if self.state.objects().any(|(other, _)| is_other(other)) {
                let names = index.fields.iter().map(|(name, _)| name.clone());
                let values = names.zip(values).collect();
                return Err(Abort::Taken(Taken { object: object.kind().clone(), values }));
            }
        }
        Ok(())
    }
}
