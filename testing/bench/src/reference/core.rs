//! The project's own geo-replicated store as processes, under the same connections and clients.
//!
//! A row is a map of the core, with a column for each of its keys. A job is a transaction; a transaction
//! that writes has as many updates as there are columns. Durable records are encoded, and count as
//! durable at once: the reference protocols have no durability either.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use mingle_geo::record::Install;
use mingle_geo::session::SessionOutput;
use mingle_geo::wire::{VERSION, put_parcel, put_record, take_parcels};
use mingle_geo::{
    Address, Cause, Config, DcId, Envelope, Event, Input, Key, Now, Op, Output, PartitionId,
    Record, Replica, Session, SessionConfig, State, Timestamp, Update, Vector, Version,
};
use mingle_model::random::{Random, mix};
use mingle_model::{Origin, Value};

use super::hub::{Outbox, Process};
use super::job::{Answered, Control, Job, Kind, Row, Workload};
use super::topology::Topology;

/// The start of the clocks, in microseconds since 1970.
const EPOCH_US: u64 = 1_700_000_000_000_000;

/// The bits of a session's number that are its actor.
const ACTOR_BITS: u32 = 32;

fn now(now_us: u64) -> Now {
    Now { wall_us: EPOCH_US + now_us, mono_us: now_us }
}

fn key(row: &Row) -> Key {
    Key::new(mingle_geo::Kind::Map, format!("row:{}", row.key))
}

/// Returns an update of each column of a row.
fn puts(row: &Row, number: u64) -> impl Iterator<Item = Op> + use<> {
    let value = Value::Bytes(vec![number as u8; row.bytes].into());
    (1..=row.columns).map(move |name| Op::Put(Value::Int(name.into()), value.clone()))
}

/// Returns the process with an address of the core.
fn process(topology: &Topology, address: Address) -> usize {
    match address {
        Address::Replica(dc, partition) => topology.server(dc.0, partition.0),
        Address::Client(number) => (number >> ACTOR_BITS) as usize,
    }
}

/// The replica of a partition as a process.
pub struct ReplicaProcess {
    replica: Replica,
    address: Address,
    topology: Topology,
    outputs: Vec<Output>,
    log: Vec<u8>,
    ticked_us: u64,
}

impl ReplicaProcess {
    /// Creates a replica with its part of the initial contents.
    ///
    /// # Errors
    ///
    /// The core's objection to the settings.
    pub fn new(
        topology: Topology,
        (dc, partition): (u8, u16),
        states: Vec<(Key, Arc<State>)>,
    ) -> Result<Self, String> {
        let (dc, partition) = (DcId(dc), PartitionId(partition));
        let config = Config::new(dc, topology.dcs, partition, topology.servers);
        // With this limit versions are folded within a measurement, as they would be all the time later.
        let config = Config { transaction_ms_max: 1_000, outcome_ms_max: 6_000, ..config };
        let (at, known_vec, cut) = (Vector::ZERO, Vector::ZERO, Vector::ZERO);
        let (suffix, forward) = (Vec::new(), Vec::new());
        let install = Record::Install(Install { at, states, suffix, known_vec, cut, forward });
        let replica = Replica::restore(config, [install]).map_err(|error| error.to_string())?;
        let address = Address::Replica(dc, partition);
        Ok(Self { replica, address, topology, outputs: Vec::new(), log: Vec::new(), ticked_us: 0 })
    }
}

impl Process for ReplicaProcess {
    fn take(&mut self, now_us: u64, _from: usize, message: &[u8]) -> Result<(), String> {
        let Self { replica, outputs, .. } = self;
        let taken = take_parcels(VERSION, message, |parcel| {
            let input = Input::Message { from: parcel.from, message: parcel.message };
            replica.handle(now(now_us), input, outputs);
        });
        taken.map_err(|error| error.to_string())
    }

    fn tick(&mut self, now_us: u64) {
        if now_us >= self.ticked_us + self.replica.tick_in_ms() * 1_000 {
            self.ticked_us = now_us;
            self.replica.handle(now(now_us), Input::Tick, &mut self.outputs);
        }
    }

