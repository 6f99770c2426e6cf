//! Applies writes to rows.

use mingle_model::{Ref, TransactionId, Value, WitnessRow};
use mingle_store::{Address, Write};

use crate::core::Core;
use crate::encoding::row::{Header, Presence};
use crate::encoding::wire::Reader;
use crate::encoding::{key, row, value};
use crate::index::Before;
use crate::layout::Place;
use crate::storage::overlay::Draft;
use crate::storage::{StorageError, View};
use crate::witness;

/// The target of the applied writes.
struct Apply<'a, 'b> {
    core: &'a Core,
    draft: &'a mut Draft<'b>,
    /// The version that the writes carry.
    version: u64,
}

const CHECKED: &str = "writes are checked against the layout before they are applied";

/// Applies writes that were prepared, and the changes of indexes that follow from them.
///
/// # Errors
///
/// When the disk fails.
pub fn apply(
    core: &Core,
    draft: &mut Draft<'_>,
    version: u64,
    writes: &[Write],
) -> Result<(), StorageError> {
    let mut keys = Vec::new();
    if !core.layout.indexes.is_empty() {
        let objects = writes.iter().filter_map(touched);
        keys.extend(objects.map(|object| core.layout.place(0, object).expect(CHECKED).prefix));
    }
    let keys = keys.iter().map(|key| &key[2..]);
    let indexed = Before::note(&core.layout, draft, 0, keys)?;
    let mut apply = Apply { core, draft, version };
    for write in writes {
        apply.write(write)?;
    }
    indexed.settle(&core.layout, draft, version)
}

/// Returns the object whose rows in indexes a write may change.
fn touched(write: &Write) -> Option<&Ref> {
    match write {
        Write::Create(object) | Write::Delete(object) => Some(object),
        Write::Assign(address, _)
        | Write::Add(address, _)
        | Write::Insert(address, _)
        | Write::Put(address, ..)
        | Write::Remove(address, _)
        | Write::Erase(address, _)
        | Write::Append(address, _)
        | Write::Clear(address) => Some(&address.object),
        Write::Witness(_)
        | Write::Forget(_)
        | Write::Record(..)
        | Write::Discard(_)
        | Write::Command { .. } => None,
    }
}

impl Apply<'_, '_> {
    fn write(&mut self, write: &Write) -> Result<(), StorageError> {
        match write {
            Write::Create(object) => self.touch(object).map(|_| ()),
            Write::Delete(object) => self.delete(object),
            Write::Assign(address, assigned) => {
                let field = self.field(address)?;
                let row = row::unit(self.version, &value::encode(assigned));
                self.draft.put(field, row);
                Ok(())
            }
            Write::Add(address, amount) => {
                let field = self.field(address)?;
                let sum = self.draft.get(&field)?.map_or(0, |row| row::counter_sum(&row));
                let sum = sum.wrapping_add(*amount);
                self.draft.put(field, row::counter(self.version, sum).0);
                Ok(())
            }
            Write::Insert(address, element) => {
                let row = row::unit(self.version, &[]);
                self.insert(address, element, row)
            }
            Write::Put(address, entry, put) => {
                let row = row::unit(self.version, &value::encode(put));
                self.insert(address, entry, row)
            }
            Write::Remove(address, element) | Write::Erase(address, element) => {
                self.remove(address, element)
            }
            Write::Append(address, line) => self.append(address, line),
            Write::Clear(address) => self.clear(address),
            Write::Witness(row) => {
                self.witness(row);
                Ok(())
            }
            Write::Forget(id) => self.forget(*id),
            Write::Record(key, value) => {
                self.draft.put(key::record(0, key), row::unit(self.version, value));
                Ok(())
            }
            Write::Discard(key) => {
                self.draft.remove(key::record(0, key));
                Ok(())
            }
            Write::Command { .. } => unreachable!("commands were replaced by what they write"),
        }
    }

    fn witness(&mut self, row: &WitnessRow) {
        let rest = witness::key_of(&self.core.layout, row).expect(CHECKED);
        self.draft.put(key::index(0, &rest), []);
        self.draft.put(key::with(b"d\0", &rest), row::unit(self.version, &[]));
    }

    fn forget(&mut self, id: TransactionId) -> Result<(), StorageError> {
        for index in self.draft.keys(&key::by_transaction(0, Some(id)))? {
            self.draft.remove(key::with(b"d\0", key::indexed(&index)));
            self.draft.remove(index);
        }
        Ok(())
    }

