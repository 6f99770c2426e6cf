//! From the states of items to answers.
//!
//! A version is a number that changes when the value that was read changes. Versions are not
//! ordered: a later version need not be the greater number.

use std::sync::Arc;

use mingle_geo::State;
use mingle_model::{Value, WitnessRow};
use mingle_store::{Bytes, Data, Read};

const FITS: &str = "an item has the type that its key says";

/// Returns the answer to a read of one item, and its version.
pub fn data(read: &Read, state: &State) -> (Data, u64) {
    match read {
        Read::Exists(_) => {
            let (value, version) = register(state);
            (Data::Bool(value.is_some()), version)
        }
        Read::Register(_) => {
            let (value, version) = register(state);
            (Data::Register(value.cloned()), version)
        }
        Read::Record(_) => match register(state) {
            (Some(Value::Bytes(bytes)), version) => (Data::Record(Some(bytes.clone())), version),
            _ => (Data::Record(None), 0),
        },
        Read::Counter(_) => {
            (Data::Counter(state.as_counter().expect(FITS).value()), state.changes())
        }
        Read::Contains(_, element) => {
            let version = state.as_set().expect(FITS).version(element);
            let digest = version.map_or(state.removals(), |version| version.digest());
            (Data::Bool(version.is_some()), digest)
        }
        Read::Entry(_, key) => {
            let map = state.as_map().expect(FITS);
            let digest = map.version(key).map_or(state.removals(), |version| version.digest());
            (Data::Register(map.get(key).cloned()), digest)
        }
        _ => (collection(read, state), state.changes()),
    }
}

fn collection(read: &Read, state: &State) -> Data {
    let set = || state.as_set().expect(FITS);
    let map = || state.as_map().expect(FITS);
    let log = || state.as_log().expect(FITS);
    match read {
        Read::SetSize(_) => Data::Count(set().count() as u64),
        Read::Elements(_) => Data::Values(set().iter().cloned().collect()),
        Read::MapSize(_) => Data::Count(map().entries().count() as u64),
        Read::Entries(_) => {
            let entries = map().entries().map(|(key, value)| (key.clone(), value.clone()));
            Data::Entries(entries.collect())
        }
        Read::MapSlice { range, .. } => Data::Entries(range.slice(map().entries())),
        Read::LogSize(_) => Data::Count(log().count() as u64),
        Read::LogLast(_, count) => {
            let from = log().count().saturating_sub(at_most(*count));
            Data::Values(log().iter().skip(from).cloned().collect())
        }
        Read::LogSlice { from, count, .. } => {
            let lines = log().iter().skip(at_most(*from)).take(at_most(*count));
            Data::Values(lines.cloned().collect())
        }
        other => unreachable!("{other:?} reads no collection"),
    }
}

fn at_most(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn register(state: &State) -> (Option<&Value>, u64) {
    let register = state.as_register().expect(FITS);
    let version = register.version().map_or(state.removals(), |version| version.digest());
    (register.value(), version)
}

/// True if an object exists, by its presence item.
pub fn exists(state: &State) -> bool {
    register(state).0.is_some()
}

/// Returns the bytes of a record, if it exists.
pub fn record(state: &State) -> Option<Bytes> {
    match register(state).0 {
        Some(Value::Bytes(bytes)) => Some(Arc::clone(bytes)),
        _ => None,
    }
}

/// Returns the noted outcome: true if committed, false if barred, none if nothing was noted.
pub fn outcome(state: &State) -> Option<bool> {
    match register(state).0 {
        Some(Value::Bool(has_committed)) => Some(*has_committed),
        _ => None,
    }
}

/// Returns the witness rows of an object, of the whole store, or of a transaction, in order.
pub fn rows(state: &State) -> Vec<WitnessRow> {
    let rows = state.as_set().expect(FITS).iter().map(|row| match row {
        Value::Bytes(bytes) => {
            postcard::from_bytes(bytes).expect("rows are written by this engine: it is corrupt")
        }
        other => unreachable!("a witness row is {other:?}"),
    });
    let mut rows: Vec<WitnessRow> = rows.collect();
    rows.sort();
    rows
}

/// Encodes a witness row as an element of a set.
pub fn row(row: &WitnessRow) -> Value {
    let bytes = postcard::to_stdvec(row).expect("a row has nothing that cannot be written");
    Value::Bytes(bytes.into())
}
