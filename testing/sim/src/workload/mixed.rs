//! Judges all stores of a run together: mixed consistency (MixT, Definition 4.1). The anomalies
//! that `docs/promises.md` still permits are exceptions, which are counted. There are none among
//! `isolated` transactions.
//!
//! A transaction that is part of a violation, is not isolated and visits several stores is split
//! into smaller parts step by step. First each store's reads are separated from the writes, which
//! stay together. Then the reads that follow a write become reads of an unrelated transaction: a
//! reader of the early write could not know the later reads. If real time is part of the demand, as
//! at linearizable stores, each store's part may then stand alone. Without real time it may not:
//! every later transaction sees the writes of a transaction as one, in any order of its reads. Only
//! a transaction that has learned of another comes after it. One that overwrites a value that
//! another has merely read learns nothing, and neither do its successors. A violation that depends
//! on such a step may be granted.
//!
//! `eventual` judges eventual stores after that, together with all others.

mod eventual;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mingle_checker::history::{Interval, Kind as StepKind, Operation as Step, Transaction};
use mingle_checker::verdict::{Anomaly, Edge, Why};
use mingle_checker::{Counterexample, History as Checked, Model, Outcome, Verdict, check};

use super::calls::Store;
use super::checked::steps;
use super::history::{End, History, Operation};
use super::promises::Broken;

/// The way in which a transaction is presented to the checker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    /// As one transaction.
    #[default]
    Whole,
    /// The reads of each store, one after the other, then all writes together.
    ReadsApart,
    /// As above, and the reads at stores after the first written one belong to an unrelated
    /// transaction.
    LaterReads,
    /// The part at each store as a transaction of its own.
    InParts,
}

/// Returns the documented anomaly that justifies this presentation.
const fn exception(told: Told) -> &'static str {
    match told {
        Told::Whole => "none",
        Told::ReadsApart => "exception: stores read at different times (old, then new; write skew)",
        Told::LaterReads => {
            "exception: one store's part seen before another's has read (ahead of its reads)"
        }
        Told::InParts => "exception: one store's part seen before another's (not there yet)",
    }
}

/// A demand on several stores together.
struct Demand {
    /// True if it concerns the strong stores alone.
    is_strong: bool,
    model: Model,
    /// The finest permitted presentation of a transaction.
    most: Told,
}

/// The projections of Definition 4.1 that cover several stores here, and the strong one without
/// real time.
const DEMANDS: [Demand; 3] = [
    Demand { is_strong: true, model: Model::StrictSerializability, most: Told::InParts },
    Demand { is_strong: true, model: Model::Serializability, most: Told::LaterReads },
    Demand { is_strong: false, model: Model::Causal, most: Told::LaterReads },
];

/// Judges all stores of a run together; returns the count of each documented anomaly seen.
///
/// # Errors
///
/// A violation that no documented anomaly explains.
pub fn mixed(history: &History) -> Result<BTreeMap<String, u64>, Broken> {
    isolated(history)?;
    let mut exceptions: BTreeMap<String, u64> = BTreeMap::new();
    for demand in &DEMANDS {
        let (told, mut granted) = grant(history, demand)?;
        if !demand.is_strong && !history.eventual.is_empty() {
            let (more, counts) = eventual::judge(history, demand, told)?;
            granted.extend(more);
            exceptions.extend(counts);
        }
        for granted in granted {
            *exceptions.entry(exception(granted).to_owned()).or_default() += 1;
        }
    }
    Ok(exceptions)
}

/// Splits one transaction after the other until the model is satisfied; returns the granted
/// presentations, by transaction and in order.
fn grant(history: &History, demand: &Demand) -> Result<(BTreeMap<usize, Told>, Vec<Told>), Broken> {
    let mut told: BTreeMap<usize, Told> = BTreeMap::new();
    let mut granted = Vec::new();
    loop {
        let whole = Checked::new(told_as(history, demand, &told, None));
        let whole = whole.map_err(|error| broken(error.to_string()))?;
        let found = match check(&whole, demand.model) {
            Verdict::Violated(found) => found,
            Verdict::Satisfied(_) | Verdict::Unknown(_) => return Ok((told, granted)),
        };
        let next = split(history, demand, &found, &told);
        let Some((index, next)) = next.or_else(|| on_the_way(history, demand, &found, &told))
        else {
            return Err(broken(Verdict::Violated(found).to_string()));
        };
        told.insert(index, next);
        granted.push(next);
    }
}

