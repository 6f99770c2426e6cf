//! The flushed writes of a transaction, for servers that cannot hold writes visible to one
//! transaction alone: the adapter keeps them and sends them with the commit.

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{Ref, Schema, Shape, TransactionId, Value, Version, WitnessRow};

use crate::{Address, Bytes, Data, Read, RecordKey, RecordKind, Write};

/// Flushed writes, as reads of the same transaction see them.
#[derive(Clone, Debug, Default)]
pub struct Overlay {
    objects: BTreeMap<Ref, Changes>,
    records: BTreeMap<RecordKey, (Option<Bytes>, u64)>,
    rows: BTreeSet<WitnessRow>,
    forgotten: BTreeSet<TransactionId>,
    /// True if there are commands; the adapter does not know their effects.
    pub has_commands: bool,
    /// True if any data is changed.
    pub has_data: bool,
}

/// The net effect of writes on one object.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// True if they make it exist.
    pub exists: bool,
    /// The version at which it was made to exist or deleted here; 0 if that was not looked at.
    version: u64,
    /// The version since which the server's data of it is gone; `None` if it is not gone.
    pub hidden: Option<u64>,
    /// Its changed fields by index, with the versions of the changes.
    pub fields: BTreeMap<u16, (Change, u64)>,
}

/// The net effect of writes on one field.
#[derive(Clone, Debug)]
pub enum Change {
    /// The assigned value.
    Register(Value),
    /// The added amount.
    Counter(i128),
    /// True if it was emptied first, and the elements inserted (true) or removed (false) then.
    Set(bool, BTreeMap<Value, bool>),
    /// True if it was emptied first, and the entries put (a value) or erased (none) then.
    Map(bool, BTreeMap<Value, Option<Value>>),
    /// True if it was emptied first, and the lines appended then.
    Log(bool, Vec<Value>),
}

impl Change {
    fn clear(&mut self) {
        match self {
            Self::Set(is_cleared, elements) => (*is_cleared, *elements) = (true, BTreeMap::new()),
            Self::Map(is_cleared, entries) => (*is_cleared, *entries) = (true, BTreeMap::new()),
            Self::Log(is_cleared, lines) => (*is_cleared, *lines) = (true, Vec::new()),
            Self::Register(_) | Self::Counter(_) => {}
        }
    }
}

impl Overlay {
    /// Adds a write that was checked; `version` is one of its own.
    ///
    /// # Panics
    ///
    /// If the write does not fit the schema.
    pub fn write(&mut self, schema: &Schema, write: &Write, version: u64) {
        self.has_data |= write.is_data();
        match write {
            Write::Create(object) => self.touch(object, version),
            Write::Delete(object) => {
                let gone = Changes { version, hidden: Some(version), ..Changes::default() };
                self.objects.insert(object.clone(), gone);
            }
            Write::Assign(address, value) => {
                *self.change(schema, address, version) = Change::Register(value.clone());
            }
            Write::Add(address, amount) => {
                if let Change::Counter(sum) = self.change(schema, address, version) {
                    *sum = sum.saturating_add(*amount);
                }
            }
            Write::Insert(address, value) | Write::Remove(address, value) => {
                if let Change::Set(_, elements) = self.change(schema, address, version) {
                    elements.insert(value.canonical(), matches!(write, Write::Insert(..)));
                }
            }
            Write::Put(address, key, value) => {
                if let Change::Map(_, entries) = self.change(schema, address, version) {
                    entries.insert(key.canonical(), Some(value.clone()));
                }
            }
            Write::Erase(address, key) => {
                if let Change::Map(_, entries) = self.change(schema, address, version) {
                    entries.insert(key.canonical(), None);
                }
            }
            Write::Append(address, line) => {
                if let Change::Log(_, lines) = self.change(schema, address, version) {
                    lines.push(line.clone());
                }
            }
            Write::Clear(address) => self.change(schema, address, version).clear(),
            Write::Command { .. } => self.has_commands = true,
            Write::Witness(row) => {
                self.rows.insert(row.clone());
            }
            Write::Forget(id) => {
                self.rows.retain(|row| row.id != *id);
                self.forgotten.insert(*id);
            }
            Write::Record(key, value) => {
                self.records.insert(key.clone(), (Some(value.clone()), version));
            }
            Write::Discard(key) => {
                self.records.insert(key.clone(), (None, 0));
            }
        }
    }

    /// Returns the changes of each object.
    pub fn objects(&self) -> impl Iterator<Item = (&Ref, &Changes)> {
        self.objects.iter()
    }

