//! The microbenchmark of UniStore's evaluation (§8.2, §8.3): transactions of three keys.
//!
//! An updating transaction reads its keys and writes all three. With contention, a given percentage
//! of the strong transactions has one of its keys in a designated partition.

use std::sync::Arc;

use mingle_geo::certify::Conflicts;
use mingle_geo::{Cause, DcId, Key, Kind, Op, State, Timestamp, Update, Vector, Version};
use mingle_model::Value;
use mingle_model::random::Random;

use super::workload::{Job, Step, Workload};

/// The number of keys that a transaction accesses.
const KEYS: usize = 3;

/// The size of a value in bytes.
const VALUE_BYTES: usize = 64;

/// The designated partition of contention, different from the partition of `RedBlue`'s service.
const DESIGNATED: u16 = 1;

/// The microbenchmark.
#[derive(Clone, Debug)]
pub struct Micro {
    keys: Vec<Key>,
    /// The keys of the designated partition.
    designated: Vec<usize>,
    /// Updating transactions, in percent.
    updates_percent: usize,
    /// Strong transactions, in percent.
    strong_percent: usize,
    /// Strong transactions that access the designated partition on purpose, in percent of the
    /// strong ones.
    contention_percent: usize,
    value: Value,
}

impl Micro {
    pub fn new(key_count: usize, partition_count: u16, strong_percent: usize) -> Self {
        let keys: Vec<Key> =
            (0..key_count).map(|at| Key::new(Kind::Register, format!("key:{at}"))).collect();
        let designated = DESIGNATED % partition_count;
        let is_designated = |at: &usize| keys[*at].partition(partition_count).0 == designated;
        let designated = (0..key_count).filter(is_designated).collect();
        let value = Value::Bytes(vec![7; VALUE_BYTES].into());
        let (updates_percent, contention_percent) = (100, 0);
        Self { keys, designated, updates_percent, strong_percent, contention_percent, value }
    }

    #[must_use]
    pub fn with_updates(self, updates_percent: usize) -> Self {
        Self { updates_percent, ..self }
    }

    #[must_use]
    pub fn with_contention(self, contention_percent: usize) -> Self {
        Self { contention_percent, ..self }
    }

    fn keys_of(&self, job: &Job) -> Vec<Key> {
        job.subjects.iter().map(|at| self.keys[*at as usize].clone()).collect()
    }
}

/// Returns the state that results from operations on an empty item.
pub fn state_of(kind: Kind, ops: &[Op]) -> Arc<State> {
    let mut state = State::new(kind);
    for (index, op) in ops.iter().enumerate() {
        let version = Version { timestamp: Timestamp::ZERO, origin: DcId(0), index: index as u32 };
        state.apply(&Cause { version, seen: Vector::ZERO }, op, None);
    }
    Arc::new(state)
}

impl Workload for Micro {
    fn conflicts(&self) -> Conflicts {
        Conflicts::default()
    }

    fn filling(&self) -> Vec<(Key, Arc<State>)> {
        let state = state_of(Kind::Register, &[Op::Write(self.value.clone())]);
        self.keys.iter().map(|key| (key.clone(), state.clone())).collect()
    }

    fn next(&mut self, random: &mut Random) -> Job {
        let is_strong = random.below(100) < self.strong_percent;
        let is_update = random.below(100) < self.updates_percent;
        let mut subjects = [0; KEYS];
        for at in 0..KEYS {
            subjects[at] = loop {
                let subject = random.below(self.keys.len()) as u64;
                if !subjects[..at].contains(&subject) {
                    break subject;
                }
            };
        }
        if is_strong && random.below(100) < self.contention_percent {
            let designated = *random.pick(&self.designated) as u64;
            if !subjects[1..].contains(&designated) {
                subjects[0] = designated;
            }
        }
        let kind = usize::from(is_strong);
        Job { kind, is_strong, is_update, subjects, ..Job::default() }
    }

    fn step(&mut self, job: &mut Job, found: &[Arc<State>]) -> Step {
        if found.is_empty() {
            return Step::Read(self.keys_of(job));
        }
        job.is_done = true;
        let written = if job.is_update { self.keys_of(job) } else { Vec::new() };
        let write = |key| Update { key, op: Op::Write(self.value.clone()), id: None };
        Step::Commit { updates: written.into_iter().map(write).collect(), touches: Vec::new() }
    }
}
