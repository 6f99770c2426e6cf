//! Histories of a run for `mingle-checker`: the clients' observations of each store.
//!
//! A log holds more than a register, but it contains one: its last entry is the value that a
//! register would have, since both order concurrent writes alike.

use std::time::Duration;

use mingle_checker::history::{Interval, Kind, Operation as Step, Transaction};
use mingle_checker::{History as Checked, Model, Outcome, check};
use mingle_model::Level;
use mingle_store::wrap::history::Event;

use super::calls::{Object, Store};
use super::history::{End, History, Operation};
use super::promises::Broken;
use crate::recorded::history_of;

/// Checks the histories of all stores against the models of their consistency levels.
///
/// # Errors
///
/// The first violated model, with the smallest counterexample.
pub fn models(history: &History, events: &[Event]) -> Result<(), Broken> {
    for store in [Store::Bank, Store::Shop] {
        let recorded = history_of(events, store.name(), Level::Linearizable);
        let recorded = recorded.map_err(|error| broken(store, error.to_string()))?;
        judge(store, &recorded, Model::StrictSerializability)?;
    }
    for store in Store::ALL {
        let is_eventual = history.eventual.contains(&store);
        let model = match store {
            Store::Bank | Store::Shop => Model::StrictSerializability,
            Store::Wall | Store::Feed if is_eventual => Model::Convergence,
            Store::Wall | Store::Feed => Model::CausalPlus,
        };
        judge(store, &seen(history, store)?, model)?;
    }
    Ok(())
}

fn judge(store: Store, checked: &Checked, model: Model) -> Result<(), Broken> {
    let verdict = check(checked, model);
    if verdict.is_violated() {
        return Err(broken(store, verdict.to_string()));
    }
    Ok(())
}

fn broken(store: Store, how: String) -> Broken {
    Broken { promise: "P1 checked history", how: format!("at {}: {how}", store.name()) }
}

/// Builds the history of one store from the clients' observations.
fn seen(history: &History, store: Store) -> Result<Checked, Broken> {
    let mut transactions = Vec::new();
    for (index, operation) in history.operations.iter().enumerate() {
        let steps = steps(history, operation, store, &|_| true);
        if !steps.is_empty() {
            transactions.push(transaction(index, operation, store, steps));
        }
    }
    if store.is_causal() {
        transactions.extend(finals(history, store));
    }
    Checked::new(transactions).map_err(|error| broken(store, error.to_string()))
}

fn transaction(index: usize, operation: &Operation, store: Store, steps: Vec<Step>) -> Transaction {
    let waited = match &operation.end {
        End::Done { visits, .. } => {
            operation.call.visits().iter().take(*visits).any(|visit| visit.store == store)
        }
        _ => false,
    };
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    // A twin began before the call that precedes it had ended.
    let session = if operation.call.is_twin { 1_000 + index } else { operation.client };
    Transaction {
        id: index as i64,
        session: session as i64,
        outcome: if waited { Outcome::Committed } else { Outcome::Unknown },
        interval: Some(Interval { begin: nanos(operation.began), end: nanos(operation.ended) }),
        commit: None,
        is_final: false,
        operations: steps,
    }
}

/// Returns the steps of an operation at a store, if it took effect there, as if the logs contained
/// only the tags that the filter accepts.
pub(super) fn steps(
    history: &History,
    operation: &Operation,
    store: Store,
    counts: &dyn Fn(&str) -> bool,
) -> Vec<Step> {
    let tag = operation.call.tag_text();
    let counts = |entry: &&String| counts(tag_of(entry));
    let mut steps = Vec::new();
    let reads: &[(Object, Vec<String>)] = match &operation.end {
        End::Done { seen, .. } => seen,
        _ => &[],
    };
    let by_id = history.by_id.contains(&store);
    let is_log = |object: Object| object.store() == store && !object.is_sheet();
    for (object, entries) in reads.iter().filter(|(object, _)| is_log(*object)) {
        let others = entries.iter().rev().filter(counts);
        let mut others = others.filter(|entry| tag_of(entry) != tag);
        let last = others.next().map_or("", |entry| tag_of(entry));
        if !by_id {
            steps.push(step(Kind::Read, *object, last, None));
        } else if !last.is_empty() {
            steps.push(alone(step(Kind::Read, *object, last, None)));
        }
    }
    for object in operation.call.writes().into_iter().filter(|object| object.store() == store) {
        let mut log = history.log(object).iter().filter(counts);
        if let Some(at) = log.position(|entry| *entry == tag) {
            steps.push(step(Kind::Write, object, &tag, Some(at as u64 + 1)));
            if by_id {
                steps.push(alone(step(Kind::Write, object, &tag, None)));
            }
        }
    }
    steps
}

/// Turns a step into one at a register of its own for the value. The reader of a value then comes
/// after its writer, and nothing follows about other writes of the object.
fn alone(step: Step) -> Step {
    Step { key: 100 * (1 + step.value) + step.key, ..step }
}

/// Returns reads of all objects at every replica after the run became quiet.
pub(super) fn finals(history: &History, store: Store) -> Vec<Transaction> {
    let replicas = history.finals.values().map(Vec::len).max().unwrap_or(0);
    let first = history.operations.len();
    let read = |replica: usize| {
        let objects = history
            .finals
            .iter()
            .filter(move |(object, found)| object.store() == store && found.len() > replica)
            .filter(|(object, _)| !object.is_sheet());
        let steps = objects.map(|(object, found)| {
            let last = found[replica].entries.last();
            step(Kind::Read, *object, last.map_or("", |entry| tag_of(entry)), None)
        });
        Transaction {
            id: (first + replica) as i64,
            session: (1_000_000 + replica) as i64,
            outcome: Outcome::Committed,
            interval: None,
            commit: None,
            is_final: true,
            operations: steps.collect(),
        }
    };
    (0..replicas).map(read).filter(|read| !read.operations.is_empty()).collect()
}

/// Returns the tag of an entry; some entries are a tag followed by a drawn value.
fn tag_of(entry: &str) -> &str {
    entry.split(' ').next().unwrap_or_default()
}

fn step(kind: Kind, object: Object, tag: &str, version: Option<u64>) -> Step {
    let place = Object::all().position(|known| known == object).unwrap_or_default();
    let store = object.store();
    let level = if store.is_causal() { Level::Causal } else { Level::Linearizable };
    Step {
        kind,
        key: place as i64,
        value: tag.parse().unwrap_or(0),
        store: store.name().into(),
        level,
        version,
    }
}
