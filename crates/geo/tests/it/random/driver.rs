//! Sessions with random operations, faults, and the invariants.

use std::collections::{BTreeMap, BTreeSet};

use mingle_geo::{Event, Key, Kind, Op, Refusal, Update};
use mingle_model::Value;
use mingle_model::random::Random;

use crate::support::check::{History, Known, Number, numbers};
use crate::support::{Network, World, key_of};

/// The faults of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub has_bad_links: bool,
    pub has_crashes: bool,
    pub has_jumps: bool,
    pub has_cuts: bool,
    pub has_small_logs: bool,
    pub has_loss: bool,
}

pub const DCS: u8 = 3;
const CLIENTS: u64 = 9;
const RUN_US: u64 = 3_000_000;

/// The current step of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Stage {
    Idle,
    Reading,
    Committing,
    Barrier,
    Attaching,
}

pub struct Client {
    pub id: u64,
    pub stage: Stage,
    pub due_us: u64,
    pub seen: BTreeSet<Number>,
    pub reads: BTreeMap<Key, Vec<Number>>,
    pub asked: Vec<Key>,
    /// The transaction under way.
    pub number: Option<Number>,
    /// Committed transactions that are not known to be uniform.
    pub fresh: Vec<Number>,
    pub is_stranded: bool,
    pub waits_since_us: Option<u64>,
}

pub struct Run {
    pub world: World,
    pub random: Random,
    pub faults: Faults,
    pub partitions: u16,
    pub logs: Vec<Key>,
    pub others: Vec<Key>,
    pub clients: Vec<Client>,
    pub history: History,
    pub next_number: Number,
    pub lost: Option<u8>,
    pub is_over: bool,
}

impl Run {
    pub fn new(seed: u64, faults: Faults) -> Self {
        let mut random = Random::new(seed ^ 0x5eed);
        let partitions = 1 + random.below(4) as u16;
        let mut world = World::with(DCS, partitions, seed, |config| {
            config.transaction_ms_max = 300;
            config.resolve_after_ms = 100;
            config.forward_after_ms = 200;
            config.wait_ms_max = 1_000;
            config.clock_ceiling_ms = 200;
            if faults.has_small_logs {
                config.forward_bytes_max = 2_000;
            }
        });
        world.network = Network {
            near_us: (50, 3_000),
            far_us: (10_000, 60_000),
            is_fifo: false,
            lost_one_in: if faults.has_bad_links { 30 } else { 0 },
            twice_one_in: if faults.has_bad_links { 30 } else { 0 },
            disk_us: (100, 8_000),
        };
        for node in world.nodes.values_mut() {
            node.skew_us = random.below(200_000) as i64 - 100_000;
        }
        let each = |kind, name: &str| {
            let keys = (0..partitions).map(|partition| key_of(kind, partition, partitions, name));
            keys.collect::<Vec<Key>>()
        };
        let logs = [each(Kind::Log, "log-a"), each(Kind::Log, "log-b")].concat();
        let kinds = [Kind::Register, Kind::Counter, Kind::Set, Kind::Map];
        let others = kinds.map(|kind| each(kind, "other")).concat();
        let clients = (0..CLIENTS).map(|id| {
            let is_durable = id % 3 == 2;
            world.open_with(id, (id % u64::from(DCS)) as u8, |config| {
                config.is_durable = is_durable;
                config.retry_ms = 150;
                config.deadline_ms = 2_000;
                config.handout_ms_max = 150;
            });
            Client {
                id,
                stage: Stage::Idle,
                due_us: 0,
                seen: BTreeSet::new(),
                reads: BTreeMap::new(),
                asked: Vec::new(),
                number: None,
                fresh: Vec::new(),
                is_stranded: false,
                waits_since_us: None,
            }
        });
        let clients = clients.collect();
        let history = History::default();
        let (next_number, lost, is_over) = (1, None, false);
        Self {
            world,
            random,
            faults,
            partitions,
            logs,
            others,
            clients,
            history,
            next_number,
            lost,
            is_over,
        }
    }

