//! Clients: each is a session with one transaction at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_geo::session::SessionOutput;
use mingle_geo::{DcId, Event, Key, Kind, Now, Op, Session, SessionConfig, State, Update, Vector};
use mingle_model::random::Random;
use mingle_model::{Origin, Value};

use super::plan::Plan;

/// The number of keys that a transaction reads.
pub const KEYS_READ: usize = 3;

/// The task of a client.
#[derive(Debug)]
pub enum Role {
    /// Reads, and sometimes writes one of the keys that it has read.
    Load,
    /// Writes the key of a probe, and waits until all readers have seen it.
    Writer(Arc<Probe>),
    /// Reads the key of a probe continuously.
    Reader(Arc<Probe>),
}

/// A key by which visibility is measured.
#[derive(Debug)]
pub struct Probe {
    key: Key,
    /// The last acknowledged number, and the time of its acknowledgement.
    acknowledged: AtomicU64,
    acknowledged_ns: AtomicU64,
    /// The last number seen at each data center.
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

/// The counts of a client so far.
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
    /// The keys that the running transaction writes.
    targets: Vec<Key>,
    /// The number that a writer wrote last, or that a reader saw last.
    number: u64,
    /// The begin of the running transaction.
    pub begun_us: u64,
    /// True if delays are recorded, which is not the case during the warm-up.
    pub is_counted: bool,
    /// The delays that a reader has observed, in nanoseconds.
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

    /// Returns the data center that the client uses.
    pub fn dc(&self) -> u8 {
        self.dc
    }

    /// Returns the commit vector that an event acknowledges, if its transaction wrote.
    pub fn acknowledged(&self, event: &Event) -> Option<Vector> {
        match event {
            Event::Committed { commit_vec, .. } if !self.targets.is_empty() => Some(*commit_vec),
            _ => None,
        }
    }

    /// Returns the pause before the next transaction, in microseconds.
    pub fn pause_us(&mut self, plan: &Plan) -> u64 {
        let think_us = match self.role {
            Role::Load => plan.think.as_micros() as usize,
            // With this pause, writes come at any time between two ticks.
            Role::Writer(_) => 5_000,
            Role::Reader(_) => 250,
        };
        self.random.below(2 * think_us + 1) as u64
    }

    /// True if the client may begin: a writer has to wait until all data centers have seen its last
    /// write.
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

    /// Continues after an event of a call; true if the transaction is over.
    pub fn on_event(
        &mut self,
        plan: &Plan,
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
                        Role::Load => plan.write(self.value.clone()),
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

    /// Records the number that a reader sees.
    fn look(&mut self, states: &[Arc<State>], clock_ns: impl Fn() -> u64) {
        let Role::Reader(probe) = &self.role else { return };
        let value = states[0].as_register().and_then(|register| register.value());
        let number = value.and_then(Value::as_int).unwrap_or(0) as u64;
        if number <= self.number {
            return;
        }
        self.number = number;
        // A number may be seen before its writer knows that it is committed.
        let is_acknowledged = probe.acknowledged.load(Ordering::Acquire) >= number;
        let acknowledged_ns = probe.acknowledged_ns.load(Ordering::Acquire);
        let delay_ns = if is_acknowledged { clock_ns().saturating_sub(acknowledged_ns) } else { 0 };
        if self.is_counted {
            self.delays_ns.push(delay_ns);
        }
        probe.seen[usize::from(self.dc)].store(number, Ordering::Relaxed);
    }
}
