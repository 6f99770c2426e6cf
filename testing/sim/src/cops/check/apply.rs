//! Dependency order: an operation is applied at a data center after its dependencies.

use std::collections::{BTreeMap, BTreeSet};

use mingle_cops::clock::Timestamp;

use super::past::Past;
use crate::cops::record::{Happened, Record};
use crate::workload::promises::Broken;

/// Checks the order in which data centers applied operations.
pub(super) fn in_order(record: &Record, past: &Past) -> Result<(), Broken> {
    let mut applied: BTreeMap<u8, BTreeSet<Timestamp>> = BTreeMap::new();
    for happened in &record.happened {
        let Happened::Applied(dc, ts) = *happened else { continue };
        let here = applied.entry(dc).or_default();
        if let Some(missing) = past.direct(ts).find(|dep| !here.contains(dep)) {
            let how = format!("data center {dc} applies {ts} before its dependency {missing}");
            return Err(Broken { promise: "dependencies are applied first", how });
        }
        here.insert(ts);
    }
    Ok(())
}
