//! A client's session, which coordinates its own transactions.
//!
//! It is a state machine like the replica: a call begins an operation, [`Session::handle`] and
//! [`Session::tick`] continue it, and its result is an [`Event`]. One call runs at a time. Lost
//! messages are sent again: every request may be repeated.
//!
//! The session carries `past_vec`, the join of the vectors that it read or wrote, and the vectors
//! that replicas handed out with their answers. So a transaction begins without a message of its
//! own, and reads of several partitions go out in one round.

mod attach;
mod commit;
mod config;
mod error;
mod fenced;
mod floor;
mod read;
mod running;
mod strong;
mod token;

use std::collections::VecDeque;
use std::sync::Arc;

use mingle_model::TransactionId;

use crate::certify::{Access, GroupMessage};
use crate::error::Refusal;
use crate::message::{Address, Envelope, Handout, Message, Missing};
use crate::timestamp::{DcId, Now, PartitionId};
use crate::types::item::ItemOp;
use crate::types::{Op, State, Update};
use crate::vector::Vector;

pub use config::SessionConfig;
pub use error::CallError;
pub use floor::Floor;
pub use token::Token;

use attach::Attaching;
use commit::Committing;
use fenced::fenced;
use read::Reading;
use running::Running;
use strong::Certifying;

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The states of the keys, in the requested order, with the transaction's own writes.
    Read(Vec<Arc<State>>),
    /// The transaction is committed.
    Committed {
        /// The transaction.
        id: TransactionId,
        /// Its commit vector; for a transaction that wrote nothing, its snapshot.
        commit_vec: Vector,
        /// True if it is known to be uniform. For a durable session this is always true, unless the
        /// wait timed out.
        is_uniform: bool,
    },
    /// The transaction is not committed, and never will be.
    Aborted {
        /// The transaction.
        id: TransactionId,
        /// The reason.
        refusal: Refusal,
    },
    /// The outcome is unknown: no answer came in time. See [`Session::ask`].
    Unknown {
        /// The transaction.
        id: TransactionId,
        /// The last refusal received.
        refusal: Refusal,
    },
    /// A read, barrier or attach failed; a transaction that was running is given up.
    Failed(Refusal),
    /// Everything that the session read or wrote survives `f` losses.
    Uniform,
    /// The target data center lacks some of the session's past. The session waits for it, except
    /// for parts that are lost for good; the caller may then accept the loss.
    Waiting(Vec<Missing>),
    /// The session continues at this data center.
    Resumed(DcId),
    /// The session continues without the lost part.
    ResumedWithLoss {
        /// The data center.
        dc: DcId,
        /// Its own transactions that are not here.
        lost: Vec<TransactionId>,
        /// True if `lost` names all of them.
        is_complete: bool,
        /// True if they never come, because all missing parts belong to fenced incarnations. Then
        /// the caller may repeat them.
        is_certain: bool,
    },
}

/// An action that a session requests from the shell.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionOutput {
    /// Send this.
    Send(Envelope),
    /// Tell the caller.
    Event(Event),
}

