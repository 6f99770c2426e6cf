//! The state that a set of updates produces.

use std::collections::BTreeSet;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet, Vector};
use mingle_model::{Ref, RowKind, TransactionId, Value, WitnessRow};
use mingle_store::OperationId;

use crate::context::Context;
use crate::update::{Dot, Order, Part, Payload, Scope, Unit, Update};

/// All units; a copy is cheap, so it serves as a snapshot.
#[derive(Clone, Debug, Default)]
pub struct State {
    cells: OrdMap<Unit, Arc<Cell>>,
    /// Received updates, including those that do not count.
    received: Context,
    /// Operations with a copy that counts.
    operations: OrdSet<OperationId>,
    /// Updates that delete or clear effects that may still arrive.
    early: Vector<Arc<Early>>,
}

/// The scopes of an update whose context was not completely received.
#[derive(Debug)]
struct Early {
    scopes: Vec<Scope>,
    context: Context,
}

/// One unit.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// The additions that were not removed.
    pub live: OrdMap<Dot, Added>,
    /// The dots that were removed before they arrived.
    early: BTreeSet<Dot>,
    /// The version of its last change.
    pub version: u64,
}

/// The addition of one update to a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// The update's place in version order.
    pub order: Order,
    /// The value added.
    pub payload: Payload,
}

impl Early {
    /// True if the addition of an update to a unit is removed at once.
    fn takes(&self, unit: &Unit, order: Order) -> bool {
        self.context.contains(order.origin, order.number)
            && self.scopes.iter().any(|scope| scope.contains(unit))
    }
}

/// True if a unit with `after` reads differently from one with `before`.
fn shows_otherwise(unit: &Unit, before: &OrdMap<Dot, Added>, after: &OrdMap<Dot, Added>) -> bool {
    match unit {
        // Only the object's existence is visible, not the update that caused it.
        Unit::Object(_, Part::Presence) => before.is_empty() != after.is_empty(),
        _ => before != after,
    }
}

impl Cell {
    /// Returns the last addition in version order.
    pub fn last(&self) -> Option<&Payload> {
        self.live.values().max_by_key(|added| added.order).map(|added| &added.payload)
    }
}

impl State {
    /// Notes a received update that does not count.
    pub fn pass(&mut self, update: &Update) {
        self.received.add(update.order.origin, update.order.number);
    }

    /// Adds the effects of an update. No other copy of its operation may count. The units that it
    /// changes get this version.
    pub fn apply(&mut self, update: &Update, version: u64) {
        self.pass(update);
        if let Some(operation) = update.operation {
            self.operations.insert(operation);
        }
        for scope in &update.scopes {
            self.take(scope, &update.context, version);
        }
        let dot = update.dot();
        for change in &update.changes {
            let is_late = self.early.iter().any(|early| early.takes(&change.unit, update.order));
            self.change(&change.unit, version, |state, cell| {
                for removed in &change.removed {
                    if cell.live.remove(removed).is_none() && !state.has(*removed) {
                        cell.early.insert(*removed);
                    }
                }
                if let Some(payload) = &change.added
                    && !cell.early.remove(&dot)
                    && !is_late
                {
                    let added = Added { order: update.order, payload: payload.clone() };
                    cell.live.insert(dot, added);
                }
            });
        }
        let received = &self.received;
        self.early.retain(|early| !received.covers(&early.context));
        if !update.scopes.is_empty() && !received.covers(&update.context) {
            let (scopes, context) = (update.scopes.clone(), update.context.clone());
            self.early.push_back(Arc::new(Early { scopes, context }));
        }
    }

    /// Removes from a scope the additions of updates in a context.
    fn take(&mut self, scope: &Scope, context: &Context, version: u64) {
        let parts = self.parts(&scope.object).map(|(unit, _)| unit);
        let units: Vec<Unit> = parts.filter(|unit| scope.contains(unit)).cloned().collect();
        for unit in units {
            self.change(&unit, version, |_, cell| {
                let is_taken = |added: &Added| {
                    let Order { origin, number, .. } = added.order;
                    context.contains(origin, number)
                };
                let kept = cell.live.iter().filter(|(_, added)| !is_taken(added));
                cell.live = kept.map(|(dot, added)| (*dot, added.clone())).collect();
            });
        }
    }