/// Returns a transaction that a violation does not name, but without whose split it would be none, and its
/// next presentation. A step of a violation may stand for a path of causality, and the anomaly may lie on
/// that path.
fn on_the_way(
    history: &History,
    demand: &Demand,
    found: &Counterexample,
    told: &BTreeMap<usize, Told>,
) -> Option<(usize, Told)> {
    let named = operations(history, found);
    if named.iter().all(|index| is_isolated(&history.operations[*index])) {
        return None;
    }
    let others = (0..history.operations.len()).filter(|index| !named.contains(index));
    let others = others.filter(|index| history.operations[*index].call.visits().len() > 1);
    let steps =
        [Told::ReadsApart, Told::LaterReads].into_iter().filter(|next| *next <= demand.most);
    let steps: Vec<Told> = steps.collect();
    let all = others.flat_map(|index| steps.iter().map(move |next| (index, *next)));
    let mut open = all.filter(|(index, next)| {
        told.get(index).copied().unwrap_or_default() < *next
            && has_use(&history.operations[*index], *next)
    });
    open.find(|(index, next)| {
        let mut told = told.clone();
        told.insert(*index, *next);
        let Ok(whole) = Checked::new(told_as(history, demand, &told, None)) else { return false };
        match check(&whole, demand.model) {
            Verdict::Violated(other) => other.anomaly != found.anomaly,
            Verdict::Satisfied(_) | Verdict::Unknown(_) => true,
        }
    })
}

/// Returns the transaction of a violation that may be split next, and its next presentation.
fn split(
    history: &History,
    demand: &Demand,
    found: &Counterexample,
    told: &BTreeMap<usize, Told>,
) -> Option<(usize, Told)> {
    let concerned = concerned(history, found);
    let next = [Told::ReadsApart, Told::LaterReads, Told::InParts].into_iter().find_map(|next| {
        let is_open = |index: &&usize| {
            told.get(*index).copied().unwrap_or_default() < next
                && has_use(&history.operations[**index], next)
        };
        // Read-only transactions come first: they are most often the reason.
        let open = concerned.iter().filter(is_open);
        let index = open.min_by_key(|index| history.operations[**index].call.writes().len())?;
        (next <= demand.most).then_some((*index, next))
    });
    let uninformed = || uninformed(history, found, told).map(|index| (index, Told::InParts));
    next.or_else(|| if demand.is_strong { uninformed() } else { None })
}

/// True if this presentation of a transaction differs from the previous one.
fn has_use(operation: &Operation, told: Told) -> bool {
    match told {
        Told::Whole => false,
        Told::ReadsApart => operation.call.visits().iter().any(|visit| visit.reads.is_some()),
        Told::LaterReads => Store::ALL.into_iter().any(|store| reads_later(operation, store)),
        Told::InParts => operation.call.writes().len() > 1,
    }
}

/// True if a transaction reads at a store after it has written at another one.
fn reads_later(operation: &Operation, store: Store) -> bool {
    let visits = operation.call.visits();
    let mut earlier = visits.iter().take_while(|visit| visit.store != store);
    let reads = visits.iter().any(|visit| visit.store == store && visit.reads.is_some());
    reads && earlier.any(|visit| !visit.writes.is_empty())
}

fn broken(how: String) -> Broken {
    Broken { promise: "P1 mixed consistency", how }
}

/// True if a call's transaction is declared `isolated`.
fn is_isolated(operation: &Operation) -> bool {
    operation.call.is_isolated()
}

/// Returns the stores that have the level of the demand or a stronger one and show a commit as a
/// whole.
fn stores(
    history: &History,
    demand: &Demand,
    has_eventual: bool,
) -> impl Iterator<Item = Store> + use<> {
    let (is_strong, is_torn) = (demand.is_strong, history.is_torn);
    let eventual = history.eventual.clone();
    let is_left_out = move |store: Store| {
        is_strong && store.is_causal()
            || is_torn && store == Store::Feed
            || !has_eventual && eventual.contains(&store)
    };
    Store::ALL.into_iter().filter(move |store| !is_left_out(*store))
}

/// Returns the operations of a counterexample.
fn operations(history: &History, found: &Counterexample) -> BTreeSet<usize> {
    numbers(&found.anomaly)
        .into_iter()
        .filter_map(|id| usize::try_from(id % PART).ok())
        .filter(|index| *index < history.operations.len())
        .collect()
}

/// Returns the operations of a counterexample that visit several stores. If one operation of the
/// counterexample is not isolated, isolated ones may be split too: the promise of isolation holds
/// only among isolated transactions.
fn concerned(history: &History, found: &Counterexample) -> BTreeSet<usize> {
    let all = operations(history, found);
    let is_among_isolated = all.iter().all(|index| is_isolated(&history.operations[*index]));
    let several = |index: &usize| history.operations[*index].call.visits().len() > 1;
    all.into_iter().filter(|index| several(index) && !is_among_isolated).collect()
}

/// Returns a transaction that another one precedes at one store and follows at another without
/// having learned of it: on the path between the two an operation overwrites a value that another
/// has read, which passes on no knowledge.
fn uninformed(
    history: &History,
    found: &Counterexample,
    told: &BTreeMap<usize, Told>,
) -> Option<usize> {
    let Anomaly::Cycle { edges, .. } = &found.anomaly else { return None };
    let number = |id: Option<i64>| id.and_then(|id| usize::try_from(id % PART).ok());
    let is_open = |index: &usize| {
        let last = |edge: &Edge| number(edge.to) == Some(*index);
        told.get(index).copied().unwrap_or_default() < Told::InParts
            && has_use(&history.operations[*index], Told::InParts)
            && edges.iter().any(|edge| matches!(edge.why, Why::Rw { .. }) && !last(edge))
    };
    concerned(history, found).into_iter().find(is_open)
}

