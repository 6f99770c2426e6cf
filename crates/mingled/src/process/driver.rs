//! The thread that owns the node.

mod items;
mod links;
mod members;
mod stores;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use mingle_geo::session::{CallError, Floor, SessionOutput};
use mingle_geo::wire::{Hello, Parcel, VERSION, VERSIONS, take_parcels};
use mingle_geo::{Address, DcId, Event as Outcome, Key, Now, Refusal, Session, SessionConfig};
use mingle_geo_node::folder::Fault;
use mingle_geo_node::segment::Identity;
use mingle_geo_node::{Journal as _, Node, Outgoing, Time as _};
use mingle_model::Origin;

use super::client::{Answer, Call, Client, Mark, is_waiting};
use super::cluster::{Asked, FIRST_CLIENT, Shared};
use super::machine::Machine;
use super::members::{ChangeError, GivenUp};
use super::starts::Starts;
use super::wire::Wire;
use super::{Durability, NOTES_MAX, Settings, StartError, Status, Stopped};
use crate::journal::{FileJournal, JournalSettings, Restored};
use crate::random;
use items::Copies;
use links::Links;
use members::{Centers, OPERATOR};

pub use items::{CopyCall, Names};

/// The maximum time between two looks at the clocks.
const LOOK: Duration = Duration::from_millis(20);

/// The same while a client waits.
const LOOK_WAITING: Duration = Duration::from_millis(1);

/// The interval of a partition's ticks while a client waits for it, in microseconds.
const HURRY_US: u64 = 2_000;

/// The interval of the sessions' and the connections' ticks, in microseconds.
const TICK_US: u64 = 10_000;

/// The maximum number of events between two looks at the clocks.
const EVENTS_MAX: usize = 256;

/// An event for the driver.
#[derive(Debug)]
pub enum Event {
    /// A process has connected.
    Accepted(Wire),
    /// A connection was refused before it began, or its certificates are wrong, with the reason.
    Refused(String),
    /// An attempt to connect has ended.
    Dialed(DcId, io::Result<Wire>),
    /// Bytes have come on a connection.
    Bytes(u64, Vec<u8>),
    /// The bytes given to a connection's writer are written.
    Written(u64),
    /// A connection has ended.
    Lost(u64, String),
    /// A sync has ended, or the journal has failed.
    Synced(Result<(), Fault>),
    /// A session is opened; the answer is its number.
    Open(Sender<u64>),
    /// A session is called.
    Call(u64, Call, Sender<Answer>),
    /// A session is closed.
    Closed(u64),
    /// A client of a store sends a message, or has a question.
    Asked(Asked),
    /// A data center is to be given up, even if it is connected in the case of `true`.
    Fence(DcId, bool, Sender<Result<GivenUp, ChangeError>>),
    /// A data center is to be admitted.
    Admit(DcId, Sender<Result<u32, ChangeError>>),
    /// The names of items of a partition are asked for.
    Names(Names, Sender<Vec<Key>>),
    /// A copy of all items begins, goes on or ends.
    Copy(CopyCall),
    /// The state of the process is asked for.
    Status(Sender<Status>),
    /// The process is to stop.
    Stop,
}

/// The last notes, and the number of all.
#[derive(Debug, Default)]
struct Notes {
    last: VecDeque<String>,
    count: u64,
}

/// The driver.
#[derive(Debug)]
pub struct Driver {
    settings: Settings,
    events: Sender<Event>,
    arriving: Receiver<Event>,
    machine: Machine,
    node: Node,
    boot: u32,
    /// A random number of this start.
    process: u64,
    links: Links,
    clients: BTreeMap<u64, Client>,
    /// What was acknowledged to clients.
    floor: Floor,
    sessions: u64,
    starts: Starts,
    centers: Centers,
    /// The state shared with Mingle's stores.
    shared: Arc<Shared>,
    /// The time until which partitions tick often for the clients of stores.
    busy_until_us: u64,
    tick_us: u64,
    notes: Notes,
    copies: Copies,
    stopped: Option<Stopped>,
}

