//! Slices of maps: a few entries in order of their keys, seen through the transaction's own writes.
//!
//! A transaction has removed the entry `b`, put `c`, and reads the first two entries. The store has `a`, `b`, `d` and
//! thousands more. One of the first two at the store may be the removed one, so three are asked for: `a`, `b`, `d`. With
//! the own writes they are `a`, `c`, `d`, and the first two of these are the answer. In general, at most as many entries
//! of the store are missing as the transaction has removed in the range, so that many more are asked for.

use mingle_lang::code::ReadSpec;
use mingle_lang::hir::CollectionRead;
use mingle_model::{Ref, Value};
use mingle_store::{Address, KeyRange, Read};

use super::Machine;
use super::read::list;
use crate::api::error::Error;
use crate::interpreter::write_buffer::FieldWrites;

impl Machine<'_> {
    /// Returns the request for a slice.
    pub(super) fn map_slice(
        &self,
        read: &ReadSpec,
        collection: CollectionRead,
        address: Address,
    ) -> Read {
        let mut range = self.key_range(read, collection);
        if let Some(FieldWrites::Map(_, changes)) = self.view(&address.object, address.field).writes
        {
            let removed =
                changes.iter().filter(|(key, value)| value.is_none() && range.contains(key));
            let removed = removed.count() as u64;
            if range.count > 0 {
                range.count = range.count.saturating_add(removed);
            }
        }
        Read::MapSlice { address, range }
    }

    /// Returns the slice that the program reads.
    fn key_range(&self, read: &ReadSpec, collection: CollectionRead) -> KeyRange {
        let arg = |index: usize| self.value(&read.args[index]);
        let count = |index| u64::try_from(arg(index).as_int().unwrap_or_default()).unwrap_or(0);
        match collection {
            CollectionRead::MapLast => KeyRange::last(count(0)),
            CollectionRead::MapAfter => KeyRange::after(arg(0), count(1)),
            CollectionRead::MapSlice => {
                KeyRange { from: Some(arg(0)), before: Some(arg(1)), ..KeyRange::first(count(2)) }
            }
            _ => KeyRange::first(count(0)),
        }
    }

    /// Returns the keys and the values of a slice; none if the store's answer is missing.
    pub(super) fn sliced(
        &mut self,
        read: &ReadSpec,
        collection: CollectionRead,
        (object, field): (&Ref, u16),
    ) -> Result<Option<Vec<Value>>, Error> {
        let base = self.base(read, object);
        let Some((keys, values)) = self.contents(object, field, true, base.as_ref()) else {
            return Ok(None);
        };
        let values = values.unwrap_or_default();
        let found = self.key_range(read, collection).slice(keys.iter().zip(&values));
        let (keys, values) = found.into_iter().unzip();
        Ok(Some(vec![list(keys)?, list(values)?]))
    }
}
