//! The data centers as the stores of Mingle's programs use them, at this one.
//!
//! A client of such a store is a session of the core outside of the driver's thread. Its messages go to the
//! driver, and the answers into its [`Mailbox`]. The driver publishes a [`View`] of the partitions' progress;
//! a question that needs the newest state is asked, and its caller waits for the driver.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use mingle_geo::derive::{Derive, Entries, Span};
use mingle_geo::message::Message;
use mingle_geo::session::Floor;
use mingle_geo::{Address, DcId, Envelope, Key, Members, Now, Outcome, Session, Timestamp, Vector};
use mingle_model::{Name, TransactionId};
use mingle_store::World;
use mingle_store_embedded::cluster::{Cluster, Phase, Replicas};

use super::driver::Event;

/// The number of the first client of a store; sessions of the driver have lower ones.
pub const FIRST_CLIENT: u64 = 1 << 62;

/// A question or a message of the stores' clients.
#[derive(Debug)]
pub enum Asked {
    /// A message of a client.
    Send(u64, Envelope),
    /// The names of items from the first on, with a prefix, at most so many.
    Items(Key, Vec<u8>, usize, Sender<Vec<Key>>),
    /// An index to keep from now on.
    Derive(Arc<dyn Derive>),
    /// The entries of a part of an index that hold at a snapshot, and perhaps others.
    Entries(Span, Vector, Sender<Option<Entries>>),
    /// The outcome of a transaction, and true if it may be undecided.
    Ended(TransactionId, Sender<(Option<Outcome>, bool)>),
    /// An upper bound of the timestamps of the commits that were acknowledged.
    Acknowledged(Sender<Timestamp>),
}

/// The progress of the partitions, as the driver has published it.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// True if this process serves.
    pub is_up: bool,
    /// The vector that every new session sees at least.
    pub visible: Vector,
    /// The vector that every new strong transaction sees at least.
    pub strongly_visible: Vector,
    /// The membership that the process knows.
    pub members: Members,
    /// The number of partitions that have copied the data of other data centers.
    pub come_up: u16,
    /// The data centers that are not connected.
    pub away: Vec<DcId>,
}

/// The queue of answers to one client.
#[derive(Debug, Default)]
struct Mailbox {
    queue: VecDeque<(Address, Message)>,
    waker: Option<Waker>,
}

/// The state that the driver and the stores share.
#[derive(Debug)]
pub struct Shared {
    /// The data center, its incarnation, the number of data centers and of partitions, and the number of
    /// data centers that can be lost.
    dc: DcId,
    incarnation: u32,
    dc_count: u8,
    partition_count: u16,
    f: u8,
    /// The vector up to which the data center had issued timestamps at its start.
    ready: Vector,
    view: Mutex<View>,
    clients: Mutex<BTreeMap<u64, Mailbox>>,
    next: AtomicU64,
    is_used: AtomicBool,
    is_hurried: AtomicBool,
    floor: Mutex<Floor>,
}

/// The parts of a process that do not change.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub dc: DcId,
    pub incarnation: u32,
    pub dc_count: u8,
    pub partition_count: u16,
    pub f: u8,
}

impl Shared {
    pub fn new(place: Place, ready: Vector) -> Self {
        let Place { dc, incarnation, dc_count, partition_count, f } = place;
        Self {
            dc,
            incarnation,
            dc_count,
            partition_count,
            f,
            ready,
            view: Mutex::default(),
            clients: Mutex::default(),
            next: AtomicU64::new(FIRST_CLIENT),
            is_used: AtomicBool::new(false),
            is_hurried: AtomicBool::new(false),
            floor: Mutex::default(),
        }
    }

    /// Returns the number of partitions.
    pub fn partition_count(&self) -> u16 {
        self.partition_count
    }

    /// Returns the data center and its incarnation, and the number of data centers.
    pub fn place(&self) -> (DcId, u32, u8) {
        (self.dc, self.incarnation, self.dc_count)
    }

