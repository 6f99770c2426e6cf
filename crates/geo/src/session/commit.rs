//! The coordinator's part of commits (1:26-35).

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::TransactionId;

use super::{Call, CallError, Event, Fresh, Session, SessionConfig, SessionOutput, Timer};
use crate::error::Refusal;
use crate::flaw::Flaw;
use crate::limits::FRESH_COMMITS_MAX;
use crate::message::{
    Abort, Commit, CommitOne, Envelope, Message, OutcomeQuery, OutcomeReply, Prepare, PrepareAck,
    Snapshot, Vote,
};
use crate::timestamp::{DcId, Now, PartitionId, Timestamp};
use crate::tx::Outcome;
use crate::types::{Op, Update};
use crate::vector::Vector;

/// A commit under way.
#[derive(Clone, Debug)]
pub struct Committing {
    id: TransactionId,
    begun_us: u64,
    /// The data center that commits it; other data centers can only be asked for the outcome.
    dc: DcId,
    incarnation: u32,
    snap_vec: Vector,
    /// True if the transaction read that snapshot.
    is_bound: bool,
    updates: BTreeMap<PartitionId, Vec<Update>>,
    proposals: BTreeMap<PartitionId, Timestamp>,
    /// Partitions that were asked for the outcome and do not know it.
    ignorant: BTreeSet<PartitionId>,
    pub(super) timer: Timer,
}

impl Committing {
    pub fn id(&self) -> TransactionId {
        self.id
    }
}

impl Session {
    /// Discards the running transaction's writes; its snapshot stays.
    pub fn take_back(&mut self) {
        if let Some(running) = &mut self.running {
            running.updates.clear();
        }
    }

    /// Returns the snapshot of the running transaction; `None` if it has not read.
    pub fn snapshot(&self) -> Option<Vector> {
        self.running.as_ref().and_then(|running| running.snapshot)
    }

    /// Commits the running transaction. The result is [`Event::Committed`], [`Event::Aborted`] or
    /// [`Event::Unknown`].
    ///
    /// # Errors
    ///
    /// The reason why the call cannot begin.
    pub fn commit(&mut self, now: Now, out: &mut Vec<SessionOutput>) -> Result<(), CallError> {
        self.check_idle()?;
        let mut running = self.running.take().ok_or(CallError::Nothing)?;
        // Elements of lists that the transaction removed again.
        running.updates.retain(|update| update.op != Op::Nothing);
        if running.strong.is_some() {
            self.commit_strong(now, running, out);
            return Ok(());
        }
        // A transaction that read nothing gets the last handed-out snapshot, even an old one. At a
        // single partition it sees the state there at its commit.
        let is_bound = running.snapshot.is_some();
        let snap_vec = running.snapshot.unwrap_or_else(|| {
            let mut snapshot = self.handout.causal_snapshot(self.config.dc);
            snapshot.join(&self.past_vec);
            snapshot
        });
        if running.updates.is_empty() {
            // It only read a snapshot (1:28).
            let event =
                Event::Committed { id: running.id, commit_vec: snap_vec, is_uniform: false };
            out.push(SessionOutput::Event(event));
            return Ok(());
        }
        let mut updates: BTreeMap<PartitionId, Vec<Update>> = BTreeMap::new();
        for update in running.updates {
            let partition = update.key.partition(self.config.partition_count);
            updates.entry(partition).or_default().push(update);
        }
        let timer = self.timer(now);
        self.call = Call::Committing(Committing {
            id: running.id,
            begun_us: running.begun_us,
            dc: self.config.dc,
            incarnation: self.config.incarnation,
            snap_vec,
            is_bound,
            updates,
            proposals: BTreeMap::new(),
            ignorant: BTreeSet::new(),
            timer,
        });
        self.send_commit(out);
        Ok(())
    }

