//! A simulation for scripts: data centers at fixed distances, with disks that take no time.

use std::collections::{BTreeMap, BTreeSet};

use mingle_geo::certify::{Access, CertifierConfig, Conflicts, GroupConfig, Label};
use mingle_geo::flaw::Planted;
use mingle_geo::message::{Admit, Fence, RaiseFloor};
use mingle_geo::session::SessionOutput;
use mingle_geo::{
    Address, Alarm, Config, DcId, Envelope, Event, Input, Key, Message, Now, Op, Output,
    PartitionId, Session, SessionConfig, State, StrongReplica, Update,
};
use mingle_model::{Origin, TransactionId};

const EPOCH_US: u64 = 1_000_000_000_000;
const NEAR_US: u64 = 100;
const TICK_US: u64 = 5_000;

/// A predicate of messages that do not arrive.
type Held = fn(from: Address, &Envelope) -> bool;

pub struct Map {
    /// The delay from one data center to another, in microseconds.
    far_us: Vec<Vec<u64>>,
    replicas: BTreeMap<(u8, u16), StrongReplica>,
    sessions: Vec<Session>,
    events: Vec<Option<Event>>,
    queue: BTreeMap<(u64, u64), (Address, Envelope)>,
    order: u64,
    dead: BTreeSet<u8>,
    /// The clock error of each data center, in microseconds.
    skews_us: BTreeMap<u8, i64>,
    held: Held,
    /// Messages that were held back.
    kept: Vec<(Address, Envelope)>,
    pub now_us: u64,
}

impl Map {
    /// Replicas of `partitions` partitions in as many data centers as `far_us` has rows. The first
    /// leads, and two transactions labelled `withdraw` conflict.
    pub fn new(far_us: &[&[u64]], partitions: u16, planted: Planted) -> Self {
        let dcs = far_us.len() as u8;
        let mut replicas = BTreeMap::new();
        for dc in 0..dcs {
            for partition in 0..partitions {
                let replica = replica(dcs, partitions, planted, (dc, partition), 0);
                replicas.insert((dc, partition), replica);
            }
        }
        let mut map = Self {
            far_us: far_us.iter().map(|row| row.to_vec()).collect(),
            replicas,
            sessions: Vec::new(),
            events: Vec::new(),
            queue: BTreeMap::new(),
            order: 0,
            dead: BTreeSet::new(),
            skews_us: BTreeMap::new(),
            held: |_, _| false,
            kept: Vec::new(),
            now_us: 0,
        };
        // It runs until there is a leader.
        map.run_for(10_000_000);
        assert!(map.replicas[&(0, 0)].group().is_leader());
        map
    }

    /// Opens a session in a data center, with a planted mistake.
    pub fn session(&mut self, dc: u8, planted: Planted) -> usize {
        self.session_of((dc, 0), planted)
    }

    /// Opens a session in an incarnation of a data center.
    pub fn session_of(&mut self, (dc, incarnation): (u8, u32), planted: Planted) -> usize {
        let partitions = self.replicas.keys().filter(|(of, _)| *of == dc).count() as u16;
        let origin = Origin(self.sessions.len() as u128 + 1);
        let config = SessionConfig::new(origin, DcId(dc), partitions);
        let config = SessionConfig { planted, incarnation, ..config };
        self.sessions.push(Session::new(config));
        self.events.push(None);
        self.sessions.len() - 1
    }

    /// Holds back, from now on, the messages for which `held` is true.
    pub fn hold(&mut self, held: Held) {
        self.held = held;
    }

    /// Delivers the held messages now, and all later ones normally.
    pub fn release(&mut self) {
        self.held = |_, _| false;
        for (from, envelope) in std::mem::take(&mut self.kept) {
            self.send(from, envelope);
        }
    }

    pub fn replica(&self, dc: u8, partition: u16) -> &StrongReplica {
        &self.replicas[&(dc, partition)]
    }

    /// Asks at `at` that a data center's first incarnation be given up.
    pub fn fence(&mut self, at: u8, dc: u8) {
        let fence = Fence { request: 1, dc: DcId(dc), incarnation: 0 };
        let from = Address::Client(u64::MAX);
        self.give((at, 0), Input::Message { from, message: Message::Fence(fence) });
    }

    /// Asks at `at` that a data center's second incarnation be admitted.
    pub fn admit(&mut self, at: u8, dc: u8) {
        let admit = Admit { request: 1, dc: DcId(dc), incarnation: 1 };
        let from = Address::Client(u64::MAX);
        self.give((at, 0), Input::Message { from, message: Message::Admit(admit) });
    }

