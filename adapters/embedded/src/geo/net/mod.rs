//! The replicas of all data centers, and the messages on their way between them.
//!
//! Within a data center a message arrives at once. Between two data centers it takes half a round
//! trip, and a message is lost while its link is down, which the core expects. Due work is done
//! when a client calls, and by the driver otherwise.

mod line;
mod mailbox;
mod members;
mod node;
mod site;
mod view;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mingle_geo::derive::Derive;
use mingle_geo::members::Membership;
use mingle_geo::message::Message;
use mingle_geo::session::Floor;
use mingle_geo::{
    Address, Alarm, DcId, Envelope, Input, Members, Now, Output, PartitionId, Persist, Record,
};
use mingle_store::World;

use super::cluster::Replicas;
use super::config::GeoConfig;
use super::disk::{Disk, Place, Written};
use super::driver::Signal;
use crate::config::LinkTable;
use crate::storage::{Storage, StorageError, View};

use line::Lines;
use mailbox::Mailbox;
use node::PAUSE_MAX_STRONG;
use site::Site;

pub use members::Change;

/// Longest step of time while nothing happens; steps grow up to this.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Time for which steps stay short after an event.
const BUSY_FOR: Duration = Duration::from_millis(200);

/// Maximal number of alarms kept; the oldest is dropped.
const ALARMS_MAX: usize = 100;

/// All data centers of a store.
pub struct Net {
    /// Wakes the driver when work becomes due earlier than expected.
    pub signal: Arc<Signal>,
    /// Clock, tasks and randomness.
    pub world: Arc<dyn World>,
    inner: Mutex<Inner>,
}

/// The state that [`Net`] guards.
pub struct Inner {
    world: Arc<dyn World>,
    config: GeoConfig,
    links: Option<LinkTable>,
    sites: Vec<Site>,
    /// The indexes that all replicas keep.
    indexes: Vec<Arc<dyn Derive>>,
    /// The membership with the newest epoch that any replica knows.
    members: Members,
    /// The agreed membership of a store without certification; this process maintains it.
    agreed: Option<Membership>,
    /// Messages between data centers, by arrival time and number.
    travelling: BTreeMap<(Duration, u64), Travelling>,
    /// The ordered connections of a strong store; other stores accept messages in any order.
    lines: Lines,
    /// Inputs that arrive now.
    local: VecDeque<(DcId, PartitionId, Input)>,
    clients: BTreeMap<u64, Mailbox>,
    /// What was acknowledged at each incarnation of a data center.
    floors: BTreeMap<(DcId, u32), Floor>,
    /// Numbers messages and clients.
    next: u64,
    tick_at: Duration,
    tick: Duration,
    pause: Duration,
    busy_until: Duration,
    /// Time at which the driver runs next.
    driver_due: Duration,
    /// The logs on disk; none for a store in memory.
    disk: Option<Disk>,
    alarms: VecDeque<String>,
}

struct Travelling {
    from: Address,
    to: Address,
    message: Message,
    /// The life of the connection on which the message was sent.
    life: u64,
}

impl Net {
    /// Loads all data centers from `storage`; new and empty without storage.
    ///
    /// # Errors
    ///
    /// The setting of the core that is out of bounds, or the fault of the storage.
    pub fn new(
        config: &GeoConfig,
        links: Option<LinkTable>,
        world: Arc<dyn World>,
        storage: Option<&dyn Storage>,
    ) -> Result<Self, StorageError> {
        let view = storage.map(Storage::snapshot).transpose()?;
        let view = view.as_deref().map(|view| view as &dyn View);
        let inner = Inner::load(config, links, &world, view)?;
        Ok(Self { signal: Arc::default(), world, inner: Mutex::new(inner) })
    }

