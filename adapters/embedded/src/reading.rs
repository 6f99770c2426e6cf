//! Answers to reads, computed from rows in the same way for every engine.

mod objects;

use std::collections::BTreeMap;

use mingle_model::{Name, Ref, TransactionId, Value, Version, WitnessRow};
use mingle_store::{Address, Answer, Data, KeyRange, Read, RecordKey, RecordKind};

use crate::builtin::{self, Builtin, Question};
use crate::core::{Core, Failure};
use crate::encoding::row::{Header, Presence};
use crate::encoding::wire::Reader;
use crate::encoding::{key, order, row, value};
use crate::index::{Indexed, Range};
use crate::layout::Shape;
use crate::limits::READ_SET_MAX;
use crate::numbers;
use crate::storage::overlay::Overlay;
use crate::storage::{Bytes, Changes, Direction, View, prefix_end};
use crate::witness;

/// The units that a transaction has read from its snapshot.
#[derive(Debug, Default)]
pub struct ReadSet {
    /// Key of each unit's row, and the version that it had; 0 where there was no row.
    pub units: Vec<(Vec<u8>, u64)>,
    /// The greatest number that it drew for each kind of object.
    pub drawn: BTreeMap<u32, i64>,
}

/// Answers reads from one view.
pub struct Reading<'a> {
    core: &'a Core,
    replica: u8,
    base: &'a dyn View,
    changes: &'a Changes,
    read_set: Option<&'a mut ReadSet>,
    /// True if the keys of a log's lines contain their index.
    is_dense: bool,
    /// The witness rows of the object that was read last.
    witnesses: Option<(Ref, Vec<WitnessRow>)>,
    /// The witness rows of the whole store, once they were read.
    store_witnesses: Option<Vec<WitnessRow>>,
}

type Found = (Data, u64);

impl<'a> Reading<'a> {
    /// Creates the reads of a transaction with its own `changes` over `base`; its reads of `base` are
    /// noted in `read_set`.
    pub fn validated(
        core: &'a Core,
        base: &'a dyn View,
        changes: &'a Changes,
        read_set: &'a mut ReadSet,
    ) -> Self {
        Self {
            read_set: Some(read_set),
            is_dense: true,
            ..Self::at_replica(core, 0, base, changes)
        }
    }

    /// Creates reads at a replica, which are not validated.
    pub fn at_replica(
        core: &'a Core,
        replica: u8,
        base: &'a dyn View,
        changes: &'a Changes,
    ) -> Self {
        Self {
            core,
            replica,
            base,
            changes,
            read_set: None,
            is_dense: false,
            witnesses: None,
            store_witnesses: None,
        }
    }

    /// The answer to one read.
    ///
    /// # Errors
    ///
    /// When the disk fails, or the read does not fit the objects of this store.
    pub fn answer(&mut self, read: &Read) -> Result<Answer, Failure> {
        let (data, version) = self.find(read)?;
        let mut witnesses = match read.object() {
            Some(object) => self.witnesses(object)?,
            None => Vec::new(),
        };
        if !matches!(read, Read::Record(_) | Read::Records { .. } | Read::Witnesses { .. }) {
            witnesses.extend_from_slice(self.store_witnesses()?);
        }
        Ok(Answer { data, version: Version(version), witnesses })
    }

    fn find(&mut self, read: &Read) -> Result<Found, Failure> {
        match read {
            Read::Exists(object) => self.exists(object),
            Read::Register(address) => self.register(address),
            Read::Counter(address) => self.counter(address),
            Read::Contains(address, element) => self.contains(address, element),
            Read::SetSize(address) => self.size(address, Shape::Set),
            Read::Elements(address) => self.elements(address),
            Read::Entry(address, entry) => self.entry(address, entry),
            Read::MapSize(address) => self.size(address, Shape::Map),
            Read::Entries(address) => self.entries(address),
            Read::MapSlice { address, range } => self.map_slice(address, range),
            Read::LogSize(address) => self.size(address, Shape::Log),
            Read::LogLast(address, count) => self.log_last(address, *count),
            Read::LogSlice { address, from, count } => self.log_slice(address, *from, *count),
            Read::Query { operation, arguments } => {
                let builtin = builtin::find(&self.core.builtins, operation)?;
                self.query(builtin, arguments)
            }
            Read::Record(record) => self.record(record),
            Read::Records { kind, from, limit } => self.records(*kind, from, *limit),
            Read::Witnesses { from, limit } => self.all_witnesses(*from, *limit),
        }
    }