    /// Returns the change of each record: its new value, or none if it is removed.
    pub fn records(&self) -> impl Iterator<Item = (&RecordKey, Option<&Bytes>)> {
        self.records.iter().map(|(key, (value, _))| (key, value.as_ref()))
    }

    /// Witness rows that are added.
    pub fn added_rows(&self) -> impl Iterator<Item = &WitnessRow> {
        self.rows.iter()
    }

    /// The transactions whose rows go, before others are added.
    pub fn forgotten(&self) -> impl Iterator<Item = TransactionId> {
        self.forgotten.iter().copied()
    }

    fn touch(&mut self, object: &Ref, version: u64) {
        let changes = self.objects.entry(object.clone()).or_default();
        if !changes.exists {
            (changes.exists, changes.version) = (true, version);
        }
    }

    fn change(&mut self, schema: &Schema, address: &Address, version: u64) -> &mut Change {
        self.touch(&address.object, version);
        let declared = &schema.objects[address.object.kind()];
        let shape = Shape::of(&declared.fields[usize::from(address.field)].field_type);
        let changes = self.objects.entry(address.object.clone()).or_default();
        let is_gone = changes.hidden.is_some();
        let (change, since) = changes.fields.entry(address.field).or_insert_with(|| {
            let change = match shape {
                Shape::Register => Change::Register(Value::NONE),
                Shape::Counter => Change::Counter(0),
                Shape::Set => Change::Set(is_gone, BTreeMap::new()),
                Shape::Map => Change::Map(is_gone, BTreeMap::new()),
                Shape::Log => Change::Log(is_gone, Vec::new()),
            };
            (change, version)
        });
        *since = version;
        change
    }

    fn at(&self, address: &Address) -> Option<&Change> {
        let changes = self.objects.get(&address.object)?;
        changes.fields.get(&address.field).map(|(change, _)| change)
    }

    /// Returns the read to send to the server instead, from which the answer can be put together;
    /// none if the answer does not depend on the server's data.
    pub fn base(&self, read: &Read) -> Option<Read> {
        let limit =
            |limit: usize, more: usize| if more == 0 { limit } else { limit.saturating_add(more) };
        match read {
            Read::Records { kind, from, limit: most } => {
                let limit = limit(*most, self.records.len());
                Some(Read::Records { kind: *kind, from: from.clone(), limit })
            }
            Read::Witnesses { from, .. } if !self.rows.is_empty() || !self.forgotten.is_empty() => {
                Some(Read::Witnesses { from: *from, limit: usize::MAX })
            }
            Read::Record(key) if self.records.contains_key(key) => None,
            _ => match read.object().and_then(|object| self.objects.get(object)) {
                None => Some(read.clone()),
                Some(changes) => self.base_of_field(read, changes),
            },
        }
    }

    fn base_of_field(&self, read: &Read, changes: &Changes) -> Option<Read> {
        if changes.hidden.is_some() || (matches!(read, Read::Exists(_)) && changes.exists) {
            return None;
        }
        match read {
            Read::Register(address) => self.at(address).is_none().then(|| read.clone()),
            Read::Contains(address, value) => match self.at(address) {
                Some(Change::Set(is_cleared, elements)) => {
                    (!is_cleared && !elements.contains_key(value)).then(|| read.clone())
                }
                _ => Some(read.clone()),
            },
            Read::Entry(address, key) => match self.at(address) {
                Some(Change::Map(is_cleared, entries)) => {
                    (!is_cleared && !entries.contains_key(key)).then(|| read.clone())
                }
                _ => Some(read.clone()),
            },
            Read::SetSize(address) | Read::Elements(address) => match self.at(address) {
                Some(Change::Set(true, _)) => None,
                Some(_) => Some(Read::Elements(address.clone())),
                None => Some(read.clone()),
            },
            Read::MapSize(address) | Read::Entries(address) => match self.at(address) {
                Some(Change::Map(true, _)) => None,
                Some(_) => Some(Read::Entries(address.clone())),
                None => Some(read.clone()),
            },
            Read::MapSlice { address, .. } => match self.at(address) {
                Some(Change::Map(true, _)) => None,
                Some(_) => Some(Read::Entries(address.clone())),
                None => Some(read.clone()),
            },
            Read::LogSize(address) | Read::LogLast(address, _) => match self.at(address) {
                Some(Change::Log(true, _)) => None,
                _ => Some(read.clone()),
            },
            Read::LogSlice { address, .. } => match self.at(address) {
                Some(Change::Log(true, _)) => None,
                Some(_) => Some(Read::LogLast(address.clone(), u64::MAX)),
                None => Some(read.clone()),
            },
            _ => Some(read.clone()),
        }
    }

