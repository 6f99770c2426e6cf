//! The promises of the reference protocols, judged from the record of a run.
//!
//! The causality that the promises speak of is computed from the answers to clients alone: an
//! operation depends on its actor's last write and on the operations that the actor has read since.

mod apply;
mod counters;
mod ends;
mod history;
mod local;
mod past;

use std::collections::BTreeMap;

use mingle_checker::{Model, check};
use mingle_cops::config::Protocol;

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
        causal(record, &past)?;
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

/// Checks that the history is causal+, with each call as a transaction, and each row of a batch as one.
fn causal(record: &Record, past: &Past) -> Result<(), Broken> {
    let history = history::of(record, past)
        .map_err(|how| Broken { promise: "answers name operations that there are", how })?;
    let verdict = check(&history, Model::CausalPlus);
    if verdict.is_satisfied() {
        return Ok(());
    }
    Err(Broken { promise: "the history is causal+", how: verdict.to_string() })
}
