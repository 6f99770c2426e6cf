//! Reads, their answers, and writes.

use mingle_model::{Name, Ref, TransactionId, Value, Version, WitnessRow};

use serde::{Deserialize, Serialize};

use crate::record::{Bytes, RecordKey, RecordKind};

/// A field of an object: the index stands for the field's place in the object's declaration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Address {
    /// The object.
    pub object: Ref,
    /// Index into [`mingle_model::ObjectType::fields`].
    pub field: u16,
}

/// One question to a store. No read fails because an object is missing: data that was never written
/// reads as absent, zero or empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Read {
    /// Was any field of the object written, and it not deleted since? [`Data::Bool`]
    Exists(Ref),
    /// A register. [`Data::Register`]
    Register(Address),
    /// A counter's exact sum. [`Data::Counter`]
    Counter(Address),
    /// Is this element in the set? [`Data::Bool`]
    Contains(Address, Value),
    /// The number of elements in the set. [`Data::Count`]
    SetSize(Address),
    /// The set's elements, in order. [`Data::Values`]
    Elements(Address),
    /// The map's value under this key. [`Data::Register`]
    Entry(Address, Value),
    /// The number of entries in the map. [`Data::Count`]
    MapSize(Address),
    /// The map's entries, in order of their keys. [`Data::Entries`]
    Entries(Address),
    /// The number of lines in the log. [`Data::Count`]
    LogSize(Address),
    /// The log's last lines, at most this many, oldest first. [`Data::Values`]
    LogLast(Address, u64),
    /// Lines of the log from this index on, at most so many. [`Data::Values`]
    LogSlice {
        /// The log.
        address: Address,
        /// Index of the first line, from 0.
        from: u64,
        /// The maximum number of lines.
        count: u64,
    },
    /// A declared query. [`Data::Result`]
    Query {
        /// The operation's name.
        operation: Name,
        /// Its arguments.
        arguments: Vec<Value>,
    },
    /// A record: its answer has the version of the last write to it, 0 if there is no record.
    /// Where the store is serializable, it is validated as any other read. [`Data::Record`]
    Record(RecordKey),
    /// At most so many records of a kind, in order of their keys, from this key on. It is for
    /// sweeps: the answer has version 0, and no store need validate it. [`Data::Records`]
    Records {
        /// The kind of the records.
        kind: RecordKind,
        /// The first key that may be among them.
        from: Bytes,
        /// The maximum number of records.
        limit: usize,
    },
    /// Witness rows of any objects and of the whole store, in order of their transactions, from this
    /// one on: of as many transactions as it takes for so many rows, and of each all. It is for
    /// sweeps, as [`Read::Records`]. [`Data::Witnesses`]
    Witnesses {
        /// The first transaction whose rows may be among them.
        from: TransactionId,
        /// After how many rows no further transaction's are added.
        limit: usize,
    },
    /// Entries of the map whose keys lie in a range, in order of their keys. [`Data::Entries`]
    MapSlice {
        /// The map.
        address: Address,
        /// The range.
        range: KeyRange,
    },
}

impl Read {
    /// The object that it asks of, if it asks of one.
    pub fn object(&self) -> Option<&Ref> {
        match self {
            Self::Exists(object) => Some(object),
            _ => self.address().map(|address| &address.object),
        }
    }

    /// The field that it asks of, if it asks of one.
    pub fn address(&self) -> Option<&Address> {
        match self {
            Self::Register(address)
            | Self::Counter(address)
            | Self::Contains(address, _)
            | Self::SetSize(address)
            | Self::Elements(address)
            | Self::Entry(address, _)
            | Self::MapSize(address)
            | Self::Entries(address)
            | Self::LogSize(address)
            | Self::LogLast(address, _)
            | Self::LogSlice { address, .. }
            | Self::MapSlice { address, .. } => Some(address),
            Self::Exists(_)
            | Self::Query { .. }
            | Self::Record(_)
            | Self::Records { .. }
            | Self::Witnesses { .. } => None,
        }
    }
}

/// A range of a map's keys, and how many of its entries are wanted: a slice, as Eiger has of columns (Lloyd's
/// thesis, §5.2).
///
/// ```
/// use std::collections::BTreeMap;
///
/// use mingle_model::Value;
/// use mingle_store::KeyRange;
///
/// let map: BTreeMap<Value, Value> = (1..=5).map(|n| (Value::Int(n), Value::Bool(true))).collect();
/// let keys = |range: KeyRange| -> Vec<Value> {
///     range.slice(&map).into_iter().map(|(key, _)| key).collect()
/// };
/// assert_eq!(keys(KeyRange::first(2)), [Value::Int(1), Value::Int(2)]);
/// assert_eq!(keys(KeyRange::last(2)), [Value::Int(4), Value::Int(5)]);
/// assert_eq!(keys(KeyRange::after(Value::Int(2), 2)), [Value::Int(3), Value::Int(4)]);
/// let (from, before) = (Some(Value::Int(2)), Some(Value::Int(4)));
/// assert_eq!(keys(KeyRange { from, before, ..KeyRange::first(9) }), [Value::Int(2), Value::Int(3)]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeyRange {
    /// The key with which the range begins, if there is a bound.
    pub from: Option<Value>,
    /// True if the range begins after the key `from`.
    pub is_after: bool,
    /// The key before which the range ends, if there is a bound.
    pub before: Option<Value>,
    /// The maximum number of entries.
    pub count: u64,
    /// True if the last entries of the range are wanted, and not the first.
    pub is_last: bool,
}

