//! Counters: the additions in each sum.

use std::collections::BTreeMap;

use mingle_cops::clock::Timestamp;

use crate::cops::columns::counter_of;
use crate::cops::record::{Content, Read, Record, Sum};
use crate::workload::promises::Broken;

/// An addition that was invoked.
struct Addition {
    key: u32,
    delta: u64,
    /// The timestamp, if a server accepted it.
    ts: Option<Timestamp>,
    begin_us: u64,
}

/// Replaces each sum by a read of each addition to the counter: with a version if the sum has it,
/// absent if it has not. What must be visible is then judged as for every other key.
///
/// # Errors
///
/// If a sum has more than the additions that were invoked, each once.
pub(super) fn divided(record: &mut Record) -> Result<(), Broken> {
    let additions = additions(record);
    for (index, call) in record.calls.iter_mut().enumerate() {
        for sum in std::mem::take(&mut call.sums) {
            let until_us = call.end_us.unwrap_or_default();
            let parts = parts(&additions, sum, until_us).map_err(|how| {
                let how = format!("call {index} reads {sum:?} in data center {}: {how}", call.dc);
                Broken { promise: "counters have additions that were invoked", how }
            })?;
            call.reads.extend(parts);
        }
    }
    for (dc, sum) in std::mem::take(&mut record.sums) {
        let parts = parts(&additions, sum, u64::MAX).map_err(|how| {
            let how = format!("data center {dc} has {sum:?} in the end: {how}");
            Broken { promise: "counters have additions that were invoked", how }
        })?;
        for Read { key, versions, values } in parts {
            record.contents.insert((dc, key), Content { values, versions });
        }
    }
    Ok(())
}

/// Returns the additions to each counter.
fn additions(record: &Record) -> BTreeMap<u32, Vec<Addition>> {
    let mut accepted: BTreeMap<(usize, u32), Timestamp> = BTreeMap::new();
    for operation in &record.accepted {
        for key in record.keys(operation) {
            accepted.insert((operation.call, key), operation.ts);
        }
    }
    let mut additions: BTreeMap<u32, Vec<Addition>> = BTreeMap::new();
    for (index, call) in record.calls.iter().enumerate() {
        for write in &call.writes {
            let (Some(counter), Some(delta)) = (counter_of(write.key), write.value) else {
                continue;
            };
            let (ts, begin_us) = (accepted.get(&(index, write.key)).copied(), call.begin_us);
            let addition = Addition { key: write.key, delta, ts, begin_us };
            additions.entry(counter).or_default().push(addition);
        }
    }
    additions
}

/// Divides a sum that was read until `until_us` into reads of the additions that began before.
fn parts(
    additions: &BTreeMap<u32, Vec<Addition>>,
    sum: Sum,
    until_us: u64,
) -> Result<Vec<Read>, String> {
    let mut left = sum.sum as u64;
    let mut reads = Vec::new();
    let all = additions.get(&sum.counter).into_iter().flatten();
    for addition in all.filter(|addition| addition.begin_us <= until_us) {
        // Each addition has two bits for its count.
        let has = left & (addition.delta * 3);
        let (mut versions, mut values) = (Vec::new(), Vec::new());
        if has == addition.delta {
            left -= has;
            versions.extend(addition.ts);
            values.push(addition.delta);
        }
        reads.push(Read { key: addition.key, versions, values });
    }
    if left != 0 {
        return Err(format!("{left} of it was never added, or added twice"));
    }
    Ok(reads)
}

#[cfg(test)]
mod tests {
    use mingle_cops::clock::NodeId;

    use super::*;

    /// The reads in a sum of a counter with additions 0 and 1, of which 1 begins at 50 us.
    fn divide(sum: i64, until_us: u64) -> Result<Vec<bool>, String> {
        let ts = Some(Timestamp::new(7, NodeId::new(0, 0)));
        let (counter, deltas) = (127, [(1, 0), (4, 50)]);
        let all = deltas.map(|(delta, begin_us)| {
            let key = counter + 1 + u64::trailing_zeros(delta) / 2;
            Addition { key, delta, ts, begin_us }
        });
        let additions = BTreeMap::from([(counter, Vec::from(all))]);
        let reads = parts(&additions, Sum { counter, sum }, until_us)?;
        Ok(reads.iter().map(|read| !read.versions.is_empty()).collect())
    }

    #[test]
    fn a_sum_has_each_addition_once_at_most_and_none_that_was_not_invoked() {
        assert_eq!(divide(0, 90), Ok(vec![false, false]));
        assert_eq!(divide(4, 90), Ok(vec![false, true]));
        assert_eq!(divide(5, 90), Ok(vec![true, true]));
        assert_eq!(divide(1, 20), Ok(vec![true]));
        assert!(divide(4, 20).unwrap_err().contains("4 of it"), "it begins later");
        assert!(divide(2, 90).unwrap_err().contains("2 of it"), "addition 0 twice");
        assert!(divide(16, 90).is_err());
        assert!(divide(-1, 90).is_err());
    }
}