impl Driver {
    /// Opens the journal, and restores the node.
    pub fn start(
        settings: Settings,
        events: Sender<Event>,
        arriving: Receiver<Event>,
    ) -> Result<Self, StartError> {
        let identity = Identity {
            cluster: settings.cluster,
            dc: settings.dc,
            node: 0,
            incarnation: settings.incarnation,
        };
        let usual = JournalSettings::new(&settings.folder, identity, settings.is_founding);
        let journal = JournalSettings { segment_bytes: settings.segment_bytes, ..usual };
        let report = events.clone();
        let report = Box::new(move |end| {
            // The driver may have stopped.
            let _ = report.send(Event::Synced(end));
        });
        let (journal, Restored { entries, boot, .. }) =
            FileJournal::open(&journal, report).map_err(StartError::Journal)?;
        let setups = (0..settings.partition_count).map(|number| stores::setup(&settings, number));
        let entries = entries.iter().map(Vec::as_slice);
        let node = Node::restore(settings.dc, settings.limits, setups, entries)
            .map_err(StartError::Node)?;
        let process = random();
        let starts = Starts::add(&settings.folder, boot, process).map_err(StartError::System)?;
        let hello = Hello {
            versions: VERSIONS,
            cluster: settings.cluster,
            dc: settings.dc,
            node: 0,
            incarnation: settings.incarnation,
            boot,
            process,
            wall_us: 0,
            settings: settings.digest(),
        };
        let links = Links::new(&settings, hello, events.clone());
        Ok(Self {
            shared: Arc::new(stores::shared(&settings, &node)),
            settings,
            events,
            arriving,
            machine: Machine::new(journal),
            node,
            boot,
            process,
            links,
            clients: BTreeMap::new(),
            floor: Floor::default(),
            sessions: 0,
            starts,
            centers: Centers::default(),
            busy_until_us: 0,
            tick_us: 0,
            notes: Notes::default(),
            copies: Copies::default(),
            stopped: None,
        })
    }

    /// Runs until the process stops.
    pub fn run(mut self) -> Stopped {
        self.shared.publish(self.view());
        loop {
            match self.arriving.recv_timeout(self.wait()) {
                Ok(event) => self.on_event(event),
                Err(RecvTimeoutError::Timeout) => {}
                // This driver has a sender itself.
                Err(RecvTimeoutError::Disconnected) => return Stopped::Asked,
            }
            for _ in 0..EVENTS_MAX {
                if self.stopped.is_some() {
                    break;
                }
                let Ok(event) = self.arriving.try_recv() else { break };
                self.on_event(event);
            }
            if let Some(stopped) = self.stopped.take() {
                self.shared.close();
                return stopped;
            }
            self.hurry();
            self.tick();
            self.flush();
            self.publish();
        }
    }

    fn wait(&self) -> Duration {
        let now_us = self.machine.now().mono_us;
        let at_us = self.node.tick_at_us().map_or(u64::MAX, |at_us| at_us.saturating_sub(now_us));
        let is_waiting =
            self.is_busy() || self.clients.values().any(|client| client.caller.is_some());
        Duration::from_micros(at_us).min(if is_waiting { LOOK_WAITING } else { LOOK })
    }

    /// Ticks sooner while a client waits for partitions: in an idle data center they tell each other
    /// what they have only now and then.
    fn hurry(&mut self) {
        let now_us = self.machine.now().mono_us;
        if self.is_busy() || self.clients.values().any(|client| client.is_held_up(now_us)) {
            self.node.hurry(HURRY_US);
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Synced(Ok(())) => {
                self.node.synced(&mut self.machine);
                self.answer_marks();
            }
            Event::Synced(Err(fault)) => self.stopped = Some(Stopped::Journal(fault)),
            Event::Accepted(stream) => self.on_stream(stream, None),
            Event::Refused(note) => {
                // A stranger may try again and again.
                if self.centers.ends.insert(None, note.clone()).as_ref() != Some(&note) {
                    self.note(note);
                }
            }
            Event::Dialed(dc, Ok(stream)) => self.on_stream(stream, Some(dc)),
            Event::Dialed(dc, Err(error)) => {
                self.links.peers.not_dialed(self.machine.now().mono_us, dc);
                let note = format!("{dc} cannot be reached: {error}");
                // The attempts go on, and say the same again and again.
                if self.centers.ends.insert(Some(dc), note.clone()).as_ref() != Some(&note) {
                    self.note(note);
                }
            }
            Event::Bytes(number, bytes) => self.on_bytes(number, &bytes),
            Event::Written(number) => self.links.on_written(number),
            Event::Lost(number, why) => self.on_lost(number, &why),
            Event::Open(answer) => self.open(&answer),
            Event::Call(number, call, caller) => self.call(number, call, caller),
            Event::Asked(asked) => self.on_asked(asked),
            Event::Closed(number) => {
                self.node.answer_early(number, false);
                self.clients.remove(&number);
            }
            Event::Fence(dc, is_forced, caller) => self.fence(dc, is_forced, caller),
            Event::Admit(dc, caller) => self.admit(dc, caller),
            Event::Names(names, answer) => {
                // The caller may have gone away.
                let _ = answer.send(self.names(&names));
            }
            Event::Copy(call) => self.on_copy(call),
            Event::Status(answer) => {
                // The caller may have gone away.
                let _ = answer.send(self.status());
            }
            Event::Stop => {
                self.machine.sync();
                self.stopped = Some(Stopped::Asked);
            }
        }
    }

