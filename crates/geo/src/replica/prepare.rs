//! The participants' side of causal two-phase commit (1:36-48).
//!
//! A transaction is committed once all participants are prepared on disk. Its timestamp is the
//! highest that they proposed. So any participant that knows all proposals can finish it
//! ([`super::resolve`]), and the outcome does not depend on the coordinator. A participant that
//! refuses first writes the refusal to disk, and it is final.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_model::TransactionId;

use super::Replica;
use crate::error::{Counted, Refusal};
use crate::message::{Abort, Address, Commit, Message, Prepare, PrepareAck, Vote};
use crate::record::{Alarm, Decided, PreparedRecord, Record};
use crate::timestamp::{Now, PartitionId, Timestamp};
use crate::tx::{Outcome, Transaction};
use crate::types::Update;
use crate::vector::Vector;

/// A prepared transaction. It commits or aborts depending on all participants' answers.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub begun_us: u64,
    pub participants: Vec<PartitionId>,
    pub snap_vec: Vector,
    pub updates: Vec<Update>,
    /// The timestamp proposed by this partition.
    pub timestamp: Timestamp,
    /// The index of the write that contains the prepare record.
    pub index: u64,
    /// The time at which the participants are asked, or asked again.
    pub resolve_at_us: u64,
    /// The other participants' proposals, as far as they have answered.
    pub proposals: BTreeMap<PartitionId, Timestamp>,
}

impl Replica {
    pub(super) fn on_prepare(&mut self, now: Now, from: Address, prepare: Prepare) {
        self.refresh(now);
        let (id, begun_us) = (prepare.id, prepare.begun_us);
        if let Some(outcome) = self.outcomes.get(&id) {
            let is_late = outcome == Outcome::Aborted;
            self.counters.late_prepares += u64::from(is_late);
            self.counters.repeats += u64::from(!is_late);
            return self.reply_vote(from, id, Vote::Decided(outcome));
        }
        if let Some(prepared) = self.prepared_causal.get(&id) {
            let timestamp = prepared.timestamp;
            self.counters.repeats += 1;
            return self.reply_vote(from, id, Vote::Prepared(timestamp));
        }
        if let Err(refusal) = self.check_age(now, &id, begun_us) {
            return self.reply_vote(from, id, Vote::Unknown(refusal));
        }
        self.note_answered(id, prepare.answered, begun_us);
        let checked = self
            .check_participants(&prepare.participants)
            .and_then(|()| self.check_writes(now, &prepare.snap_vec, &prepare.updates));
        if let Err(refusal) = checked {
            return self.refuse_prepare(from, id, begun_us, refusal);
        }
        if self.must_wait(now, &prepare.snap_vec, &prepare.updates) {
            let snapshot = prepare.snap_vec;
            if let Err(refusal) = self.wait(now, from, snapshot, Message::Prepare(prepare)) {
                self.refuse_prepare(from, id, begun_us, refusal);
            }
            return;
        }
        match self.measure(&prepare.snap_vec, prepare.updates) {
            Ok(updates) => {
                // The timestamp is above all that was announced, so that `known_vec[d]` need not
                // stay below it.
                let timestamp = self.next_timestamp(now, &prepare.snap_vec);
                let record = PreparedRecord {
                    id,
                    begun_us,
                    participants: prepare.participants,
                    snap_vec: prepare.snap_vec,
                    updates,
                    timestamp,
                };
                self.insert_prepared(now.mono_us, self.next_index(), record.clone());
                self.write(Record::Prepare(record));
                self.reply_vote(from, id, Vote::Prepared(timestamp));
            }
            Err(refusal) => self.refuse_prepare(from, id, begun_us, refusal),
        }
    }

    fn check_participants(&self, participants: &[PartitionId]) -> Result<(), Refusal> {
        let count = self.config.partition_count;
        let is_sound = participants.contains(&self.config.partition)
            && participants.windows(2).all(|pair| pair[0] < pair[1])
            && participants.iter().all(|partition| partition.0 < count);
        if is_sound {
            return Ok(());
        }
        let (found, most) = (participants.len() as u64, count.into());
        Err(Refusal::TooMany { what: Counted::Participants, found, most })
    }