    fn record(&mut self, record: &RecordKey) -> Result<Found, Failure> {
        let row = self.fetch(key::record(self.replica, record), false)?;
        let version = row.as_deref().map_or(0, row::version);
        Ok((Data::Record(row.map(|row| row::unit_value(&row).into())), version))
    }

    fn records(&self, kind: RecordKind, from: &[u8], limit: usize) -> Result<Found, Failure> {
        let prefix = key::records(self.replica, kind);
        let first = key::with(&prefix, from);
        let mut records = Vec::new();
        self.scan(&prefix, Some(&first), Direction::Forward, |key, row| {
            if records.len() == limit {
                return false;
            }
            records.push((key[prefix.len()..].into(), row::unit_value(row).into()));
            true
        })?;
        Ok((Data::Records(records), 0))
    }

    fn all_witnesses(&self, from: TransactionId, limit: usize) -> Result<Found, Failure> {
        let view = Overlay::new(self.base, self.changes);
        let rows = witness::rows_from(&self.core.layout, self.replica, &view, from, limit)?;
        Ok((Data::Witnesses(rows), 0))
    }

    fn exists(&mut self, object: &Ref) -> Result<Found, Failure> {
        let place = self.core.layout.place(self.replica, object)?;
        let row = self.fetch(key::presence(&place.prefix), false)?;
        let presence = presence(row.as_deref());
        Ok((Data::Bool(presence.exists), presence.version))
    }

    fn register(&mut self, address: &Address) -> Result<Found, Failure> {
        let (object, field) = self.field(address, Shape::Register)?;
        match self.fetch(field, false)? {
            Some(row) => Ok((register(&row), row::version(&row))),
            None => Ok((Data::Register(None), self.deleted_at(&object)?)),
        }
    }

    fn counter(&mut self, address: &Address) -> Result<Found, Failure> {
        let (object, field) = self.field(address, Shape::Counter)?;
        match self.fetch(field, true)? {
            Some(row) => Ok((Data::Counter(row::counter_sum(&row)), row::version(&row))),
            None => Ok((Data::Counter(0), self.deleted_at(&object)?)),
        }
    }

    fn contains(&mut self, address: &Address, element: &Value) -> Result<Found, Failure> {
        let (object, field) = self.field(address, Shape::Set)?;
        match self.fetch(key::element(&field, element), false)? {
            Some(row) => Ok((Data::Bool(true), row::version(&row))),
            None => Ok((Data::Bool(false), self.removed_at(&object, &field)?)),
        }
    }

    fn entry(&mut self, address: &Address, entry: &Value) -> Result<Found, Failure> {
        let (object, field) = self.field(address, Shape::Map)?;
        match self.fetch(key::element(&field, entry), false)? {
            Some(row) => Ok((register(&row), row::version(&row))),
            None => Ok((Data::Register(None), self.removed_at(&object, &field)?)),
        }
    }

    fn size(&mut self, address: &Address, shape: Shape) -> Result<Found, Failure> {
        let (object, field) = self.field(address, shape)?;
        let header = self.header(&object, &field)?;
        Ok((Data::Count(header.count), header.version))
    }

    fn elements(&mut self, address: &Address) -> Result<Found, Failure> {
        let (object, field) = self.field(address, Shape::Set)?;
        let header = self.header(&object, &field)?;
        let prefix = key::elements(&field);
        let mut values = Vec::new();
        self.scan(&prefix, None, Direction::Forward, |key, _| {
            values.push(order::decode(&mut &key[prefix.len()..]));
            true
        })?;
        Ok((Data::Values(values), header.version))
    }

    fn entries(&mut self, address: &Address) -> Result<Found, Failure> {
        let (object, field) = self.field(address, Shape::Map)?;
        let header = self.header(&object, &field)?;
        let prefix = key::elements(&field);
        let mut entries = Vec::new();
        self.scan(&prefix, None, Direction::Forward, |key, row| {
            let key = order::decode(&mut &key[prefix.len()..]);
            entries.push((key, value::decode(row::unit_value(row))));
            true
        })?;
        Ok((Data::Entries(entries), header.version))
    }

