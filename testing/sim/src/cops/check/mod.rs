//! The promises of the reference protocols, judged from the record of a run.
//!
//! The causality that the promises speak of is computed from the answers to clients alone: an
//! operation depends on its actor's last write and on the operations that the actor has read since.

mod apply;
mod counters;
mod ends;
mod local;
mod past;

use std::collections::BTreeMap;

use mingle_checker::{History, Interval, Kind, Model, Operation, Outcome, Transaction, check};
use mingle_cops::config::Protocol;
use mingle_model::{Level, Name};

use super::plan::Plan;
use super::record::Record;
use crate::workload::promises::Broken;

use past::Past;

/// Checks all promises that the protocol makes.
pub(super) fn all(plan: &Plan, record: &mut Record) -> Result<(), Broken> {
    counters::divided(record)?;
    let record = &*record;
    let protocol = plan.config.protocol;
    let past = Past::new(protocol, record);
    unique(record)?;
    ends::values(record)?;
    local::progressing(record)?;
    local::linearizable(record)?;
    rounds(protocol, record)?;
    if protocol.is_causal() {
        apply::in_order(record, &past)?;
        past.nothing_missing(record)?;
    }
    if protocol.is_causal() && protocol != Protocol::CopsCd {
        causal(record)?;
    }
    ends::all_applied(plan, record, &past)?;
    ends::contents(protocol, record)
}

/// Checks that no two operations have one timestamp.
fn unique(record: &Record) -> Result<(), Broken> {
    let mut seen = BTreeMap::new();
    for accepted in &record.accepted {
        if let Some(other) = seen.insert(accepted.ts, accepted.call)
            && other != accepted.call
        {
            let how = format!("calls {other} and {} have {}", accepted.call, accepted.ts);
            return Err(Broken { promise: "timestamps are unique", how });
        }
    }
    Ok(())
}

/// Checks the bounds of the rounds of a read, and that servers answer without waiting.
fn rounds(protocol: Protocol, record: &Record) -> Result<(), Broken> {
    let most = match protocol {
        Protocol::CopsRt | Protocol::Eiger => 2,
        _ => 1,
    };
    if let Some(how) = record.trace.broken() {
        return Err(Broken { promise: "reads do not wait", how: how.to_owned() });
    }
    match record.calls.iter().find(|call| call.rounds > most) {
        None => Ok(()),
        Some(call) => {
            let how = format!("{} rounds, at most {most}: {call:?}", call.rounds);
            Err(Broken { promise: "rounds are bounded", how })
        }
    }
}

/// Checks that the history is causal+, with each call as a transaction.
fn causal(record: &Record) -> Result<(), Broken> {
    let history = history(record)
        .map_err(|how| Broken { promise: "answers name operations that there are", how })?;
    let verdict = check(&history, Model::CausalPlus);
    if verdict.is_satisfied() {
        return Ok(());
    }
    Err(Broken { promise: "the history is causal+", how: verdict.to_string() })
}

fn history(record: &Record) -> Result<History, String> {
    let store: Name = "cops".into();
    let mut transactions = Vec::new();
    for (index, call) in record.calls.iter().enumerate() {
        let mut operations = Vec::new();
        let mut add = |kind, key: u32, ts: u64| {
            let (key, store, level) = (i64::from(key), store.clone(), Level::Causal);
            let version = (kind == Kind::Write).then_some(ts);
            operations.push(Operation { kind, key, value: ts as i64, store, level, version });
        };
        for read in &call.reads {
            let newest = read.versions.iter().max();
            add(Kind::Read, read.key, newest.map_or(0, |ts| ts.bits()));
        }
        for accepted in record.accepted.iter().filter(|accepted| accepted.call == index) {
            for key in record.keys(accepted) {
                add(Kind::Write, key, accepted.ts.bits());
            }
        }
        if operations.is_empty() {
            continue;
        }
        let outcome = if call.end_us.is_some() { Outcome::Committed } else { Outcome::Unknown };
        let interval = call.end_us.map(|end| Interval { begin: call.begin_us, end });
        let (id, commit, is_final) = (index as i64, None, false);
        let session = i64::from(call.dc) << 32 | i64::from(call.actor);
        transactions.push(Transaction {
            id,
            session,
            outcome,
            interval,
            commit,
            is_final,
            operations,
        });
    }
    History::new(transactions).map_err(|malformed| malformed.message)
}