    /// True if there are stores.
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// True if a client has asked for ticks since the last call.
    pub fn take_hurry(&self) -> bool {
        self.is_hurried.swap(false, Ordering::AcqRel)
    }

    /// Gives an answer to a client, which may be gone.
    pub fn deliver(&self, client: u64, from: Address, message: Message) {
        if let Some(mailbox) = lock(&self.clients).get_mut(&client) {
            mailbox.queue.push_back((from, message));
            if let Some(waker) = mailbox.waker.take() {
                waker.wake();
            }
        }
    }

    /// Publishes the progress. If the process begins or ends to serve, its clients look again.
    pub fn publish(&self, view: View) {
        let before = std::mem::replace(&mut *lock(&self.view), view.clone());
        if before.is_up != view.is_up || before.away != view.away {
            for mailbox in lock(&self.clients).values_mut() {
                if let Some(waker) = mailbox.waker.take() {
                    waker.wake();
                }
            }
        }
    }

    /// Tells all clients that the process does not serve any more.
    pub fn close(&self) {
        let view = View { is_up: false, ..lock(&self.view).clone() };
        self.publish(view);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The data centers, at this one.
pub struct Local {
    events: Sender<Event>,
    shared: Arc<Shared>,
    world: Arc<dyn World>,
}

impl Local {
    pub fn new(events: Sender<Event>, shared: Arc<Shared>, world: Arc<dyn World>) -> Self {
        shared.is_used.store(true, Ordering::Release);
        Self { events, shared, world }
    }
}

impl Cluster for Local {
    fn world(&self) -> &Arc<dyn World> {
        &self.world
    }

    fn run(&self, work: &mut dyn FnMut(&mut dyn Replicas)) {
        work(&mut Here(self));
    }
}

/// One use of the data centers. It locks nothing for longer than a call.
struct Here<'a>(&'a Local);

impl Here<'_> {
    fn view(&self) -> MutexGuard<'_, View> {
        lock(&self.0.shared.view)
    }

    /// Asks the driver; `None` if the process has stopped.
    fn ask<T>(&self, question: impl FnOnce(Sender<T>) -> Asked) -> Option<T> {
        let (answer, answers) = channel();
        self.0.events.send(Event::Asked(question(answer))).ok()?;
        answers.recv().ok()
    }

    fn is_here(&self, dc: DcId) -> bool {
        dc == self.0.shared.dc
    }
}

