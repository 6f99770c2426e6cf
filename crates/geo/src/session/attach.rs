//! Barriers, and attaching to another data center (§5.6, and the part that it leaves to future
//! work).

use super::{Call, CallError, Event, Session, SessionOutput, Timer};
use crate::error::Refusal;
use crate::message::{
    Attach, AttachReply, Attached, Barrier, BarrierReply, Envelope, Handout, Message, Missing,
};
use crate::timestamp::{DcId, Now, PartitionId};
use crate::vector::Vector;

/// An attach under way.
#[derive(Clone, Debug)]
pub struct Attaching {
    request: u64,
    to: DcId,
    /// The vectors from the data center's last answer.
    handout: Option<Handout>,
    /// The missing parts named in that answer, and the incarnation that answered.
    missing: Vec<Missing>,
    incarnation: u32,
    pub(super) timer: Timer,
}

impl Session {
    /// Waits until everything that the session read or wrote survives `f` losses. The result is
    /// [`Event::Uniform`] or [`Event::Failed`].
    ///
    /// # Errors
    ///
    /// The reason why the call cannot begin.
    pub fn barrier(&mut self, now: Now, out: &mut Vec<SessionOutput>) -> Result<(), CallError> {
        self.check_idle()?;
        let (request, timer) = (self.next_request(), self.timer(now));
        self.call = Call::Barrier { request, timer };
        self.send_barrier(request, out);
        Ok(())
    }

    pub(super) fn send_barrier(&self, request: u64, out: &mut Vec<SessionOutput>) {
        let to = self.replica(PartitionId(self.contact));
        let (past_vec, incarnation) = (self.past_vec, self.config.incarnation);
        let message = Message::Barrier(Barrier { incarnation, request, past_vec });
        out.push(SessionOutput::Send(Envelope { to, message }));
    }

    pub(super) fn on_barrier_reply(&mut self, reply: &BarrierReply, out: &mut Vec<SessionOutput>) {
        let (awaited, timer) = match &mut self.call {
            Call::Settling { request, timer, .. } | Call::Barrier { request, timer } => {
                (*request, timer)
            }
            Call::Certifying(certifying) => (certifying.request, &mut certifying.timer),
            _ => return,
        };
        if reply.request != awaited {
            return;
        }
        if let Err(refusal) = &reply.result {
            timer.refusal = refusal.clone();
            return;
        }
        if matches!(self.call, Call::Certifying(_)) {
            return self.on_snapshot_uniform(out);
        }
        let event = match std::mem::replace(&mut self.call, Call::Idle) {
            Call::Settling { id, commit_vec, .. } => {
                Event::Committed { id, commit_vec, is_uniform: true }
            }
            _ => Event::Uniform,
        };
        // The answer is about this exact past, which may be beyond the handout.
        self.forget_fresh(self.past_vec);
        out.push(SessionOutput::Event(event));
    }

    /// Moves the session to data center `to`, once all of the session's past is there. The result
    /// is [`Event::Resumed`] or [`Event::Failed`]; if the session has to wait, [`Event::Waiting`]
    /// comes first.
    ///
    /// # Errors
    ///
    /// The reason why the call cannot begin.
    pub fn attach(
        &mut self,
        now: Now,
        to: DcId,
        out: &mut Vec<SessionOutput>,
    ) -> Result<(), CallError> {
        if !self.is_idle() {
            return Err(CallError::Busy);
        }
        if self.running.is_some() {
            return Err(CallError::InTransaction);
        }
        let (request, timer) = (self.next_request(), self.timer(now));
        self.call = Call::Attaching(Attaching {
            request,
            to,
            handout: None,
            missing: Vec::new(),
            incarnation: 0,
            timer,
        });
        self.send_attach(out);
        Ok(())
    }

    pub(super) fn send_attach(&self, out: &mut Vec<SessionOutput>) {
        let Call::Attaching(attaching) = &self.call else { return };
        let to = crate::message::Address::Replica(attaching.to, PartitionId(self.contact));
        let Self { past_vec, epoch, newest, .. } = *self;
        let message =
            Message::Attach(Attach { request: attaching.request, past_vec, epoch, newest });
        out.push(SessionOutput::Send(Envelope { to, message }));
    }