    fn map_slice(&mut self, address: &Address, range: &KeyRange) -> Result<Found, Failure> {
        let (object, field) = self.field(address, Shape::Map)?;
        let header = self.header(&object, &field)?;
        let prefix = key::elements(&field);
        let bound = |key: &Value| key::element(&field, key);
        let lower = range.from.as_ref().map_or_else(|| prefix.clone(), bound);
        let upper =
            range.before.as_ref().map_or_else(|| prefix_end(&prefix), |key| Some(bound(key)));
        let is_empty = upper.as_ref().is_some_and(|upper| lower >= *upper);
        let mut entries = Vec::new();
        if range.count > 0 && !is_empty {
            let direction = if range.is_last { Direction::Backward } else { Direction::Forward };
            let view = Overlay::new(self.base, self.changes);
            view.range(&lower, upper.as_deref(), direction, &mut |key, row| {
                let key = order::decode(&mut &key[prefix.len()..]);
                if range.contains(&key) {
                    entries.push((key, value::decode(row::unit_value(row))));
                }
                (entries.len() as u64) < range.count
            })?;
        }
        if range.is_last {
            entries.reverse();
        }
        Ok((Data::Entries(entries), header.version))
    }

    fn log_last(&mut self, address: &Address, count: u64) -> Result<Found, Failure> {
        let (object, field) = self.field(address, Shape::Log)?;
        let header = self.header(&object, &field)?;
        let mut lines = Vec::new();
        if count > 0 {
            let prefix = key::elements(&field);
            self.scan(&prefix, None, Direction::Backward, |_, row| {
                lines.push(value::decode(row::unit_value(row)));
                (lines.len() as u64) < count
            })?;
        }
        lines.reverse();
        Ok((Data::Values(lines), header.version))
    }

    fn log_slice(&mut self, address: &Address, from: u64, count: u64) -> Result<Found, Failure> {
        let (object, field) = self.field(address, Shape::Log)?;
        let header = self.header(&object, &field)?;
        let mut lines = Vec::new();
        if count > 0 && from < header.count {
            let prefix = key::elements(&field);
            let first = key::with(&prefix, &from.to_be_bytes());
            let (first, mut skip) = if self.is_dense { (Some(&*first), 0) } else { (None, from) };
            self.scan(&prefix, first, Direction::Forward, |_, row| {
                if skip > 0 {
                    skip -= 1;
                    return true;
                }
                lines.push(value::decode(row::unit_value(row)));
                (lines.len() as u64) < count
            })?;
        }
        Ok((Data::Values(lines), header.version))
    }

    fn query(&mut self, builtin: &Builtin, arguments: &[Value]) -> Result<Found, Failure> {
        let (data, version) = match builtin.question(arguments, &self.core.layout)? {
            Question::Read(read) => self.find(&read)?,
            Question::Keys(kind) => self.keys(&kind)?,
            Question::Index(index, arguments) => self.indexed(&index, &arguments)?,
            Question::Draw(kind) => self.draw(&kind)?,
        };
        let result = builtin.result(data, &self.core.layout);
        Ok((Data::Result(result), version))
    }

    /// Draws a number that no object has. A transaction that creates an object with it meanwhile is a conflict.
    fn draw(&mut self, kind: &Name) -> Result<Found, Failure> {
        let id = self.core.layout.kind(kind)?.id;
        loop {
            let drawn = self.core.numbers.draw(self.base, id)?;
            let drawn = drawn.ok_or_else(|| numbers::exhausted(kind))?;
            let (exists, version) = self.exists(&Ref::new(kind.clone(), Value::Int(drawn)))?;
            if exists == Data::Bool(false) {
                if let Some(read_set) = &mut self.read_set {
                    read_set.drawn.insert(id, drawn);
                }
                return Ok((Data::Result(Value::Int(drawn)), version));
            }
        }
    }

    fn indexed(&mut self, index: &Indexed, arguments: &[Value]) -> Result<Found, Failure> {
        let question = index.read.question(arguments)?;
        let kind = self.core.layout.kind(&index.read.object)?.id;
        let Range { header, span } = index.range(self.replica, kind, &question);
        let row = self.fetch(header, true)?;
        let version = row.as_deref().map_or(0, row::version);
        let (mut found, most) = (Vec::new(), question.most);
        let is_empty = span.upper.as_ref().is_some_and(|upper| span.lower >= *upper);
        if most > 0 && !is_empty {
            let direction =
                if question.is_reversed { Direction::Backward } else { Direction::Forward };
            let view = Overlay::new(self.base, self.changes);
            view.range(&span.lower, span.upper.as_deref(), direction, &mut |key, _| {
                found.push(index.object(self.replica, kind, key));
                found.len() < most
            })?;
        }
        Ok((Data::Result(index.read.answer(found)), version))
    }