    fn status(&mut self) -> Status {
        Status {
            boot: self.boot,
            connected: self.links.connected(),
            notes: self.notes.last.iter().cloned().collect(),
            noted: self.notes.count,
            centers: self.centers(),
            replayed: self.links.replayed(),
            progress: self.progress(),
        }
    }

    fn note(&mut self, note: String) {
        if self.notes.last.len() == NOTES_MAX {
            self.notes.last.pop_front();
        }
        self.notes.last.push_back(note);
        self.notes.count += 1;
    }

    fn tick(&mut self) {
        let now = self.machine.now();
        if self.node.tick_at_us().is_some_and(|at_us| at_us <= now.mono_us) {
            self.node.tick(&mut self.machine);
            for (partition, alarm) in self.node.take_alarms() {
                self.note(format!("partition {}: {alarm:?}", partition.0));
            }
        }
        if self.tick_us > now.mono_us {
            return;
        }
        self.tick_us = now.mono_us + TICK_US;
        self.links.tick(now);
        self.see_centers();
        self.go_on_changing();
        self.stopped = self.stopped.take().or_else(|| self.links.replaced(now.mono_us));
        let due = self.clients.iter_mut().filter_map(|(number, client)| {
            client.session.wake_at_us().filter(|at_us| *at_us <= now.mono_us).map(|_| *number)
        });
        for number in due.collect::<Vec<_>>() {
            self.on_session(number, Session::tick);
        }
    }

    /// Sends the messages of the node, and gives bytes to idle writers.
    fn flush(&mut self) {
        while !self.machine.outgoing.is_empty() {
            for outgoing in std::mem::take(&mut self.machine.outgoing) {
                self.send(&outgoing);
            }
        }
        let now_us = self.machine.now().mono_us;
        for ended in self.links.pump(now_us) {
            self.on_end(ended);
        }
    }

    fn send(&mut self, Outgoing { to, frame, .. }: &Outgoing) {
        match to {
            Address::Client(number) => {
                let mut parcels = Vec::new();
                take_parcels(VERSION, frame, |parcel| parcels.push(parcel))
                    .expect("this process has written it");
                for Parcel { from, message, .. } in parcels {
                    if *number == OPERATOR {
                        self.on_members_reply(message);
                        continue;
                    }
                    if *number >= FIRST_CLIENT {
                        self.shared.deliver(*number, from, message);
                        continue;
                    }
                    self.on_session(*number, |session, now, outputs| {
                        session.handle(now, from, message, outputs);
                    });
                }
            }
            Address::Replica(dc, _) => {
                if let Err(length) = self.links.send(self.machine.now(), *dc, frame) {
                    let most = self.settings.link.message_bytes_max;
                    self.note(format!(
                        "a message to {dc} has {length} bytes and is not sent, at most {most} can be"
                    ));
                }
            }
        }
    }

    fn open(&mut self, answer: &Sender<u64>) {
        let number = self.sessions;
        self.sessions += 1;
        let id = Origin(u128::from(self.process) << 64 | u128::from(number));
        let Settings { dc, incarnation, partition_count, .. } = self.settings;
        let durability = self.settings.durability;
        let config = SessionConfig {
            incarnation,
            is_durable: durability == Durability::Uniform,
            ..SessionConfig::new(id, dc, partition_count)
        };
        if answer.send(number).is_ok() {
            self.clients.insert(number, Client::new(config));
            self.node.answer_early(number, durability == Durability::Memory);
        }
    }

