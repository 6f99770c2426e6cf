//! Deletion of objects and clearing of collections, limited to the data that the update had seen.

use super::apply::Apply;
use super::context::Context;
use super::rows::{self, Sibling};
use super::update::{Dot, ObjectScope, Scope, UnitKind};
use crate::encoding::key;
use crate::layout::Shape;
use crate::storage::{Bytes, StorageError};

impl Apply<'_, '_> {
    /// Removes everything under a scope that `context` covers.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn scope(&mut self, scope: &Scope, context: &Context) -> Result<(), StorageError> {
        match &scope.object {
            Some(object) => self.delete(&scope.prefix, object, context),
            None => {
                let rows = self.draft.rows(&self.own(b'd', &scope.prefix))?;
                let field = scope.prefix.len() - 1;
                for (key, row) in rows {
                    if scope.is_log {
                        self.purge_line(&key, &scope.prefix[..field], context)?;
                    } else {
                        let kind = element_kind(field);
                        self.purge_unit(kind, &key, &row, context)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn delete(
        &mut self,
        object: &[u8],
        scope: &ObjectScope,
        context: &Context,
    ) -> Result<(), StorageError> {
        for (key, row) in self.draft.rows(&self.own(b'd', object))? {
            self.purge(object, &key, &row, context)?;
        }
        for (counter, removal) in &scope.counters {
            let key = self.own(b'd', counter);
            let mut tally = self.tally(&key)?;
            tally.remove(removal, &self.seen);
            self.draft.put(key, rows::encode_counter(self.version, &tally));
        }
        Ok(())
    }

    /// Removes everything that `context` covers in one row of an object.
    fn purge(
        &mut self,
        object: &[u8],
        key: &Bytes,
        row: &[u8],
        context: &Context,
    ) -> Result<(), StorageError> {
        let kind: [u8; 4] = *object.first_chunk().expect("an object's prefix has a kind");
        let (field, tail) =
            key[2 + object.len()..].split_first_chunk().expect("a row's key has a field");
        let id = u16::from_be_bytes(*field);
        let field_end = object.len() + 2;
        if id == 0 {
            let covered = |dot: &Dot| context.contains(dot.origin, dot.sequence);
            let (mut presence, dots) = rows::decode_presence(row);
            if !dots.iter().any(covered) {
                return Ok(());
            }
            presence.deleted_at = self.version;
            self.draft.put(key.clone(), rows::encode_presence(presence, &dots));
            return self.presence(&key[2..], |dots| dots.retain(|dot| !covered(dot)));
        }
        let shape = self.core.layout.shape(u32::from_be_bytes(kind), id);
        match (tail.first(), shape) {
            (None, Shape::Counter) | (Some(0), _) => Ok(()),
            (None, _) => self.purge_unit(UnitKind::Register, key, row, context),
            (Some(_), Shape::Log) => {
                let field = key[2..2 + field_end].to_vec();
                self.purge_line(key, &field, context)
            }
            (Some(_), _) => self.purge_unit(element_kind(field_end), key, row, context),
        }
    }

    fn purge_unit(
        &mut self,
        kind: UnitKind,
        key: &[u8],
        row: &[u8],
        context: &Context,
    ) -> Result<(), StorageError> {
        let before = rows::decode_unit(row);
        let kept = |s: &&Sibling| !context.contains(s.dot.origin, s.dot.sequence);
        let after = before.iter().filter(kept).cloned().collect();
        self.set_unit(kind, &key[2..], &before, after)
    }

    fn purge_line(
        &mut self,
        key: &Bytes,
        field: &[u8],
        context: &Context,
    ) -> Result<(), StorageError> {
        let dot = rows::line_dot(key);
        if !context.contains(dot.origin, dot.sequence) {
            return Ok(());
        }
        self.draft.remove(key.clone());
        self.change_header(field, -1)
    }
}

/// Returns the unit kind of an element of the collection whose prefix has this length.
pub fn element_kind(field: usize) -> UnitKind {
    UnitKind::Element(u32::try_from(field).expect("keys are bounded by ENCODED_BYTES_MAX"))
}

/// Returns the scope that clears a collection.
pub fn collection_scope(field: &[u8], is_log: bool) -> Scope {
    Scope { prefix: key::elements(field), object: None, is_log }
}
