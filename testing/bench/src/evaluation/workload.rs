//! The clients' transactions of a workload, one after the other.

use std::sync::Arc;

use mingle_geo::certify::{Conflicts, Touch};
use mingle_geo::{Key, State, Update};
use mingle_model::random::Random;

/// A transaction of a client, which may have to be run again.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// The kind of the workload's transaction.
    pub kind: usize,
    /// True if the application declares it strong.
    pub is_strong: bool,
    /// True if it is one of the kinds that may write.
    pub is_update: bool,
    /// The items and users concerned, as the workload numbers them.
    pub subjects: [u64; 3],
    /// The number of its reads so far.
    pub rounds: usize,
    /// True if it achieved its purpose; it may have found that it cannot.
    pub is_done: bool,
}

/// The next step of a transaction.
#[derive(Clone, Debug)]
pub enum Step {
    /// It reads these keys at once.
    Read(Vec<Key>),
    /// It writes these updates and commits.
    Commit {
        /// The updates.
        updates: Vec<Update>,
        /// The declared accesses of a strong transaction.
        touches: Vec<Touch>,
    },
}

/// A workload.
pub trait Workload: Send {
    /// Returns the declared conflicts.
    fn conflicts(&self) -> Conflicts;

    /// Returns the initial contents of all data centers.
    fn filling(&self) -> Vec<(Key, Arc<State>)>;

    /// Returns the next transaction of some client.
    fn next(&mut self, random: &mut Random) -> Job;

    /// Returns the next step of a transaction, given the states just read; none at its beginning.
    fn step(&mut self, job: &mut Job, found: &[Arc<State>]) -> Step;

    /// Handles the commit of a transaction.
    fn on_committed(&mut self, _job: &Job) {}
}