    fn call(&mut self, number: u64, call: Call, caller: Sender<Answer>) {
        let now = self.machine.now();
        // The sender is dropped otherwise, and the caller sees that the session is gone.
        let Some(client) = self.clients.get_mut(&number) else { return };
        if client.is_busy() {
            let _ = caller.send(Answer::Misfit(CallError::Busy));
            return;
        }
        if let Some(why) = self.links.suspended() {
            let _ = caller.send(Answer::Suspended(why));
            return;
        }
        if let Call::Mark = call {
            client.marks = Some((caller, self.node.appended()));
            return self.answer_marks();
        }
        if let Call::Durable(durability) = call {
            client.session.set_durable(durability == Durability::Uniform);
            self.node.answer_early(number, durability == Durability::Memory);
            let _ = caller.send(Answer::Done);
            return;
        }
        if let Call::Attach(marks) = &call
            && let Some(mark) = marks.iter().find(|mark| self.is_of_another_life(mark))
        {
            let _ = caller.send(Answer::OtherLife(mark.clone(), self.boot));
            return;
        }
        if call.asks_replicas() && self.is_over() {
            let Settings { dc, incarnation, .. } = self.settings;
            let refused = Outcome::Failed(Refusal::Fenced { dc, incarnation });
            let _ = caller.send(Answer::Outcome(refused));
            return;
        }
        let mut outputs = Vec::new();
        let Some(client) = self.clients.get_mut(&number) else { return };
        client.session.start_above(&self.floor);
        // A caller that went away is no fault of the session.
        match client.begin(now, call, &mut outputs) {
            Err(why) => _ = caller.send(Answer::Misfit(why)),
            Ok(true) => _ = caller.send(Answer::Done),
            Ok(false) => client.caller = Some((caller, now.mono_us)),
        }
        self.perform(number, outputs);
    }

    /// True if a mark names a start of this incarnation that its folder does not know: the folder was
    /// restored from an older copy since then.
    fn is_of_another_life(&self, mark: &Mark) -> bool {
        let Settings { dc, incarnation, .. } = self.settings;
        let is_own = (mark.token.dc, mark.token.incarnation) == (dc, incarnation);
        is_own && !self.starts.has(mark.boot, mark.process)
    }

    /// Answers the sessions whose marks rest only on records that are safe.
    fn answer_marks(&mut self) {
        let (safe, boot, process) = (self.node.safe(), self.boot, self.process);
        for client in self.clients.values_mut() {
            if let Some((caller, _)) = client.marks.take_if(|(_, appended)| *appended <= safe) {
                let mark = Mark { token: client.session.token(), boot, process };
                // The caller may have gone away.
                let _ = caller.send(Answer::Mark(mark));
            }
        }
    }

    fn on_session(
        &mut self,
        number: u64,
        work: impl FnOnce(&mut Session, Now, &mut Vec<SessionOutput>),
    ) {
        let now = self.machine.now();
        let Some(client) = self.clients.get_mut(&number) else { return };
        let mut outputs = Vec::new();
        work(&mut client.session, now, &mut outputs);
        self.perform(number, outputs);
    }

    fn perform(&mut self, number: u64, outputs: Vec<SessionOutput>) {
        for output in outputs {
            match output {
                SessionOutput::Send(envelope) => {
                    let (from, to) = (Address::Client(number), envelope.to);
                    let parcel = Parcel { from, to, message: envelope.message };
                    self.node.receive(parcel, &mut self.machine);
                }
                SessionOutput::Event(event) => {
                    let Some(client) = self.clients.get_mut(&number) else { continue };
                    if let Outcome::Committed { commit_vec, .. } = &event {
                        self.floor.raise(&client.session, commit_vec);
                    }
                    if is_waiting(&event) {
                        continue;
                    }
                    if let Some((caller, _)) = client.caller.take() {
                        // The caller may have gone away.
                        let _ = caller.send(client.answer(event));
                    }
                }
            }
        }
    }
}