    /// Plays the run; returns a line that describes its end.
    pub fn play(mut self) -> Result<String, String> {
        let mut next_fault_us = 100_000;
        let lost_at_us = 1_000_000 + self.random.below(1_500_000) as u64;
        while self.world.now_us < RUN_US {
            self.step()?;
            if self.world.now_us >= next_fault_us {
                next_fault_us += self.random.below(200_000) as u64;
                self.strike();
            }
            if self.faults.has_loss && self.lost.is_none() && self.world.now_us >= lost_at_us {
                let dc = self.random.below(usize::from(DCS)) as u8;
                self.world.lose(dc);
                self.lost = Some(dc);
            }
        }
        self.heal();
        self.is_over = true;
        let patience_us = self.world.now_us + 30_000_000;
        while self.clients.iter().any(|client| client.stage != Stage::Idle || client.is_stranded) {
            self.step()?;
            if self.world.now_us > patience_us {
                let stuck = self.clients.iter().filter(|client| client.stage != Stage::Idle);
                let stuck: Vec<_> = stuck.map(|client| (client.id, &client.stage)).collect();
                return Err(format!("clients are stuck after healing: {stuck:?}"));
            }
        }
        self.world.run_ms(3_000);
        self.check_end()
    }

    fn step(&mut self) -> Result<(), String> {
        if !self.world.step() {
            return Err("nothing is left to happen".to_owned());
        }
        while let Some((id, event)) = self.world.events.pop_front() {
            self.on_event(id as usize, event)?;
        }
        for index in 0..self.clients.len() {
            let client = &self.clients[index];
            if client.stage == Stage::Idle && client.due_us <= self.world.now_us {
                self.act(index);
            } else if let Some(since_us) = client.waits_since_us
                && self.lost.is_some()
                && self.world.now_us > since_us + 1_000_000
            {
                self.accept_loss(index);
            }
        }
        Ok(())
    }

    fn act(&mut self, index: usize) {
        let client = &self.clients[index];
        let (id, is_stranded) = (client.id, client.is_stranded);
        if is_stranded {
            return self.attach(index);
        }
        if self.is_over {
            return;
        }
        if self.random.one_in(25) {
            return self.attach(index);
        }
        if self.random.one_in(12) {
            self.clients[index].stage = Stage::Barrier;
            return self
                .world
                .call(id, |session, now, out| session.barrier(now, out).expect("idle"));
        }
        self.clients[index].reads.clear();
        self.read_some(index);
    }

    fn read_some(&mut self, index: usize) {
        let mut keys: Vec<Key> = Vec::new();
        for _ in 0..=self.random.below(3) {
            keys.push(self.random.pick(&self.logs).clone());
        }
        let client = &mut self.clients[index];
        client.stage = Stage::Reading;
        client.asked.clone_from(&keys);
        self.world.call(client.id, |session, now, out| session.read(now, keys, out).expect("idle"));
    }

    fn attach(&mut self, index: usize) {
        let mut to = self.random.below(usize::from(DCS)) as u8;
        if Some(to) == self.lost {
            to = (to + 1) % DCS;
        }
        let client = &mut self.clients[index];
        client.stage = Stage::Attaching;
        let to = mingle_geo::DcId(to);
        self.world.call(client.id, |session, now, out| {
            session.attach(now, to, out).expect("idle");
        });
    }

    fn accept_loss(&mut self, index: usize) {
        let client = &mut self.clients[index];
        client.waits_since_us = None;
        let id = client.id;
        self.world.call(id, |session, now, out| session.accept_loss(now, out).expect("waiting"));
    }

