//! Causal transactions that touch only one partition: one message, one write, no prepare.

use std::sync::Arc;

use mingle_model::TransactionId;

use super::Replica;
use super::fold::are_known;
use crate::error::{Counted, Refusal};
use crate::flaw::Flaw;
use crate::floors::Raised;
use crate::limits::UPDATES_MAX;
use crate::message::{
    Address, CommitOne, FloorRaised, Message, OutcomeQuery, OutcomeReply, RaiseFloor, Snapshot,
};
use crate::record::{Decided, Record};
use crate::timestamp::{DcId, Now};
use crate::tx::{Outcome, Transaction};
use crate::types::item::ItemOp;
use crate::types::{Mark, Op, OpId, Update};
use crate::vector::Vector;

impl Replica {
    pub(super) fn on_commit_one(&mut self, now: Now, from: Address, mut commit: CommitOne) {
        self.refresh(now);
        let (id, begun_us) = (commit.id, commit.begun_us);
        if let Some(outcome) = self.outcomes.get(&id)
            && !self.makes(Flaw::CommitRepeated)
        {
            self.counters.repeats += 1;
            return self.reply_outcome(from, id, Ok(Some(outcome)));
        }
        if self.prepared_causal.contains_key(&id) {
            return self.reply_outcome(from, id, Ok(None));
        }
        if let Err(refusal) = self.check_age(now, &id, begun_us) {
            return self.reply_outcome(from, id, Err(refusal));
        }
        let snap_vec = self.choose_snapshot(commit.snapshot);
        self.note_answered(id, commit.answered, begun_us);
        if let Err(refusal) = self.check_writes(now, &snap_vec, &commit.updates) {
            return self.refuse_commit_one(from, id, begun_us, refusal);
        }
        if self.must_wait(now, &snap_vec, &commit.updates) {
            commit.snapshot = Snapshot::At(snap_vec);
            if let Err(refusal) = self.wait(now, from, snap_vec, Message::CommitOne(commit)) {
                self.refuse_commit_one(from, id, begun_us, refusal);
            }
            return;
        }
        let updates = match self.measure(&snap_vec, commit.updates) {
            Ok(updates) => updates,
            Err(refusal) => return self.refuse_commit_one(from, id, begun_us, refusal),
        };
        let own = self.config.dc;
        let timestamp = self.next_timestamp(now, &snap_vec);
        let transaction = Arc::new(Transaction {
            id,
            begun_us,
            origin: own,
            commit_vec: snap_vec.with(own, timestamp),
            snapshot_own: snap_vec[own],
            updates,
        });
        self.disk.commits.push_back((self.next_index(), timestamp));
        self.write(Record::Commit(transaction.clone()));
        self.apply(&transaction);
        self.reply_outcome(from, id, Ok(Some(Outcome::Committed(transaction.commit_vec))));
    }

    /// Adds a committed transaction to the logs (1:46-48, 2:12-14) and remembers its outcome.
    pub(super) fn apply(&mut self, transaction: &Arc<Transaction>) {
        self.op_log.append(transaction);
        if let Some(committed) = self.committed_causal.get_mut(usize::from(transaction.origin.0)) {
            committed.keep(transaction);
        }
        let (id, begun_us) = (transaction.id, transaction.begun_us);
        let (outcome, own) = (Outcome::Committed(transaction.commit_vec), self.config.dc);
        if self.is_own(transaction.origin) {
            self.outcomes.insert(id, begun_us, outcome);
        } else {
            self.outcomes.insert_remote(id, begun_us, outcome, own, self.stable_vec[own]);
        }
        let folded = self.pins.folded();
        let (floors, dcs, everywhere) =
            (&self.op_floors, self.accepting(&folded), self.known_everywhere());
        let is_past = |id: &OpId, runs: &[Mark]| {
            floors.is_settled(dcs.clone(), &folded, id) && are_known(&everywhere, runs)
        };
        for update in &transaction.updates {
            self.op_log.fold_if_long(&update.key, &folded, is_past);
        }
    }

    /// Refuses a transaction for good: a repeated message is refused too.
    pub(super) fn refuse_commit_one(
        &mut self,
        from: Address,
        id: TransactionId,
        begun_us: u64,
        refusal: Refusal,
    ) {
        self.record_refusal(id, begun_us);
        self.reply_outcome(from, id, Err(refusal));
    }

    pub(super) fn record_refusal(&mut self, id: TransactionId, begun_us: u64) {
        let outcome = Outcome::Aborted;
        self.outcomes.insert(id, begun_us, outcome);
        self.write(Record::Decide(Decided { id, begun_us, outcome }));
    }

    fn reply_outcome(
        &mut self,
        to: Address,
        id: TransactionId,
        result: Result<Option<Outcome>, Refusal>,
    ) {
        let reply = OutcomeReply { id, result, handout: self.handout() };
        self.acknowledge(to, Message::OutcomeReply(reply));
    }

    pub(super) fn on_outcome_query(&mut self, from: Address, query: &OutcomeQuery) {
        let outcome = self.outcomes.get(&query.id);
        // For a fenced incarnation, all remaining transactions may be here already.
        let outcome = outcome.or_else(|| self.is_gone(query).then_some(Outcome::Aborted));
        self.reply_outcome(from, query.id, Ok(outcome));
    }

