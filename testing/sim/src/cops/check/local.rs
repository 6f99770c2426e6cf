//! Promises within a data center: versions never fall, and keys are linearizable.

use std::collections::BTreeMap;

use mingle_cops::clock::Timestamp;

use crate::cops::record::{Happened, Record};
use crate::workload::promises::Broken;

/// Checks that the newest version of a key at a server never falls.
pub(super) fn progressing(record: &Record) -> Result<(), Broken> {
    let mut newest = BTreeMap::new();
    for happened in &record.happened {
        let Happened::Newest(node, key, ts) = *happened else { continue };
        if let Some(before) = newest.insert((node, key), ts)
            && before > ts
        {
            let how = format!("server {node} goes from {before} to {ts} in key {key}");
            return Err(Broken { promise: "versions never fall", how });
        }
    }
    Ok(())
}

/// An operation on one key: it took effect between its begin and its end.
struct Seen {
    begin_us: u64,
    end_us: u64,
    ts: Timestamp,
    call: usize,
}

/// Checks that the calls of each data center are linearizable in each key: versions have an
/// order, so it suffices that a call which begins after the end of another sees no older version.
pub(super) fn linearizable(record: &Record) -> Result<(), Broken> {
    let mut seen: BTreeMap<(u8, u32), Vec<Seen>> = BTreeMap::new();
    for (index, call) in record.calls.iter().enumerate() {
        let Some(end_us) = call.end_us else { continue };
        let mut add = |key, ts| {
            let seen = seen.entry((call.dc, key)).or_default();
            seen.push(Seen { begin_us: call.begin_us, end_us, ts, call: index });
        };
        for read in &call.reads {
            add(read.key, read.versions.iter().max().copied().unwrap_or_default());
        }
        for accepted in record.accepted.iter().filter(|accepted| accepted.call == index) {
            for key in record.keys(accepted) {
                add(key, accepted.ts);
            }
        }
    }
    for ((dc, key), mut seen) in seen {
        seen.sort_by_key(|seen| seen.begin_us);
        for later in &seen {
            let before = seen.iter().filter(|before| before.end_us < later.begin_us);
            let Some(newest) = before.max_by_key(|before| before.ts) else { continue };
            if newest.ts > later.ts {
                let how = format!(
                    "data center {dc}: call {} sees {} in key {key}, after call {} saw {}",
                    later.call, later.ts, newest.call, newest.ts
                );
                return Err(Broken { promise: "data centers are linearizable", how });
            }
        }
    }
    Ok(())
}
