//! A client: it performs the acts of its script in order, through a session.

use std::collections::VecDeque;

use mingle_checker::geo::{self, Call, Outcome, What};
use mingle_geo::session::{CallError, SessionOutput};
use mingle_geo::{Address, Envelope, Key, Message, Now, Session};
use mingle_model::{Origin, TransactionId};

use super::node::MachineClock;
use super::reach::Seen;
use super::record;
use super::script::{Act, Close, Step, act};
use super::setup::within;
use super::world::{Happening, World};

/// The current activity of a client.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    /// Nothing until the next act is due.
    Thinking,
    Reading(Vec<Key>),
    Committing,
    Barrier,
    Attaching(u8),
    /// The client has finished all acts.
    Done,
}

/// An open transaction.
pub(super) struct Open {
    pub steps: VecDeque<Step>,
    pub end: Close,
    pub begin_us: u64,
    pub transaction: geo::Transaction,
}

pub(super) struct Client {
    /// The session's id: its origin and its address.
    pub id: u64,
    pub session: Session,
    pub clock: MachineClock,
    pub stage: Stage,
    /// The remaining acts; the next one is last.
    pub acts: Vec<usize>,
    /// The current act; `attempt` counts its earlier attempts if it is strong.
    pub act: usize,
    pub attempt: u32,
    pub record: geo::Session,
    pub open: Option<Open>,
    /// The call whose commit has not been answered.
    pub unanswered: Option<usize>,
    /// True if the session has accepted a loss since that commit: an answer now is not the answer
    /// of then.
    pub is_past_loss: bool,
    pub asks: u32,
    /// The sequence number of the last transaction.
    pub sequence: u64,
    pub begin_us: u64,
    pub due_us: u64,
    /// The time of the next wake-up.
    pub wake_us: u64,
    /// The client vanishes after this many more messages.
    pub sends_left: Option<u32>,
    pub must_attach: bool,
    /// The data center that the client moves to next.
    pub goes_to: Option<u8>,
    pub failures: u32,
    /// The time since which a read or commit of this client has been unanswered.
    pub waits_since_us: Option<u64>,
    /// The time since which the client has waited for work of other data centers.
    pub waits_far_since_us: Option<u64>,
    /// The time since which the client has tried the same strong transaction without success.
    pub waits_strong_since_us: Option<u64>,
    /// The time at which the session last attached to its current data center.
    pub attached_us: u64,
    /// True if the client is leaving a data center that may blame a fault.
    pub leaves_blamed: bool,
    /// The time at which the client stops waiting and continues without the missing data.
    pub loses_patience_us: Option<u64>,
}

impl Client {
    pub fn dc(&self) -> u8 {
        self.session.dc().0
    }

    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    fn now(&self, now_us: u64) -> Now {
        Now { wall_us: self.clock.wall_us(now_us), mono_us: now_us }
    }

    /// Ends the attempts of the current strong transaction, because it is over or abandoned.
    pub fn give_up_strong(&mut self) {
        self.waits_strong_since_us = None;
        self.attempt = 0;
    }

    pub fn next_id(&mut self) -> TransactionId {
        self.sequence += 1;
        self.running_id()
    }

    /// Returns the id of the open transaction, or of the last one.
    fn running_id(&self) -> TransactionId {
        TransactionId { origin: Origin(self.id.into()), sequence: self.sequence }
    }
}

