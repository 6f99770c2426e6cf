//! What one replica tells the others of a commit.

use mingle_model::{Origin, Ref, Value, WitnessRow};
use mingle_store::{Bytes, OperationId, RecordKey};

use crate::context::Context;

/// Where an update stands in version order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Order {
    /// Its Lamport timestamp, above those of all that its replica had received.
    pub timestamp: u64,
    /// Index of its replica.
    pub origin: usize,
    /// The how manieth there, from 1.
    pub number: u64,
}

/// The name under which others see an update's effects, and remove them. Updates of one operation
/// share theirs, so a removal that saw one copy removes the others too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dot {
    /// An update that has no operation.
    Update {
        /// Index of its replica.
        origin: usize,
        /// Its number there.
        number: u64,
    },
    /// Whichever update of the operation counts.
    Operation(OperationId),
}

/// What can be changed on its own.
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
    /// That it exists.
    Presence,
    /// A register, a counter, or all lines of a log.
    Field(u16),
    /// An element of a set, or an entry of a map.
    Element(u16, Value),
}

/// An object, or all that is in one of its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Which object.
    pub object: Ref,
    /// Which field; all of them, and the presence, if none.
    pub field: Option<u16>,
}

impl Scope {
    /// Whether a unit is in it.
    pub fn contains(&self, unit: &Unit) -> bool {
        let Unit::Object(object, part) = unit else { return false };
        let is_field = self.field.is_none_or(|field| match part {
            Part::Presence => false,
            Part::Field(at) | Part::Element(at, _) => *at == field,
        });
        *object == self.object && is_field
    }
}

/// What an update puts into a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A presence, an element or a witness row.
    Mark,
    /// A register's or entry's value.
    Value(Value),
    /// What is added to a counter.
    Amount(i128),
    /// Lines of a log, in order.
    Lines(Vec<Value>),
    /// A record's value.
    Bytes(Bytes),
}

/// What an update does to one unit: it removes first, then adds. So a copy of an operation that
/// saw another one puts its own in that one's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub unit: Unit,
    /// What goes: what the update's replica saw of it.
    pub removed: Vec<Dot>,
    /// What comes, under the update's own dot.
    pub added: Option<Payload>,
}

/// A floor that was raised: of operations of transactions between `after` and `up_to`, only the
/// copies count that the floor's replica had received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    /// Whose floor.
    pub origin: Origin,
    /// What the floor was at its replica; nothing up to here is closed anew.
    pub after: u64,
    /// What it is.
    pub up_to: u64,
}

/// The effect of one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// Where it stands, which also names it.
    pub order: Order,
    /// What its replica had received.
    pub context: Context,
    /// What it runs, at a store that counts operations once.
    pub operation: Option<OperationId>,
    /// What it deletes and clears: of these goes, before all else, what comes of updates in
    /// `context`, even where they come later.
    pub scopes: Vec<Scope>,
    /// Units changed, each at most once.
    pub changes: Vec<Change>,
    /// Floors raised.
    pub closings: Vec<Closing>,
}

impl Update {
    /// The name of its effects.
    pub fn dot(&self) -> Dot {
        match self.operation {
            Some(operation) => Dot::Operation(operation),
            None => Dot::Update { origin: self.order.origin, number: self.order.number },
        }
    }
}