impl Replicas for Here<'_> {
    fn now(&self) -> Now {
        let world = &self.0.world;
        let wall_us = u64::try_from(world.now().micros()).unwrap_or(0);
        let mono_us = u64::try_from(world.elapsed().as_micros()).unwrap_or(u64::MAX);
        Now { wall_us, mono_us }
    }

    fn add_client(&mut self) -> u64 {
        let shared = &self.0.shared;
        let number = shared.next.fetch_add(1, Ordering::AcqRel);
        lock(&shared.clients).insert(number, Mailbox::default());
        number
    }

    fn remove_client(&mut self, client: u64) {
        lock(&self.0.shared.clients).remove(&client);
    }

    fn send(&mut self, from: Address, envelope: Envelope) {
        let Address::Client(client) = from else { return };
        // The view says if the process has stopped.
        let _ = self.0.events.send(Event::Asked(Asked::Send(client, envelope)));
    }

    fn receive(&mut self, client: u64) -> Option<(Address, Message)> {
        lock(&self.0.shared.clients).get_mut(&client)?.queue.pop_front()
    }

    fn has_mail(&mut self, client: u64, waker: &Waker) -> bool {
        let mut clients = lock(&self.0.shared.clients);
        let Some(mailbox) = clients.get_mut(&client) else { return true };
        mailbox.waker = Some(waker.clone());
        !mailbox.queue.is_empty()
    }

    fn settle(&mut self) {}

    fn stay_busy(&mut self) {
        self.0.shared.is_hurried.store(true, Ordering::Release);
    }

    fn start_above(&mut self, session: &mut Session, of: (DcId, u32)) {
        if of == (self.0.shared.dc, self.0.shared.incarnation) {
            session.start_above(&lock(&self.0.shared.floor));
        }
    }

    fn raise_floor(&mut self, session: &Session, commit_vec: &Vector, of: (DcId, u32)) {
        if of == (self.0.shared.dc, self.0.shared.incarnation) {
            lock(&self.0.shared.floor).raise(session, commit_vec);
        }
    }

    fn here(&self) -> Option<DcId> {
        Some(self.0.shared.dc)
    }

    fn names(&self) -> Vec<Name> {
        (0..self.0.shared.dc_count).map(|dc| DcId(dc).to_string().into()).collect()
    }

    fn is_up(&self, dc: DcId) -> bool {
        self.is_here(dc) && self.view().is_up
    }

    fn incarnation(&self, dc: DcId) -> u32 {
        let shared = &self.0.shared;
        if self.is_here(dc) { shared.incarnation } else { self.view().members.of(dc).incarnation }
    }

    fn is_coming_up(&self, dc: DcId) -> bool {
        let shared = &self.0.shared;
        self.is_here(dc) && shared.incarnation > 0 && self.view().come_up < shared.partition_count
    }

    fn is_ready(&self, dc: DcId) -> bool {
        !self.is_coming_up(dc) && self.view().visible.covers(&self.0.shared.ready)
    }

    fn ready(&self, dc: DcId) -> Timestamp {
        self.0.shared.ready[dc]
    }

    fn phase(&self, dc: DcId) -> Phase {
        use mingle_geo::members::Standing;
        match self.view().members.of(dc).standing {
            Standing::Fencing | Standing::Settling => return Phase::BeingGivenUp,
            Standing::Fenced => return Phase::GivenUp,
            Standing::In => {}
        }
        if self.is_coming_up(dc) {
            return Phase::ComingUp(self.view().come_up);
        }
        if self.is_up(dc) || !self.is_here(dc) { Phase::Up } else { Phase::Down }
    }

    fn visible(&self, dc: DcId) -> Vector {
        debug_assert!(self.is_here(dc), "stores are used at their own data center");
        self.view().visible
    }

    fn strongly_visible(&self, dc: DcId) -> Vector {
        debug_assert!(self.is_here(dc), "stores are used at their own data center");
        self.view().strongly_visible
    }

    fn lacking(&self, dc: DcId) -> Option<(Vec<DcId>, usize)> {
        let shared = &self.0.shared;
        let needed = usize::from(shared.dc_count / 2 + 1).max(usize::from(shared.f) + 1);
        let away = if self.is_here(dc) { self.view().away.clone() } else { Vec::new() };
        (usize::from(shared.dc_count) - away.len() < needed).then_some((away, needed))
    }

    fn acknowledged(&self) -> Vector {
        let at = self.ask(Asked::Acknowledged).unwrap_or_default();
        Vector::ZERO.with(self.0.shared.dc, at)
    }

    fn members(&self) -> Members {
        self.view().members.clone()
    }

    fn items(&self, _: DcId, first: &Key, prefix: &[u8], most: usize) -> Option<Vec<Key>> {
        self.ask(|answer| Asked::Items(first.clone(), prefix.to_vec(), most, answer))
    }

    fn derive(&mut self, by: Arc<dyn Derive>) {
        // A process that has stopped answers no questions.
        let _ = self.0.events.send(Event::Asked(Asked::Derive(by)));
    }

    fn entries(&self, _: DcId, span: &Span, snapshot: &Vector) -> Option<Entries> {
        self.ask(|answer| Asked::Entries(span.clone(), *snapshot, answer)).flatten()
    }

    fn ended(&self, _: DcId, id: &TransactionId) -> (Option<Outcome>, bool) {
        // Nothing is known of one at a process that has stopped.
        self.ask(|answer| Asked::Ended(*id, answer)).unwrap_or((None, true))
    }

    fn ended_elsewhere(&self, _: DcId, _: &TransactionId) -> mingle_store::Outcome {
        mingle_store::Outcome::Unknown
    }
}
