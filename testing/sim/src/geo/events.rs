//! The results of a client's calls.

use std::sync::Arc;

use mingle_checker::geo::{Action, Attached, Call, Outcome, What};
use mingle_geo::flaw::Flaw;
use mingle_geo::message::{Message, Missing, Vote};
use mingle_geo::{Event, Refusal, State};
use mingle_model::TransactionId;

use super::client::Stage;
use super::reach::{Reach, Seen};
use super::record::content;
use super::setup::within;
use super::world::World;

impl World<'_> {
    pub fn on_event(&mut self, slot: usize, event: Event) {
        let now_us = self.now_us;
        match event {
            Event::Read(states) => return self.on_read(slot, &states),
            Event::Committed { id, commit_vec, is_uniform } => {
                self.check_id(slot, id);
                let session = &self.clients[slot].session;
                let commit_vec = self.recorder.of_session(&commit_vec, session);
                self.on_ended(slot, Outcome::Committed { commit_vec, is_uniform });
            }
            Event::Aborted { id, refusal } => {
                self.check_id(slot, id);
                self.see_refusal(slot, &refusal);
                self.on_ended(slot, Outcome::Aborted);
                self.try_again(slot, &refusal);
            }
            Event::Unknown { id, refusal } => {
                self.check_id(slot, id);
                self.see_refusal(slot, &refusal);
                self.reach.saw(Seen::Unknown);
                if self.clients[slot].unanswered.is_none() {
                    let call = self.close_call(slot, Outcome::Unknown, None);
                    self.clients[slot].unanswered = Some(call);
                    self.clients[slot].is_past_loss = false;
                    self.clients[slot].asks = 0;
                }
            }
            Event::Failed(refusal) => return self.on_failed(slot, &refusal),
            Event::Uniform => {
                self.reach.saw(Seen::BarrierUniform);
                if self.lost != 0 {
                    self.reach.saw(Seen::BarrierAcrossLoss);
                }
                let dc = self.recorder.dc_of(&self.clients[slot].session);
                self.push_call(slot, Some(now_us), What::Barrier { dc, is_uniform: true });
            }
            Event::Waiting(missing) => return self.on_waiting(slot, &missing),
            Event::Resumed(_) => {
                self.reach.saw(Seen::Resumed);
                self.on_attached(slot, Attached::Resumed);
            }
            Event::ResumedWithLoss { lost, is_complete, is_certain, .. } => {
                self.on_loss(slot, lost, is_complete, is_certain);
            }
        }
        self.think(slot);
    }

    /// Handles a session that continues without some of its past.
    fn on_loss(
        &mut self,
        slot: usize,
        lost: Vec<TransactionId>,
        is_complete: bool,
        is_certain: bool,
    ) {
        if is_certain && !lost.is_empty() {
            self.reach.saw(Seen::LossCertain);
        }
        self.reach.saw(Seen::LossAccepted);
        if !lost.is_empty() {
            self.reach.saw(Seen::LossNamed);
        }
        let session = &self.clients[slot].session;
        let past_vec = self.recorder.of_session(&session.past_vec(), session);
        self.on_attached(slot, Attached::WithLoss { lost, is_complete, past_vec });
    }

    /// Checks that the session numbers transactions as this client does.
    fn check_id(&mut self, slot: usize, id: TransactionId) {
        let client = &self.clients[slot];
        let expected = (u128::from(client.id), client.sequence);
        if (id.origin.0, id.sequence) != expected {
            let how = format!("{id} was answered, expected number {}", client.sequence);
            self.breaks("answers are of the transaction that was asked for", how);
        }
    }

    fn on_read(&mut self, slot: usize, states: &[Arc<State>]) {
        let range = self.setup.pause_us;
        let pause_us = within(&mut self.random, range);
        let client = &mut self.clients[slot];
        let Stage::Reading(keys) = std::mem::replace(&mut client.stage, Stage::Thinking) else {
            return self.breaks("answers are to what was asked", "a read that nobody asked".into());
        };
        client.waits_since_us = None;
        client.failures = 0;
        client.due_us = self.now_us + pause_us;
        let now_us = match self.plan.flaw {
            Some(Flaw::LifeByClock) => client.clock.wall_us(self.now_us),
            _ => client.session.read_at_us().unwrap_or_default(),
        };
        let Some(open) = &mut client.open else { return };
        let own = open.transaction.id;
        for (key, state) in keys.iter().zip(states) {
            let (item, found) = (self.recorder.item(key), content(state, now_us, own));
            if matches!(&found, mingle_checker::geo::Content::Register(all) if all.len() > 1) {
                self.reach.saw(Seen::Siblings);
            }
            let is_own =
                |action: &Action| matches!(action, Action::Update { item: of, .. } if *of == item);
            if open.transaction.actions.iter().any(is_own) {
                self.reach.saw(Seen::ReadOwn);
            }
            open.transaction.actions.push(Action::Read { item, found });
        }
    }

    /// Handles the end of a transaction as reported by its session.
    fn on_ended(&mut self, slot: usize, outcome: Outcome) {
        let now_us = self.now_us;
        let client = &mut self.clients[slot];
        client.waits_since_us = None;
        client.failures = 0;
        let was_asked = client.unanswered.is_some();
        let is_apart = self.blame.has_others_apart(client.dc(), now_us);
        let call = match client.unanswered.take() {
            Some(call) => call,
            None => self.close_call(slot, Outcome::Unknown, Some(now_us)),
        };
        let client = &mut self.clients[slot];
        client.record.calls[call].end_us = Some(now_us);
        let What::Transaction(transaction) = &mut client.record.calls[call].what else { return };
        if was_asked && client.is_past_loss {
            if let Outcome::Committed { commit_vec, .. } = outcome {
                let what = What::Learned { id: transaction.id, commit_vec };
                client.record.calls.push(Call { begin_us: now_us, end_us: Some(now_us), what });
            }
            return;
        }
        transaction.outcome = match outcome {
            Outcome::Committed { .. }
                if transaction.updates().next().is_none() && transaction.strong.is_none() =>
            {
                Outcome::ReadOnly
            }
            outcome => outcome,
        };
        let is_elsewhere = transaction.dc != self.recorder.dc_of(&client.session);
        let is_strong = transaction.strong.is_some();
        match &transaction.outcome {
            Outcome::Aborted => self.reach.saw(Seen::Aborted),
            Outcome::Committed { is_uniform, .. } => {
                self.reach.saw(Seen::Committed);
                self.committed += 1;
                if client.session.token().incarnation > 0 {
                    self.reach.saw(rejoined(is_strong));
                }
                if is_strong {
                    if is_apart {
                        self.reach.saw(Seen::StrongApart);
                    }
                    let is_read_only = transaction.updates().next().is_none();
                    saw_strong(&mut self.reach, client.attempt > 0, is_read_only, was_asked);
                    client.give_up_strong();
                } else if *is_uniform {
                    self.reach.saw(Seen::DurableCommit);
                }
                if is_elsewhere && !is_strong {
                    self.reach.saw(Seen::CommitFoundElsewhere);
                    client.must_attach = true;
                }
            }
            Outcome::ReadOnly => self.read += 1,
            _ => {}
        }
    }

    fn on_failed(&mut self, slot: usize, refusal: &Refusal) {
        self.see_refusal(slot, refusal);
        let now_us = self.now_us;
        let client = &mut self.clients[slot];
        client.failures += 1;
        client.loses_patience_us = None;
        let dc = self.recorder.dc_of(&client.session);
        match client.stage {
            Stage::Reading(_) => {
                if !matches!(refusal, Refusal::TimedOut { .. }) {
                    client.waits_since_us = None;
                }
                self.reach.saw(Seen::ReadFailed);
                self.close_call(slot, Outcome::GivenUp, Some(now_us));
                self.try_again(slot, refusal);
            }
            Stage::Barrier => {
                self.reach.saw(Seen::BarrierFailed);
                self.push_call(slot, Some(now_us), What::Barrier { dc, is_uniform: false });
            }
            Stage::Attaching(to) => {
                self.reach.saw(Seen::AttachFailed);
                let dc = self.recorder.columns.of((to, self.rejoin.incarnations[usize::from(to)]));
                let what = What::Attach { dc, answer: Attached::Failed };
                self.push_call(slot, Some(now_us), what);
                self.clients[slot].failures = 3;
            }
            _ => {}
        }
        self.think(slot);
    }

    fn on_attached(&mut self, slot: usize, answer: Attached) {
        let now_us = self.now_us;
        let client = &mut self.clients[slot];
        client.must_attach = false;
        client.attached_us = now_us;
        let is_with_loss = matches!(answer, Attached::WithLoss { .. });
        client.is_past_loss |= is_with_loss;
        client.loses_patience_us = None;
        client.failures = 0;
        let dc = self.recorder.dc_of(&client.session);
        self.push_call(slot, Some(now_us), What::Attach { dc, answer });
        let client = &mut self.clients[slot];
        if (client.leaves_blamed || is_with_loss) && client.waits_since_us.is_some() {
            // Waiting at the previous data center, or for lost data, does not count as waiting at
            // this one.
            client.waits_since_us = Some(now_us);
        }
    }

    /// Handles an attach that has to wait. The client does not wait for ever for lost data.
    fn on_waiting(&mut self, slot: usize, missing: &[Missing]) {
        self.reach.saw(Seen::AttachWaited);
        let is_hopeless = missing.iter().any(|missing| {
            let dc = missing.dc.0;
            self.is_lost(dc) || missing.is_lost && self.incarnation_at(dc).1 > 0
        });
        if is_hopeless || !self.is_healed && self.random.one_in(6) {
            let patience_us = within(&mut self.random, (1_000, 900_000));
            self.clients[slot].loses_patience_us = Some(self.now_us + patience_us);
        }
    }

    /// Checks that every refusal has a reason that this client can cause.
    fn see_refusal(&mut self, slot: usize, refusal: &Refusal) {
        match refusal {
            Refusal::SnapshotTooOld { .. } => self.reach.saw(Seen::SnapshotTooOld),
            Refusal::TransactionTooOld { .. } => self.reach.saw(Seen::TransactionTooOld),
            Refusal::ClockAhead { .. } => self.reach.saw(Seen::ClockAhead),
            Refusal::StrongOnly { .. } => self.reach.saw(Seen::StrongOnlyRefused),
            Refusal::BelowFloor { .. } => self.reach.saw(Seen::IdRefused),
            Refusal::Full { .. } => self.reach.saw(Seen::LogFull),
            Refusal::Ahead { .. } => self.reach.saw(Seen::ImplicitAttach),
            Refusal::TimedOut { on: Some(_) } => self.reach.saw(Seen::WaitTimedOut),
            Refusal::Conflict { .. } => self.reach.saw(Seen::Conflict),
            Refusal::Fenced { .. } => self.reach.saw(Seen::FencedRefused),
            Refusal::TimedOut { on: None } | Refusal::Aborted => {}
            Refusal::ComingUp { .. } => self.reach.saw(Seen::RejoinedBusy),
            Refusal::WrongPartition { .. }
            | Refusal::WrongKind { .. }
            | Refusal::TooMany { .. }
            | Refusal::NotMember { .. }
            | Refusal::Busy => {
                let how = format!("session {}: {refusal}", self.clients[slot].id);
                self.breaks("nothing is refused without reason", how);
            }
        }
    }

    pub fn see_answer(&mut self, message: &Message) {
        match message {
            Message::PrepareAck(ack) => match &ack.vote {
                Vote::Refused(_) => self.reach.saw(Seen::Refused),
                Vote::Decided(mingle_geo::Outcome::Committed(_)) => {
                    self.reach.saw(Seen::ParticipantsDecided);
                }
                _ => {}
            },
            Message::ReadReply(reply) => match &reply.result {
                Err(Refusal::SnapshotTooOld { .. }) => self.reach.saw(Seen::SnapshotTooOld),
                Err(Refusal::Ahead { .. }) => self.reach.saw(Seen::ImplicitAttach),
                Err(Refusal::ClockAhead { .. }) => self.reach.saw(Seen::ClockAhead),
                _ => {}
            },
            _ => {}
        }
    }
}

/// Returns the coverage point for a commit at a readmitted data center.
fn rejoined(is_strong: bool) -> Seen {
    if is_strong { Seen::RejoinedStrong } else { Seen::RejoinedCommitted }
}

/// Records the coverage of a strong commit: repeated, read-only, or learned by a query.
fn saw_strong(reach: &mut Reach, is_repeated: bool, is_read_only: bool, was_asked: bool) {
    reach.saw(Seen::StrongCommitted);
    if is_repeated {
        reach.saw(Seen::StrongRepeated);
    }
    if is_read_only {
        reach.saw(Seen::StrongReadOnly);
    }
    if was_asked {
        reach.saw(Seen::StrongAsked);
    }
}
