//! The message from one replica to the others about a commit.

use mingle_model::{Origin, Ref, Value, WitnessRow};
use mingle_store::{Bytes, OperationId, RecordKey};

use crate::context::Context;

/// The place of an update in version order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Order {
    /// Its Lamport timestamp, above those of all updates that its replica had received.
    pub timestamp: u64,
    /// Index of its replica.
    pub origin: usize,
    /// Its number among the replica's updates, from 1.
    pub number: u64,
}

/// The name by which other replicas see an update's effects, and remove them. Updates of one
/// operation share a dot, so a removal that saw one copy removes the others too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dot {
    /// An update that has no operation.
    Update {
        /// Index of its replica.
        origin: usize,
        /// Its number there.
        number: u64,
    },
    /// The update of the operation that counts.
    Operation(OperationId),
}

/// The smallest thing that can be changed separately.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// A part of an object.
    Object(Ref, Part),
    /// A witness row.
    Row(WitnessRow),
    /// A record.
    Record(RecordKey),
}

/// A part of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The object's existence.
    Presence,
    /// A register, a counter, or all lines of a log.
    Field(u16),
    /// An element of a set, or an entry of a map.
    Element(u16, Value),
}

/// A whole object, or one of its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The object.
    pub object: Ref,
    /// The field; none stands for all fields and the presence.
    pub field: Option<u16>,
}

impl Scope {
    /// True if a unit is in it.
    pub fn contains(&self, unit: &Unit) -> bool {
        let Unit::Object(object, part) = unit else { return false };
        let is_field = self.field.is_none_or(|field| match part {
            Part::Presence => false,
            Part::Field(at) | Part::Element(at, _) => *at == field,
        });
        *object == self.object && is_field
    }
}

/// The addition of an update to a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A presence, an element or a witness row.
    Mark,
    /// A register's or entry's value.
    Value(Value),
    /// The amount added to a counter.
    Amount(i128),
    /// Lines of a log, in order.
    Lines(Vec<Value>),
    /// A record's value.
    Bytes(Bytes),
}

/// The effect of an update on one unit: it removes first, then adds. So a copy of an operation that
/// saw another copy replaces that copy's addition by its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The unit.
    pub unit: Unit,
    /// The dots removed: those that the update's replica saw.
    pub removed: Vec<Dot>,
    /// The addition, under the update's own dot.
    pub added: Option<Payload>,
}

/// A raised floor: for operations of transactions between `after` and `up_to`, only the copies
/// count that the floor's replica had received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    /// The origin of the floor.
    pub origin: Origin,
    /// The floor before, at its replica; operations up to here are not closed again.
    pub after: u64,
    /// The new floor.
    pub up_to: u64,
}

/// The effect of one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// Its place in version order, which also identifies it.
    pub order: Order,
    /// The updates that its replica had received.
    pub context: Context,
    /// The operation that it runs, at a store that counts operations once.
    pub operation: Option<OperationId>,
    /// The scopes that it deletes and clears. Before all other changes, additions of updates in
    /// `context` are removed from these scopes, even if they arrive later.
    pub scopes: Vec<Scope>,
    /// Units changed, each at most once.
    pub changes: Vec<Change>,
    /// Floors raised.
    pub closings: Vec<Closing>,
}

impl Update {
    /// Returns the dot of its effects.
    pub fn dot(&self) -> Dot {
        match self.operation {
            Some(operation) => Dot::Operation(operation),
            None => Dot::Update { origin: self.order.origin, number: self.order.number },
        }
    }
}
