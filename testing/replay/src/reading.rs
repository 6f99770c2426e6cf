//! The results of reads.

use mingle_model::{TransactionId, Value, Version, WitnessRow};
use mingle_store::{
    Address, Answer, Bytes, Data, Guard, Read, RecordKey, RecordKind, record::read_floor,
};

use crate::state::{Added, Cell, State};
use crate::update::{Part, Payload, Unit};

/// Returns the answer to a read that fits and is no query.
pub fn answer(state: &State, read: &Read) -> Answer {
    let (data, version) = find(state, read);
    let witnesses = match read.object() {
        Some(object) => state.rows(Some(object)).chain(state.rows(None)).cloned().collect(),
        None => Vec::new(),
    };
    Answer { data, version: Version(version), witnesses }
}

/// True if a guard holds.
pub fn holds(state: &State, guard: &Guard) -> bool {
    match guard {
        Guard::Absent(key) => record(state, key).0.is_none(),
        Guard::Below(key, number) => {
            record(state, key).0.is_none_or(|value| read_floor(&value) < *number)
        }
    }
}

fn find(state: &State, read: &Read) -> (Data, u64) {
    match read {
        Read::Exists(object) => {
            let cell = state.get(&Unit::Object(object.clone(), Part::Presence));
            let exists = cell.is_some_and(|cell| !cell.live.is_empty());
            (Data::Bool(exists), cell.map_or(0, |cell| cell.version))
        }
        Read::Register(address) => register(field(state, address)),
        Read::Entry(address, key) => register(element(state, address, key)),
        Read::Contains(address, value) => {
            let cell = element(state, address, value);
            let contains = cell.is_some_and(|cell| !cell.live.is_empty());
            (Data::Bool(contains), cell.map_or(0, |cell| cell.version))
        }
        Read::Counter(address) => counter(field(state, address)),
        Read::SetSize(address) | Read::MapSize(address) => {
            let (elements, version) = elements(state, address);
            (Data::Count(elements.len() as u64), version)
        }
        Read::Elements(address) => {
            let (elements, version) = elements(state, address);
            let values = elements.into_iter().map(|(value, _)| value.clone());
            (Data::Values(values.collect()), version)
        }
        Read::Entries(address) => {
            let (elements, version) = elements(state, address);
            let entry = |(key, cell): (&Value, &Cell)| Some((key.clone(), value(cell)?));
            (Data::Entries(elements.into_iter().filter_map(entry).collect()), version)
        }
        Read::MapSlice { address, range } => {
            let (elements, version) = elements(state, address);
            let entry = |(key, cell): (&Value, &Cell)| Some((key.clone(), value(cell)?));
            let all: Vec<_> = elements.into_iter().filter_map(entry).collect();
            (Data::Entries(range.slice(all.iter().map(|(key, value)| (key, value)))), version)
        }
        Read::LogSize(address) => {
            let (lines, version) = lines(state, address);
            (Data::Count(lines.len() as u64), version)
        }
        Read::LogLast(address, count) => {
            let (lines, version) = lines(state, address);
            let from = lines.len().saturating_sub(at_most(*count));
            (Data::Values(lines[from..].to_vec()), version)
        }
        Read::LogSlice { address, from, count } => {
            let (lines, version) = lines(state, address);
            let slice = lines.into_iter().skip(at_most(*from)).take(at_most(*count));
            (Data::Values(slice.collect()), version)
        }
        Read::Record(key) => {
            let (value, version) = record(state, key);
            (Data::Record(value), version)
        }
        Read::Records { kind, from, limit } => (records(state, *kind, from, *limit), 0),
        Read::Witnesses { from, limit } => (Data::Witnesses(rows(state, *from, *limit)), 0),
        Read::Query { .. } => unreachable!("queries are answered elsewhere"),
    }
}

fn at_most(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn field<'a>(state: &'a State, address: &Address) -> Option<&'a Cell> {
    state.get(&Unit::Object(address.object.clone(), Part::Field(address.field)))
}

fn element<'a>(state: &'a State, address: &Address, element: &Value) -> Option<&'a Cell> {
    let part = Part::Element(address.field, element.clone());
    state.get(&Unit::Object(address.object.clone(), part))
}

fn register(cell: Option<&Cell>) -> (Data, u64) {
    (Data::Register(cell.and_then(value)), cell.map_or(0, |cell| cell.version))
}

fn value(cell: &Cell) -> Option<Value> {
    match cell.last()? {
        Payload::Value(value) => Some(value.clone()),
        other => unreachable!("a register or entry holds {other:?}"),
    }
}

fn counter(cell: Option<&Cell>) -> (Data, u64) {
    let Some(cell) = cell else { return (Data::Counter(0), 0) };
    let amounts = cell.live.values().map(|added| match added.payload {
        Payload::Amount(amount) => amount,
        ref other => unreachable!("a counter holds {other:?}"),
    });
    (Data::Counter(amounts.fold(0, i128::wrapping_add)), cell.version)
}

/// Returns the contents of a set or map, in order, and the version of their last change.
fn elements<'a>(state: &'a State, address: &'a Address) -> (Vec<(&'a Value, &'a Cell)>, u64) {
    let mut version = 0;
    let mut live = Vec::new();
    for (value, cell) in state.elements(&address.object, address.field) {
        version = version.max(cell.version);
        if !cell.live.is_empty() {
            live.push((value, cell));
        }
    }
    (live, version)
}

fn lines(state: &State, address: &Address) -> (Vec<Value>, u64) {
    let Some(cell) = field(state, address) else { return (Vec::new(), 0) };
    let mut chunks: Vec<&Added> = cell.live.values().collect();
    chunks.sort_by_key(|added| added.order);
    let lines = chunks.into_iter().flat_map(|added| match &added.payload {
        Payload::Lines(lines) => lines.iter().cloned(),
        other => unreachable!("a log holds {other:?}"),
    });
    (lines.collect(), cell.version)
}

/// Returns a record's value and version.
fn record(state: &State, key: &RecordKey) -> (Option<Bytes>, u64) {
    let cell = state.get(&Unit::Record(key.clone()));
    let value = cell.and_then(record_value);
    let version = cell.filter(|_| value.is_some()).map_or(0, |cell| cell.version);
    (value, version)
}

fn record_value(cell: &Cell) -> Option<Bytes> {
    match cell.last()? {
        Payload::Bytes(bytes) => Some(bytes.clone()),
        other => unreachable!("a record holds {other:?}"),
    }
}

fn records(state: &State, kind: RecordKind, from: &Bytes, limit: usize) -> Data {
    let first = Unit::Record(RecordKey { kind, key: from.clone() });
    let of_kind = state.from(first).map_while(|(unit, cell)| match unit {
        Unit::Record(key) if key.kind == kind => Some((key, cell)),
        _ => None,
    });
    let live = of_kind.filter_map(|(key, cell)| Some((key.key.clone(), record_value(cell)?)));
    Data::Records(live.take(limit).collect())
}

fn rows(state: &State, from: TransactionId, limit: usize) -> Vec<WitnessRow> {
    let mut rows: Vec<&WitnessRow> = state.all_rows().filter(|row| row.id >= from).collect();
    rows.sort_by_key(|row| (row.id, *row));
    let mut found: Vec<WitnessRow> = Vec::new();
    for row in rows {
        if found.len() >= limit && found.last().is_none_or(|last| last.id != row.id) {
            break;
        }
        found.push(row.clone());
    }
    found
}