fn numbers(anomaly: &Anomaly) -> Vec<i64> {
    match anomaly {
        Anomaly::Read { transaction, .. } => vec![*transaction],
        Anomaly::Cycle { edges, support } => {
            let all = edges.iter().chain(support.iter().flatten());
            all.flat_map(|edge| [edge.from, edge.to]).flatten().collect()
        }
        Anomaly::Diverged { reads, .. } => reads.iter().map(|(reader, _)| *reader).collect(),
        Anomaly::Lost { reader, writer, .. } => vec![*reader, *writer],
        Anomaly::NoOrder => Vec::new(),
    }
}

/// The factor of a part's place in its number: the operation's number plus `PART` times the place.
const PART: i64 = 1_000_000;

/// Returns the transactions as the checker gets them. Eventual stores are part of them if there is a
/// set `apart`: the reads there of its transactions belong to unrelated ones.
fn told_as(
    history: &History,
    demand: &Demand,
    told: &BTreeMap<usize, Told>,
    apart: Option<&BTreeSet<usize>>,
) -> Vec<Transaction> {
    let mut transactions = Vec::new();
    for (index, operation) in history.operations.iter().enumerate() {
        let told = told.get(&index).copied().unwrap_or_default();
        let (mut parts, mut writes): (Vec<Vec<Step>>, Vec<Step>) = Default::default();
        let mut later: Vec<Vec<Step>> = Vec::new();
        for store in stores(history, demand, apart.is_some()) {
            let mut found = steps(history, operation, store, &|_| true);
            let is_eventual = history.eventual.contains(&store);
            if is_eventual && apart.is_some_and(|apart| apart.contains(&index)) {
                let is_read = |step: &mut Step| step.kind == StepKind::Read;
                later.push(found.extract_if(.., is_read).collect());
            }
            match told {
                Told::Whole => writes.extend(found),
                Told::InParts => parts.push(found),
                Told::ReadsApart | Told::LaterReads => {
                    let (written, read) =
                        found.into_iter().partition(|step| step.kind == StepKind::Write);
                    let is_later = told == Told::LaterReads && reads_later(operation, store);
                    if is_later {
                        later.push(read);
                    } else {
                        parts.push(read);
                    }
                    writes.extend::<Vec<Step>>(written);
                }
            }
        }
        parts.push(writes);
        // Once a call has its answer before its later parts, its session goes on before them. That the session finds
        // them where it visits them is judged by itself (`visibility`).
        let is_open = !matches!(operation.end, End::Done { has_rest: false, .. });
        let own = match parts.iter().position(|part| !part.is_empty()) {
            Some(first) if told == Told::InParts && is_open => first + 1,
            _ => parts.len(),
        };
        let parts = parts.into_iter().chain(later).enumerate();
        for (place, steps) in parts.filter(|(_, steps)| !steps.is_empty()) {
            let part = transaction(index, place, operation, steps);
            let session = if place < own { part.session } else { PART + part.id };
            transactions.push(Transaction { session, ..part });
        }
    }
    transactions
}

fn transaction(index: usize, place: usize, operation: &Operation, steps: Vec<Step>) -> Transaction {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let (outcome, end) = match &operation.end {
        End::Done { has_rest: false, .. } => (Outcome::Committed, nanos(operation.ended)),
        // Its later parts take effect at some later time.
        End::Done { .. } => (Outcome::Committed, u64::MAX),
        _ => (Outcome::Unknown, u64::MAX),
    };
    // A twin began before the call that precedes it had ended.
    let session = if operation.call.is_twin { 1_000 + index } else { operation.client };
    Transaction {
        id: index as i64 + PART * place as i64,
        session: session as i64,
        outcome,
        interval: Some(Interval { begin: nanos(operation.began), end }),
        commit: None,
        is_final: false,
        operations: steps,
    }
}

/// Judges isolated transactions alone, over both strong stores, without exceptions.
fn isolated(history: &History) -> Result<(), Broken> {
    let all = || history.operations.iter().enumerate().filter(|(_, one)| is_isolated(one));
    let tags: BTreeSet<String> = all().map(|(_, one)| one.call.tag_text()).collect();
    let told = all().map(|(index, one)| {
        let found = [Store::Bank, Store::Shop]
            .into_iter()
            .flat_map(|store| steps(history, one, store, &|tag| tags.contains(tag)));
        transaction(index, 0, one, found.collect())
    });
    let told: Vec<Transaction> = told.filter(|told| !told.operations.is_empty()).collect();
    let told = Checked::new(told).map_err(|error| broken(error.to_string()))?;
    let verdict = check(&told, Model::StrictSerializability);
    if verdict.is_violated() {
        return Err(Broken { promise: "P5 isolated", how: verdict.to_string() });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