/// One client's session.
///
/// # Examples
///
/// ```
/// use mingle_geo::session::SessionOutput;
/// use mingle_geo::{Address, Config, DcId, Event, Input, Key, Kind, Message, Now, Op, Output};
/// use mingle_geo::{PartitionId, Replica, Session, SessionConfig, Update};
/// use mingle_model::Origin;
///
/// let now = Now { wall_us: 1_000_000, mono_us: 0 };
/// let mut replica = Replica::new(Config::new(DcId(0), 1, PartitionId(0), 1)).expect("settings");
/// let mut session = Session::new(SessionConfig::new(Origin(7), DcId(0), 1));
///
/// let key = Key::new(Kind::Counter, "visits");
/// session.write(now, Update { key, op: Op::Add(1), id: None }).expect("no call under way");
/// let mut outputs = Vec::new();
/// session.commit(now, &mut outputs).expect("no call under way");
///
/// // A shell: it carries messages and writes records, here into nothing.
/// let Some(SessionOutput::Send(request)) = outputs.pop() else { panic!("{outputs:?}") };
/// let mut done = Vec::new();
/// let input = Input::Message { from: Address::Client(1), message: request.message };
/// replica.handle(now, input, &mut done);
/// for output in done {
///     let Output::Persist(persist) = output else { panic!("{output:?}") };
///     for answer in persist.then {
///         session.handle(now, request.to, answer.message, &mut outputs);
///     }
/// }
/// assert!(matches!(outputs[0], SessionOutput::Event(Event::Committed { .. })));
/// ```
#[derive(Clone, Debug)]
pub struct Session {
    config: SessionConfig,
    past_vec: Vector,
    /// The epoch of `past_vec`.
    epoch: u32,
    /// The latest epoch of any part of `past_vec`; it differs from `epoch` if several tokens were
    /// joined.
    newest: u32,
    handout: Handout,
    handout_us: Option<u64>,
    is_attached: bool,
    /// The sequence number of the last transaction.
    sequence: u64,
    /// The number of the last request.
    request: u64,
    /// The partition that barriers and attaches go to.
    contact: u16,
    running: Option<Running>,
    call: Call,
    unanswered: Option<Committing>,
    /// A strong commit that has not been answered.
    uncertain: Option<Certifying>,
    /// The join of the vectors with which the session's strong transactions conflicted.
    conflict_vec: Vector,
    fresh: VecDeque<Fresh>,
    /// The join of its own commits that are no longer in `fresh`: they are uniform, or were too
    /// many.
    unnamed: Vector,
}

/// A commit of this session that is not known to be uniform.
#[derive(Clone, Copy, Debug)]
struct Fresh {
    id: TransactionId,
    dc: DcId,
    commit_vec: Vector,
}

/// The call in progress.
#[derive(Clone, Debug)]
enum Call {
    Idle,
    Reading(Reading),
    Committing(Committing),
    /// A durable session's commit on its way to be uniform.
    Settling {
        id: TransactionId,
        commit_vec: Vector,
        request: u64,
        timer: Timer,
    },
    Barrier {
        request: u64,
        timer: Timer,
    },
    Attaching(Attaching),
    Certifying(Certifying),
}

/// The times for a repetition and for giving up.
#[derive(Clone, Debug)]
struct Timer {
    again_us: u64,
    deadline_us: u64,
    /// The last retryable refusal.
    refusal: Refusal,
}

impl Session {
    /// Creates a new session. It is attached to its data center, since it has no past.
    pub fn new(config: SessionConfig) -> Self {
        Self {
            contact: (config.id.0 % u128::from(config.partition_count.max(1))) as u16,
            config,
            past_vec: Vector::ZERO,
            epoch: 0,
            newest: 0,
            handout: Handout::default(),
            handout_us: None,
            is_attached: true,
            sequence: 0,
            request: 0,
            running: None,
            call: Call::Idle,
            unanswered: None,
            uncertain: None,
            conflict_vec: Vector::ZERO,
            fresh: VecDeque::new(),
            unnamed: Vector::ZERO,
        }
    }

    /// Returns the data center that it uses.
    pub fn dc(&self) -> DcId {
        self.config.dc
    }

    /// Returns the join of the vectors that it read or wrote.
    pub fn past_vec(&self) -> Vector {
        self.past_vec
    }

    /// Lets later causal commits be acknowledged only once they are uniform, or as soon as they are
    /// committed here; see [`SessionConfig::is_durable`].
    pub fn set_durable(&mut self, is_durable: bool) {
        self.config.is_durable = is_durable;
    }

    /// True if no call is in progress.
    pub fn is_idle(&self) -> bool {
        matches!(self.call, Call::Idle)
    }

    /// Returns the commit without an answer, if there is one.
    pub fn unanswered(&self) -> Option<TransactionId> {
        let uncertain = self.uncertain.as_ref().map(Certifying::id);
        self.unanswered.as_ref().map(Committing::id).or(uncertain)
    }