    pub(super) fn insert_prepared(&mut self, mono_us: u64, index: u64, record: PreparedRecord) {
        self.prepared_at.insert(record.timestamp);
        let resolve_at_us = mono_us.saturating_add(self.config.resolve_after_ms * 1_000);
        let prepared = Prepared {
            begun_us: record.begun_us,
            participants: record.participants,
            snap_vec: record.snap_vec,
            updates: record.updates,
            timestamp: record.timestamp,
            index,
            resolve_at_us,
            proposals: BTreeMap::new(),
        };
        self.prepared_causal.insert(record.id, prepared);
    }

    pub(super) fn refuse_prepare(
        &mut self,
        from: Address,
        id: TransactionId,
        begun_us: u64,
        refusal: Refusal,
    ) {
        self.record_refusal(id, begun_us);
        self.reply_vote(from, id, Vote::Refused(refusal));
    }

    fn reply_vote(&mut self, to: Address, id: TransactionId, vote: Vote) {
        let (partition, handout) = (self.config.partition, self.handout());
        let ack = PrepareAck { id, partition, vote, handout };
        self.acknowledge(to, Message::PrepareAck(ack));
    }

    pub(super) fn on_commit(&mut self, now: Now, commit: Commit) {
        let Some(prepared) = self.prepared_causal.get(&commit.id) else { return };
        let (own, timestamp) = (self.config.dc, commit.commit_vec[self.config.dc]);
        let is_sound = commit.commit_vec == prepared.snap_vec.with(own, timestamp)
            && timestamp >= prepared.timestamp;
        if !is_sound {
            return self.alarm(Alarm::Malformed("a commit vector that nobody proposed"));
        }
        if timestamp > self.highest_accepted(now) {
            // If this is the timestamp that the participants proposed, they will say so themselves.
            return self.alarm(Alarm::ClockAhead { dc: own, timestamp });
        }
        self.decide(now, commit.id, Outcome::Committed(commit.commit_vec));
    }

    pub(super) fn on_abort(&mut self, now: Now, abort: Abort) {
        if self.prepared_causal.contains_key(&abort.id) {
            self.decide(now, abort.id, Outcome::Aborted);
        }
    }

    /// Ends a prepared transaction with an outcome.
    pub(super) fn decide(&mut self, now: Now, id: TransactionId, outcome: Outcome) {
        let Some(prepared) = self.prepared_causal.get(&id) else { return };
        let (begun_us, index) = (prepared.begun_us, prepared.index);
        if let Outcome::Committed(commit_vec) = &outcome
            && index > self.disk.durable
        {
            // The other participants have reported that they are prepared, but this prepare is not
            // yet on disk: a crash would still abort the transaction.
            self.disk.commits.push_back((index, commit_vec[self.config.dc]));
        }
        self.write(Record::Decide(Decided { id, begun_us, outcome }));
        self.end_prepared(id, outcome);
        self.wake(now);
    }

    /// Does the work of [`decide`](Self::decide) without writing a record; restarts use it too.
    pub(super) fn end_prepared(&mut self, id: TransactionId, outcome: Outcome) {
        let Some(prepared) = self.prepared_causal.remove(&id) else { return };
        self.prepared_at.remove(&prepared.timestamp);
        let Outcome::Committed(commit_vec) = outcome else {
            return self.outcomes.insert(id, prepared.begun_us, outcome);
        };
        let own = self.config.dc;
        // The clock moves instead of the wait of 1:43.
        self.clock.observe(commit_vec[own]);
        self.apply(&Arc::new(Transaction {
            id,
            begun_us: prepared.begun_us,
            origin: own,
            commit_vec,
            snapshot_own: prepared.snap_vec[own],
            updates: prepared.updates,
        }));
    }
}