    /// Raises the floor: an origin's operations up to this one are no longer run.
    pub fn raise_floor(&mut self, dc: u8, id: TransactionId) {
        let TransactionId { origin, sequence } = id;
        let of_dc: Vec<(u8, u16)> =
            self.replicas.keys().copied().filter(|place| place.0 == dc).collect();
        for place in of_dc {
            let message = Message::RaiseFloor(RaiseFloor { origin, sequence });
            self.give(place, Input::Message { from: Address::Client(u64::MAX), message });
        }
    }

    /// Starts the second incarnation of a lost data center, with empty disks.
    pub fn start_anew(&mut self, dc: u8) {
        let dcs = self.far_us.len() as u8;
        let of_dc: Vec<(u8, u16)> =
            self.replicas.keys().copied().filter(|place| place.0 == dc).collect();
        for place in &of_dc {
            let new = replica(dcs, of_dc.len() as u16, Planted::default(), *place, 1);
            self.replicas.insert(*place, new);
        }
        self.dead.remove(&dc);
    }

    /// Loses a data center, with its messages in flight.
    pub fn lose(&mut self, dc: u8) {
        self.dead.insert(dc);
        self.queue.retain(|_, (from, _)| !matches!(from, Address::Replica(of, _) if of.0 == dc));
    }

    /// Sets the error of a data center's clocks.
    pub fn skew(&mut self, dc: u8, by_us: i64) {
        self.skews_us.insert(dc, by_us);
    }

    fn now(&self, dc: u8) -> Now {
        let by_us = self.skews_us.get(&dc).copied().unwrap_or(0);
        let wall_us = (EPOCH_US + self.now_us).saturating_add_signed(by_us);
        Now { wall_us, mono_us: self.now_us }
    }

    fn now_of(&self, client: usize) -> Now {
        self.now(self.sessions[client].dc().0)
    }

    fn dc_of(&self, address: Address) -> u8 {
        match address {
            Address::Replica(dc, _) => dc.0,
            Address::Client(client) => {
                self.sessions.get(client as usize).map_or(0, |session| session.dc().0)
            }
        }
    }

    fn send(&mut self, from: Address, envelope: Envelope) {
        if (self.held)(from, &envelope) {
            self.kept.push((from, envelope));
            return;
        }
        let (one, other) = (self.dc_of(from), self.dc_of(envelope.to));
        let far_us = self.far_us[usize::from(one)][usize::from(other)];
        self.order += 1;
        let at_us = self.now_us + if one == other { NEAR_US } else { far_us };
        self.queue.insert((at_us, self.order), (from, envelope));
    }

    fn give(&mut self, place: (u8, u16), input: Input) {
        let now = self.now(place.0);
        if self.dead.contains(&place.0) {
            return;
        }
        let Some(replica) = self.replicas.get_mut(&place) else { return };
        let (mut out, from) = (Vec::new(), replica.address());
        replica.handle(now, input, &mut out);
        for output in out {
            match output {
                Output::Send(envelope) => self.send(from, envelope),
                Output::Persist(persist) => {
                    persist.then.into_iter().for_each(|envelope| self.send(from, envelope));
                    self.give(place, Input::Persisted { index: persist.index });
                }
                Output::Alarm(Alarm::Transfer { .. } | Alarm::Lagging(_)) => {}
                Output::Alarm(alarm) => panic!("{place:?}: {alarm:?}"),
            }
        }
    }

    fn take(&mut self, client: usize, out: Vec<SessionOutput>) {
        for output in out {
            match output {
                SessionOutput::Send(envelope) => {
                    self.send(Address::Client(client as u64), envelope);
                }
                SessionOutput::Event(event) => self.events[client] = Some(event),
            }
        }
    }

    /// Advances to the next message, or to the next tick of all replicas.
    fn step(&mut self) {
        let tick_us = (self.now_us / TICK_US + 1) * TICK_US;
        let Some((&(at_us, order), _)) = self.queue.first_key_value().filter(|at| at.0.0 < tick_us)
        else {
            self.now_us = tick_us;
            let places: Vec<(u8, u16)> = self.replicas.keys().copied().collect();
            for place in places {
                self.give(place, Input::Tick);
            }
            for client in 0..self.sessions.len() {
                let (now, mut out) = (self.now_of(client), Vec::new());
                self.sessions[client].tick(now, &mut out);
                self.take(client, out);
            }
            return;
        };
        let (from, Envelope { to, message }) =
            self.queue.remove(&(at_us, order)).expect("it is first");
        self.now_us = self.now_us.max(at_us);
        match to {
            Address::Replica(dc, partition) => {
                self.give((dc.0, partition.0), Input::Message { from, message });
            }
            Address::Client(client) if client < self.sessions.len() as u64 => {
                let (now, mut out) = (self.now_of(client as usize), Vec::new());
                self.sessions[client as usize].handle(now, from, message, &mut out);
                self.take(client as usize, out);
            }
            Address::Client(_) => {}
        }
    }

