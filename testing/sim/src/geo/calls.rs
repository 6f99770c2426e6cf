//! Client calls outside transactions (barriers, attaches, tokens, unanswered commits) and the
//! recording of calls.

use mingle_checker::geo::{self, Call, Outcome, What};
use mingle_geo::session::CallError;
use mingle_geo::{DcId, Session};

use super::client::Stage;
use super::reach::Seen;
use super::world::World;

impl World<'_> {
    pub fn barrier(&mut self, slot: usize) {
        let client = &mut self.clients[slot];
        client.stage = Stage::Barrier;
        client.begin_us = self.now_us;
        client.waits_far_since_us = Some(self.now_us);
        let called = self.try_call(slot, Session::barrier);
        if let Err(error) = called {
            self.on_call_error_outside(slot, error);
        }
    }

    /// Handles a call outside a transaction that cannot begin.
    fn on_call_error_outside(&mut self, slot: usize, error: CallError) {
        self.clients[slot].sequence += 1;
        self.clients[slot].waits_far_since_us = None;
        self.on_call_error(slot, error);
    }

    pub fn attach(&mut self, slot: usize, to: u8) {
        let leaves_blamed = self.is_blamed(self.clients[slot].dc());
        let client = &mut self.clients[slot];
        client.leaves_blamed = leaves_blamed;
        client.stage = Stage::Attaching(to);
        client.begin_us = self.now_us;
        client.waits_far_since_us = Some(self.now_us);
        let called = self.try_call(slot, |session, now, out| session.attach(now, DcId(to), out));
        if let Err(error) = called {
            self.on_call_error_outside(slot, error);
        }
    }

    pub fn attach_anywhere(&mut self, slot: usize) {
        self.clients[slot].failures = 0;
        let living: Vec<u8> = self.living().collect();
        let to = *self.random.pick(&living);
        self.attach(slot, to);
    }

    /// Handles an unanswered commit: the client asks again at the same or another data center, or
    /// continues without an answer.
    pub fn resolve(&mut self, slot: usize) {
        self.clients[slot].asks += 1;
        let (asks, dc) = (self.clients[slot].asks, self.clients[slot].dc());
        if self.is_left(slot) {
            return self.attach_anywhere(slot);
        }
        let client = &mut self.clients[slot];
        let patience = if client.waits_strong_since_us.is_some() { 15 } else { 6 };
        if asks % patience == 0 {
            client.give_up_strong();
            client.session.leave_unanswered();
            if let Some(call) = client.unanswered.take() {
                client.record.calls[call].end_us = Some(self.now_us);
            }
            client.waits_since_us = None;
            return self.think(slot);
        }
        if asks % 3 == 0 || asks == 1 && self.random.one_in(3) {
            return self.attach_anywhere(slot);
        }
        let client = &mut self.clients[slot];
        if client.must_attach {
            return self.attach(slot, dc);
        }
        client.stage = Stage::Committing;
        self.reach.saw(Seen::CommitAsked);
        let called = self.try_call(slot, Session::ask);
        if let Err(error) = called {
            self.on_call_error_outside(slot, error);
        }
    }

    pub fn join(&mut self, slot: usize, other: usize) {
        let from = &self.clients[other];
        if other == slot || from.unanswered.is_some() {
            return self.think(slot);
        }
        let (token, session) = (from.session.token(), from.id);
        let past_vec = self.recorder.of_token(&token);
        let call_count = from.record.calls.len();
        let client = &mut self.clients[slot];
        client.session.join(&token);
        client.must_attach = true;
        client.begin_us = self.now_us;
        let at_us = Some(self.now_us);
        self.push_call(slot, at_us, What::Join { session, call_count, past_vec });
        self.reach.saw(Seen::Joined);
        self.think_for(slot, (0, 1_000));
    }

    pub fn accept_loss(&mut self, slot: usize) {
        self.clients[slot].loses_patience_us = None;
        if matches!(self.clients[slot].stage, Stage::Attaching(_)) {
            let called = self.try_call(slot, Session::accept_loss);
            if let Err(error) = called {
                self.breaks("loss can be accepted while an attach waits", error.to_string());
            }
        }
    }

    /// Records the open transaction, which has ended, and returns its index among the calls.
    pub fn close_call(&mut self, slot: usize, outcome: Outcome, end_us: Option<u64>) -> usize {
        let client = &mut self.clients[slot];
        if let Some(open) = client.open.take() {
            let transaction = geo::Transaction { outcome, ..open.transaction };
            let what = What::Transaction(Box::new(transaction));
            client.record.calls.push(Call { begin_us: open.begin_us, end_us, what });
        }
        client.sends_left = None;
        client.record.calls.len() - 1
    }

    pub fn push_call(&mut self, slot: usize, end_us: Option<u64>, what: What) {
        let client = &mut self.clients[slot];
        client.record.calls.push(Call { begin_us: client.begin_us, end_us, what });
        // Time spent waiting for several data centers does not count as waiting for the client's
        // own.
        if let (Some(far_us), Some(since_us)) =
            (client.waits_far_since_us.take(), &mut client.waits_since_us)
        {
            *since_us += self.now_us - far_us;
        }
    }
}