    /// Adds a write to the running transaction, or begins one.
    ///
    /// # Errors
    ///
    /// The reason why the write cannot be added.
    pub fn write(&mut self, now: Now, mut update: Update) -> Result<(), CallError> {
        self.check_idle()?;
        if !update.is_sound() {
            return Err(CallError::WrongKind);
        }
        let running = self.run(now);
        if let Some(touched) = &mut running.strong {
            touched.entry(update.key.clone()).or_insert((Access::Write, None)).0 = Access::Write;
        }
        if let Op::Item(ItemOp::Pull(elements)) = &mut update.op {
            running.pull_own(&update.key, elements);
        }
        running.updates.push(update);
        Ok(())
    }

    /// Gives up the running transaction.
    pub fn rollback(&mut self) {
        self.running = None;
    }

    fn check_idle(&self) -> Result<(), CallError> {
        if !self.is_idle() {
            return Err(CallError::Busy);
        }
        if self.unanswered().is_some() {
            return Err(CallError::Unanswered);
        }
        if self.is_attached { Ok(()) } else { Err(CallError::Detached) }
    }

    fn run(&mut self, now: Now) -> &mut Running {
        let origin = self.config.id;
        let stable_us = self.handout.stable_vec[self.config.dc].micros();
        let sequence = &mut self.sequence;
        self.running.get_or_insert_with(|| {
            *sequence += 1;
            Running {
                id: TransactionId { origin, sequence: *sequence },
                // A client whose clock is behind uses its data center's time.
                begun_us: now.wall_us.max(stable_us),
                snapshot: None,
                updates: Vec::new(),
                strong: None,
            }
        })
    }

    fn next_request(&mut self) -> u64 {
        self.request += 1;
        self.request
    }

    fn timer(&self, now: Now) -> Timer {
        Timer {
            again_us: now.mono_us.saturating_add(self.config.retry_ms * 1_000),
            deadline_us: now.mono_us.saturating_add(self.config.deadline_ms * 1_000),
            refusal: Refusal::TimedOut { on: None },
        }
    }

    fn replica(&self, partition: PartitionId) -> Address {
        Address::Replica(self.config.dc, partition)
    }

    /// Returns the newest snapshot for a transaction that the session knows, if its handout is not
    /// too old.
    fn fresh_snapshot(&self, now: Now, is_strong: bool) -> Option<Vector> {
        let until_us = self.handout_us?.saturating_add(self.config.handout_ms_max * 1_000);
        if now.mono_us > until_us {
            return None;
        }
        if is_strong {
            return Some(self.strong_snapshot());
        }
        let mut snapshot = self.handout.causal_snapshot(self.config.dc);
        snapshot.join(&self.past_vec);
        Some(snapshot)
    }

    fn take_handout(&mut self, now: Now, handout: &Handout) {
        self.handout.join(handout);
        if self.is_attached {
            // All of its past is uniform here, or of this data center, so it is below no cut known
            // here.
            self.epoch = self.epoch.max(handout.epoch);
            self.newest = self.newest.max(self.epoch);
        }
        self.handout_us = Some(now.mono_us);
        self.forget_fresh(self.handout.uniform_vec);
    }

    /// Forgets own commits up to `uniform_vec`: they are uniform and need not be remembered by id.
    fn forget_fresh(&mut self, uniform_vec: Vector) {
        let unnamed = &mut self.unnamed;
        self.fresh.retain(|fresh| {
            let is_fresh = fresh.commit_vec[fresh.dc] > uniform_vec[fresh.dc];
            if !is_fresh {
                unnamed.join(&fresh.commit_vec);
            }
            is_fresh
        });
    }