    pub fn run_for(&mut self, lasts_us: u64) {
        let until_us = self.now_us + lasts_us;
        while self.now_us < until_us {
            self.step();
        }
    }

    /// Runs a call; returns its event and its duration in microseconds.
    pub fn call(
        &mut self,
        client: usize,
        call: impl FnOnce(&mut Session, Now, &mut Vec<SessionOutput>),
    ) -> (Event, u64) {
        self.start(client, call);
        self.end(client)
    }

    /// Starts a call without waiting for its end.
    pub fn start(
        &mut self,
        client: usize,
        call: impl FnOnce(&mut Session, Now, &mut Vec<SessionOutput>),
    ) {
        let (now, mut out) = (self.now_of(client), Vec::new());
        call(&mut self.sessions[client], now, &mut out);
        self.take(client, out);
    }

    /// Returns the event of a call, if it has ended.
    pub fn event(&mut self, client: usize) -> Option<Event> {
        self.events[client].take()
    }

    /// Waits for the end of a call; returns its event and the time from now in microseconds.
    pub fn end(&mut self, client: usize) -> (Event, u64) {
        let since_us = self.now_us;
        while self.now_us < since_us + 60_000_000 {
            if let Some(event) = self.event(client) {
                return (event, self.now_us - since_us);
            }
            self.step();
        }
        panic!("session {client} waits for ever");
    }

    /// Begins a transaction that reads a key.
    pub fn read(&mut self, client: usize, is_strong: bool, key: &Key) -> State {
        self.try_read(client, is_strong, key).expect("it can be read")
    }

    /// Like `read`, but may fail.
    pub fn try_read(&mut self, client: usize, is_strong: bool, key: &Key) -> Option<State> {
        let keys = vec![key.clone()];
        let (event, _) = self.call(client, |session, now, out| {
            if is_strong {
                session.begin_strong(now).expect("idle");
            }
            session.read(now, keys, out).expect("idle");
        });
        match event {
            Event::Read(states) => Some((*states[0]).clone()),
            _ => None,
        }
    }

    /// Writes to a key in the running transaction, or a new one, and commits.
    pub fn write(
        &mut self,
        client: usize,
        (key, op): (&Key, Op),
        label: Option<&str>,
    ) -> (Event, u64) {
        let update = Update { key: key.clone(), op, id: None };
        self.call(client, |session, now, out| {
            session.write(now, update).expect("idle");
            if let Some(label) = label {
                let label = Label::from(label);
                session.label(key.clone(), Access::Write, label).expect("it is strong");
            }
            session.commit(now, out).expect("idle");
        })
    }

    /// Makes the next transaction strong.
    pub fn begin_strong(&mut self, client: usize) {
        let now = self.now_of(client);
        self.sessions[client].begin_strong(now).expect("idle");
    }
}

/// True if a message carries causal transactions to another data center.
pub fn is_replication(envelope: &Envelope) -> bool {
    matches!(&envelope.message, Message::Replicate(_))
}

pub fn is_committed(event: &Event) -> bool {
    matches!(event, Event::Committed { .. })
}

/// Creates a replica with an empty disk that has never been written.
fn replica(
    dcs: u8,
    partitions: u16,
    planted: Planted,
    (dc, partition): (u8, u16),
    incarnation: u32,
) -> StrongReplica {
    let (id, place) = (DcId(dc), PartitionId(partition));
    let conflicts = Conflicts::new([("withdraw", "withdraw")]);
    let certifier = CertifierConfig { planted, ..CertifierConfig::new(place, conflicts) };
    let mut group = GroupConfig::new(id, dcs, certifier);
    (group.priority, group.incarnation) = (u32::from(dcs - dc), incarnation);
    let config = Config { planted, incarnation, ..Config::new(id, dcs, place, partitions) };
    StrongReplica::restore(config, group, []).expect("settings")
}
