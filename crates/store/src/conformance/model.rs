//! A model of a store, in the plainest way: one copy, one transaction after another.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{Ref, Value};

use crate::operation::{Address, Data, Read, Write};
use crate::record::{Bytes, RecordKey};

/// All objects and records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    objects: BTreeMap<Ref, Fields>,
    records: BTreeMap<RecordKey, Bytes>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Fields {
    registers: BTreeMap<u16, Value>,
    counters: BTreeMap<u16, i128>,
    sets: BTreeMap<u16, BTreeSet<Value>>,
    maps: BTreeMap<u16, BTreeMap<Value, Value>>,
    logs: BTreeMap<u16, Vec<Value>>,
}

impl Model {
    /// Makes a change. Every write but a deletion makes its object exist.
    pub fn write(&mut self, write: &Write) {
        match write {
            Write::Create(object) => {
                self.objects.entry(object.clone()).or_default();
            }
            Write::Delete(object) => {
                self.objects.remove(object);
            }
            Write::Assign(address, value) => {
                let fields = self.fields_mut(address);
                fields.registers.insert(address.field, value.clone());
            }
            Write::Add(address, amount) => {
                *self.fields_mut(address).counters.entry(address.field).or_default() += amount;
            }
            Write::Insert(address, value) => {
                let set = self.fields_mut(address).sets.entry(address.field);
                set.or_default().insert(value.clone());
            }
            Write::Remove(address, value) => {
                let set = self.fields_mut(address).sets.entry(address.field);
                set.or_default().remove(value);
            }
            Write::Put(address, key, value) => {
                let map = self.fields_mut(address).maps.entry(address.field);
                map.or_default().insert(key.clone(), value.clone());
            }
            Write::Erase(address, key) => {
                let map = self.fields_mut(address).maps.entry(address.field);
                map.or_default().remove(key);
            }
            Write::Append(address, value) => {
                let log = self.fields_mut(address).logs.entry(address.field);
                log.or_default().push(value.clone());
            }
            Write::Clear(address) => {
                let fields = self.fields_mut(address);
                fields.sets.remove(&address.field);
                fields.maps.remove(&address.field);
                fields.logs.remove(&address.field);
            }
            Write::Record(key, value) => {
                self.records.insert(key.clone(), value.clone());
            }
            Write::Discard(key) => {
                self.records.remove(key);
            }
            Write::Command { .. } | Write::Witness(_) | Write::Forget(_) => {}
        }
    }

    /// Makes changes in order.
    pub fn write_all(&mut self, writes: &[Write]) {
        for write in writes {
            self.write(write);
        }
    }

    /// Returns the answer to a read.
    ///
    /// # Panics
    ///
    /// For queries and witness rows, which the model does not have.
    pub fn read(&self, read: &Read) -> Data {
        let none = Fields::default();
        let at = |address: &Address| self.objects.get(&address.object).unwrap_or(&none);
        match read {
            Read::Exists(object) => Data::Bool(self.objects.contains_key(object)),
            Read::Register(a) => Data::Register(at(a).registers.get(&a.field).cloned()),
            Read::Counter(a) => Data::Counter(at(a).counters.get(&a.field).copied().unwrap_or(0)),
            Read::Contains(a, value) => {
                Data::Bool(at(a).sets.get(&a.field).is_some_and(|s| s.contains(value)))
            }
            Read::SetSize(a) => count(at(a).sets.get(&a.field).map_or(0, BTreeSet::len)),
            Read::Elements(a) => {
                let set = at(a).sets.get(&a.field);
                Data::Values(set.into_iter().flatten().cloned().collect())
            }
            Read::Entry(a, key) => {
                let map = at(a).maps.get(&a.field);
                Data::Register(map.and_then(|map| map.get(key)).cloned())
            }
            Read::MapSize(a) => count(at(a).maps.get(&a.field).map_or(0, BTreeMap::len)),
            Read::Entries(a) => {
                let entries = at(a).maps.get(&a.field).into_iter().flatten();
                Data::Entries(entries.map(|(k, v)| (k.clone(), v.clone())).collect())
            }
            Read::MapSlice { address: a, range } => {
                Data::Entries(range.slice(at(a).maps.get(&a.field).into_iter().flatten()))
            }
            Read::LogSize(a) => count(at(a).logs.get(&a.field).map_or(0, Vec::len)),
            Read::LogLast(a, count) => {
                let lines = at(a).logs.get(&a.field).map_or(&[][..], Vec::as_slice);
                let count = usize::try_from(*count).unwrap_or(usize::MAX);
                Data::Values(lines[lines.len().saturating_sub(count)..].to_vec())
            }
            Read::LogSlice { address, from, count } => {
                let lines = at(address).logs.get(&address.field).into_iter().flatten();
                let from = usize::try_from(*from).unwrap_or(usize::MAX);
                let count = usize::try_from(*count).unwrap_or(usize::MAX);
                Data::Values(lines.skip(from).take(count).cloned().collect())
            }
            Read::Record(key) => Data::Record(self.records.get(key).cloned()),
            Read::Records { kind, from, limit } => {
                let first = RecordKey { kind: *kind, key: from.clone() };
                let records = self.records.range(first..).take_while(|(key, _)| key.kind == *kind);
                let records = records.take(*limit);
                Data::Records(
                    records.map(|(key, value)| (key.key.clone(), value.clone())).collect(),
                )
            }
            Read::Query { .. } | Read::Witnesses { .. } => {
                panic!("the model has no queries and no witness rows")
            }
        }
    }

    fn fields_mut(&mut self, address: &Address) -> &mut Fields {
        self.objects.entry(address.object.clone()).or_default()
    }
}

fn count(count: usize) -> Data {
    Data::Count(count as u64)
}
