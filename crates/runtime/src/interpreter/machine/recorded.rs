//! The values that phases hand on.

use mingle_lang::Plan;
use mingle_model::Value;

/// The values that a phase keeps for later ones, by queue, each in the order of recording.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    pub(super) queues: Vec<Vec<Value>>,
}

impl Recorded {
    /// Creates empty queues for a transaction.
    pub fn new(plan: &Plan) -> Self {
        Self { queues: vec![Vec::new(); plan.queue_count] }
    }

    /// Adds the values that a phase recorded.
    pub fn merge(&mut self, later: Self) {
        for (queue, values) in self.queues.iter_mut().zip(later.queues) {
            if !values.is_empty() {
                *queue = values;
            }
        }
    }

    /// Returns the values by queue, as they are kept for a helper that finishes the transaction.
    pub fn queues(&self) -> &[Vec<Value>] {
        &self.queues
    }

    /// Restores the queues from the values that were kept.
    pub fn from_queues(plan: &Plan, kept: Vec<Vec<Value>>) -> Self {
        let mut queues = kept;
        queues.resize(plan.queue_count, Vec::new());
        Self { queues }
    }

    /// Returns the number of values.
    pub fn count(&self) -> usize {
        self.queues.iter().map(Vec::len).sum()
    }
}