    /// Asks again for the outcome of the unanswered commit. At the commit's own data center the
    /// commit is sent again; at another one the session asks for its outcome. The events are those
    /// of a commit. If the outcome is found at another data center the session must attach, since
    /// perhaps not all of the transaction has arrived.
    ///
    /// # Errors
    ///
    /// The reason why the call cannot begin.
    pub fn ask(&mut self, now: Now, out: &mut Vec<SessionOutput>) -> Result<(), CallError> {
        if !self.is_idle() {
            return Err(CallError::Busy);
        }
        if !self.is_attached {
            return Err(CallError::Detached);
        }
        if let Some(certifying) = self.uncertain.take() {
            self.ask_certified(now, certifying, out);
            return Ok(());
        }
        let mut committing = self.unanswered.take().ok_or(CallError::Nothing)?;
        committing.timer = self.timer(now);
        committing.ignorant.clear();
        self.call = Call::Committing(committing);
        self.send_commit(out);
        Ok(())
    }

    /// Stops asking: the session continues without the outcome of the commit.
    pub fn leave_unanswered(&mut self) -> Option<TransactionId> {
        let uncertain = self.uncertain.take().map(|certifying| certifying.id());
        self.unanswered.take().map(|committing| committing.id).or(uncertain)
    }

    /// True if the session uses this incarnation of a data center.
    fn is_at(&self, dc: DcId, incarnation: u32) -> bool {
        (self.config.dc, self.config.incarnation) == (dc, incarnation)
    }

    pub(super) fn send_commit(&self, out: &mut Vec<SessionOutput>) {
        let Call::Committing(committing) = &self.call else { return };
        let Committing { id, begun_us, snap_vec, updates, .. } = committing;
        let (id, begun_us, snap_vec, answered) = (*id, *begun_us, *snap_vec, id.sequence);
        let (dc, incarnation) = (committing.dc, committing.incarnation);
        let participants: Vec<PartitionId> = updates.keys().copied().collect();
        for (partition, updates) in updates {
            // Prepared participants get it too: they may have learned the outcome meanwhile.
            let message = if !self.is_at(dc, incarnation) {
                Message::OutcomeQuery(OutcomeQuery { id, begun_us, dc, incarnation })
            } else if participants.len() == 1 {
                let updates = updates.clone();
                let snapshot = if committing.is_bound {
                    Snapshot::At(snap_vec)
                } else {
                    Snapshot::AtLeast(snap_vec)
                };
                Message::CommitOne(CommitOne {
                    incarnation,
                    id,
                    begun_us,
                    answered,
                    snapshot,
                    updates,
                })
            } else {
                let (participants, updates) = (participants.clone(), updates.clone());
                let prepare = Prepare {
                    incarnation,
                    id,
                    begun_us,
                    answered,
                    participants,
                    snap_vec,
                    updates,
                };
                Message::Prepare(prepare)
            };
            let to = self.replica(*partition);
            out.push(SessionOutput::Send(Envelope { to, message }));
        }
    }

    pub(super) fn on_prepare_ack(
        &mut self,
        now: Now,
        ack: PrepareAck,
        out: &mut Vec<SessionOutput>,
    ) {
        let Call::Committing(committing) = &mut self.call else { return };
        if committing.id != ack.id || !committing.updates.contains_key(&ack.partition) {
            return;
        }
        match ack.vote {
            Vote::Prepared(timestamp) => {
                committing.proposals.insert(ack.partition, timestamp);
                let is_hasty = self.config.planted.is(Flaw::CommitAtFirstAck);
                if committing.proposals.len() < committing.updates.len() && !is_hasty {
                    return;
                }
                // All participants are prepared on disk, so it is committed (1:31-35).
                let highest = committing.proposals.values().copied().max().unwrap_or_default();
                let commit_vec = committing.snap_vec.with(committing.dc, highest);
                self.finish_commit(now, commit_vec, out);
            }
            Vote::Decided(Outcome::Committed(commit_vec)) => {
                self.finish_commit(now, commit_vec, out);
            }
            Vote::Decided(Outcome::Aborted) => self.finish_abort(Refusal::Aborted, out),
            Vote::Refused(refusal) => self.finish_abort(refusal, out),
            Vote::Unknown(refusal) if refusal.is_retryable() => committing.timer.refusal = refusal,
            Vote::Unknown(refusal) => self.give_up(refusal, out),
        }
    }

