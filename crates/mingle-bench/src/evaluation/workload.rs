//! What clients do: the transactions of a workload, one after the other.

use std::sync::Arc;

use mingle_geo::certify::{Conflicts, Touch};
use mingle_geo::{Key, State, Update};
use mingle_model::random::Random;

/// One transaction of a client, which may have to be run again.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Which of the workload's transactions.
    pub kind: usize,
    /// Whether the application declares it to be strong.
    pub is_strong: bool,
    /// Whether it is of those that may write.
    pub is_update: bool,
    /// What it is about, as the workload numbers things.
    pub subjects: [u64; 3],
    /// How often it has read so far.
    pub rounds: usize,
    /// Whether it did what it is for; it may have found that it cannot.
    pub is_done: bool,
}

/// What a transaction does next.
#[derive(Clone, Debug)]
pub enum Step {
    /// It reads these keys at once.
    Read(Vec<Key>),
    /// It writes this and commits.
    Commit {
        /// What it writes.
        updates: Vec<Update>,
        /// Of a strong one, what it declares to have used.
        touches: Vec<Touch>,
    },
}

/// A workload.
pub trait Workload: Send {
    /// What conflicts.
    fn conflicts(&self) -> Conflicts;

    /// What all data centers hold at the beginning.
    fn filling(&self) -> Vec<(Key, Arc<State>)>;

    /// The next transaction of some client.
    fn next(&mut self, random: &mut Random) -> Job;

    /// What a transaction does, given what it has just read; nothing at its beginning.
    fn step(&mut self, job: &mut Job, found: &[Arc<State>]) -> Step;

    /// A transaction has committed.
    fn on_committed(&mut self, _job: &Job) {}
}
