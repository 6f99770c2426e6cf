//! The writes that a phase has made and not sent: reads see the store through them, and the commit
//! sends them.
//!
//! Writes of one place are joined at once: the last of several assignments remains, and the sum of
//! many additions. So the writes sent are as few as the changes.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

use mingle_model::{Ref, Value};
use mingle_store::{Address, Write};
use rustc_hash::FxHashMap;

/// The writes of one phase.
#[derive(Debug, Default)]
pub struct WriteBuffer {
    objects: FxHashMap<Ref, ObjectWrites>,
    /// The objects in the order in which they were first written.
    order: Vec<Ref>,
}

/// The writes to one object.
#[derive(Debug, Default)]
struct ObjectWrites {
    deleted: bool,
    created: bool,
    /// Written since it was deleted, if it was.
    touched: bool,
    fields: Vec<(u16, FieldWrites)>,
}

/// The writes to one field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldWrites {
    /// The register's value.
    Register(Value),
    /// The sum to add to the counter.
    Counter(i128),
    /// The set: true if emptied first, and the elements put in or taken out.
    Set(bool, BTreeMap<Value, bool>),
    /// The map: true if emptied first, and the entries with their values, or none if removed.
    Map(bool, BTreeMap<Value, Option<Value>>),
    /// The log: true if emptied first, and the lines.
    Log(bool, Vec<Value>),
}

/// A view of one field: this phase's writes to it, and the visibility of the store's content.
#[derive(Debug, Clone, Copy)]
pub struct FieldView<'a> {
    /// The writes of this phase.
    pub writes: Option<&'a FieldWrites>,
    /// The object was deleted, so the store's content is hidden.
    pub hidden: bool,
}

impl WriteBuffer {
    /// True if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns this phase's view of a field.
    pub fn field(&self, object: &Ref, field: u16) -> FieldView<'_> {
        let Some(writes) = self.objects.get(object) else {
            return FieldView { writes: None, hidden: false };
        };
        let found =
            writes.fields.iter().find(|(known, _)| *known == field).map(|(_, writes)| writes);
        FieldView { writes: found, hidden: writes.deleted }
    }

    /// Returns true if this phase makes the object exist, false if it deletes it, else none.
    pub fn exists(&self, object: &Ref) -> Option<bool> {
        let writes = self.objects.get(object)?;
        if writes.touched { Some(true) } else { writes.deleted.then_some(false) }
    }

    fn object(&mut self, object: &Ref) -> &mut ObjectWrites {
        match self.objects.entry(object.clone()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                self.order.push(object.clone());
                entry.insert(ObjectWrites::default())
            }
        }
    }

    /// Makes the object exist.
    pub fn create(&mut self, object: &Ref) {
        let writes = self.object(object);
        writes.created = true;
        writes.touched = true;
    }

    /// Deletes the object and all that was written to it.
    pub fn delete(&mut self, object: &Ref) {
        *self.object(object) = ObjectWrites { deleted: true, ..ObjectWrites::default() };
    }

    fn write(
        &mut self,
        object: &Ref,
        field: u16,
        empty: impl FnOnce() -> FieldWrites,
    ) -> &mut FieldWrites {
        let writes = self.object(object);
        writes.touched = true;
        let at = writes.fields.iter().position(|(known, _)| *known == field).unwrap_or_else(|| {
            writes.fields.push((field, empty()));
            writes.fields.len() - 1
        });
        &mut writes.fields[at].1
    }

    /// Assigns a register.
    pub fn assign(&mut self, object: &Ref, field: u16, value: Value) {
        *self.write(object, field, || FieldWrites::Counter(0)) = FieldWrites::Register(value);
    }

    /// Adds to a counter.
    pub fn add(&mut self, object: &Ref, field: u16, amount: i64) {
        if let FieldWrites::Counter(sum) = self.write(object, field, || FieldWrites::Counter(0)) {
            *sum = sum.saturating_add(i128::from(amount));
        }
    }

    /// Puts an element into a set, or takes it out.
    pub fn set(&mut self, object: &Ref, field: u16, element: Value, present: bool) {
        if let FieldWrites::Set(_, elements) =
            self.write(object, field, || FieldWrites::Set(false, BTreeMap::new()))
        {
            elements.insert(element.canonical(), present);
        }
    }

    /// Writes an entry of a map, or removes it.
    pub fn put(&mut self, object: &Ref, field: u16, key: Value, value: Option<Value>) {
        if let FieldWrites::Map(_, entries) =
            self.write(object, field, || FieldWrites::Map(false, BTreeMap::new()))
        {
            entries.insert(key.canonical(), value);
        }
    }

    /// Appends to a log.
    pub fn append(&mut self, object: &Ref, field: u16, line: Value) {
        if let FieldWrites::Log(_, lines) =
            self.write(object, field, || FieldWrites::Log(false, Vec::new()))
        {
            lines.push(line);
        }
    }

    /// Empties a collection; `empty` is the emptied one.
    pub fn clear(&mut self, object: &Ref, field: u16, empty: FieldWrites) {
        let slot = self.write(object, field, || FieldWrites::Counter(0));
        *slot = empty;
    }

    /// Takes all writes for a store, in the order in which the objects were first written.
    pub fn take_writes(&mut self) -> Vec<Write> {
        let mut sent = Vec::with_capacity(self.order.len());
        for object in std::mem::take(&mut self.order) {
            let Some(writes) = self.objects.remove(&object) else { continue };
            if writes.deleted {
                sent.push(Write::Delete(object.clone()));
            }
            if writes.created {
                sent.push(Write::Create(object.clone()));
            }
            for (field, field_writes) in writes.fields {
                send(Address { object: object.clone(), field }, field_writes, &mut sent);
            }
        }
        sent
    }
}

fn send(address: Address, writes: FieldWrites, sent: &mut Vec<Write>) {
    match writes {
        FieldWrites::Register(value) => sent.push(Write::Assign(address, value)),
        FieldWrites::Counter(sum) => sent.push(Write::Add(address, sum)),
        FieldWrites::Set(cleared, elements) => {
            if cleared {
                sent.push(Write::Clear(address.clone()));
            }
            sent.extend(elements.into_iter().map(|(element, present)| {
                let address = address.clone();
                if present {
                    Write::Insert(address, element)
                } else {
                    Write::Remove(address, element)
                }
            }));
        }
        FieldWrites::Map(cleared, entries) => {
            if cleared {
                sent.push(Write::Clear(address.clone()));
            }
            sent.extend(entries.into_iter().map(|(key, value)| match value {
                Some(value) => Write::Put(address.clone(), key, value),
                None => Write::Erase(address.clone(), key),
            }));
        }
        FieldWrites::Log(cleared, lines) => {
            if cleared {
                sent.push(Write::Clear(address.clone()));
            }
            sent.extend(lines.into_iter().map(|line| Write::Append(address.clone(), line)));
        }
    }
}