    fn drain(&mut self, now_us: u64, outbox: &mut Outbox) {
        let (address, topology) = (self.address, self.topology);
        let mut send = |envelope: Envelope| {
            outbox.message(process(&topology, envelope.to), |out| {
                put_parcel(out, address, envelope.to, &envelope.message);
            });
        };
        while !self.outputs.is_empty() {
            let mut durable = None;
            for output in self.outputs.drain(..) {
                match output {
                    Output::Send(envelope) => send(envelope),
                    Output::Persist(persist) => {
                        self.log.clear();
                        persist.records.iter().for_each(|record| put_record(&mut self.log, record));
                        persist.then.into_iter().for_each(&mut send);
                        durable = Some(persist.index);
                    }
                    Output::Alarm(_) => {}
                }
            }
            if let Some(index) = durable {
                self.replica.handle(now(now_us), Input::Persisted { index }, &mut self.outputs);
            }
        }
    }

    fn digest(&self) -> u64 {
        let known = self.replica.known_vec();
        self.replica.keys().fold(0, |digest, key| {
            let Ok(state) = self.replica.inspect(key, &known) else { return !digest };
            let Some(map) = state.as_map() else { return digest };
            let columns = map.entries().filter_map(|(column, _)| {
                let Version { timestamp, origin, index } = map.version(column)?;
                let parts = [column.as_int()? as u64, timestamp.0, origin.0.into(), index.into()];
                Some(parts.into_iter().fold(0, |hash, part| mix(hash ^ part)))
            });
            let place = key.name.iter().fold(0, |hash, byte| mix(hash ^ u64::from(*byte)));
            digest ^ columns.fold(0, |all, column| all ^ mix(place ^ column))
        })
    }
}

/// Returns the initial contents of each partition.
pub fn filling(topology: &Topology, rows: &[Row]) -> Vec<Vec<(Key, Arc<State>)>> {
    let mut filling = vec![Vec::new(); usize::from(topology.servers)];
    let version = Version { timestamp: Timestamp::ZERO, origin: DcId(0), index: 0 };
    let cause = Cause { version, seen: Vector::ZERO };
    for row in rows {
        let (key, mut state) = (key(row), State::new(mingle_geo::Kind::Map));
        for put in puts(row, 0) {
            state.apply(&cause, &put, None);
        }
        let partition = key.partition(topology.servers);
        filling[usize::from(partition.0)].push((key, Arc::new(state)));
    }
    filling
}

/// A session with its running job.
struct Actor {
    session: Session,
    random: Random,
    job: Option<(Job, Instant)>,
}

/// A client process: sessions, each with one transaction after the other.
pub struct SessionsProcess {
    number: u64,
    topology: Topology,
    control: Arc<Control>,
    workload: Arc<dyn Workload>,
    actors: Vec<Actor>,
    /// The messages to send, with the actors that send them.
    sends: Vec<(usize, Envelope)>,
    values: u64,
}

impl SessionsProcess {
    /// Creates the client with this number of its data center.
    pub fn new(
        number: u16,
        topology: Topology,
        control: Arc<Control>,
        workload: Arc<dyn Workload>,
        randoms: Vec<Random>,
    ) -> Self {
        let process = (topology.server_count() + usize::from(number)) as u64;
        let actor = |(index, mut random): (usize, Random)| {
            let origin = Origin(u128::from(random.bits()) << 64 | u128::from(index as u64));
            let session = Session::new(SessionConfig::new(origin, DcId(0), topology.servers));
            Actor { session, random, job: None }
        };
        Self {
            number: process,
            topology,
            control,
            workload,
            actors: randoms.into_iter().enumerate().map(actor).collect(),
            sends: Vec::new(),
            values: 0,
        }
    }

    fn begin(&mut self, now_us: u64, index: usize) {
        let first = (self.number as usize - self.topology.server_count()) * self.actors.len();
        let actor = &mut self.actors[index];
        let job = self.workload.draw(first + index, &mut actor.random);
        self.values += 1;
        self.control.running.fetch_add(1, Ordering::AcqRel);
        let (mut out, time) = (Vec::new(), now(now_us));
        let begun = match job.kind {
            Kind::Read => actor.session.read(time, job.rows.iter().map(key).collect(), &mut out),
            Kind::Write | Kind::Atomic => job
                .rows
                .iter()
                .flat_map(|row| puts(row, self.values).map(|op| (key(row), op)))
                .try_for_each(|(key, op)| actor.session.write(time, Update { key, op, id: None }))
                .and_then(|()| actor.session.commit(time, &mut out)),
        };
        actor.job = Some((job, Instant::now()));
        if let Err(why) = begun {
            self.failed(index, format!("{why:?}"));
        }
        self.perform(now_us, index, out);
    }