    /// The object exists from now on.
    fn touch(&mut self, object: &Ref) -> Result<Place, StorageError> {
        let place = self.core.layout.place(0, object).expect(CHECKED);
        let key = key::presence(&place.prefix);
        let presence = self.presence(&key)?;
        if !presence.exists {
            self.set_presence(key, presence.deleted_at, true);
            self.count_kind(place.kind, 1)?;
        }
        Ok(place)
    }

    fn presence(&self, key: &[u8]) -> Result<Presence, StorageError> {
        let row = self.draft.get(key)?;
        Ok(row.map(|row| Presence::decode(&mut Reader(&row))).unwrap_or_default())
    }

    fn set_presence(&mut self, key: Vec<u8>, deleted_at: u64, exists: bool) {
        let presence = Presence { version: self.version, exists, deleted_at };
        self.draft.put(key, presence.encode().0);
    }

    fn count_kind(&mut self, kind: u32, change: i64) -> Result<(), StorageError> {
        let key = key::kind(0, kind);
        let mut header = self.header(&key)?;
        header.version = self.version;
        header.count = header.count.saturating_add_signed(change);
        self.draft.put(key, header.encode());
        Ok(())
    }

    fn header(&self, key: &[u8]) -> Result<Header, StorageError> {
        let row = self.draft.get(key)?;
        Ok(row.as_deref().map(Header::decode).unwrap_or_default())
    }

    fn delete(&mut self, object: &Ref) -> Result<(), StorageError> {
        let place = self.core.layout.place(0, object).expect(CHECKED);
        let key = key::presence(&place.prefix);
        if !self.presence(&key)?.exists {
            return Ok(());
        }
        for row in self.draft.keys(&place.prefix)? {
            self.draft.remove(row);
        }
        self.set_presence(key, self.version, false);
        self.count_kind(place.kind, -1)
    }

    /// The key of a field of an object that exists from now on.
    fn field(&mut self, address: &Address) -> Result<Vec<u8>, StorageError> {
        let place = self.touch(&address.object)?;
        let kind = self.core.layout.kind(address.object.kind()).expect(CHECKED);
        let id = kind.fields[usize::from(address.field)].id;
        Ok(key::field(&place.prefix, id))
    }

    fn insert(
        &mut self,
        address: &Address,
        element: &Value,
        row: Vec<u8>,
    ) -> Result<(), StorageError> {
        let field = self.field(address)?;
        let (key, header_key) = (key::element(&field, element), key::header(&field));
        let mut header = self.header(&header_key)?;
        header.version = self.version;
        header.count += u64::from(self.draft.get(&key)?.is_none());
        self.draft.put(key, row);
        self.draft.put(header_key, header.encode());
        Ok(())
    }

    fn remove(&mut self, address: &Address, element: &Value) -> Result<(), StorageError> {
        let field = self.field(address)?;
        let (key, header_key) = (key::element(&field, element), key::header(&field));
        if self.draft.get(&key)?.is_none() {
            return Ok(());
        }
        let mut header = self.header(&header_key)?;
        header.version = self.version;
        header.removed_at = self.version;
        header.count -= 1;
        self.draft.remove(key);
        self.draft.put(header_key, header.encode());
        Ok(())
    }

    fn append(&mut self, address: &Address, line: &Value) -> Result<(), StorageError> {
        let field = self.field(address)?;
        let header_key = key::header(&field);
        let mut header = self.header(&header_key)?;
        let key = key::with(&key::elements(&field), &header.count.to_be_bytes());
        header.version = self.version;
        header.count += 1;
        let row = row::unit(self.version, &value::encode(line));
        self.draft.put(key, row);
        self.draft.put(header_key, header.encode());
        Ok(())
    }

    fn clear(&mut self, address: &Address) -> Result<(), StorageError> {
        let field = self.field(address)?;
        let header_key = key::header(&field);
        if self.header(&header_key)?.count == 0 {
            return Ok(());
        }
        for row in self.draft.keys(&key::elements(&field))? {
            self.draft.remove(row);
        }
        let header = Header { version: self.version, count: 0, removed_at: self.version };
        self.draft.put(header_key, header.encode());
        Ok(())
    }
}
