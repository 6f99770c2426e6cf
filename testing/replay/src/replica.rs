//! One replica: the updates that it has received, and those in transit to it.

use std::sync::Arc;
use std::time::Duration;

use imbl::OrdMap;
use mingle_store::{OperationId, RecordKind, Write, record};

use crate::build::build;
use crate::context::Context;
use crate::once::{Operations, Verdict};
use crate::state::State;
use crate::update::{Closing, Order, Payload, Unit, Update};

/// One replica; cheap to copy.
#[derive(Clone, Debug)]
pub struct Replica {
    index: usize,
    /// The number of replicas.
    count: usize,
    /// All received updates, in version order.
    received: OrdMap<Order, Arc<Update>>,
    /// The set of received updates.
    pub context: Context,
    operations: Operations,
    /// The state that they produce.
    pub state: State,
    /// The updates in transit, with their due times.
    coming: Vec<(Duration, Arc<Update>)>,
}

impl Replica {
    /// Creates the replica with this index, of `count`, without updates.
    pub fn new(index: usize, count: usize) -> Self {
        Self {
            index,
            count,
            received: OrdMap::new(),
            context: Context::default(),
            operations: Operations::default(),
            state: State::default(),
            coming: Vec::new(),
        }
    }

    /// Returns its index among the replicas.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the update that a commit of these writes here would create now.
    pub fn update(&self, operation: Option<OperationId>, writes: &[Write]) -> Update {
        let number = self.context.prefix(self.index) + 1;
        let clock = self.received.get_max().map_or(0, |(order, _)| order.timestamp);
        let order = Order { timestamp: clock + 1, origin: self.index, number };
        let (scopes, changes) = build(&self.state, writes);
        let closings = changes.iter().filter_map(|change| match (&change.unit, &change.added) {
            (Unit::Record(key), Some(Payload::Bytes(value))) if key.kind == RecordKind::Floor => {
                let origin = key.origin()?;
                let after = self.operations.floor(origin);
                Some(Closing { origin, after, up_to: record::read_floor(value) })
            }
            _ => None,
        });
        let closings = closings.collect();
        Update { order, context: self.context.clone(), operation, scopes, changes, closings }
    }

    /// Receives an update; returns the version of its changes here.
    pub fn receive(&mut self, update: Arc<Update>) -> u64 {
        self.context.add(update.order.origin, update.order.number);
        let verdict = self.operations.receive(&update);
        self.received.insert(update.order, Arc::clone(&update));
        // Distinct for each replica, since the states of two replicas at the same number of updates
        // can differ.
        let version = (self.received.len() * self.count + self.index) as u64;
        match verdict {
            Verdict::Counts => self.state.apply(&update, version),
            Verdict::Ignored => self.state.pass(&update),
            Verdict::Changed => {
                let before = std::mem::take(&mut self.state);
                self.state = self.fold();
                self.state.version_from(&before, version);
            }
        }
        version
    }

    /// Returns the state of all received updates, computed from the start.
    pub fn fold(&self) -> State {
        let mut state = State::default();
        for update in self.received.values() {
            if self.operations.counts(update) {
                state.apply(update, 0);
            } else {
                state.pass(update);
            }
        }
        state
    }

    /// Returns the copy of an operation that counts.
    #[cfg(test)]
    pub fn counted(&self, operation: OperationId) -> Option<Order> {
        self.operations.counted(operation)
    }

    /// Adds an update in transit to this replica.
    pub fn send(&mut self, due: Duration, update: Arc<Update>) {
        self.coming.push((due, update));
        self.coming.sort_by_key(|(due, update)| (*due, update.order));
    }

    /// Receives due updates in the order of their due times, from replicas that can be heard; at a
    /// causal store an update waits for the updates that its replica had received.
    pub fn deliver(&mut self, now: Duration, is_causal: bool, hears: impl Fn(usize) -> bool) {
        loop {
            let next = self.coming.iter().position(|(due, update)| {
                *due <= now
                    && hears(update.order.origin)
                    && (!is_causal || self.context.covers(&update.context))
            });
            let Some(next) = next else { return };
            let (_, update) = self.coming.remove(next);
            self.receive(update);
        }
    }

    /// Returns the replica as it will be after all updates in transit have arrived.
    pub fn complete(&self) -> Self {
        let mut all = self.clone();
        for (_, update) in std::mem::take(&mut all.coming) {
            all.receive(update);
        }
        all
    }
}