    /// Continues the call that a message answers. Other messages are dropped.
    pub fn handle(
        &mut self,
        now: Now,
        from: Address,
        message: Message,
        out: &mut Vec<SessionOutput>,
    ) {
        let Address::Replica(dc, partition) = from else { return };
        let handout = match &message {
            Message::ReadReply(reply) => reply.handout,
            Message::PrepareAck(reply) => reply.handout,
            Message::OutcomeReply(reply) => reply.handout,
            Message::BarrierReply(reply) => reply.handout,
            Message::AttachReply(reply) => return self.on_attach_reply(now, dc, reply, out),
            Message::Group(GroupMessage::Voted(voted)) if dc == self.config.dc => {
                return self.on_voted(voted, out);
            }
            _ => return,
        };
        if dc != self.config.dc || handout.incarnation < self.config.incarnation {
            // The message is late, or from a data center that the session has left.
            return;
        }
        if let Some(refusal) = fenced(&message).or_else(|| self.replaced(&handout)) {
            // A handout of an incarnation that is given up means nothing. A handout of its
            // successor does not fit this session's past until the session attaches to it.
            if self.call.is_answered_by(&message) {
                self.give_up(refusal, out);
            }
            return;
        }
        self.take_handout(now, &handout);
        match message {
            Message::ReadReply(reply) => self.on_read_reply(partition, reply, out),
            Message::PrepareAck(ack) => self.on_prepare_ack(now, ack, out),
            Message::OutcomeReply(reply) => self.on_outcome_reply(now, partition, reply, out),
            Message::BarrierReply(reply) => self.on_barrier_reply(&reply, out),
            _ => {}
        }
    }

    /// Repeats unanswered requests, and gives up after the deadline.
    pub fn tick(&mut self, now: Now, out: &mut Vec<SessionOutput>) {
        let Some(timer) = self.call.timer() else { return };
        if timer.deadline_us <= now.mono_us {
            let refusal = timer.refusal.clone();
            return self.give_up(refusal, out);
        }
        if timer.again_us > now.mono_us {
            return;
        }
        timer.again_us = now.mono_us.saturating_add(self.config.retry_ms * 1_000);
        // The replica that was asked may be down.
        self.contact = (self.contact + 1) % self.config.partition_count.max(1);
        self.resend(out);
    }

    /// Returns the time of the next work of [`tick`](Self::tick), in microseconds of
    /// [`Now::mono_us`].
    pub fn wake_at_us(&mut self) -> Option<u64> {
        self.call.timer().map(|timer| timer.again_us.min(timer.deadline_us))
    }

    fn resend(&mut self, out: &mut Vec<SessionOutput>) {
        match &self.call {
            Call::Idle => {}
            Call::Reading(_) => self.send_reads(out),
            Call::Committing(_) => self.send_commit(out),
            Call::Settling { request, .. } | Call::Barrier { request, .. } => {
                let request = *request;
                self.send_barrier(request, out);
            }
            Call::Attaching(_) => self.send_attach(out),
            Call::Certifying(_) => self.send_certify(out),
        }
    }

    fn give_up(&mut self, refusal: Refusal, out: &mut Vec<SessionOutput>) {
        match std::mem::replace(&mut self.call, Call::Idle) {
            Call::Idle => {}
            Call::Reading(_) => {
                self.running = None;
                out.push(SessionOutput::Event(Event::Failed(refusal)));
            }
            Call::Committing(committing) => {
                let id = committing.id();
                self.unanswered = Some(committing);
                out.push(SessionOutput::Event(Event::Unknown { id, refusal }));
            }
            Call::Settling { id, commit_vec, .. } => {
                let event = Event::Committed { id, commit_vec, is_uniform: false };
                out.push(SessionOutput::Event(event));
            }
            Call::Barrier { .. } | Call::Attaching(_) => {
                out.push(SessionOutput::Event(Event::Failed(refusal)));
            }
            Call::Certifying(certifying) => self.give_up_certifying(certifying, refusal, out),
        }
    }
}

impl Call {
    fn timer(&mut self) -> Option<&mut Timer> {
        match self {
            Self::Idle => None,
            Self::Reading(reading) => Some(&mut reading.timer),
            Self::Committing(committing) => Some(&mut committing.timer),
            Self::Settling { timer, .. } | Self::Barrier { timer, .. } => Some(timer),
            Self::Attaching(attaching) => Some(&mut attaching.timer),
            Self::Certifying(certifying) => Some(&mut certifying.timer),
        }
    }
}