    /// Performs the outputs of a session, and all that follow from them.
    fn perform(&mut self, now_us: u64, index: usize, mut outputs: Vec<SessionOutput>) {
        while !outputs.is_empty() {
            let mut more = Vec::new();
            for output in outputs.drain(..) {
                match output {
                    SessionOutput::Send(envelope) => self.sends.push((index, envelope)),
                    SessionOutput::Event(Event::Read(_)) => {
                        let session = &mut self.actors[index].session;
                        if let Err(why) = session.commit(now(now_us), &mut more) {
                            self.failed(index, format!("{why:?}"));
                        }
                    }
                    SessionOutput::Event(Event::Committed { .. }) => self.committed(index),
                    SessionOutput::Event(Event::Unknown { refusal, .. }) => {
                        self.actors[index].session.leave_unanswered();
                        self.failed(index, format!("{refusal:?}"));
                    }
                    SessionOutput::Event(
                        Event::Aborted { refusal, .. } | Event::Failed(refusal),
                    ) => {
                        self.failed(index, format!("{refusal:?}"));
                    }
                    SessionOutput::Event(_) => {}
                }
            }
            outputs = more;
        }
        let is_idle = self.actors[index].job.is_none();
        if is_idle && self.control.runs.load(Ordering::Relaxed) {
            self.begin(now_us, index);
        }
    }

    fn failed(&mut self, index: usize, why: String) {
        if self.actors[index].job.take().is_some() {
            self.control.running.fetch_sub(1, Ordering::AcqRel);
        }
        let mut tally = self.control.tally();
        tally.failed += 1;
        tally.why.get_or_insert(why);
    }

    fn committed(&mut self, index: usize) {
        let Some((job, began)) = self.actors[index].job.take() else { return };
        self.control.running.fetch_sub(1, Ordering::AcqRel);
        if !self.control.is_counted.load(Ordering::Relaxed) {
            return;
        }
        let answered = match job.kind {
            Kind::Read => Answered::Read,
            Kind::Write => Answered::Write,
            Kind::Atomic => Answered::Atomic,
        };
        let columns = job.rows.iter().map(|row| u64::from(row.columns)).sum();
        let counts = (job.rows.len() as u64, columns);
        self.control.tally().record(answered, began.elapsed(), counts);
    }
}

impl Process for SessionsProcess {
    fn take(&mut self, now_us: u64, _from: usize, message: &[u8]) -> Result<(), String> {
        let mut parcels = Vec::new();
        take_parcels(VERSION, message, |parcel| parcels.push(parcel))
            .map_err(|error| error.to_string())?;
        for parcel in parcels {
            let Address::Client(number) = parcel.to else { continue };
            let index = (number & ((1 << ACTOR_BITS) - 1)) as usize;
            let Some(actor) = self.actors.get_mut(index) else { continue };
            let mut out = Vec::new();
            actor.session.handle(now(now_us), parcel.from, parcel.message, &mut out);
            self.perform(now_us, index, out);
        }
        Ok(())
    }

    fn tick(&mut self, now_us: u64) {
        let runs = self.control.runs.load(Ordering::Relaxed);
        for index in 0..self.actors.len() {
            let actor = &mut self.actors[index];
            if actor.job.is_none() {
                if runs {
                    self.begin(now_us, index);
                }
                continue;
            }
            if actor.session.wake_at_us().is_some_and(|at_us| at_us <= now_us) {
                let mut out = Vec::new();
                actor.session.tick(now(now_us), &mut out);
                self.perform(now_us, index, out);
            }
        }
    }

    fn drain(&mut self, _now_us: u64, outbox: &mut Outbox) {
        for (index, envelope) in self.sends.drain(..) {
            let from = Address::Client(self.number << ACTOR_BITS | index as u64);
            outbox.message(process(&self.topology, envelope.to), |out| {
                put_parcel(out, from, envelope.to, &envelope.message);
            });
        }
    }
}

/// Creates the replicas of a system with its initial contents.
///
/// # Errors
///
/// The core's objection to the settings.
pub fn replicas(topology: Topology, rows: &[Row]) -> Result<Vec<ReplicaProcess>, String> {
    let filling = filling(&topology, rows);
    let mut replicas = BTreeMap::new();
    for dc in 0..topology.dcs {
        for partition in 0..topology.servers {
            let states = filling[usize::from(partition)].clone();
            let replica = ReplicaProcess::new(topology, (dc, partition), states)?;
            replicas.insert(topology.server(dc, partition), replica);
        }
    }
    Ok(replicas.into_values().collect())
}
