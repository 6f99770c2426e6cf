//! Conversion of a store's recorded events to a history that `mingle-checker` checks.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use mingle_checker::history::{Interval, Kind, Malformed, Operation, Transaction};
use mingle_checker::{History, Outcome};
use mingle_model::{Level, Value};
use mingle_store::wrap::history::{Event, EventCall};
use mingle_store::{Address, Read, Write};

/// A unit whose versions a store counts: a field, or an element or entry of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Unit {
    address: Address,
    element: Option<Value>,
}

/// The recorded actions of one transaction at the store.
#[derive(Default)]
struct Open {
    begin: Duration,
    reads: Vec<(Unit, u64)>,
    writes: Vec<Unit>,
}

/// The state while a history is built.
struct Place<'a> {
    store: &'a str,
    level: Level,
    /// The numbers of the units.
    keys: HashMap<Unit, i64>,
}

/// Builds the history of one store with one copy: each unit that was read or written is an object,
/// and its versions are the values. A commit whose answer was lost before the recorder is not
/// included.
///
/// # Errors
///
/// If the recording does not form a history, for example because two commits had one version.
pub fn history_of(events: &[Event], store: &str, level: Level) -> Result<History, Malformed> {
    let mut open: BTreeMap<u64, Open> = BTreeMap::new();
    let mut place = Place { store, level, keys: HashMap::new() };
    let mut transactions = Vec::new();
    for event in events.iter().filter(|event| &*event.store == store) {
        match &event.call {
            EventCall::Begin(Ok(())) => {
                let begun = Open { begin: event.start, ..Open::default() };
                open.insert(event.transaction, begun);
            }
            EventCall::Read(reads, Ok(answers)) => {
                let Some(open) = open.get_mut(&event.transaction) else { continue };
                for (read, answer) in reads.iter().zip(answers) {
                    // A unit that was read twice had one version, because both reads use one
                    // snapshot. A query after the transaction's own command has no version yet.
                    if let Some(unit) = unit_of(read)
                        && !open.writes.contains(&unit)
                        && !open.reads.iter().any(|(known, _)| *known == unit)
                    {
                        open.reads.push((unit, answer.version.0));
                    }
                }
            }
            EventCall::Flush(writes, Ok(())) => {
                if let Some(open) = open.get_mut(&event.transaction) {
                    open.writes.extend(writes.iter().flat_map(written));
                }
            }
            EventCall::Commit { writes, result, .. } => {
                let Some(mut open) = open.remove(&event.transaction) else { continue };
                open.writes.extend(writes.iter().flat_map(written));
                let Ok(committed) = result else { continue };
                let number = transactions.len() as i64;
                let end = event.end;
                transactions.push(place.transaction(number, open, committed.version.0, end));
            }
            _ => {}
        }
    }
    transactions.retain(|transaction| !transaction.operations.is_empty());
    History::new(transactions)
}

impl Place<'_> {
    fn transaction(&mut self, number: i64, open: Open, version: u64, end: Duration) -> Transaction {
        let mut operations = Vec::new();
        for (unit, read) in open.reads {
            let key = self.key(unit);
            operations.push(self.operation(Kind::Read, key, read, None));
        }
        let mut written = BTreeSet::new();
        for unit in open.writes {
            let key = self.key(unit);
            if written.insert(key) {
                operations.push(self.operation(Kind::Write, key, version, Some(version)));
            }
        }
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Transaction {
            id: number,
            // Each transaction is its own session: session guarantees are checked elsewhere.
            session: number,
            outcome: Outcome::Committed,
            interval: Some(Interval { begin: nanos(open.begin), end: nanos(end) }),
            commit: None,
            is_final: false,
            operations,
        }
    }

    fn key(&mut self, unit: Unit) -> i64 {
        let next = self.keys.len() as i64;
        *self.keys.entry(unit).or_insert(next)
    }

    fn operation(&self, kind: Kind, key: i64, value: u64, version: Option<u64>) -> Operation {
        let store = self.store.into();
        Operation { kind, key, value: value as i64, store, level: self.level, version }
    }
}

fn unit_of(read: &Read) -> Option<Unit> {
    let (address, element) = match read {
        Read::Contains(address, element) | Read::Entry(address, element) => {
            (address, Some(element.clone()))
        }
        Read::Query { arguments, .. } => (&operated(arguments)?, None),
        read => (read.address()?, None),
    };
    Some(Unit { address: address.clone(), element })
}

/// Returns the log that an operation of the simulated program reads or appends to: the first field
/// of its first argument.
fn operated(arguments: &[Value]) -> Option<Address> {
    match arguments.first() {
        Some(Value::Ref(object)) => Some(Address { object: object.clone(), field: 0 }),
        _ => None,
    }
}

/// Returns the units that a write certainly changes. Removals and deletions of absent values change
/// nothing, so the simulated program does not use them.
fn written(write: &Write) -> Vec<Unit> {
    let unit = |address: &Address, element| Unit { address: address.clone(), element };
    match write {
        Write::Assign(address, _) | Write::Add(address, _) | Write::Append(address, _) => {
            vec![unit(address, None)]
        }
        Write::Insert(address, element) | Write::Put(address, element, _) => {
            vec![unit(address, None), unit(address, Some(element.clone()))]
        }
        Write::Command { arguments, .. } => {
            operated(arguments).iter().map(|address| unit(address, None)).collect()
        }
        _ => Vec::new(),
    }
}