    pub(super) fn on_attach_reply(
        &mut self,
        now: Now,
        dc: DcId,
        reply: &AttachReply,
        out: &mut Vec<SessionOutput>,
    ) {
        let Call::Attaching(attaching) = &mut self.call else { return };
        if attaching.request != reply.request || attaching.to != dc {
            return;
        }
        let before = attaching.handout.map_or(0, |handout| handout.incarnation);
        if reply.incarnation < before {
            return;
        }
        // A handout of an earlier incarnation means nothing for this one.
        let known = attaching.handout.filter(|_| reply.incarnation == before);
        let mut handout = known.unwrap_or_default();
        handout.join(&reply.handout);
        match &reply.result {
            Err(refusal @ Refusal::Fenced { .. }) => self.give_up(refusal.clone(), out),
            Err(refusal) => attaching.timer.refusal = refusal.clone(),
            Ok(Attached::Waiting(missing)) => {
                let is_first = attaching.handout.replace(handout).is_none();
                attaching.incarnation = reply.incarnation;
                let before = std::mem::replace(&mut attaching.missing, missing.clone());
                if is_first || is_all_lost(missing) && !is_all_lost(&before) {
                    out.push(SessionOutput::Event(Event::Waiting(missing.clone())));
                }
            }
            Ok(Attached::Resumed) => {
                self.move_to(now, (dc, reply.incarnation), handout);
                out.push(SessionOutput::Event(Event::Resumed(dc)));
            }
        }
    }

    /// Continues at the data center of a waiting attach with the available part of the past,
    /// without the rest. The event names the session's own transactions that are lost or may still
    /// come. Nothing is replayed.
    ///
    /// # Errors
    ///
    /// [`CallError::Nothing`] if no attach waits.
    pub fn accept_loss(&mut self, now: Now, out: &mut Vec<SessionOutput>) -> Result<(), CallError> {
        let Call::Attaching(attaching) = &mut self.call else { return Err(CallError::Nothing) };
        let Some(handout) = attaching.handout else { return Err(CallError::Nothing) };
        let (dc, incarnation) = (attaching.to, attaching.incarnation);
        let missing = std::mem::take(&mut attaching.missing);
        for lost in missing.iter().filter(|missing| missing.is_lost) {
            self.past_vec.clip(lost.dc, lost.have);
        }
        // Both vectors are closed under causality, and so is their meet. That data center has all
        // of its own transactions, even those beyond its handout.
        let own = handout.stable_vec[dc].max(self.past_vec[dc]);
        self.past_vec.meet(&handout.causal_snapshot(dc).with(dc, own));
        let past_vec = self.past_vec;
        // A transaction may be missing although its timestamp is reached, since its causes
        // elsewhere may be missing.
        let lost = self.fresh.iter().filter(|fresh| !past_vec.covers(&fresh.commit_vec));
        let lost = lost.map(|fresh| fresh.id).collect();
        // A uniform transaction arrives eventually, but may not be here yet.
        let is_complete = past_vec.covers(&self.unnamed);
        let is_certain = self.newest == self.epoch && missing.iter().all(|missing| missing.is_lost);
        self.fresh.clear();
        self.unnamed = Vector::ZERO;
        self.move_to(now, (dc, incarnation), handout);
        let event = Event::ResumedWithLoss { dc, lost, is_complete, is_certain };
        out.push(SessionOutput::Event(event));
        Ok(())
    }

    fn move_to(&mut self, now: Now, (dc, incarnation): (DcId, u32), handout: Handout) {
        self.call = Call::Idle;
        self.is_attached = true;
        // Everything that was cut off has left the past.
        self.epoch = self.epoch.max(handout.epoch);
        self.newest = self.epoch;
        if (self.config.dc, self.config.incarnation) != (dc, incarnation) {
            (self.config.dc, self.config.incarnation) = (dc, incarnation);
            // Transactions in another data center's handout may not be here yet.
            self.handout = Handout::default();
        }
        self.take_handout(now, &handout);
    }
}

/// True if there is nothing to wait for.
fn is_all_lost(missing: &[Missing]) -> bool {
    missing.iter().all(|missing| missing.is_lost)
}