    fn on_event(&mut self, index: usize, event: Event) -> Result<(), String> {
        let now_us = self.world.now_us;
        let think_us = self.random.below(100_000) as u64;
        let lost = self.lost;
        let client = &mut self.clients[index];
        client.due_us = now_us + think_us;
        match event {
            Event::Read(states) => {
                for (key, state) in client.asked.iter().zip(&states) {
                    let seen = numbers(state);
                    let before = client.reads.insert(key.clone(), seen.clone());
                    if before.is_some_and(|before| before != seen) {
                        return Err(format!("{key:?} changed within a snapshot"));
                    }
                }
                let checked = self.history.check_reads(&client.reads, &mut client.seen);
                checked.map_err(|error| format!("session {}: {error}", client.id))?;
                if self.random.one_in(4) { self.read_some(index) } else { self.write_some(index) }
            }
            Event::Committed { is_uniform, .. } => {
                client.stage = Stage::Idle;
                if let Some(number) = client.number.take() {
                    let known = self.history.transactions.get_mut(&number).expect("it was sent");
                    known.is_committed = true;
                    known.is_uniform = is_uniform;
                    client.seen.insert(number);
                    if is_uniform {
                        self.all_uniform(index);
                    } else {
                        client.fresh.push(number);
                    }
                }
            }
            Event::Aborted { .. } => {
                client.stage = Stage::Idle;
                let number = client.number.take().expect("it was sent");
                self.history.transactions.get_mut(&number).expect("sent").is_aborted = true;
            }
            Event::Unknown { refusal, .. } => {
                client.stage = Stage::Idle;
                let is_lost = lost == Some(self.world.sessions[&client.id].dc().0);
                let is_forgotten = matches!(refusal, Refusal::TransactionTooOld { .. });
                if is_lost || is_forgotten {
                    client.number = None;
                    client.is_stranded = is_lost;
                    let id = client.id;
                    self.world.call(id, |session, _, _| {
                        session.leave_unanswered();
                    });
                } else {
                    client.stage = Stage::Committing;
                    let id = client.id;
                    self.world.call(id, |session, now, out| {
                        session.ask(now, out).expect("a commit without an answer");
                    });
                }
            }
            Event::Failed(refusal) => {
                client.stage = Stage::Idle;
                client.waits_since_us = None;
                client.is_stranded = lost == Some(self.world.sessions[&client.id].dc().0);
                let is_expected = matches!(
                    refusal,
                    Refusal::SnapshotTooOld { .. }
                        | Refusal::TimedOut { .. }
                        | Refusal::Ahead { .. }
                        | Refusal::ClockAhead { .. }
                );
                if !is_expected {
                    return Err(format!("session {}: {refusal}", client.id));
                }
            }
            Event::Uniform => {
                client.stage = Stage::Idle;
                self.all_uniform(index);
            }
            Event::Waiting(_) => client.waits_since_us = Some(now_us),
            Event::Resumed(_) => {
                client.stage = Stage::Idle;
                client.waits_since_us = None;
                client.is_stranded = false;
            }
            Event::ResumedWithLoss { .. } => {
                client.stage = Stage::Idle;
                client.is_stranded = false;
                client.seen.clear();
                client.fresh.clear();
            }
        }
        Ok(())
    }

    /// Records that everything a session wrote or saw before a barrier survives.
    fn all_uniform(&mut self, index: usize) {
        let client = &mut self.clients[index];
        client.fresh.clear();
        for number in &client.seen {
            let known = self.history.transactions.get_mut(number).expect("it was seen");
            known.is_uniform = true;
        }
    }

    fn write_some(&mut self, index: usize) {
        let number = self.next_number;
        self.next_number += 1;
        let mut keys = BTreeSet::new();
        for _ in 0..=self.random.below(3) {
            keys.insert(self.random.pick(&self.logs).clone());
        }
        let other = self.random.pick(&self.others).clone();
        let value = Value::Int(self.random.below(4) as i64);
        let op = match (other.kind, self.random.below(5)) {
            (Kind::Register, _) => Op::Write(Value::Int(number)),
            (Kind::Counter, 0) => Op::Reset,
            (Kind::Counter, _) => Op::Add(number),
            (Kind::Set, 0) => Op::Clear,
            (Kind::Set, 1) => Op::Remove(value),
            (Kind::Set, _) => Op::Insert(value),
            (_, 0) => Op::Empty,
            (_, 1) => Op::Delete(value),
            (_, 2) => Op::Put(value, Value::Int(number)),
            (..) => Op::Increment(value, number),
        };
        let client = &mut self.clients[index];
        let known = Known { keys: keys.clone(), past: client.seen.clone(), ..Known::default() };
        self.history.transactions.insert(number, known);
        client.number = Some(number);
        client.stage = Stage::Committing;
        let id = client.id;
        let lines = keys.into_iter().map(|key| (key, Op::Append(Value::Int(number))));
        let updates: Vec<(Key, Op)> = lines.chain([(other, op)]).collect();
        self.world.call(id, |session, now, out| {
            for (key, op) in updates {
                session.write(now, Update { key, op, id: None }).expect("idle");
            }
            session.commit(now, out).expect("idle");
        });
    }
}