    /// Restarts all data centers from the logs on disk. Their clients notice it.
    ///
    /// # Errors
    ///
    /// As [`Net::new`].
    pub fn reload(&self, view: &dyn View) -> Result<(), StorageError> {
        let mut inner = self.lock();
        let mut fresh = Inner::load(&inner.config, inner.links.clone(), &self.world, Some(view))?;
        for by in std::mem::take(&mut inner.indexes) {
            Replicas::derive(&mut fresh, by);
        }
        fresh.next = inner.next;
        fresh.alarms = std::mem::take(&mut inner.alarms);
        fresh.clients = std::mem::take(&mut inner.clients);
        fresh.clients.values_mut().for_each(|mailbox| mailbox.queue.clear());
        fresh.wake_clients();
        let before = std::mem::replace(&mut *inner, fresh);
        inner.stay_busy();
        drop(inner);
        // The old writer notices that another one has replaced it.
        if let Some(disk) = before.disk {
            disk.signal.raise();
        }
        self.signal.raise();
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does all due work, then runs `work`.
    pub fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.lock();
        inner.advance();
        let result = work(&mut inner);
        inner.settle();
        if inner.next_due() < inner.driver_due {
            inner.driver_due = Duration::ZERO;
            self.signal.raise();
        }
        result
    }

    /// Does all due work, and returns the time of the next work if no client calls before.
    pub fn drive(&self) -> Duration {
        let mut inner = self.lock();
        inner.advance();
        inner.driver_due = inner.next_due();
        inner.driver_due
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        // The driver and the writer find the network gone, and end.
        self.signal.raise();
        if let Some(disk) = &self.lock().disk {
            disk.signal.raise();
        }
    }
}

impl Inner {
    /// Loads all data centers from the logs on disk.
    fn load(
        config: &GeoConfig,
        links: Option<LinkTable>,
        world: &Arc<dyn World>,
        view: Option<&dyn View>,
    ) -> Result<Self, StorageError> {
        let count = config.datacenters.len() as u8;
        let mut disk = view.map(|_| Disk::new());
        let mut sites = Vec::new();
        for dc in (0..count).map(DcId) {
            let disk = disk.as_mut().zip(view);
            sites.push(Site::open(dc, config, disk)?);
        }
        if let Some(why) = sites[0].lost.as_ref().filter(|_| sites.iter().all(|s| s.lost.is_some()))
        {
            return Err(StorageError::new(why.clone()));
        }
        let settings = sites[0].replicas[0].config();
        let (tick, pause) = (settings.tick_ms, settings.tick_idle_ms);
        let mut inner = Self {
            config: config.clone(),
            links,
            sites,
            indexes: Vec::new(),
            members: Members::default(),
            agreed: None,
            travelling: BTreeMap::new(),
            lines: Lines::default(),
            local: VecDeque::new(),
            clients: BTreeMap::new(),
            floors: BTreeMap::new(),
            next: 0,
            tick_at: world.elapsed(),
            tick: Duration::from_millis(tick),
            pause: Duration::from_millis(pause),
            busy_until: Duration::ZERO,
            driver_due: Duration::ZERO,
            alarms: VecDeque::new(),
            disk,
            world: Arc::clone(world),
        };
        inner.recall_members();
        Ok(inner)
    }

    /// Returns the time for the core.
    pub fn now(&self) -> Now {
        let wall_us = u64::try_from(self.world.now().micros()).unwrap_or(0);
        let mono_us = u64::try_from(self.world.elapsed().as_micros()).unwrap_or(u64::MAX);
        Now { wall_us, mono_us }
    }

    fn next_due(&self) -> Duration {
        let first = self.travelling.first_key_value().map(|((due, _), _)| *due);
        first.map_or(self.tick_at, |first| first.min(self.tick_at))
    }

    /// Does all due work, in order.
    fn advance(&mut self) {
        let now = self.world.elapsed();
        loop {
            self.settle();
            let first = self.travelling.first_key_value().map(|((due, _), _)| *due);
            if first.is_some_and(|due| due <= now && due <= self.tick_at) {
                let (_, travelling) = self.travelling.pop_first().expect("it is there");
                self.arrive(travelling);
            } else if self.tick_at <= now {
                self.tick(now);
            } else {
                return;
            }
        }
    }

    /// Handles all inputs that arrive now.
    pub fn settle(&mut self) {
        while let Some((dc, partition, input)) = self.local.pop_front() {
            self.handle(dc, partition, input);
        }
    }

