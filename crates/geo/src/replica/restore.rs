//! Restarts: restoring a replica from its records on disk.

use super::fold::Pins;
use super::{LocalRow, Replica};
use crate::clock::Clock;
use crate::config::Config;
use crate::error::ConfigError;
use crate::flaw::Flaw;
use crate::record::{Install, PreparedRecord, Record, Vectors};
use crate::timestamp::{DcId, Now, Timestamp};
use crate::tx::Outcome;
use crate::vector::Vector;

impl Replica {
    /// Restores the replica that wrote these records, in this order. Its clock continues above the
    /// ceiling on disk, so it never reuses a timestamp. Its prepared transactions are still
    /// prepared.
    ///
    /// # Errors
    ///
    /// The setting that is out of bounds.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_geo::{Config, DcId, Input, Now, Output, PartitionId, Replica};
    ///
    /// let config = Config::new(DcId(0), 3, PartitionId(0), 1);
    /// let mut replica = Replica::new(config.clone()).expect("settings");
    /// let (mut log, mut out) = (Vec::new(), Vec::new());
    /// replica.handle(Now { wall_us: 9_000_000, mono_us: 0 }, Input::Tick, &mut out);
    /// for output in out {
    ///     if let Output::Persist(persist) = output {
    ///         log.extend(persist.records);
    ///     }
    /// }
    /// let restarted = Replica::restore(config, log).expect("settings");
    /// assert!(restarted.known_vec().covers(&replica.known_vec()));
    /// ```
    pub fn restore(
        config: Config,
        records: impl IntoIterator<Item = Record>,
    ) -> Result<Self, ConfigError> {
        let mut replica = Self::new(config)?;
        let mut ceiling = Timestamp::ZERO;
        for record in records {
            if let Record::ClockCeiling(to) = record {
                ceiling = ceiling.max(to);
            } else {
                replica.replay(record);
            }
        }
        let Config { dc, partition, .. } = replica.config;
        if !replica.makes(Flaw::ClockBack) {
            replica.clock = Clock::new(partition, ceiling);
        }
        replica.disk.ceiling = ceiling;
        replica.pins = {
            let mut pins = Pins::after_restart();
            pins.raise_folded(&replica.pins.folded());
            pins
        };
        // The transactions of other data centers that an own transaction had seen were uniform,
        // perhaps only after the vectors were last written. A transaction that begins here sees the
        // own transaction, so it must see them too.
        for transaction in replica.op_log.above(&replica.pins.folded()).values() {
            if transaction.origin == dc {
                let uniform = &mut replica.uniform_vec;
                let seen = transaction.commit_vec.with(dc, uniform[dc]);
                uniform.join(&seen.with(DcId::STRONG, uniform[DcId::STRONG]));
            }
        }
        replica.disk.vectors = Vectors {
            known_vec: replica.known_vec,
            stable_vec: replica.stable_vec,
            uniform_vec: replica.uniform_vec,
        };
        // A sibling that lacks earlier transactions asks for them. The first tick covers everything
        // above, up to the clock, so no sibling waits until the machine's clock has passed the
        // ceiling.
        replica.sent.fill(replica.known_vec[dc]);
        // Nothing below the clock can commit any more, except prepared transactions.
        replica.recompute_known(Now::default());
        let epoch = 0;
        let row = LocalRow { known_vec: replica.known_vec, snapshot_floor: Vector::ZERO, epoch };
        replica.local_matrix[usize::from(partition.0)] = row;
        replica.stable_matrix[usize::from(dc.0)] = replica.stable_vec;
        Ok(replica)
    }

