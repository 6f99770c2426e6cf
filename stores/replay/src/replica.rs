//! One replica: what it has received, and what is on its way to it.

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
    /// How many replicas there are.
    count: usize,
    /// All that it has received, in version order.
    received: OrdMap<Order, Arc<Update>>,
    /// What it has received.
    pub context: Context,
    operations: Operations,
    /// What all of that comes to.
    pub state: State,
    /// What is on its way, and when it is due.
    coming: Vec<(Duration, Arc<Update>)>,
}

impl Replica {
    /// The replica of this index, of so many, which has received nothing.
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

    /// Its place among the replicas.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The update that these writes would be, were they committed here now.
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

    /// Receives an update; gives the version of what it changes here.
    pub fn receive(&mut self, update: Arc<Update>) -> u64 {
        self.context.add(update.order.origin, update.order.number);
        let verdict = self.operations.receive(&update);
        self.received.insert(update.order, Arc::clone(&update));
        // Distinct for each replica, since what one has at its version is not what another has at
        // the same.
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

    /// What all that was received comes to, from the start.
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

    /// The copy of an operation that counts.
    #[cfg(test)]
    pub fn counted(&self, operation: OperationId) -> Option<Order> {
        self.operations.counted(operation)
    }

    /// An update is on its way here.
    pub fn send(&mut self, due: Duration, update: Arc<Update>) {
        self.coming.push((due, update));
        self.coming.sort_by_key(|(due, update)| (*due, update.order));
    }

    /// Receives what is due, in the order in which it came due, from replicas that can be heard;
    /// at a causal store an update waits for what its replica had received.
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

    /// As it will be once all that is on its way has come.
    pub fn complete(&self) -> Self {
        let mut all = self.clone();
        for (_, update) in std::mem::take(&mut all.coming) {
            all.receive(update);
        }
        all
    }
}
