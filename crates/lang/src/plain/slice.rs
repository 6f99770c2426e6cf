//! Slices of maps.

use mingle_model::{Ref, Value};

use super::{FieldState, Run};
use crate::hir::{CollectionRead, Place};

impl Run<'_> {
    /// Returns the entries of a slice of a map.
    pub(super) fn map_slice(
        &self,
        object: &Ref,
        map: &Place,
        read: CollectionRead,
        args: &[Value],
    ) -> Vec<(Value, Value)> {
        let Some(FieldState::Map(entries)) = self.state.field(object, map.field) else {
            return Vec::new();
        };
        let count = args.last().and_then(Value::as_int).unwrap_or_default();
        let count = usize::try_from(count).unwrap_or(0);
        let skipped = match read {
            CollectionRead::MapLast => entries.len().saturating_sub(count),
            _ => 0,
        };
        let lies_within = |key: &Value| match args {
            [from, before, _] => from <= key && key < before,
            [from, _] => from < key,
            _ => true,
        };
        let found = entries.iter().skip(skipped).filter(|(key, _)| lies_within(key)).take(count);
        found.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}
