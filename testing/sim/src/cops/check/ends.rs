//! The end of a run: everything is applied everywhere, and the contents agree.

use std::collections::{BTreeMap, BTreeSet};

use mingle_cops::clock::Timestamp;
use mingle_cops::config::Protocol;

use super::past::Past;
use crate::cops::plan::Plan;
use crate::cops::record::{Content, Happened, Record};
use crate::workload::promises::Broken;

/// Returns the operations that each data center applied.
fn applied(record: &Record) -> BTreeMap<u8, BTreeSet<Timestamp>> {
    let mut applied: BTreeMap<u8, BTreeSet<Timestamp>> = BTreeMap::new();
    for happened in &record.happened {
        if let Happened::Applied(dc, ts) = *happened {
            applied.entry(dc).or_default().insert(ts);
        }
    }
    applied
}

/// Checks that each surviving data center has applied every operation of the survivors, except those
/// with an operation of a lost data center in their past that did not arrive (thesis §6.2).
pub(super) fn all_applied(plan: &Plan, record: &Record, past: &Past) -> Result<(), Broken> {
    let applied = applied(record);
    let empty = BTreeSet::new();
    let is_lost = |dc: u8| record.lost.contains(&dc);
    for dc in plan.config.locator.dcs().filter(|dc| !is_lost(*dc)) {
        let here = applied.get(&dc).unwrap_or(&empty);
        for accepted in &record.accepted {
            let ts = accepted.ts;
            if here.contains(&ts) || is_lost(record.calls[accepted.call].dc) {
                continue;
            }
            let is_excuse = |below: &Timestamp| !here.contains(below) && is_lost(below.node().dc());
            let has_excuse = plan.config.protocol.is_causal()
                && past.closure_at_servers([ts]).iter().any(is_excuse);
            if !has_excuse {
                let how = format!("data center {dc} never applies {ts}");
                return Err(Broken { promise: "operations are applied everywhere", how });
            }
        }
    }
    Ok(())
}

/// Checks that the contents of each surviving data center follow from the operations applied there: the
/// last writer's value, or in COPS-CD all values that no write has replaced.
pub(super) fn contents(protocol: Protocol, record: &Record) -> Result<(), Broken> {
    let applied = applied(record);
    let replaced = replaced(record);
    for ((dc, key), content) in &record.contents {
        let here = &applied.get(dc).cloned().unwrap_or_default();
        let mut writes: BTreeMap<Timestamp, Option<u64>> = BTreeMap::new();
        for accepted in record.accepted.iter().filter(|accepted| here.contains(&accepted.ts)) {
            let written = record.written(accepted);
            for write in written.filter(|write| write.key == *key) {
                writes.insert(accepted.ts, write.value);
            }
        }
        if protocol == Protocol::CopsCd {
            let gone: BTreeSet<Timestamp> =
                writes.keys().filter_map(|ts| replaced.get(ts)).flatten().copied().collect();
            writes.retain(|ts, _| !gone.contains(ts));
        } else if let Some((ts, value)) = writes.pop_last() {
            writes = BTreeMap::from([(ts, value)]);
        }
        let values = writes.values().filter_map(|value| *value).collect();
        let expected = Content { values, versions: writes.into_keys().collect() };
        if *content != expected {
            let how = format!(
                "data center {dc} has {content:?} in key {key} in the end, expected {expected:?}"
            );
            return Err(Broken { promise: "data centers converge", how });
        }
    }
    Ok(())
}

/// Checks that each read returns the values of its versions, in their order.
pub(super) fn values(record: &Record) -> Result<(), Broken> {
    let mut values = BTreeMap::new();
    for accepted in &record.accepted {
        for write in record.written(accepted) {
            values.insert((write.key, accepted.ts), write.value);
        }
    }
    for (index, call) in record.calls.iter().enumerate() {
        for read in &call.reads {
            let expected: Vec<u64> =
                read.versions.iter().filter_map(|ts| *values.get(&(read.key, *ts))?).collect();
            if expected != read.values {
                let how = format!("call {index} reads {read:?}, expected {expected:?}");
                return Err(Broken { promise: "reads return the values of their versions", how });
            }
        }
    }
    Ok(())
}

/// Returns for each write the operations that its data center had applied before it accepted the
/// write: as far as they are in the same key, the write replaces them.
fn replaced(record: &Record) -> BTreeMap<Timestamp, BTreeSet<Timestamp>> {
    let mut applied: BTreeMap<u8, BTreeSet<Timestamp>> = BTreeMap::new();
    let mut replaced = BTreeMap::new();
    for happened in &record.happened {
        match *happened {
            Happened::Accepted(index) => {
                let accepted = record.accepted[index];
                let dc = record.calls[accepted.call].dc;
                replaced.insert(accepted.ts, applied.entry(dc).or_default().clone());
            }
            Happened::Applied(dc, ts) => {
                applied.entry(dc).or_default().insert(ts);
            }
            Happened::Newest(..) => {}
        }
    }
    replaced
}