    /// Checks that a transaction began after the floor and not in the future.
    pub(super) fn check_age(
        &self,
        now: Now,
        id: &TransactionId,
        begun_us: u64,
    ) -> Result<(), Refusal> {
        if self.outcomes.is_past(id, begun_us) {
            return Err(Refusal::TransactionTooOld { floor_us: self.outcomes.floor_us() });
        }
        let most = self.highest_accepted(now);
        if begun_us > most.micros() {
            let timestamp = crate::timestamp::Timestamp::new(begun_us, self.config.partition);
            return Err(Refusal::ClockAhead { timestamp, most });
        }
        Ok(())
    }

    pub(super) fn note_answered(&mut self, id: TransactionId, answered: u64, begun_us: u64) {
        let own = self.config.dc;
        // A transaction cannot report its own answer as received.
        let answered = answered.min(id.sequence);
        self.outcomes.answered(id.origin, answered, begun_us, own, self.stable_vec[own]);
    }

    pub(super) fn check_writes(
        &mut self,
        now: Now,
        snap_vec: &Vector,
        updates: &[Update],
    ) -> Result<(), Refusal> {
        if updates.is_empty() || updates.len() > UPDATES_MAX {
            let (found, most) = (updates.len() as u64, UPDATES_MAX as u64);
            return Err(Refusal::TooMany { what: Counted::Updates, found, most });
        }
        for update in updates {
            self.check_partition(&update.key)?;
            if !update.is_sound() {
                return Err(Refusal::WrongKind { key: update.key.clone() });
            }
            if self.config.is_strong_only(&update.key) && !self.makes(Flaw::StrongOnlyIgnored) {
                return Err(Refusal::StrongOnly { key: update.key.clone() });
            }
            if let Some(id) = update.id
                && self.op_floors.refuses(self.config.dc, &id)
            {
                return Err(Refusal::BelowFloor { id });
            }
        }
        let own = &self.committed_causal[usize::from(self.config.dc.0)];
        let bytes = self.op_log.bytes().max(own.bytes()) as u64;
        let most = self.config.log_bytes_max as u64;
        if bytes > most {
            self.counters.full += 1;
            return Err(Refusal::Full { bytes, most });
        }
        self.check_snapshot(now, snap_vec)?;
        let (timestamp, most) = (snap_vec.highest(), self.highest_accepted(now));
        if timestamp > most {
            return Err(Refusal::ClockAhead { timestamp, most });
        }
        Ok(())
    }

    /// True if the parts that `updates` take away can be measured only later.
    pub(super) fn must_wait(&mut self, now: Now, snap_vec: &Vector, updates: &[Update]) -> bool {
        updates.iter().any(|update| update.op.measures()) && !self.has_reached(now, snap_vec)
    }

    /// Returns the operations as they are replicated: an operation that takes away part of a sum
    /// names the amount.
    pub(super) fn measure(
        &mut self,
        snap_vec: &Vector,
        mut updates: Vec<Update>,
    ) -> Result<Vec<Update>, Refusal> {
        if self.makes(Flaw::OperationIdsIgnored) {
            for update in &mut updates {
                update.id = None;
            }
        }
        for index in 0..updates.len() {
            let (earlier, rest) = updates.split_at_mut(index);
            let update = &mut rest[0];
            if self.makes(Flaw::PulledByValue)
                && let Op::Item(ItemOp::Pull(elements)) = &mut update.op
                && let Ok(state) = self.op_log.read(&update.key, snap_vec)
                && let Some(item) = state.as_item()
            {
                *elements = item.alike(elements);
            }
            if !update.op.measures() {
                continue;
            }
            let state = self.op_log.read(&update.key, snap_vec);
            let state = state.map_err(|oldest| self.too_old(oldest))?;
            for earlier in earlier.iter_mut().filter(|earlier| earlier.key == update.key) {
                if update.op.takes_back(&earlier.op) {
                    // It does not count as a run of its operation either: another run stands by
                    // itself.
                    (earlier.op, earlier.id) = (Op::Nothing, None);
                }
            }
            if matches!(update.op, Op::Item(_)) && self.makes(Flaw::RemovalUnmeasured) {
                continue;
            }
            let recent = self.op_log.recent(&update.key, snap_vec);
            update.op = state.measured(&update.op, snap_vec, &recent);
        }
        Ok(updates)
    }

    pub(super) fn on_raise_floor(&mut self, now: Now, from: Address, raise: RaiseFloor) {
        let (own, RaiseFloor { origin, sequence }) = (self.config.dc, raise);
        // A prepared transaction may commit at a timestamp above any that is given now, so it must
        // finish first. The origin repeats its request.
        let comes_first =
            |id: &OpId| id.transaction.origin == origin && id.transaction.sequence <= sequence;
        let mut prepared = self.prepared_causal.values().flat_map(|prepared| &prepared.updates);
        let must_wait = prepared.any(|update| update.id.as_ref().is_some_and(comes_first));
        if sequence > self.op_floors.of(own, origin) && !must_wait {
            let at = self.clock.next(now.wall_us, self.known_vec[own]);
            let raised = Raised { origin, sequence, at };
            self.note_floor(own, raised);
            self.write(Record::OpFloors(vec![(own, raised)]));
        }
        let sequence = self.op_floors.of(own, origin);
        self.send(from, Message::FloorRaised(FloorRaised { origin, sequence }));
    }

    /// Records that a data center raised a floor.
    pub(super) fn note_floor(&mut self, dc: DcId, raised: Raised) {
        let folded = self.pins.folded();
        self.op_floors.raise(dc, raised, &folded);
        if let Some(committed) = self.committed_causal.get_mut(usize::from(dc.0)) {
            committed.keep_floor(raised);
        }
    }

    /// True if this data center is the transaction's origin.
    pub(super) fn is_own(&self, origin: DcId) -> bool {
        origin == self.config.dc
    }
}