    /// The object's and the field's prefix, if the field has this shape.
    fn field(&self, address: &Address, shape: Shape) -> Result<(Vec<u8>, Vec<u8>), Failure> {
        let id = self.core.layout.field(address, &[shape])?.id;
        let place = self.core.layout.place(self.replica, &address.object)?;
        let field = key::field(&place.prefix, id);
        Ok((place.prefix, field))
    }

    /// Returns a collection's header; an absent one has the version of its object's deletion.
    fn header(&mut self, object: &[u8], field: &[u8]) -> Result<Header, Failure> {
        match self.fetch(key::header(field), true)? {
            Some(row) => Ok(Header::decode(&row)),
            None => Ok(Header { version: self.deleted_at(object)?, ..Header::default() }),
        }
    }

    fn removed_at(&self, object: &[u8], field: &[u8]) -> Result<u64, Failure> {
        let view = Overlay::new(self.base, self.changes);
        let header = view.get(&key::header(field))?;
        match header.as_deref().map(Header::decode) {
            Some(header) if header.removed_at > 0 => Ok(header.removed_at),
            _ => self.deleted_at(object),
        }
    }

    fn deleted_at(&self, object: &[u8]) -> Result<u64, Failure> {
        let row = Overlay::new(self.base, self.changes).get(&key::presence(object))?;
        Ok(presence(row.as_deref()).deleted_at)
    }

    /// Returns a row, and notes it in the read set. A row that the transaction itself has changed is
    /// noted only if the change merges with the earlier content.
    fn fetch(&mut self, key: Vec<u8>, merges: bool) -> Result<Option<Bytes>, Failure> {
        if !self.changes.is_empty()
            && let Some(changed) = self.changes.get(&*key)
        {
            if merges && self.read_set.is_some() {
                let before = self.base.get(&key)?;
                self.note(key, before.as_deref())?;
            }
            return Ok(changed.clone());
        }
        let found = self.base.get(&key)?;
        self.note(key, found.as_deref())?;
        Ok(found)
    }

    fn note(&mut self, key: Vec<u8>, row: Option<&[u8]>) -> Result<(), Failure> {
        let Some(read_set) = &mut self.read_set else {
            return Ok(());
        };
        if read_set.units.len() >= READ_SET_MAX {
            let reason = format!("a transaction reads at most {READ_SET_MAX} units of one store");
            return Err(Failure::Refused(reason));
        }
        read_set.units.push((key, row.map_or(0, row::version)));
        Ok(())
    }

    fn scan(
        &self,
        prefix: &[u8],
        from: Option<&[u8]>,
        direction: Direction,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Failure> {
        if self.changes.is_empty() {
            self.base.scan(prefix, from, direction, &mut visit)?;
        } else {
            let view = Overlay::new(self.base, self.changes);
            view.scan(prefix, from, direction, &mut visit)?;
        }
        Ok(())
    }

    fn witnesses(&mut self, object: &Ref) -> Result<Vec<WitnessRow>, Failure> {
        if let Some((last, rows)) = &self.witnesses
            && last == object
        {
            return Ok(rows.clone());
        }
        let rows = self.witnesses_of(Some(object))?;
        self.witnesses = Some((object.clone(), rows.clone()));
        Ok(rows)
    }

    fn store_witnesses(&mut self) -> Result<&[WitnessRow], Failure> {
        if self.store_witnesses.is_none() {
            self.store_witnesses = Some(self.witnesses_of(None)?);
        }
        Ok(self.store_witnesses.as_deref().unwrap_or_default())
    }

    fn witnesses_of(&self, object: Option<&Ref>) -> Result<Vec<WitnessRow>, Failure> {
        let layout = &self.core.layout;
        if self.changes.is_empty() {
            return witness::rows(layout, self.replica, self.base, object);
        }
        let view = Overlay::new(self.base, self.changes);
        witness::rows(layout, self.replica, &view, object)
    }
}

fn register(row: &[u8]) -> Data {
    Data::Register(Some(value::decode(row::unit_value(row))))
}

fn presence(row: Option<&[u8]>) -> Presence {
    row.map(|row| Presence::decode(&mut Reader(row))).unwrap_or_default()
}
