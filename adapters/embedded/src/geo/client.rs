//! A session of the core, as a future.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mingle_geo::certify::{GroupMessage, Touch};
use mingle_geo::message::Message;
use mingle_geo::session::{CallError, SessionOutput, Token};
use mingle_geo::{
    Address, DcId, Event, Key, Now, Refusal, Session, SessionConfig, State, Update, Vector,
};
use mingle_model::{Origin, TransactionId};

use super::cluster::{Cluster, Replicas};
use super::space::Space;

/// A session at one data center.
pub struct Client {
    net: Arc<dyn Cluster>,
    dc: DcId,
    /// The incarnation of the data center.
    incarnation: u32,
    number: u64,
    /// The space of the items that it reads and writes.
    space: Space,
    session: Session,
    /// The commit that was sent and is not answered yet.
    committing: Option<TransactionId>,
    /// True while its past may not all be at this data center; no other transaction may use it
    /// then.
    is_detached: bool,
    /// True while it waits for certification.
    is_certifying: bool,
    /// True if the other sessions of the process need not see its strong transactions before these
    /// have arrived in its data center.
    is_deferring: bool,
}

/// The reason why a call failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Trouble {
    /// The data center does not run.
    Down(DcId),
    /// The data center reaches too few others, and nothing was asked of them.
    Alone(DcId),
    /// The core refuses.
    Refused(Refusal),
    /// The commit may or may not have taken effect; its number in the core.
    Unknown(TransactionId, Refusal),
}

/// A commit of the core.
pub struct Done {
    /// Its vector.
    pub commit_vec: Vector,
}

impl Client {
    /// Creates a session at a data center.
    pub fn new(net: &Arc<dyn Cluster>, dc: DcId, partitions: u16, space: Space) -> Self {
        let (number, ready, incarnation, is_alone) = net.with(|inner| {
            let is_alone = inner.here().is_some();
            (inner.add_client(), inner.ready(dc), inner.incarnation(dc), is_alone)
        });
        // Even if a process draws the random numbers of an earlier one, its ids differ.
        let [high, low] = [net.world().random(), net.world().random() ^ ready.0].map(u128::from);
        let config = SessionConfig::new(Origin(high << 64 | low), dc, partitions);
        let mut config = SessionConfig { incarnation, ..config };
        if is_alone {
            // Where time is real, a snapshot that an earlier transaction was given may be older than the one that `visible` says
            // every new transaction sees.
            config.handout_ms_max = 0;
        }
        Self {
            net: Arc::clone(net),
            dc,
            incarnation,
            number,
            space,
            session: Session::new(config),
            committing: None,
            is_detached: false,
            is_certifying: false,
            is_deferring: false,
        }
    }

    /// Lets the other sessions of the process see its strong transactions only when these have
    /// arrived in their data center, so that none of them waits for one.
    #[must_use]
    pub fn deferring(mut self, is_deferring: bool) -> Self {
        self.is_deferring = is_deferring;
        self
    }

    /// Returns the data center.
    pub fn dc(&self) -> DcId {
        self.dc
    }

    /// Returns the incarnation of the data center.
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// Switches to the items of this store.
    pub fn enter(&mut self, space: &Space) {
        self.space.clone_from(space);
    }

    /// Returns the core's number of the commit that was sent last and not answered.
    pub fn committing(&self) -> Option<TransactionId> {
        self.committing
    }

    /// Returns the vector of all that it has read and written.
    pub fn past(&self) -> Vector {
        self.session.past_vec()
    }

    /// Returns the snapshot of the running transaction; none if it has not read.
    pub fn snapshot(&self) -> Option<Vector> {
        self.session.snapshot()
    }

    /// True if another transaction can use it.
    pub fn is_idle(&self) -> bool {
        !self.is_detached && self.session.is_idle() && self.session.unanswered().is_none()
    }

