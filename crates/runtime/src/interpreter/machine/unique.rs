//! The check of a `unique`: true if no other object has some values.
//!
//! The store is asked for two objects with the values, as it has them: one may be the written object itself. An
//! object that this phase has written counts as it is now. Each write of a field of a `unique` follows such a
//! check, so the values that objects get are remembered there, as claims. A claim lasts until its object gets
//! other values or loses one, or a command runs. So the answer can be fetched over writes and for many rounds of a
//! loop at once, like that of any read of an object.

use mingle_lang::code::ReadSpec;
use mingle_lang::flat::{ReadKind, Slot};
use mingle_lang::hir::ObjectId;
use mingle_model::index::indexed;
use mingle_model::{Ref, Value};
use mingle_store::{Data, Read};
use rustc_hash::FxHashMap;

use super::{Machine, Need};

/// The values of `unique`s that this phase gave objects: each by the kind and the place of the index in it.
#[derive(Debug, Default)]
pub(super) struct Claims {
    holders: FxHashMap<(ObjectId, u32, Vec<Value>), Ref>,
    held: FxHashMap<(ObjectId, u32, Ref), Vec<Value>>,
}

impl Claims {
    /// Notes that an object has values now, in place of those that it had.
    fn note(&mut self, (kind, index): (ObjectId, u32), values: Vec<Value>, object: Ref) {
        self.leave((kind, index), &object);
        self.held.insert((kind, index, object.clone()), values.clone());
        self.holders.insert((kind, index, values), object);
    }

    /// Notes that an object is in an index no longer.
    fn leave(&mut self, (kind, index): (ObjectId, u32), object: &Ref) {
        if let Some(values) = self.held.remove(&(kind, index, object.clone())) {
            self.holders.remove(&(kind, index, values));
        }
    }

    /// Forgets everything: the store answers for all of it.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Machine<'_> {
    /// Returns the request of a check to the store; none if the object will be in no index.
    pub(super) fn others(&self, read: &ReadSpec) -> Option<Read> {
        let ReadKind::Free { kind, index, .. } = &read.kind else { return None };
        let index = &self.program.objects[kind.index()].indexes[*index as usize];
        let mut arguments = self.claimed_values(read)?;
        // After no object, in the order of keys, two of them.
        arguments.extend([Value::NONE, Value::Bool(false), Value::Int(2)]);
        Some(Read::Query { operation: self.operation_name(index.others()), arguments })
    }

    /// Returns the values of a `unique` that an object will have; none if one of them is `none`.
    fn claimed_values(&self, read: &ReadSpec) -> Option<Vec<Value>> {
        read.args.iter().map(|arg| indexed(&self.value(arg)).cloned()).collect()
    }

    /// Runs a check. If the transaction itself has freed the values, its writes are sent first: a unique index of the
    /// database must never see two objects with the same values.
    pub(super) fn check_free(
        &mut self,
        read: &ReadSpec,
        (kind, index): (ObjectId, u32),
        fields: &[u16],
        dst: Slot,
    ) -> Option<Need> {
        let (object, values) = (self.object(read), self.claimed_values(read));
        let Some((values, request)) = values.zip(self.others(read)) else {
            self.slots[dst.index()] = Value::Bool(true);
            return None;
        };
        let Some(Data::Result(Value::List(found))) = self.fetched.get(&request) else {
            self.at -= 1;
            return self.ask(vec![request]);
        };
        let others = found.iter().filter_map(|found| match found {
            Value::Ref(other) if *other != object => Some(other),
            _ => None,
        });
        let is_written = |other: &Ref| {
            fields.iter().any(|field| {
                let view = self.view(other, *field);
                view.writes.is_some() || view.hidden
            })
        };
        let (freed, held): (Vec<&Ref>, Vec<&Ref>) = others.partition(|other| is_written(other));
        if held.is_empty() && !freed.is_empty() {
            self.at -= 1;
            return Some(self.flush());
        }
        let is_in_store = !held.is_empty();
        let claim = (kind, index, values);
        let is_claimed = self.claims.holders.get(&claim).is_some_and(|other| *other != object);
        self.claims.note((kind, index), claim.2, object);
        self.slots[dst.index()] = Value::Bool(!is_in_store && !is_claimed);
        None
    }

    /// Notes that an object loses a field, or all of them: it leaves the `unique`s over that field.
    pub(super) fn lose(&mut self, kind: ObjectId, field: Option<u16>, object: &Ref) {
        let declared = &self.program.objects[kind.index()];
        for (at, index) in declared.indexes.iter().enumerate().filter(|(_, it)| it.is_unique) {
            if field.is_none_or(|field| declared.fields_of(index).contains(&field)) {
                self.claims.leave((kind, at as u32), object);
            }
        }
    }
}
