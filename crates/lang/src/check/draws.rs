//! Keys that a store draws: `new Order { … }` where the key is an `int`.
//!
//! The number is data of the store, so it is asked for like a query that may fail ([`BuiltinQuery::Draw`]): it is
//! known before anything is committed, and the flow rules for a `new` with a key hold for it.

use mingle_model::{BuiltinQuery, Type};

use super::{Body, Checker};
use crate::diagnostic::m0202::{self, Arity};
use crate::hir::{NewKey, ObjectId, Operation};
use crate::syntax::Span;

impl Checker<'_> {
    /// Declares the draws of all objects whose stores can promise that a number is new.
    pub(super) fn draws(&mut self) {
        let levels = self.program.levels.clone();
        let Some(snapshot) = levels.find("snapshot") else { return };
        for object in &mut self.program.objects {
            let Some(store) = self.program.stores.get_mut(object.store.index()) else { continue };
            let declared = &object.declared;
            if declared.key_type != Type::Int || !levels.is_at_least(store.level, snapshot) {
                continue;
            }
            object.draw = Some(store.operations.len() as u32);
            store.operations.push(Operation {
                name: format!("{}.{}.next", declared.name, declared.key_name).into(),
                is_command: false,
                params: vec![("draw".into(), Type::String)],
                result: Some(Type::Int),
                span: object.span,
                docs: String::new(),
                builtin: Some(BuiltinQuery::Draw(declared.name.clone())),
            });
        }
    }

    /// Returns the key of a `new` that does not give one; none if it must.
    pub(super) fn drawn_key(&mut self, body: &mut Body, kind: ObjectId) -> Option<NewKey> {
        let object = &self.program.objects[kind.index()];
        let site = body.unique_sites;
        let key = match object.declared.key_type {
            Type::String => NewKey::Fresh(site),
            _ => NewKey::Drawn { operation: object.draw?, site },
        };
        body.unique_sites += 1;
        Some(key)
    }

    /// Reports a `new` or `put` that lacks its key.
    pub(super) fn key_needed(&mut self, kind: ObjectId, is_put: bool, span: Span) {
        let object = &self.program.objects[kind.index()];
        let declared = &object.declared;
        let level = self.program.stores[object.store.index()].level;
        let arity = Arity::KeyNeeded {
            object: declared.name.to_string(),
            key: declared.key_name.to_string(),
            is_put,
            level: (declared.key_type == Type::Int)
                .then(|| self.program.levels.name(level).to_string()),
        };
        self.diagnostics.push(m0202::render(arity, span));
    }
}