    /// Removes the writes of the running transaction.
    pub fn take_back(&mut self) {
        self.session.take_back();
    }

    /// Ends the running transaction without a commit.
    pub fn rollback(&mut self) {
        self.session.rollback();
    }

    /// Waits until all of `past` is at the data center; later reads see at least that.
    pub async fn reach(&mut self, past: &Vector) -> Result<(), Trouble> {
        if self.past().covers(past) {
            return Ok(());
        }
        let (dc, incarnation) = (self.dc, self.incarnation);
        // The caller made sure that `past` contains nothing that was cut off before.
        let epoch = self.net.with(|inner| inner.members().epoch());
        self.session.join(&Token { dc, incarnation, past_vec: *past, epoch, newest: epoch });
        self.is_detached = true;
        self.call(|session, now, out| session.attach(now, dc, out)).await?;
        self.is_detached = false;
        Ok(())
    }

    /// Reads the states of items from one snapshot, with the transaction's own writes.
    pub async fn read(&mut self, keys: Vec<Key>) -> Result<Vec<Arc<State>>, Trouble> {
        let keys = keys.into_iter().map(|key| self.space.key(key)).collect();
        match self.call(|session, now, out| session.read(now, keys, out)).await? {
            Event::Read(states) => Ok(states),
            other => unreachable!("a read gave {other:?}"),
        }
    }

    /// Buffers writes; other transactions do not see them before the commit.
    pub fn write(&mut self, updates: Vec<Update>) -> Result<(), Trouble> {
        let updates = self.space.updates(updates);
        self.put(updates)
    }

    /// Writes items by the engine's keys.
    fn put(&mut self, updates: Vec<Update>) -> Result<(), Trouble> {
        let session = &mut self.session;
        self.net.with(|inner| {
            let now = inner.now();
            updates.into_iter().try_for_each(|update| session.write(now, update)).map_err(misused)
        })
    }

    /// Commits the writes.
    pub async fn commit(&mut self) -> Result<Done, Trouble> {
        match self.call(Session::commit).await? {
            Event::Committed { commit_vec, .. } => Ok(Done { commit_vec }),
            other => unreachable!("a commit gave {other:?}"),
        }
    }

    /// Begins a strong transaction.
    pub fn begin_strong(&mut self) -> Result<(), Trouble> {
        let session = &mut self.session;
        self.net.with(|inner| session.begin_strong(inner.now())).map_err(misused)
    }

    /// Commits the strong transaction with exactly these writes, if no unseen transaction conflicts
    /// with its touches.
    pub async fn certify(
        &mut self,
        touches: Vec<Touch>,
        updates: Vec<Update>,
    ) -> Result<Done, Trouble> {
        let touches = self.space.touches(touches);
        let updates = self.space.updates(updates);
        self.certify_all(touches, updates).await
    }

    /// Certifies with the engine's keys.
    pub async fn certify_all(
        &mut self,
        touches: Vec<Touch>,
        updates: Vec<Update>,
    ) -> Result<Done, Trouble> {
        self.take_back();
        self.put(updates)?;
        self.session.declare(touches).map_err(misused)?;
        self.is_certifying = true;
        let done = self.commit().await;
        self.is_certifying = false;
        done
    }

    async fn call(
        &mut self,
        begin: impl FnOnce(&mut Session, Now, &mut Vec<SessionOutput>) -> Result<(), CallError>,
    ) -> Result<Event, Trouble> {
        let net = Arc::clone(&self.net);
        let mut out = Vec::new();
        self.committing = None;
        net.with(|inner| {
            // Drop answers that came too late for an earlier call.
            while inner.receive(self.number).is_some() {}
            inner.start_above(&mut self.session, (self.dc, self.incarnation));
            begin(&mut self.session, inner.now(), &mut out)
        })
        .map_err(misused)?;
        loop {
            let answer = net.with(|inner| self.exchange(inner, &mut out));
            match answer {
                Some(Ok(Event::Waiting(_))) => {}
                Some(result) => return result,
                None => self.wait().await,
            }
        }
    }