    /// Changes a unit, which gets this version if the change is visible.
    fn change(&mut self, unit: &Unit, version: u64, change: impl FnOnce(&Self, &mut Cell)) {
        let mut shared = self.cells.remove(unit).unwrap_or_default();
        let cell = Arc::make_mut(&mut shared);
        let before = cell.live.clone();
        change(self, cell);
        if shows_otherwise(unit, &before, &cell.live) {
            cell.version = version;
        }
        self.put(unit.clone(), shared);
    }

    /// True if the update with this dot has arrived.
    fn has(&self, dot: Dot) -> bool {
        match dot {
            Dot::Update { origin, number } => self.received.contains(origin, number),
            Dot::Operation(operation) => self.operations.contains(&operation),
        }
    }

    fn put(&mut self, unit: Unit, cell: Arc<Cell>) {
        // No read returns the version of a row, so a removed row leaves nothing.
        let is_over = matches!(unit, Unit::Row(_)) && cell.live.is_empty() && cell.early.is_empty();
        if !is_over {
            self.cells.insert(unit, cell);
        }
    }

    /// Keeps the versions of units that are unchanged from `before`, and gives all others this
    /// version.
    pub fn version_from(&mut self, before: &Self, version: u64) {
        let mut cells = OrdMap::new();
        for (unit, cell) in &self.cells {
            let mut cell = Arc::clone(cell);
            let old = before.cells.get(unit);
            let none = OrdMap::new();
            let is_changed = shows_otherwise(unit, old.map_or(&none, |old| &old.live), &cell.live);
            let kept = old.map_or(0, |old| old.version);
            Arc::make_mut(&mut cell).version = if is_changed { version } else { kept };
            cells.insert(unit.clone(), cell);
        }
        // Units that existed only through a copy that no longer counts.
        for (unit, old) in &before.cells {
            if !cells.contains_key(unit) && matches!(unit, Unit::Object(..)) {
                let version = if old.live.is_empty() { old.version } else { version };
                cells.insert(unit.clone(), Arc::new(Cell { version, ..Cell::default() }));
            }
        }
        self.cells = cells;
    }

    /// Returns a unit, if it was ever changed.
    pub fn get(&self, unit: &Unit) -> Option<&Cell> {
        self.cells.get(unit).map(|cell| &**cell)
    }

    /// Returns the units from this one on.
    pub fn from(&self, unit: Unit) -> impl Iterator<Item = (&Unit, &Cell)> {
        self.cells.range(unit..).map(|(unit, cell)| (unit, &**cell))
    }

    /// Returns all parts of an object.
    pub fn parts<'a>(&'a self, object: &'a Ref) -> impl Iterator<Item = (&'a Unit, &'a Cell)> {
        self.from(Unit::Object(object.clone(), Part::Presence))
            .take_while(move |(unit, _)| matches!(unit, Unit::Object(of, _) if of == object))
    }

    /// Returns the elements or entries of a field.
    pub fn elements<'a>(
        &'a self,
        object: &'a Ref,
        field: u16,
    ) -> impl Iterator<Item = (&'a Value, &'a Cell)> {
        // The least of all values.
        let first = Part::Element(field, Value::Bool(false));
        self.from(Unit::Object(object.clone(), first)).map_while(move |(unit, cell)| match unit {
            Unit::Object(of, Part::Element(at, value)) if of == object && *at == field => {
                Some((value, cell))
            }
            _ => None,
        })
    }

    /// Returns the witness rows of an object, or of the whole store.
    pub fn rows<'a>(&'a self, object: Option<&'a Ref>) -> impl Iterator<Item = &'a WitnessRow> {
        self.all_rows_from(object.cloned()).take_while(move |row| row.object.as_ref() == object)
    }

    /// Returns the witness rows, those of the whole store first.
    pub fn all_rows(&self) -> impl Iterator<Item = &WitnessRow> {
        self.all_rows_from(None)
    }

    fn all_rows_from(&self, object: Option<Ref>) -> impl Iterator<Item = &WitnessRow> {
        let first = WitnessRow {
            object,
            id: TransactionId { origin: mingle_model::Origin(0), sequence: 0 },
            kind: RowKind::Write,
            intent: "".into(),
            stores: Vec::new(),
            seen: Vec::new(),
        };
        self.from(Unit::Row(first))
            .map_while(|(unit, cell)| match unit {
                Unit::Row(row) => Some((row, cell)),
                _ => None,
            })
            .filter(|(_, cell)| !cell.live.is_empty())
            .map(|(row, _)| row)
    }
}