    /// Returns the answer to a read, given the server's answer to [`Overlay::base`].
    pub fn answer(&self, read: &Read, found: Option<(Data, Version)>) -> (Data, Version) {
        let base = found.as_ref().map_or(Version(0), |(_, version)| *version);
        let found = found.map(|(data, _)| data);
        match read {
            Read::Record(key) => match (self.records.get(key), found) {
                (Some((value, version)), _) => (Data::Record(value.clone()), Version(*version)),
                (None, found) => (found.unwrap_or(Data::Record(None)), base),
            },
            Read::Records { kind, from, limit } => {
                (self.listed_records(found, *kind, from, *limit), Version(0))
            }
            Read::Witnesses { from, limit } => (self.listed(found, *from, *limit), Version(0)),
            _ => {
                let changes = read.object().and_then(|object| self.objects.get(object));
                match (changes, found) {
                    (None, found) => (found.unwrap_or(Data::Bool(false)), base),
                    (Some(changes), found) => {
                        let version = self.version(read, changes).map_or(base, Version);
                        (self.data(read, changes, found), version)
                    }
                }
            }
        }
    }

    /// Returns the version of the change made here; none if the server's version holds.
    fn version(&self, read: &Read, changes: &Changes) -> Option<u64> {
        let of_field = |address: &Address| changes.fields.get(&address.field).map(|(_, at)| *at);
        let of_unit = |address: &Address, is_changed: bool| {
            of_field(address).filter(|_| is_changed).or(changes.hidden)
        };
        match read {
            Read::Exists(_) => {
                (changes.hidden.is_some() || changes.exists).then_some(changes.version)
            }
            Read::Contains(address, value) => {
                let is_changed = match self.at(address) {
                    Some(Change::Set(is_cleared, all)) => *is_cleared || all.contains_key(value),
                    _ => false,
                };
                of_unit(address, is_changed)
            }
            Read::Entry(address, key) => {
                let is_changed = match self.at(address) {
                    Some(Change::Map(is_cleared, all)) => *is_cleared || all.contains_key(key),
                    _ => false,
                };
                of_unit(address, is_changed)
            }
            Read::Register(address)
            | Read::Counter(address)
            | Read::SetSize(address)
            | Read::Elements(address)
            | Read::MapSize(address)
            | Read::Entries(address)
            | Read::MapSlice { address, .. }
            | Read::LogSize(address)
            | Read::LogLast(address, _)
            | Read::LogSlice { address, .. } => of_unit(address, true),
            _ => None,
        }
    }

    fn data(&self, read: &Read, changes: &Changes, found: Option<Data>) -> Data {
        match read {
            Read::Exists(_) => match found {
                Some(found) => found,
                None => Data::Bool(changes.exists),
            },
            Read::Register(address) => match self.at(address) {
                Some(Change::Register(value)) => Data::Register(Some(value.clone())),
                _ => found.unwrap_or(Data::Register(None)),
            },
            Read::Counter(address) => {
                let Some(Data::Counter(base)) = found.or(Some(Data::Counter(0))) else {
                    return Data::Counter(0);
                };
                match self.at(address) {
                    Some(Change::Counter(sum)) => Data::Counter(base.saturating_add(*sum)),
                    _ => Data::Counter(base),
                }
            }
            Read::Contains(address, value) => match self.at(address) {
                Some(Change::Set(_, all)) if all.contains_key(value) => Data::Bool(all[value]),
                _ => found.unwrap_or(Data::Bool(false)),
            },
            Read::Entry(address, key) => match self.at(address) {
                Some(Change::Map(_, all)) if all.contains_key(key) => {
                    Data::Register(all[key].clone())
                }
                _ => found.unwrap_or(Data::Register(None)),
            },
            Read::SetSize(address) | Read::Elements(address) => self.set(read, address, found),
            Read::MapSize(address) | Read::Entries(address) | Read::MapSlice { address, .. } => {
                self.map(read, address, found)
            }
            Read::LogSize(address) | Read::LogLast(address, _) | Read::LogSlice { address, .. } => {
                self.log(read, address, found)
            }
            _ => found.unwrap_or(Data::Bool(false)),
        }
    }