    /// Sends outgoing messages and handles incoming ones until there is an event.
    fn exchange(
        &mut self,
        inner: &mut dyn Replicas,
        out: &mut Vec<SessionOutput>,
    ) -> Option<Result<Event, Trouble>> {
        if self.is_over(inner) {
            return Some(Err(self.cut_off()));
        }
        loop {
            let mut event = None;
            for output in out.drain(..) {
                match output {
                    SessionOutput::Send(envelope) => {
                        self.committing = commit_of(&envelope.message).or(self.committing);
                        inner.stay_busy();
                        inner.send(Address::Client(self.number), envelope);
                    }
                    SessionOutput::Event(found) => event = Some(found),
                }
            }
            inner.settle();
            if let Some(event) = event {
                let is_deferred = self.is_certifying && self.is_deferring;
                if let Event::Committed { commit_vec, .. } = &event
                    && !is_deferred
                {
                    inner.raise_floor(&self.session, commit_vec, (self.dc, self.incarnation));
                }
                return Some(judge(event));
            }
            let now = inner.now();
            match inner.receive(self.number) {
                Some((from, message)) => self.session.handle(now, from, message, out),
                None if self.session.wake_at_us().is_some_and(|at| at <= now.mono_us) => {
                    self.session.tick(now, out);
                }
                None if self.is_stuck(inner) => return Some(Err(self.cut_off())),
                None => return None,
            }
        }
    }

    /// True if its data center has stopped, or another incarnation has replaced it.
    fn is_over(&self, inner: &dyn Replicas) -> bool {
        !inner.is_up(self.dc) || inner.incarnation(self.dc) != self.incarnation
    }

    fn is_stuck(&self, inner: &dyn Replicas) -> bool {
        self.is_certifying && inner.lacking(self.dc).is_some()
    }

    /// Returns the error of a call whose data center is down or alone.
    fn cut_off(&mut self) -> Trouble {
        match self.committing {
            Some(id) => Trouble::Unknown(id, Refusal::TimedOut { on: None }),
            None if self.is_certifying => Trouble::Alone(self.dc),
            None => Trouble::Down(self.dc),
        }
    }

    /// Waits for an answer, or until it is time to send again.
    async fn wait(&mut self) {
        let at = self.session.wake_at_us().map_or(Duration::ZERO, Duration::from_micros);
        let pause = at.saturating_sub(self.net.world().elapsed());
        let mut sleep = self.net.world().sleep(pause);
        let (net, number) = (&self.net, self.number);
        poll_fn(|context| {
            let is_over = net.with(|inner| {
                inner.has_mail(number, context.waker())
                    || self.is_over(inner)
                    || self.is_stuck(inner)
            });
            if is_over { Poll::Ready(()) } else { sleep.as_mut().poll(context) }
        })
        .await;
    }
}

/// Returns the error of a call that cannot begin because an earlier one was dropped midway, and
/// with it the transaction.
fn misused(error: CallError) -> Trouble {
    debug_assert_ne!(error, CallError::WrongKind, "writes are checked");
    Trouble::Refused(Refusal::Busy)
}

fn commit_of(message: &Message) -> Option<TransactionId> {
    match message {
        Message::CommitOne(commit) => Some(commit.id),
        Message::Prepare(prepare) => Some(prepare.id),
        Message::Group(GroupMessage::Certify(proposal)) => Some(proposal.id),
        _ => None,
    }
}

fn judge(event: Event) -> Result<Event, Trouble> {
    match event {
        Event::Aborted { refusal, .. } | Event::Failed(refusal) => Err(Trouble::Refused(refusal)),
        Event::Unknown { id, refusal } => Err(Trouble::Unknown(id, refusal)),
        other => Ok(other),
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.net.with(|inner| inner.remove_client(self.number));
    }
}