    fn replay(&mut self, record: Record) {
        match record {
            Record::ClockCeiling(_) => {}
            Record::AgeFloor(floor_us) => {
                let own = self.config.dc;
                self.outcomes.raise_floor(floor_us, own, self.stable_vec[own]);
            }
            Record::Vectors(vectors) => {
                self.known_vec.join(&vectors.known_vec);
                self.stable_vec.join(&vectors.stable_vec);
                self.uniform_vec.join(&vectors.uniform_vec);
            }
            Record::Prepare(prepared) => self.insert_prepared(0, 0, prepared),
            Record::Decide(decided) => {
                if self.prepared_causal.contains_key(&decided.id) {
                    self.end_prepared(decided.id, decided.outcome);
                } else {
                    self.outcomes.insert(decided.id, decided.begun_us, decided.outcome);
                }
            }
            Record::Commit(transaction) => self.apply(&transaction),
            Record::Replicated(interval) | Record::Delivered(interval) => {
                for transaction in &interval.transactions {
                    self.apply(transaction);
                }
                for raised in interval.floors {
                    self.note_floor(interval.origin, raised);
                }
                let known = &mut self.known_vec[interval.origin];
                *known = (*known).max(interval.to);
            }
            Record::OpFloors(floors) => {
                for (dc, raised) in floors {
                    self.note_floor(dc, raised);
                }
            }
            Record::Install(install) => self.install(install),
            Record::Remembered(remembered) => {
                self.outcomes.restore(remembered);
                self.outcomes.set_blind(Vector::ZERO);
            }
            Record::Members(members) => self.adopt(members),
            Record::Blind(to) => self.outcomes.set_blind(to),
            // These belong to the group, which restores them itself.
            Record::Group(_) => {}
        }
    }

    /// Returns records that recreate this replica: a log that begins with them needs no earlier
    /// records.
    pub fn checkpoint(&self) -> Vec<Record> {
        let at = self.pins.folded();
        let states = self.op_log.keys(None).map(|key| {
            let state = self.op_log.peek(key, &at).expect("nothing is folded past the folded");
            (key.clone(), state)
        });
        let mut cut = Vector::ZERO;
        for origin in self.config.dcs() {
            cut[origin] = self.committed_causal[usize::from(origin.0)].cut();
        }
        let install = Install {
            at,
            states: states.collect(),
            suffix: self.op_log.above(&at).into_values().collect(),
            known_vec: self.known_vec,
            cut,
            forward: self.committed_causal.iter().flat_map(|kept| kept.iter().cloned()).collect(),
        };
        let mut records = vec![
            Record::ClockCeiling(self.clock.ceiling().max(self.clock.last())),
            Record::OpFloors(self.op_floors.iter().collect()),
            Record::Install(install),
            Record::Vectors(self.disk.vectors),
            Record::AgeFloor(self.outcomes.floor_us()),
            Record::Remembered(self.outcomes.remembered()),
        ];
        if self.members.epoch() > 0 {
            // The records after this one belong to its epoch.
            records.insert(1, Record::Members(self.members.clone()));
        }
        if self.outcomes.blind() != Vector::ZERO {
            records.push(Record::Blind(self.outcomes.blind()));
        }
        records.extend(self.prepared_causal.iter().map(|(id, prepared)| {
            Record::Prepare(PreparedRecord {
                id: *id,
                begun_us: prepared.begun_us,
                participants: prepared.participants.clone(),
                snap_vec: prepared.snap_vec,
                updates: prepared.updates.clone(),
                timestamp: prepared.timestamp,
            })
        }));
        records
    }

    /// Returns the outcome of a transaction, if this replica remembers it.
    pub fn outcome(&self, id: &mingle_model::TransactionId) -> Option<Outcome> {
        self.outcomes.get(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;
    use crate::record::Output;
    use crate::replica::Input;
    use crate::timestamp::PartitionId;

    #[test]
    fn the_first_tick_after_a_restart_tells_the_others() {
        let config = Config::new(DcId(0), 2, PartitionId(0), 1);
        let mut replica = Replica::new(config.clone()).expect("settings");
        let (mut log, mut out) = (Vec::new(), Vec::new());
        let now = Now { wall_us: 9_000_000, mono_us: 0 };
        replica.handle(now, Input::Tick, &mut out);
        for output in out.drain(..) {
            if let Output::Persist(persist) = output {
                log.extend(persist.records);
            }
        }
        let mut restarted = Replica::restore(config, log).expect("settings");
        // The machine's clock has not passed the ceiling yet.
        restarted.handle(Now { wall_us: 9_000_001, mono_us: 1 }, Input::Tick, &mut out);
        let sent = out.iter().flat_map(|output| match output {
            Output::Persist(persist) => &persist.then[..],
            Output::Send(envelope) => std::slice::from_ref(envelope),
            Output::Alarm(_) => &[],
        });
        let mut told = sent.filter_map(|envelope| match &envelope.message {
            Message::Replicate(replicate) => Some((replicate.from, replicate.to)),
            _ => None,
        });
        let (from, to) = told.next().expect("the other data center is told");
        assert!(from <= replica.known_vec()[DcId(0)] && to == restarted.known_vec()[DcId(0)]);
        assert!(from < to);
    }
}
