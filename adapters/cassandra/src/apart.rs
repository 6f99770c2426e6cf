//! For tests: replicas that receive each other's commits only on request.
//!
//! Real data centers cannot be partitioned at will. Here each data center is a keyspace of its own,
//! and each commit at one is kept until the test delivers it to the others, in any order.
//! Cassandra's own replication does the same with the same mutations.

use std::sync::{Mutex, MutexGuard, PoisonError};

use mingle_model::random::next_random;

use crate::change::Change;

/// The commits in transit between replicas.
#[derive(Debug)]
pub struct Apart {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    random: u64,
    /// The receiving replica and the mutations.
    coming: Vec<(usize, Vec<Change>)>,
}

impl Apart {
    /// Creates an empty transit; the order of deliveries follows from the seed.
    pub fn new(seed: u64) -> Self {
        Self { inner: Mutex::new(Inner { random: seed.max(1), coming: Vec::new() }) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the mutations committed at a replica to all others.
    pub(crate) fn send(&self, from: usize, count: usize, changes: &[Change]) {
        let mut inner = self.lock();
        for replica in (0..count).filter(|replica| *replica != from) {
            inner.coming.push((replica, changes.to_vec()));
        }
    }

    /// Takes a random commit in transit, with its mutations in any order.
    pub(crate) fn take(&self) -> Option<(usize, Vec<Change>)> {
        let mut inner = self.lock();
        let count = inner.coming.len();
        if count == 0 {
            return None;
        }
        let drawn = next_random(&mut inner.random) as usize % count;
        let (replica, mut changes) = inner.coming.swap_remove(drawn);
        for index in (1..changes.len()).rev() {
            let other = next_random(&mut inner.random) as usize % (index + 1);
            changes.swap(index, other);
        }
        Some((replica, changes))
    }
}