    fn tick(&mut self, now: Duration) {
        let mut is_busy = false;
        for site in 0..self.sites.len() {
            for partition in 0..self.config.partitions {
                let (dc, partition) = (DcId(site as u8), PartitionId(partition));
                self.handle(dc, partition, Input::Tick);
                let site = &self.sites[site];
                let ticks = site.replicas[usize::from(partition.0)].tick_in_ms();
                is_busy |= site.is_up && Duration::from_millis(ticks) <= self.tick;
            }
        }
        self.mend_lines();
        self.agree();
        if is_busy {
            self.stay_busy();
        }
        let step = if now < self.busy_until { self.tick } else { self.pause };
        if now >= self.busy_until {
            let most = if self.config.is_certifying() { PAUSE_MAX_STRONG } else { PAUSE_MAX };
            self.pause = (self.pause * 2).min(most);
        }
        self.tick_at = now + step;
    }

    /// Notes an event: the next steps are short.
    pub fn stay_busy(&mut self) {
        let now = self.world.elapsed();
        self.busy_until = now + BUSY_FOR;
        self.pause = Duration::from_millis(self.sites[0].replicas[0].config().tick_idle_ms);
        self.tick_at = self.tick_at.min(now + self.tick);
    }

    fn handle(&mut self, dc: DcId, partition: PartitionId, input: Input) {
        let now = self.now();
        let site = &mut self.sites[usize::from(dc.0)];
        let is_up = site.is_up;
        // Writes that were under way when the data center stopped are still confirmed.
        if !is_up && !matches!(input, Input::Persisted { .. }) {
            return;
        }
        let mut outputs = Vec::new();
        let replica = &mut site.replicas[usize::from(partition.0)];
        let had = replica.known_vec()[DcId::STRONG];
        replica.handle(now, input, &mut outputs);
        if replica.members().epoch() > self.members.epoch() {
            self.members = replica.members().clone();
        }
        if replica.known_vec()[DcId::STRONG] > had {
            // Its neighbours should learn this soon.
            self.stay_busy();
        }
        let from = Address::Replica(dc, partition);
        for output in outputs {
            match output {
                Output::Send(envelope) if is_up => self.send(from, envelope),
                Output::Send(_) => {}
                Output::Persist(persist) => self.persist((dc, partition), persist),
                Output::Alarm(alarm) => self.note(dc, &alarm),
            }
        }
    }

    fn persist(&mut self, place: Place, persist: Persist) {
        let incarnation = self.sites[usize::from(place.0.0)].incarnation;
        let persist = match &mut self.disk {
            Some(disk) => disk.push(place, incarnation, persist),
            None => Some(persist),
        };
        if let Some(Persist { index, then, .. }) = persist {
            self.on_written(Written { place, incarnation, index, then });
        }
    }

    /// Continues after a write: sends the messages that waited for it.
    pub fn on_written(&mut self, written: Written) {
        let Written { place: (dc, partition), incarnation, index, then } = written;
        if incarnation != self.incarnation(dc) {
            return;
        }
        if self.is_up(dc) {
            for envelope in then {
                self.send(Address::Replica(dc, partition), envelope);
            }
        }
        self.local.push_back((dc, partition, Input::Persisted { index }));
    }

    /// Runs `work` with the disk and a function that returns a replica's checkpoint; none without a
    /// disk.
    pub fn with_disk<T>(
        &mut self,
        work: impl FnOnce(&mut Disk, &dyn Fn(Place) -> Vec<Record>) -> T,
    ) -> Option<T> {
        let sites = &self.sites;
        let checkpoint = |(dc, partition): Place| {
            sites[usize::from(dc.0)].replicas[usize::from(partition.0)].checkpoint()
        };
        self.disk.as_mut().map(|disk| work(disk, &checkpoint))
    }

    /// True if the task woken by this signal writes the logs: after a reload, another task does.
    pub fn is_written_by(&self, signal: &Arc<Signal>) -> bool {
        self.disk.as_ref().is_some_and(|disk| Arc::ptr_eq(&disk.signal, signal))
    }

    /// Stops all data centers after a failure of the disk.
    pub fn stop(&mut self) {
        for dc in 0..self.sites.len() {
            self.set_up(DcId(dc as u8), false);
        }
    }

