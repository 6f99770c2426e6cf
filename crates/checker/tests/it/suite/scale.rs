//! Large histories: 10,000 transactions of eight operations.
//!
//! None of these tests reads a clock. `cargo test --release -p mingle-checker scale` takes seconds;
//! a checker with quadratic cost in the transactions would take minutes.

use std::collections::HashMap;
use std::fmt::Write as _;

use mingle_checker::{
    Anomaly, Basis, History, Interval, Kind, Model, Operation, Outcome, Transaction, Verdict,
    check, read_jsonl, read_text, write_jsonl, write_text,
};
use mingle_model::Level;

use super::files;
use super::random::Random;

const TRANSACTIONS: usize = 10_000;
const OPERATIONS: usize = 8;
const SESSIONS: usize = 20;
const KEYS: usize = 1_000;

/// Returns a serial run, which every model allows.
fn serial(seed: u64, with_order: bool) -> Vec<Transaction> {
    let mut random = Random(seed);
    let mut state: HashMap<i64, i64> = HashMap::new();
    let mut next = 0;
    let transactions = (0..TRANSACTIONS).map(|id| {
        let operations = (0..OPERATIONS).map(|_| {
            let key = random.below(KEYS) as i64;
            let kind = if random.one_in(2) { Kind::Read } else { Kind::Write };
            if kind == Kind::Write {
                next += 1;
                state.insert(key, next);
            }
            let value = state.get(&key).copied().unwrap_or(0);
            let (store, level) = ("accounts".into(), Level::Linearizable);
            Operation { kind, key, value, store, level, version: None }
        });
        let operations = operations.collect();
        let begin = id as u64 * 10;
        Transaction {
            id: id as i64,
            session: random.below(SESSIONS) as i64,
            outcome: Outcome::Committed,
            interval: Some(Interval { begin, end: begin + 100 }),
            commit: with_order.then_some(id as u64),
            is_final: false,
            operations,
        }
    });
    transactions.collect()
}

fn history(transactions: Vec<Transaction>) -> History {
    History::new(transactions).expect("a history")
}

#[test]
fn every_model_checks_a_recorded_run() {
    let history = history(serial(1, true));
    for model in Model::ALL {
        let verdict = check(&history, model);
        let Verdict::Satisfied(witness) = &verdict else { panic!("{model}: {verdict}") };
        let recorded = !matches!(model, Model::Causal | Model::Convergence);
        let basis = if recorded { Basis::RecordedOrder } else { Basis::Axioms };
        assert_eq!(witness.basis, basis, "{model}");
    }
}

#[test]
fn every_model_checks_a_run_without_a_recorded_order() {
    let history = history(serial(2, false));
    for model in Model::ALL {
        let verdict = check(&history, model);
        let Verdict::Satisfied(witness) = &verdict else { panic!("{model}: {verdict}") };
        // The listed order itself explains the reads.
        let asks_for_order = matches!(
            model,
            Model::StrictSerializability | Model::Serializability | Model::Snapshot | Model::Mixed
        );
        assert_eq!(witness.basis == Basis::GivenOrder, asks_for_order, "{model}: {verdict}");
    }
}

#[test]
fn one_stale_read_in_many_is_found() {
    for with_order in [true, false] {
        let mut transactions = serial(3, with_order);
        // The last transactions read an old value of a key that was written during the whole run.
        let stale = |transaction: &mut Transaction, value: i64| {
            let operation = transaction.operations.last_mut().expect("it has operations");
            *operation =
                Operation { kind: Kind::Read, key: -1, value, version: None, ..operation.clone() };
        };
        let write = Operation {
            kind: Kind::Write,
            key: -1,
            value: 1,
            store: "accounts".into(),
            level: Level::Linearizable,
            version: None,
        };
        transactions[0].operations.push(write);
        stale(&mut transactions[TRANSACTIONS - 1], 0);
        transactions[TRANSACTIONS - 1].session = transactions[0].session + 1;
        let history = history(transactions);
        for model in Model::ALL {
            let verdict = check(&history, model);
            // For read atomicity the reader's session need not have seen the write.
            if matches!(model, Model::Convergence | Model::ReadAtomic) {
                assert!(verdict.is_satisfied(), "{verdict}");
                continue;
            }
            let Verdict::Violated(found) = &verdict else { panic!("{model}: {verdict}") };
            let Anomaly::Cycle { edges, .. } = &found.anomaly else { panic!("{verdict}") };
            assert!(edges.len() <= 20, "{model}: {verdict}");
            assert!(verdict.to_string().contains("rw(-1)"), "{model}: {verdict}");
        }
    }
}

/// Copies of two writers with a reader each, which may come in either order: together they have
/// more sets of ordered transactions than can be tried.
#[test]
fn a_bound_is_met_and_said() {
    let mut lines = write_text(&files::named("no_order.txt"));
    for copy in 1..=16 {
        for (kind, value, number) in [("w", 1, 1), ("w", 2, 2), ("r", 1, 3), ("r", 2, 4)] {
            let (key, id) = (100 + copy, 100 * copy + number);
            writeln!(lines, "{kind}({key},{value},{id},{id})").expect("a string takes it");
        }
    }
    let history = read_text(&lines).expect("a history");
    let verdict = check(&history, Model::Serializability);
    let Verdict::Unknown(reason) = verdict else { panic!("{verdict}") };
    assert!(reason.starts_with("the search for an order "), "{reason}");
    assert!(check(&history, Model::CausalPlus).is_satisfied(), "no search, no bound");
}

#[test]
fn too_many_sessions_are_said_to_be() {
    let lines: Vec<String> = (1..17_000).map(|id| format!("w({id},1,{id},{id})")).collect();
    let serial = read_text(&lines.join("\n")).expect("a history");
    assert!(check(&serial, Model::Snapshot).is_satisfied(), "its order needs no clocks");
    // The first transaction is listed too early, and the order of the writes is open.
    let history = format!("r(1,1,0,0)\n{}\nw(1,2,1,17000)\nw(1,3,2,17001)", lines.join("\n"));
    let history = read_text(&history).expect("a history");
    for model in [Model::Causal, Model::CausalPlus, Model::ReadAtomic, Model::Snapshot] {
        let verdict = check(&history, model);
        let Verdict::Unknown(reason) = verdict else { panic!("{model}: {verdict}") };
        assert!(reason.contains("entries of vector clocks, more than 268435456"), "{reason}");
    }
}

/// The counterexample omits everything that is not part of the violation.
#[test]
fn a_violation_found_by_search_is_made_small() {
    let mut lines = write_text(&files::named("no_order.txt"));
    lines.push_str("w(50,1,9,9)\nr(1,1,9,9)\nr(50,1,10,10)\nw(51,1,11,11)\nw(51,2,12,12)\n");
    let history = read_text(&lines).expect("a history");
    let Verdict::Violated(found) = check(&history, Model::Serializability) else {
        panic!("there is no order");
    };
    assert_eq!((&found.anomaly, found.transactions.len()), (&Anomaly::NoOrder, 8), "{found}");
}

#[test]
fn files_of_that_size_are_read() {
    let history = history(serial(4, true));
    let text = write_jsonl(&history);
    assert_eq!(text.lines().count(), TRANSACTIONS);
    assert_eq!(read_jsonl(&text), Ok(history));
}