    pub(super) fn on_outcome_reply(
        &mut self,
        now: Now,
        partition: PartitionId,
        reply: OutcomeReply,
        out: &mut Vec<SessionOutput>,
    ) {
        let Call::Committing(committing) = &mut self.call else { return };
        if committing.id != reply.id {
            return;
        }
        let SessionConfig { dc, incarnation, .. } = self.config;
        let is_elsewhere = (committing.dc, committing.incarnation) != (dc, incarnation);
        match reply.result {
            Ok(Some(Outcome::Committed(commit_vec))) => self.finish_commit(now, commit_vec, out),
            Ok(Some(Outcome::Aborted)) => self.finish_abort(Refusal::Aborted, out),
            Ok(None) if is_elsewhere => {
                committing.ignorant.insert(partition);
                if committing.ignorant.len() == committing.updates.len() {
                    // It may still be on its way from a data center that is cut off.
                    self.give_up(Refusal::TimedOut { on: None }, out);
                }
            }
            Ok(None) => {}
            Err(refusal @ Refusal::TransactionTooOld { .. }) => self.give_up(refusal, out),
            // This copy of the request is not on disk, but an earlier copy may still be executed.
            Err(refusal @ (Refusal::ClockAhead { .. } | Refusal::ComingUp { .. })) => {
                committing.timer.refusal = refusal;
            }
            Err(refusal) => self.finish_abort(refusal, out),
        }
    }

    fn finish_commit(&mut self, now: Now, commit_vec: Vector, out: &mut Vec<SessionOutput>) {
        let Call::Committing(committing) = std::mem::replace(&mut self.call, Call::Idle) else {
            return;
        };
        let id = committing.id;
        let is_here = self.is_at(committing.dc, committing.incarnation);
        if committing.updates.len() > 1 && is_here {
            for partition in committing.updates.keys() {
                let message = Message::Commit(Commit { id, commit_vec });
                let to = self.replica(*partition);
                out.push(SessionOutput::Send(Envelope { to, message }));
            }
        }
        self.past_vec.join(&commit_vec);
        // Part of the transaction is at this data center; the rest may not be.
        self.is_attached &= is_here;
        self.remember(Fresh { id, dc: committing.dc, commit_vec });
        if self.config.is_durable && self.is_attached {
            let (request, timer) = (self.next_request(), self.timer(now));
            self.call = Call::Settling { id, commit_vec, request, timer };
            return self.send_barrier(request, out);
        }
        let event = Event::Committed { id, commit_vec, is_uniform: false };
        out.push(SessionOutput::Event(event));
    }

    /// Remembers an own commit by id until it is uniform.
    pub(super) fn remember(&mut self, fresh: Fresh) {
        self.fresh.push_back(fresh);
        self.forget_fresh(self.handout.uniform_vec);
        if self.fresh.len() > FRESH_COMMITS_MAX
            && let Some(first) = self.fresh.pop_front()
        {
            self.unnamed.join(&first.commit_vec);
        }
    }

    fn finish_abort(&mut self, refusal: Refusal, out: &mut Vec<SessionOutput>) {
        let Call::Committing(committing) = std::mem::replace(&mut self.call, Call::Idle) else {
            return;
        };
        let id = committing.id;
        // A refusal is on some participant's disk, so the others need not ask.
        if committing.updates.len() > 1 && self.is_at(committing.dc, committing.incarnation) {
            for partition in committing.updates.keys() {
                let to = self.replica(*partition);
                let message = Message::Abort(Abort { id });
                out.push(SessionOutput::Send(Envelope { to, message }));
            }
        }
        out.push(SessionOutput::Event(Event::Aborted { id, refusal }));
    }
}