    fn set(&self, read: &Read, address: &Address, found: Option<Data>) -> Data {
        let mut all: BTreeSet<Value> = match found {
            Some(Data::Values(values)) => values.into_iter().collect(),
            Some(other) => return other,
            None => BTreeSet::new(),
        };
        if let Some(Change::Set(_, elements)) = self.at(address) {
            for (element, is_in) in elements {
                if *is_in {
                    all.insert(element.clone());
                } else {
                    all.remove(element);
                }
            }
        }
        match read {
            Read::SetSize(_) => Data::Count(all.len() as u64),
            _ => Data::Values(all.into_iter().collect()),
        }
    }

    fn map(&self, read: &Read, address: &Address, found: Option<Data>) -> Data {
        let mut all: BTreeMap<Value, Value> = match found {
            Some(Data::Entries(entries)) => entries.into_iter().collect(),
            Some(other) => return other,
            None => BTreeMap::new(),
        };
        if let Some(Change::Map(_, entries)) = self.at(address) {
            for (key, value) in entries {
                match value {
                    Some(value) => {
                        all.insert(key.clone(), value.clone());
                    }
                    None => {
                        all.remove(key);
                    }
                }
            }
        }
        match read {
            Read::MapSize(_) => Data::Count(all.len() as u64),
            Read::MapSlice { range, .. } => Data::Entries(range.slice(&all)),
            _ => Data::Entries(all.into_iter().collect()),
        }
    }

    fn log(&self, read: &Read, address: &Address, found: Option<Data>) -> Data {
        let own: &[Value] = match self.at(address) {
            Some(Change::Log(_, lines)) => lines,
            _ => &[],
        };
        let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        match (read, found) {
            (Read::LogSize(_), found) => {
                let Some(Data::Count(base)) = found.or(Some(Data::Count(0))) else {
                    return Data::Count(0);
                };
                Data::Count(base + own.len() as u64)
            }
            (Read::LogLast(_, count), found) => {
                let mut lines = values(found);
                lines.extend_from_slice(own);
                let first = lines.len().saturating_sub(size(*count));
                Data::Values(lines.split_off(first))
            }
            (Read::LogSlice { from, count, .. }, found) => {
                if let (Some(data), None) = (&found, self.at(address)) {
                    return data.clone();
                }
                let mut lines = values(found);
                lines.extend_from_slice(own);
                let slice = lines.into_iter().skip(size(*from)).take(size(*count));
                Data::Values(slice.collect())
            }
            (_, found) => found.unwrap_or(Data::Count(0)),
        }
    }

    fn listed_records(
        &self,
        found: Option<Data>,
        kind: RecordKind,
        from: &Bytes,
        limit: usize,
    ) -> Data {
        let mut all: BTreeMap<Bytes, Bytes> = match found {
            Some(Data::Records(records)) => records.into_iter().collect(),
            _ => BTreeMap::new(),
        };
        for (key, (value, _)) in &self.records {
            if key.kind != kind || key.key < *from {
                continue;
            }
            match value {
                Some(value) => {
                    all.insert(key.key.clone(), value.clone());
                }
                None => {
                    all.remove(&key.key);
                }
            }
        }
        Data::Records(all.into_iter().take(limit).collect())
    }

    fn listed(&self, found: Option<Data>, from: TransactionId, limit: usize) -> Data {
        let found = match found {
            Some(Data::Witnesses(rows)) => rows,
            _ => Vec::new(),
        };
        if self.rows.is_empty() && self.forgotten.is_empty() {
            return Data::Witnesses(found);
        }
        let mut all = found;
        all.retain(|row| !self.forgotten.contains(&row.id));
        all.extend(self.rows.iter().filter(|row| row.id >= from).cloned());
        all.sort_by(|a, b| a.id.cmp(&b.id).then_with(|| a.cmp(b)));
        all.dedup();
        let mut listed: Vec<WitnessRow> = Vec::new();
        for row in all {
            let is_next = listed.last().is_none_or(|last| last.id != row.id);
            if is_next && listed.len() >= limit {
                break;
            }
            listed.push(row);
        }
        Data::Witnesses(listed)
    }

    /// Returns the rows of an object, or of the whole store: the server's rows with the flushed changes.
    pub fn rows(&self, object: Option<&Ref>, found: Vec<WitnessRow>) -> Vec<WitnessRow> {
        let mut rows = found;
        rows.retain(|row| !self.forgotten.contains(&row.id));
        for row in self.rows.iter().filter(|row| row.object.as_ref() == object) {
            if !rows.contains(row) {
                rows.push(row.clone());
            }
        }
        rows
    }
}

fn values(found: Option<Data>) -> Vec<Value> {
    match found {
        Some(Data::Values(values)) => values,
        _ => Vec::new(),
    }
}