impl KeyRange {
    /// Returns the range of the first entries of a map, at most so many.
    pub fn first(count: u64) -> Self {
        Self { from: None, is_after: false, before: None, count, is_last: false }
    }

    /// Returns the range of the last entries of a map, at most so many.
    pub fn last(count: u64) -> Self {
        Self { is_last: true, ..Self::first(count) }
    }

    /// Returns the range of the first entries after a key, at most so many: the next page.
    pub fn after(key: Value, count: u64) -> Self {
        Self { from: Some(key), is_after: true, ..Self::first(count) }
    }

    /// Returns true if a key lies between the bounds.
    pub fn contains(&self, key: &Value) -> bool {
        self.from.as_ref().is_none_or(|from| from < key || (!self.is_after && from == key))
            && self.before.as_ref().is_none_or(|before| key < before)
    }

    /// Returns the entries of the range, out of the entries of a map in order of their keys. Entries that lie
    /// outside of the range may be missing there.
    pub fn slice<'a>(
        &self,
        entries: impl IntoIterator<Item = (&'a Value, &'a Value)>,
    ) -> Vec<(Value, Value)> {
        let inside = entries.into_iter().filter(|(key, _)| self.contains(key));
        let owned = |(key, value): (&Value, &Value)| (key.clone(), value.clone());
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        if !self.is_last {
            return inside.take(count).map(owned).collect();
        }
        let inside: Vec<(&Value, &Value)> = inside.collect();
        inside[inside.len().saturating_sub(count)..].iter().copied().map(owned).collect()
    }
}

/// The result of a read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Data {
    /// Yes or no.
    Bool(bool),
    /// A register's or entry's value; none where nothing was written.
    Register(Option<Value>),
    /// An exact sum.
    Counter(i128),
    /// A number of elements.
    Count(u64),
    /// Elements or lines.
    Values(Vec<Value>),
    /// Entries.
    Entries(Vec<(Value, Value)>),
    /// The result of a query.
    Result(Value),
    /// A record's value, if there is one.
    Record(Option<Bytes>),
    /// Keys and values of records.
    Records(Vec<(Bytes, Bytes)>),
    /// Witness rows.
    Witnesses(Vec<WitnessRow>),
}

/// The answer to one [`Read`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The data that was read.
    pub data: Data,
    /// When it was last changed.
    pub version: Version,
    /// The witness rows of the object and of the whole store, read in the same snapshot or after
    /// it; for a query those of the whole store alone. Empty for records and witness rows.
    pub witnesses: Vec<WitnessRow>,
}

/// One change. Within a commit they take effect in order. Every change of a field, removals and
/// `Clear` included, makes the object exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Write {
    /// The object exists from now on.
    Create(Ref),
    /// The object exists no longer, and all its fields are as if never written.
    Delete(Ref),
    /// Writes a register.
    Assign(Address, Value),
    /// Adds to a counter.
    Add(Address, i128),
    /// Inserts into a set.
    Insert(Address, Value),
    /// Removes from a set.
    Remove(Address, Value),
    /// Writes an entry of a map.
    Put(Address, Value, Value),
    /// Removes an entry of a map.
    Erase(Address, Value),
    /// Appends to a log.
    Append(Address, Value),
    /// Empties a set, map or log.
    Clear(Address),
    /// A declared command.
    Command {
        /// The operation's name.
        operation: Name,
        /// Its arguments.
        arguments: Vec<Value>,
    },
    /// Adds a witness row to its object, or to the whole store. Rows are added, never replaced;
    /// equal ones are one.
    Witness(WitnessRow),
    /// Removes all witness rows of this transaction that are there. For the end of a transaction
    /// alone, when its floor is at every replica of every store that it visits, except a store with one copy
    /// that holds its intent.
    Forget(TransactionId),
    /// Writes a record and replaces the former one. At replicas it merges as a register does.
    Record(RecordKey, Bytes),
    /// Removes a record, if any. At replicas it removes the writes its own replica has seen.
    Discard(RecordKey),
}

impl Write {
    /// The object whose data it changes, if it is one object's: records and witness rows are no
    /// data, and only the store knows which data a command changes.
    pub fn object(&self) -> Option<&Ref> {
        match self {
            Self::Create(object) | Self::Delete(object) => Some(object),
            Self::Assign(address, _)
            | Self::Add(address, _)
            | Self::Insert(address, _)
            | Self::Remove(address, _)
            | Self::Put(address, ..)
            | Self::Erase(address, _)
            | Self::Append(address, _)
            | Self::Clear(address) => Some(&address.object),
            Self::Command { .. }
            | Self::Witness(_)
            | Self::Forget(_)
            | Self::Record(..)
            | Self::Discard(_) => None,
        }
    }

    /// True if it changes data: anything but witness rows and records.
    pub fn is_data(&self) -> bool {
        !matches!(self, Self::Witness(_) | Self::Forget(_) | Self::Record(..) | Self::Discard(_))
    }
}