impl World<'_> {
    pub fn open_client(&mut self, slot: usize, acts: Vec<usize>) {
        let id = (slot + self.setup.clients) as u64;
        let living: Vec<u8> = self.living().collect();
        let dc = living[slot % living.len()];
        let client = self.make_client(slot, id, dc, acts);
        self.clients.push(client);
        self.think(slot);
    }

    fn make_client(&mut self, slot: usize, id: u64, dc: u8, acts: Vec<usize>) -> Client {
        let is_durable = slot % 4 == 3;
        let skew = self.setup.client_skews[slot];
        Client {
            id,
            session: Session::new(self.session_config(id, dc, is_durable)),
            clock: MachineClock { skew, stepped_us: 0 },
            stage: Stage::Thinking,
            acts,
            act: 0,
            attempt: 0,
            record: geo::Session { id, calls: Vec::new() },
            open: None,
            unanswered: None,
            is_past_loss: false,
            asks: 0,
            sequence: 0,
            begin_us: self.now_us,
            due_us: self.now_us,
            wake_us: u64::MAX,
            sends_left: None,
            must_attach: false,
            goes_to: None,
            failures: 0,
            waits_since_us: None,
            waits_far_since_us: None,
            waits_strong_since_us: None,
            attached_us: self.now_us,
            leaves_blamed: false,
            loses_patience_us: None,
        }
    }

    /// Removes the client in any state; another client takes its place.
    pub fn vanish(&mut self, slot: usize) {
        let now_us = self.now_us;
        let (is_committing, next) = {
            let client = &mut self.clients[slot];
            let is_committing = client.stage == Stage::Committing;
            if let Some(mut open) = client.open.take() {
                if is_committing {
                    open.transaction.outcome = Outcome::Unknown;
                }
                let what = What::Transaction(Box::new(open.transaction));
                let (begin_us, end_us) = (open.begin_us, Some(now_us));
                client.record.calls.push(Call { begin_us, end_us, what });
            }
            if let Some(call) = client.unanswered {
                client.record.calls[call].end_us = Some(now_us);
            }
            (is_committing, client.id + self.setup.clients as u64)
        };
        self.reach.saw(Seen::ClientVanished);
        if is_committing {
            self.reach.saw(Seen::CoordinatorVanished);
        }
        let living: Vec<u8> = self.living().collect();
        let dc = *self.random.pick(&living);
        let acts = std::mem::take(&mut self.clients[slot].acts);
        let attempt = self.clients[slot].attempt;
        let client = Client { attempt, ..self.make_client(slot, next, dc, acts) };
        let gone = std::mem::replace(&mut self.clients[slot], client);
        self.record_session(slot, gone.record);
        self.clients[slot].due_us = now_us;
        self.think(slot);
    }

    /// Continues as another session with this session's token.
    fn move_session(&mut self, slot: usize, to: u8) {
        let (token, from) = {
            let client = &self.clients[slot];
            (client.session.token(), (client.id, client.record.calls.len()))
        };
        let next = self.clients[slot].id + self.setup.clients as u64;
        let acts = std::mem::take(&mut self.clients[slot].acts);
        let mut client = self.make_client(slot, next, to, acts);
        let config = self.session_config(next, to, slot % 4 == 3);
        client.session = Session::resume(config, &token);
        client.attempt = self.clients[slot].attempt;
        client.must_attach = true;
        let (session, call_count) = from;
        let past_vec = self.recorder.of_token(&token);
        let what = What::Join { session, call_count, past_vec };
        let at_us = self.now_us;
        client.record.calls.push(Call { begin_us: at_us, end_us: Some(at_us), what });
        let gone = std::mem::replace(&mut self.clients[slot], client);
        self.record_session(slot, gone.record);
        self.reach.saw(Seen::Moved);
        self.think(slot);
    }

    pub fn think(&mut self, slot: usize) {
        let range = self.setup.think_us;
        self.think_for(slot, range);
    }

    pub fn think_for(&mut self, slot: usize, range: (u64, u64)) {
        let takes_us = within(&mut self.random, range);
        let client = &mut self.clients[slot];
        client.stage = Stage::Thinking;
        client.due_us = self.now_us + takes_us;
        self.schedule_wake(slot);
    }

    fn schedule_wake(&mut self, slot: usize) {
        let client = &mut self.clients[slot];
        let due_us = (client.stage == Stage::Thinking).then_some(client.due_us);
        let at_us = [client.session.wake_at_us(), due_us, client.loses_patience_us];
        let Some(at_us) = at_us.into_iter().flatten().min() else { return };
        let at_us = at_us.max(self.now_us);
        if at_us < client.wake_us {
            client.wake_us = at_us;
            self.queue.push(at_us, Happening::Wake { client: slot, session: client.id });
        }
    }

    pub fn wake_client(&mut self, slot: usize, session: u64) {
        let now_us = self.now_us;
        let client = &mut self.clients[slot];
        if client.id != session || client.wake_us > now_us {
            return;
        }
        client.wake_us = u64::MAX;
        if client.loses_patience_us.is_some_and(|at_us| at_us <= now_us) {
            self.accept_loss(slot);
        } else if client.stage == Stage::Thinking && client.due_us <= now_us {
            self.act(slot);
        } else {
            self.call(slot, Session::tick);
        }
        if self.clients[slot].id == session {
            self.schedule_wake(slot);
        }
    }

    pub fn on_message_to_client(
        &mut self,
        slot: usize,
        session: u64,
        from: Address,
        message: Message,
    ) {
        if self.clients.get(slot).is_none_or(|client| client.id != session) {
            return;
        }
        let snapshot = match &message {
            Message::ReadReply(reply) => {
                let snapshot = reply.result.as_ref().ok().map(|(snapshot, _)| snapshot);
                let epoch = reply.handout.epoch;
                snapshot.map(|snapshot| self.recorder.columns.vector(snapshot, epoch, None))
            }
            _ => None,
        };
        let client = &mut self.clients[slot];
        if let (Some(open), Some(snapshot)) = (&mut client.open, snapshot)
            && open.transaction.snapshot.is_none()
        {
            // This is kept only if the read ends with this answer.
            open.transaction.snapshot = Some(snapshot);
        }
        self.see_answer(&message);
        self.tell(|| format!("{from:?} to session {session}: {message:?}"));
        self.call(slot, |session, now, out| session.handle(now, from, message, out));
        let Some(client) = self.clients.get_mut(slot) else { return };
        if client.id != session {
            return;
        }
        let has_read = |open: &Open| {
            open.transaction.actions.iter().any(|action| matches!(action, geo::Action::Read { .. }))
        };
        if let Some(open) = client.open.as_mut().filter(|open| !has_read(open)) {
            open.transaction.snapshot = None;
        }
        self.schedule_wake(slot);
    }

    /// Makes a call on the session and handles its outputs.
    fn call(&mut self, slot: usize, call: impl FnOnce(&mut Session, Now, &mut Vec<SessionOutput>)) {
        self.start_above(slot);
        let client = &mut self.clients[slot];
        let id = client.id;
        let (mut out, now) = (Vec::new(), client.now(self.now_us));
        call(&mut client.session, now, &mut out);
        for output in out {
            if self.clients[slot].id != id {
                return;
            }
            match output {
                SessionOutput::Send(envelope) => self.send_from_client(slot, envelope),
                SessionOutput::Event(event) => {
                    self.raise_floor(slot, &event);
                    self.on_event(slot, event);
                }
            }
        }
    }

    /// Does the same for calls that the session may refuse at once.
    pub fn try_call(
        &mut self,
        slot: usize,
        call: impl FnOnce(&mut Session, Now, &mut Vec<SessionOutput>) -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        let mut result = Ok(());
        self.call(slot, |session, now, out| result = call(session, now, out));
        result
    }

    fn send_from_client(&mut self, slot: usize, envelope: Envelope) {
        let client = &mut self.clients[slot];
        if let Some(left) = &mut client.sends_left {
            if *left == 0 {
                return self.vanish(slot);
            }
            *left -= 1;
        }
        let (id, from) = (client.id, self.nodes.len() + slot);
        if let Address::Replica(dc, partition) = envelope.to {
            self.tell(|| format!("session {id} sends {:?}", envelope.message));
            let to = self.index_of(dc.0, partition.0);
            self.send(from, to, id, &envelope.message);
        }
    }

    /// Starts the next act.
    fn act(&mut self, slot: usize) {
        let client = &self.clients[slot];
        let dc = client.dc();
        if client.unanswered.is_some() {
            return self.resolve(slot);
        }
        if client.open.is_some() {
            return self.go_on(slot);
        }
        if self.is_left(slot) || client.failures >= 3 {
            return self.attach_anywhere(slot);
        }
        if let Some(to) = self.clients[slot].goes_to.take().filter(|to| !self.is_lost(*to)) {
            return self.attach(slot, to);
        }
        if self.clients[slot].must_attach {
            return self.attach(slot, dc);
        }
        let Some(index) = self.clients[slot].acts.pop() else {
            // The last read or strong transaction may have failed; the client no longer waits for
            // it.
            let client = &mut self.clients[slot];
            (client.stage, client.waits_since_us) = (Stage::Done, None);
            client.give_up_strong();
            return;
        };
        self.clients[slot].act = index;
        let attempt = self.clients[slot].attempt;
        match act(self.setup, self.plan.seed, slot, index, attempt) {
            Act::Transaction { steps, end, is_strong: false } => {
                self.begin_transaction(slot, steps, end, None);
            }
            Act::Transaction { steps, end, is_strong: true } => self.begin_strong(slot, steps, end),
            Act::Barrier => self.barrier(slot),
            Act::Attach(to) if !self.is_lost(to) => self.attach(slot, to),
            Act::Move(to) if !self.is_lost(to) => self.move_session(slot, to),
            Act::Attach(_) | Act::Move(_) => self.think(slot),
            Act::Join(other) => self.join(slot, other),
            Act::Leave => self.vanish(slot),
        }
    }

    pub fn begin_transaction(
        &mut self,
        slot: usize,
        steps: Vec<Step>,
        end: Close,
        strong: Option<geo::Strong>,
    ) {
        let client = &mut self.clients[slot];
        let (dc, id) = (self.recorder.dc_of(&client.session), client.next_id());
        let transaction = geo::Transaction {
            id,
            dc,
            strong,
            snapshot: None,
            actions: Vec::new(),
            outcome: Outcome::GivenUp,
            commit: None,
            commit_asked_us: None,
        };
        client.open = Some(Open { steps: steps.into(), end, begin_us: self.now_us, transaction });
        self.go_on(slot);
    }

    /// Runs the next steps of the open transaction.
    fn go_on(&mut self, slot: usize) {
        loop {
            let client = &mut self.clients[slot];
            let Some(open) = &mut client.open else { return };
            let Some(step) = open.steps.pop_front() else { return self.close(slot) };
            let Some(step) = self.drawn(slot, step) else { continue };
            let client = &mut self.clients[slot];
            let called = match step {
                Step::Label(key, label) => self.label(slot, key, label),
                Step::Take(key, amount) => {
                    self.take(slot, key, amount);
                    continue;
                }
                Step::Expire { .. } | Step::Pop { .. } => continue,
                Step::Write(update) => {
                    let own = client.running_id();
                    let (item, op) = (self.recorder.item(&update.key), record::op(&update.op, own));
                    let id = update.id.map(record::op_id);
                    let task = id.map_or(0, |id| id.transaction.sequence);
                    self.helped_most = self.helped_most.max(task);
                    let called = self.try_call(slot, |session, now, _| session.write(now, update));
                    if let (Ok(()), Some(open)) = (called, &mut self.clients[slot].open) {
                        open.transaction.actions.push(geo::Action::Update { item, op, id });
                    }
                    called
                }
                Step::Read(keys) => {
                    client.stage = Stage::Reading(keys.clone());
                    self.waits(slot);
                    self.try_call(slot, |session, now, out| session.read(now, keys, out))
                }
            };
            if let Err(error) = called {
                return self.on_call_error(slot, error);
            }
            if self.clients[slot].stage != Stage::Thinking {
                return;
            }
        }
    }

    pub fn on_call_error(&mut self, slot: usize, error: CallError) {
        let client = &mut self.clients[slot];
        if error != CallError::Detached {
            let how = format!("session {} cannot go on: {error}", client.id);
            return self.breaks("a call of a session can begin", how);
        }
        // The session has done nothing yet: sessions attach between transactions.
        client.must_attach = true;
        client.session.rollback();
        client.open = None;
        client.waits_since_us = None;
        client.give_up_strong();
        client.sequence -= 1;
        self.think_for(slot, (0, 1_000));
    }

    fn close(&mut self, slot: usize) {
        let now_us = self.now_us;
        let client = &mut self.clients[slot];
        let Some(open) = &mut client.open else { return };
        match open.end {
            Close::Rollback => {
                client.session.rollback();
                client.give_up_strong();
                self.close_call(slot, Outcome::GivenUp, Some(now_us));
                return self.think(slot);
            }
            Close::Vanish(sends) => client.sends_left = Some(sends),
            Close::Commit => {}
        }
        client.stage = Stage::Committing;
        open.transaction.commit_asked_us = Some(now_us);
        open.transaction.outcome = Outcome::Unknown;
        let id = client.id;
        self.waits(slot);
        let called = self.try_call(slot, Session::commit);
        if self.clients[slot].id == id
            && let Err(error) = called
        {
            self.on_call_error(slot, error);
        }
    }
}
