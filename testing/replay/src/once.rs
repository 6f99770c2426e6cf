//! The choice among several updates of one operation.
//!
//! Among the received copies, the lowest in version order counts. Once the floor of the
//! transaction's origin has passed the operation, the operation is closed: only those copies count
//! that the replica that raised the floor had received. So a copy that arrives after the floor is
//! ignored, and a replica that had counted a copy which the floor's replica lacked drops it:
//! replicas that have received the same updates count the same copies.
//!
//! # Departures
//!
//! A store that discards updates keeps nothing about a closed operation, and ignores copies that
//! arrive after the floor. Both stores behave the same if a floor is raised only once every replica
//! has a copy, except that two replicas of the other store may continue to count different copies.

use imbl::OrdMap;
use mingle_model::{Origin, TransactionId};
use mingle_store::OperationId;

use crate::context::Context;
use crate::update::{Closing, Order, Update};

/// The operations that a replica has received.
#[derive(Clone, Debug, Default)]
pub struct Operations {
    copies: OrdMap<OperationId, Copies>,
    closings: OrdMap<Origin, Vec<(Closing, Context)>>,
}

#[derive(Clone, Debug, Default)]
struct Copies {
    received: Vec<Order>,
    counted: Option<Order>,
}

/// The effect of a new update on the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It counts, and the choice is otherwise unchanged.
    Counts,
    /// It does not count, and the choice is unchanged.
    Ignored,
    /// The choice among earlier updates changes.
    Changed,
}

impl Operations {
    /// True if a received update counts.
    pub fn counts(&self, update: &Update) -> bool {
        update.operation.is_none_or(|operation| {
            let copies = self.copies.get(&operation);
            copies.is_some_and(|copies| copies.counted == Some(update.order))
        })
    }

    /// Returns the copy of an operation that counts.
    #[cfg(test)]
    pub fn counted(&self, operation: OperationId) -> Option<Order> {
        self.copies.get(&operation)?.counted
    }

    /// Returns the number up to which operations of an origin are closed.
    pub fn floor(&self, origin: Origin) -> u64 {
        let closings = self.closings.get(&origin).into_iter().flatten();
        closings.map(|(closing, _)| closing.up_to).max().unwrap_or(0)
    }

    /// Adds a new update.
    pub fn receive(&mut self, update: &Update) -> Verdict {
        let mut is_changed = false;
        for closing in &update.closings {
            let closings = self.closings.entry(closing.origin).or_default();
            closings.push((*closing, update.context.clone()));
            is_changed |= self.close(*closing);
        }
        let Some(operation) = update.operation else {
            return if is_changed { Verdict::Changed } else { Verdict::Counts };
        };
        let copies = self.copies.entry(operation).or_default();
        copies.received.push(update.order);
        let before = copies.counted;
        let after = self.choose(operation);
        if is_changed || (before.is_some() && before != after) {
            return Verdict::Changed;
        }
        if before == after { Verdict::Ignored } else { Verdict::Counts }
    }

    /// Repeats the choice for all operations that a floor closes; true if any choice changed.
    fn close(&mut self, closing: Closing) -> bool {
        let id = |sequence| TransactionId { origin: closing.origin, sequence };
        let from = OperationId { id: id(0), phase: 0 };
        let to = OperationId { id: id(closing.up_to), phase: u32::MAX };
        let closed: Vec<OperationId> = self.copies.range(from..=to).map(|(op, _)| *op).collect();
        let mut is_changed = false;
        for operation in closed {
            let before = self.copies[&operation].counted;
            is_changed |= self.choose(operation) != before;
        }
        is_changed
    }

    /// Chooses the copy of an operation that counts.
    fn choose(&mut self, operation: OperationId) -> Option<Order> {
        let closings = self.closings.get(&operation.id.origin).into_iter().flatten();
        let closings: Vec<&Context> = closings
            .filter(|(closing, _)| {
                closing.after < operation.id.sequence && operation.id.sequence <= closing.up_to
            })
            .map(|(_, seen)| seen)
            .collect();
        let copies = self.copies.get_mut(&operation)?;
        let may_count = |order: &&Order| {
            closings.is_empty()
                || closings.iter().any(|seen| seen.contains(order.origin, order.number))
        };
        copies.counted = copies.received.iter().filter(may_count).min().copied();
        copies.counted
    }
}