    fn note(&mut self, dc: DcId, alarm: &Alarm) {
        if self.alarms.len() == ALARMS_MAX {
            self.alarms.pop_front();
        }
        let name = &self.sites[usize::from(dc.0)].name;
        self.alarms.push_back(format!("{name}: {alarm:?}"));
    }

    /// Returns the newest alarms of the core, at most a hundred.
    pub fn alarms(&self) -> Vec<String> {
        self.alarms.iter().cloned().collect()
    }

    /// Sends a message.
    pub fn send(&mut self, from: Address, envelope: Envelope) {
        let Envelope { to, message } = envelope;
        match (from, to) {
            (_, Address::Client(client)) => {
                if let Some(mailbox) = self.clients.get_mut(&client) {
                    mailbox.queue.push_back((from, message));
                    if let Some(waker) = mailbox.waker.take() {
                        waker.wake();
                    }
                }
            }
            (Address::Replica(own, _), Address::Replica(dc, _)) if own != dc => {
                let [one, other] = [own, dc].map(|dc| &self.sites[usize::from(dc.0)].name);
                if !self.is_linked(own, dc) {
                    return self.lose_line(own, dc);
                }
                let round_trip = self.config.between(one, other).draw(&*self.world);
                self.next += 1;
                let due = self.world.elapsed() + round_trip / 2;
                let carried = if self.config.is_certifying() {
                    self.lines.carry(own, dc, due)
                } else {
                    Some((due, 0))
                };
                let Some((due, life)) = carried else { return };
                let travelling = Travelling { from, to, message, life };
                self.travelling.insert((due, self.next), travelling);
            }
            (_, Address::Replica(dc, partition)) => {
                self.local.push_back((dc, partition, Input::Message { from, message }));
            }
        }
    }

    fn arrive(&mut self, travelling: Travelling) {
        let Travelling { from, to, message, life } = travelling;
        let (Address::Replica(own, _), Address::Replica(dc, partition)) = (from, to) else {
            return;
        };
        if !self.is_linked(own, dc) {
            return self.lose_line(own, dc);
        }
        if self.config.is_certifying() && !self.lines.is_alive(own, dc, life) {
            return;
        }
        let brings = matches!(&message, Message::Replicate(r) if !r.transactions.is_empty());
        if brings {
            self.stay_busy();
        }
        self.local.push_back((dc, partition, Input::Message { from, message }));
    }

    fn lose_line(&mut self, one: DcId, other: DcId) {
        if self.config.is_certifying() {
            self.lines.lose(one, other);
        }
    }

    /// Restores lost connections where possible, and tells both ends.
    fn mend_lines(&mut self) {
        let mut lines = std::mem::take(&mut self.lines);
        let mended = lines.mend(|one, other| self.reaches(one, other));
        self.lines = lines;
        for (one, other) in mended {
            for partition in (0..self.config.partitions).map(PartitionId) {
                self.local.push_back((one, partition, Input::Reconnected { dc: other }));
                self.local.push_back((other, partition, Input::Reconnected { dc: one }));
            }
            self.stay_busy();
        }
    }

    fn is_linked(&self, from: DcId, to: DcId) -> bool {
        let [from, to] = [from, to].map(|dc| &self.sites[usize::from(dc.0)].name);
        self.links.as_ref().is_none_or(|links| links.is_up(from, to))
    }

    /// True if a data center runs.
    pub fn is_up(&self, dc: DcId) -> bool {
        self.sites[usize::from(dc.0)].is_up
    }

    /// Stops or starts a data center. Its clients notice it.
    pub fn set_up(&mut self, dc: DcId, is_up: bool) {
        self.sites[usize::from(dc.0)].is_up = is_up;
        for other in (0..self.sites.len()).map(|other| DcId(other as u8)) {
            if other != dc {
                self.lose_line(dc, other);
            }
        }
        self.wake_clients();
        self.stay_busy();
    }

    /// Returns the data centers that run.
    pub fn running(&self) -> impl Iterator<Item = DcId> {
        let sites = (0..).zip(&self.sites);
        sites.filter(|(_, site)| site.is_up).map(|(dc, _)| DcId(dc))
    }
}
