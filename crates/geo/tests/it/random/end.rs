//! Faults, and the invariants at the end.

use std::collections::{BTreeMap, BTreeSet};

use mingle_geo::{Alarm, Key, Kind};

use super::driver::{DCS, Run};
use crate::support::Node;
use crate::support::check::{Number, numbers, shown};

impl Run {
    pub fn strike(&mut self) {
        let (dc, partition) =
            (self.random.below(3) as u8, self.random.below(self.partitions.into()) as u16);
        if self.lost == Some(dc) {
            return;
        }
        let runs = self.world.nodes[&(dc, partition)].replica.is_some();
        match self.random.below(4) {
            0 if self.faults.has_crashes && runs => {
                let is_clean = self.random.one_in(3);
                self.world.crash(dc, partition, is_clean);
            }
            1 if self.faults.has_crashes && runs => self.world.compact(dc, partition),
            0 | 1 if self.faults.has_crashes => self.world.restart(dc, partition),
            2 if self.faults.has_jumps => {
                let skew_us = self.random.below(3_000_000) as i64 - 1_500_000;
                self.world.nodes.get_mut(&(dc, partition)).expect("a node").skew_us = skew_us;
            }
            3 if self.faults.has_cuts => {
                if self.random.one_in(3) {
                    self.world.heal();
                } else if self.random.one_in(2) {
                    self.world.isolate(dc);
                } else {
                    self.world.down.insert((dc, self.random.below(3) as u8));
                }
            }
            _ => {}
        }
    }

    pub fn heal(&mut self) {
        self.world.heal();
        if let Some(dc) = self.lost {
            self.world.isolate(dc);
        }
        self.world.network.lost_one_in = 0;
        self.world.network.twice_one_in = 0;
        let all: Vec<(u8, u16)> = self.world.nodes.keys().copied().collect();
        for (dc, partition) in all {
            let runs = self.world.nodes[&(dc, partition)].replica.is_some();
            if !runs && self.lost != Some(dc) {
                self.world.restart(dc, partition);
            }
        }
    }

    /// Checks that all committed transactions are at all data centers with equal states, and that
    /// no request waits.
    pub fn check_end(mut self) -> Result<String, String> {
        let alive: Vec<u8> = (0..DCS).filter(|dc| Some(*dc) != self.lost).collect();
        for dc in &alive {
            for partition in 0..self.partitions {
                let replica = self.world.replica(*dc, partition);
                let left = (replica.prepared_count(), replica.waiting_count());
                if left != (0, 0) {
                    return Err(format!("d{dc} p{partition}: prepared and waiting: {left:?}"));
                }
            }
        }
        let keys: Vec<Key> = self.logs.iter().chain(&self.others).cloned().collect();
        let names: Vec<&Key> = keys.iter().collect();
        let mut first: Option<Vec<String>> = None;
        for dc in &alive {
            let client = 1_000 + u64::from(*dc);
            self.world.open(client, *dc);
            // There are two reads, so that the second uses the newest snapshot.
            self.world.read(client, &names[..1]).map_err(|refusal| refusal.to_string())?;
            self.world.call(client, |session, _, _| session.rollback());
            let states = self.world.read(client, &names).map_err(|refusal| refusal.to_string())?;
            let shows: Vec<String> = states.iter().map(|state| shown(state)).collect();
            self.check_nothing_lost(*dc, &keys, &states)?;
            let expected = first.get_or_insert_with(|| shows.clone());
            for ((key, one), other) in keys.iter().zip(expected).zip(&shows) {
                if one != other {
                    return Err(format!("{key:?} differs, d{}: {one}, d{dc}: {other}", alive[0]));
                }
            }
        }
        let committed = self.history.transactions.values().filter(|known| known.is_committed);
        let (committed, sent) = (committed.count(), self.history.transactions.len());
        if committed * 2 < sent || committed < 20 {
            return Err(format!("only {committed} of {sent} transactions committed"));
        }
        let count = |is: fn(&Alarm) -> bool| {
            self.world.alarms.iter().filter(|(_, alarm)| is(alarm)).count()
        };
        let malformed = count(|alarm| matches!(alarm, Alarm::Malformed(_)));
        if malformed > 0 {
            return Err(format!("malformed messages: {:?}", self.world.alarms));
        }
        let transfers = count(|alarm| matches!(alarm, Alarm::Transfer { is_complete: true, .. }));
        let operations: usize = self.world.nodes.values().map(operation_count).sum();
        // Unfinished transactions of a lost data center may never become visible.
        if operations > 0 && self.lost.is_none() {
            return Err(format!("{operations} operations are not folded, at rest"));
        }
        let (aborted, at_us) = (self.history.aborted_count(), self.world.now_us);
        Ok(format!(
            "{committed} of {sent} committed, {aborted} aborted, {transfers} transfers, \
             at {at_us} us"
        ))
    }

    fn check_nothing_lost(
        &self,
        dc: u8,
        keys: &[Key],
        states: &[std::sync::Arc<mingle_geo::State>],
    ) -> Result<(), String> {
        let reads = keys.iter().zip(states).filter(|(key, _)| key.kind == Kind::Log);
        let reads: BTreeMap<Key, Vec<Number>> =
            reads.map(|(key, state)| (key.clone(), numbers(state))).collect();
        self.history.check_reads(&reads, &mut BTreeSet::new())?;
        for (number, known) in &self.history.transactions {
            let must_be_there = known.is_uniform || known.is_committed && self.lost.is_none();
            for key in &known.keys {
                if must_be_there && !reads[key].contains(number) {
                    let how = if known.is_uniform { "uniform" } else { "committed" };
                    return Err(format!("d{dc} lacks {number} in {key:?}, which was {how}"));
                }
            }
        }
        Ok(())
    }
}

fn operation_count(node: &Node) -> usize {
    node.replica.as_ref().map_or(0, |replica| replica.log_size().0)
}
