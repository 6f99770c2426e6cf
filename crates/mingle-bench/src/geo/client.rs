//! Clients: each a session with one transaction at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_geo::session::SessionOutput;
use mingle_geo::{DcId, Event, Key, Kind, Now, Op, Session, SessionConfig, State, Update};
use mingle_model::random::Random;
use mingle_model::{Origin, Value};

use super::plan::Plan;

/// How many keys a transaction reads.
pub const KEYS_READ: usize = 3;

/// What a client does.
#[derive(Debug)]
pub enum Role {
    /// Reads, and now and then writes one of the keys that it has read.
    Load,
    /// Writes the key of a probe, and waits until all readers have seen it.
    Writer(Arc<Probe>),
    /// Reads the key of a probe all the time.
    Reader(Arc<Probe>),
}

/// A key by which visibility is measured.
#[derive(Debug)]
pub struct Probe {
    key: Key,
    /// The last number that was acknowledged, and when it was.
    acknowledged: AtomicU64,
    acknowledged_ns: AtomicU64,
    /// By data center: the last number that was seen there.
    seen: Vec<AtomicU64>,
}

impl Probe {
    pub fn new(index: usize, dcs: u8) -> Self {
        Self {
            key: Key::new(Kind::Register, format!("probe{index}")),
            acknowledged: AtomicU64::new(0),
            acknowledged_ns: AtomicU64::new(0),
            seen: (0..dcs).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

/// What a client has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    pub transactions: u64,
    pub writes: u64,
    pub failed: u64,
}

/// A client.
#[derive(Debug)]
pub struct Client {
    pub session: Session,
    role: Role,
    dc: u8,
    random: Random,
    keys: Arc<Vec<Key>>,
    value: Value,
    /// What the running transaction writes.
    targets: Vec<Key>,
    /// Of a writer, what it wrote last; of a reader, what it saw last.
    number: u64,
    /// When the running transaction began.
    pub begun_us: u64,
    /// Whether delays are noted, which they are not during the warm-up.
    pub is_counted: bool,
    /// Delays that a reader has met, in nanoseconds.
    pub delays_ns: Vec<u64>,
}

impl Client {
    pub fn new(plan: &Plan, index: u64, dc: u8, role: Role, keys: Arc<Vec<Key>>) -> Self {
        let mut random = Random::new(plan.seed ^ index.wrapping_mul(0x9e37_79b9));
        let origin = Origin((u128::from(random.bits()) << 64) | u128::from(index));
        let session = Session::new(SessionConfig::new(origin, DcId(dc), plan.partitions));
        let bytes: Vec<u8> = (0..plan.value_bytes).map(|_| random.bits() as u8).collect();
        Self {
            session,
            role,
            dc,
            random,
            keys,
            value: Value::Bytes(bytes.into()),
            targets: Vec::new(),
            number: 0,
            begun_us: 0,
            is_counted: false,
            delays_ns: Vec::new(),
        }
    }

    /// The data center that it uses.
    pub fn dc(&self) -> u8 {
        self.dc
    }

    /// How long it waits before its next transaction, in microseconds.
    pub fn pause_us(&mut self, plan: &Plan) -> u64 {
        let think_us = match self.role {
            Role::Load => plan.think.as_micros() as usize,
            // So that writes come at any time between two ticks.
            Role::Writer(_) => 5_000,
            Role::Reader(_) => 250,
        };
        self.random.below(2 * think_us + 1) as u64
    }

    /// Whether it may begin: a writer once what it wrote has been seen everywhere.
    pub fn is_ready(&self) -> bool {
        let Role::Writer(probe) = &self.role else { return true };
        probe.seen.iter().all(|seen| seen.load(Ordering::Relaxed) >= self.number)
    }

    /// Begins a transaction.
    pub fn begin(&mut self, plan: &Plan, now: Now, out: &mut Vec<SessionOutput>) {
        let mut keys = Vec::with_capacity(KEYS_READ);
        if let Role::Writer(probe) | Role::Reader(probe) = &self.role {
            keys.push(probe.key.clone());
        }
        while keys.len() < KEYS_READ {
            keys.push(self.random.pick(&self.keys).clone());
        }
        let writes = match &self.role {
            Role::Load if self.random.below(100) < plan.writes_percent => plan.writes,
            Role::Writer(_) => 1,
            Role::Load | Role::Reader(_) => 0,
        };
        self.targets.clear();
        self.targets.extend(keys.iter().take(writes).cloned());
        self.begun_us = now.mono_us;
        self.session.read(now, keys, out).expect("no call is under way");
    }

    /// Goes on with what came of a call; says whether the transaction is over.
    pub fn on_event(
        &mut self,
        now: Now,
        event: Event,
        clock_ns: impl Fn() -> u64,
        done: &mut Done,
        out: &mut Vec<SessionOutput>,
    ) -> bool {
        match event {
            Event::Read(states) => {
                self.look(&states, clock_ns);
                for key in &self.targets {
                    let op = match self.role {
                        Role::Load => Op::Write(self.value.clone()),
                        _ => Op::Write(Value::Int(self.number as i64 + 1)),
                    };
                    let update = Update { key: key.clone(), op, id: None };
                    self.session.write(now, update).expect("no call is under way");
                }
                self.session.commit(now, out).expect("no call is under way");
                return false;
            }
            Event::Committed { .. } => {
                done.transactions += 1;
                done.writes += u64::from(!self.targets.is_empty());
                if let Role::Writer(probe) = &self.role {
                    self.number += 1;
                    probe.acknowledged_ns.store(clock_ns(), Ordering::Release);
                    probe.acknowledged.store(self.number, Ordering::Release);
                }
            }
            Event::Unknown { .. } => {
                self.session.leave_unanswered();
                done.failed += 1;
            }
            Event::Aborted { .. } | Event::Failed(_) => done.failed += 1,
            _ => return false,
        }
        true
    }

    /// What a reader sees.
    fn look(&mut self, states: &[Arc<State>], clock_ns: impl Fn() -> u64) {
        let Role::Reader(probe) = &self.role else { return };
        let value = states[0].as_register().and_then(|register| register.value());
        let number = value.and_then(Value::as_int).unwrap_or(0) as u64;
        if number <= self.number {
            return;
        }
        self.number = number;
        // It may be seen before its writer knows that it is committed.
        let is_acknowledged = probe.acknowledged.load(Ordering::Acquire) >= number;
        let acknowledged_ns = probe.acknowledged_ns.load(Ordering::Acquire);
        let delay_ns = if is_acknowledged { clock_ns().saturating_sub(acknowledged_ns) } else { 0 };
        if self.is_counted {
            self.delays_ns.push(delay_ns);
        }
        probe.seen[usize::from(self.dc)].store(number, Ordering::Relaxed);
    }
}
