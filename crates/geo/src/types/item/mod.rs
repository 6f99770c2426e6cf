//! Items: one name, one item, whose type is the one that it was last given.
//!
//! The other types of this module are for programs that fix the type of each name. In an item, as in
//! a database of keys, any client may use any name with any type, and may let it expire. So an item
//! holds a body for each type:
//!
//! | body | parts | concurrent updates |
//! | --- | --- | --- |
//! | value | one [cell](Place::Value) | as in a cell |
//! | hash | a cell for each [field](Place::Field) | as in a cell |
//! | sorted set | a cell for each member's [score](Place::Score) | as in a cell |
//! | set | members | an insertion survives a removal that did not see it |
//! | list | elements at two ends | all are kept, in the order of versions; a removal names elements |
//!
//! **Shown type.** The item shows the body whose highest standing version is the highest of all
//! bodies'. [`ItemOp::Set`] and [`ItemOp::Delete`] remove what they saw of every body.
//!
//! **Cell.** It holds the values that were put and that no later put or drop saw, and additions. A put
//! or a drop takes away the values and the additions in its snapshot; a put then places its value. An
//! addition only adds, and one that any put took away stays taken, even if that put's value loses.
//! The *base* is the value with the highest version, or 0. The cell exists if it has a value or an
//! addition. If the base is an integer, the cell shows the base plus the additions, limited to 64
//! bits; otherwise it shows the base alone. So, beginning with nothing: put 5 beside add 1 gives 6,
//! drop beside add 1 gives 1, put 5 beside put 7 beside add 1 gives the winner plus 1.
//!
//! **Expiry.** The time of an operation is the wall part of its timestamp. [`ItemOp::Expire`] writes a
//! deadline, or none: a *fact*. `Set` and `Delete` write that there is none if their snapshot shows a
//! deadline, at the time of its highest entry; so an `Expire` beside a `Set` counts, and values that
//! never expire leave no facts. Facts are ordered by version. A fact with a deadline ends the item's *life* at that deadline, unless the next fact is older than the deadline.
//! A deadline that has passed when the fact commits counts as the first moment after the commit.
//! Everything older than the end of a life is gone for good; operations at or after the end begin an
//! empty life. A reader sees a life as ended once the own entry of its snapshot has reached the end,
//! or the snapshot contains an operation on the item that has. No clock is read.
//!
//! **Horizon.** Once every entry of the folded snapshot has reached a time, no operation older than it
//! will come. Up to there the ends of lives are decided, so what an ended life held is dropped, and
//! additions are summed up. Above it each addition is kept by itself, since a deadline that is still
//! on its way may divide them.
//!
//! **Operation ids.** An operation may carry an [`OpId`], of which one run counts; see
//! [`once`].
//!
//! Departures from Redis are those of the commands, not of this module.

mod cell;
mod deadline;
mod list;
mod once;
mod op;
mod sum;
#[cfg(test)]
pub(super) mod tests;
mod view;

use std::collections::BTreeSet;

use imbl::{OrdMap, OrdSet};
use mingle_model::Value;
use serde::{Deserialize, Serialize};

use super::dots::{Dots, Seen};
use super::ids::Past;
use super::{Cause, Op, OpId, Recent};
use crate::timestamp::{DcId, Timestamp, Version};
use crate::vector::Vector;
use cell::Cell;
use deadline::Deadlines;
use list::List;

pub use list::Element;
pub(super) use once::Once;
pub use op::{Cleared, ItemOp, Place, Side};
pub use sum::Removal;
pub use view::{ItemType, View};

/// The state of an item of [`Kind::Item`](super::Kind::Item).
///
/// Use [`Item::at`] to see its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The end of the last life whose end is decided; nothing older is here.
    life: u64,
    /// All operations older than this are here.
    horizon: u64,
    /// The time of the latest operation.
    latest: u64,
    deadlines: Deadlines,
    value: Cell,
    fields: OrdMap<Value, Cell>,
    scores: OrdMap<Value, Cell>,
    members: OrdMap<Value, Dots<()>>,
    list: List,
    /// The cells with additions above the horizon.
    open: OrdSet<Place>,
}

/// Returns the time of an operation, in microseconds.
fn time(version: Version) -> u64 {
    version.timestamp.micros()
}

/// True for operations of a transaction that still runs.
fn is_running(version: Version) -> bool {
    version.timestamp == Timestamp(u64::MAX)
}

impl Item {
    /// Returns the content of the item for a reader whose snapshot has reached `now_us`, in
    /// microseconds since 1970.
    pub fn at(&self, now_us: u64) -> View<'_> {
        View::new(self, self.deadlines.last_end(now_us.max(self.latest)).max(self.life))
    }

    /// Returns, for each of these elements of the list, the first element with its value; for a planted
    /// mistake.
    pub(crate) fn alike(&self, elements: &[Version]) -> Vec<Version> {
        let first = |version: &Version| {
            let named = self.list.iter().find(|one| one.version == *version)?;
            let first = self.list.iter().find(|one| one.value == named.value)?;
            Some(first.version)
        };
        elements.iter().map(|version| first(version).unwrap_or(*version)).collect()
    }

    /// Creates an item of which nothing older than the horizon is left.
    pub(super) fn absent(horizon_us: u64) -> Self {
        Self { life: horizon_us, horizon: horizon_us, ..Self::default() }
    }

    /// True if nothing of it need be remembered.
    pub(super) fn is_blank(&self) -> bool {
        self.deadlines.is_blank()
            && self.value == Cell::default()
            && self.fields.is_empty()
            && self.scores.is_empty()
            && self.members.is_empty()
            && self.list.is_empty()
    }

    /// Returns the time that the horizon must reach for [`settle`](Self::settle) to have an effect.
    pub(super) fn due_us(&self) -> Option<u64> {
        let open = if self.open.is_empty() { None } else { Some(self.latest.saturating_add(1)) };
        self.deadlines.due_us().into_iter().chain(open).min()
    }

    /// Notes the time of an operation; false if it belongs to a life that has ended, as only an operation
    /// that is here twice can.
    pub(super) fn note_time(&mut self, version: Version) -> bool {
        if is_running(version) {
            return true;
        }
        let is_alive = time(version) >= self.life;
        if is_alive {
            self.latest = self.latest.max(time(version));
        }
        is_alive
    }

    /// Takes away all additions that an operation of a running transaction removes: its removals are
    /// not measured yet.
    pub(super) fn clear_own(&mut self, op: &ItemOp) {
        match op {
            ItemOp::Put(place, _) | ItemOp::Drop(place) => {
                self.change(place, |cell| cell.added = sum::Sum::default());
            }
            ItemOp::Set(_) | ItemOp::Delete => {
                for place in self.added_places() {
                    self.change(&place, |cell| cell.added = sum::Sum::default());
                }
            }
            _ => {}
        }
    }

    /// Removes everything that an operation removes.
    pub(super) fn displace(&mut self, seen: &Seen<'_>, op: &ItemOp, id: Option<&OpId>) {
        let life = self.life;
        match op {
            ItemOp::Put(place, _) | ItemOp::Drop(place) => {
                self.change(place, |cell| cell.displace(seen));
            }
            ItemOp::PutSeen(place, _, removal) | ItemOp::DropSeen(place, removal) => {
                self.change(place, |cell| {
                    cell.displace(seen);
                    cell.added.remove(removal, life);
                });
                self.open.insert(place.clone());
            }
            // A transaction that saw another run may remove it; the earlier insertions must then
            // still be here.
            ItemOp::Insert(_) if id.is_some() => {}
            ItemOp::Insert(value) | ItemOp::Remove(value) => {
                change(&mut self.members, value, |dots| dots.displace(seen), Dots::is_empty);
            }
            ItemOp::Pull(elements) => self.list.pull(elements, seen),
            ItemOp::Set(_) | ItemOp::Delete => self.displace_all(seen, &[]),
            ItemOp::SetSeen(_, cleared) | ItemOp::DeleteSeen(cleared) => {
                self.displace_all(seen, &cleared.added);
            }
            ItemOp::Add(..) | ItemOp::Push(..) | ItemOp::Expire(_) => {}
        }
    }

    fn displace_all(&mut self, seen: &Seen<'_>, removals: &[(Place, Removal)]) {
        let places = |of: &OrdMap<Value, Cell>, place: fn(Value) -> Place| {
            of.keys().map(|key| place(key.clone())).collect::<Vec<_>>()
        };
        let cells = places(&self.fields, Place::Field).into_iter();
        let cells = cells.chain(places(&self.scores, Place::Score)).chain([Place::Value]);
        for place in cells {
            self.change(&place, |cell| cell.displace(seen));
        }
        let life = self.life;
        for (place, removal) in removals {
            self.change(place, |cell| cell.added.remove(removal, life));
            self.open.insert(place.clone());
        }
        let members: Vec<Value> = self.members.keys().cloned().collect();
        for member in members {
            change(&mut self.members, &member, |dots| dots.displace(seen), Dots::is_empty);
        }
        self.list.displace_all(seen);
    }

    /// Adds the value, the amount or the fact of an operation.
    pub(super) fn place(&mut self, cause: &Cause, op: &ItemOp, id: Option<&OpId>) {
        let (mark, version, life) = (cause.mark(), cause.version, self.life);
        match op {
            ItemOp::Put(place, value) | ItemOp::PutSeen(place, value, _) => {
                self.change(place, |cell| cell.writes.place(mark, id, value.clone()));
            }
            ItemOp::Set(value) | ItemOp::SetSeen(value, _) => {
                self.change(&Place::Value, |cell| cell.writes.place(mark, id, value.clone()));
                self.note_cleared(version, op, id.is_some());
            }
            ItemOp::Delete | ItemOp::DeleteSeen(_) => {
                self.note_cleared(version, op, id.is_some());
            }
            ItemOp::Expire(deadline_us) => self.deadlines.note(version, *deadline_us),
            ItemOp::Add(place, amount) if id.is_some() => {
                let add = |dots: &mut Dots<i64>| dots.place(mark, id, *amount);
                self.change(place, |cell| cell.named.change(add));
            }
            ItemOp::Add(place, amount) => {
                self.change(place, |cell| cell.added.add(version, *amount, life));
                self.open.insert(place.clone());
            }
            ItemOp::Insert(value) => {
                let place = |dots: &mut Dots<()>| dots.place(mark, id, ());
                change(&mut self.members, value, place, Dots::is_empty);
            }
            ItemOp::Push(side, value) => self.list.push(*side, mark, id, value.clone()),
            ItemOp::Drop(_) | ItemOp::DropSeen(..) | ItemOp::Remove(_) | ItemOp::Pull(_) => {}
        }
    }

    /// Notes that there is no deadline, for an operation that was measured, one that still runs, and one
    /// that has an id.
    fn note_cleared(&mut self, version: Version, op: &ItemOp, has_id: bool) {
        let has_deadline = has_id
            || match op {
                ItemOp::SetSeen(_, cleared) | ItemOp::DeleteSeen(cleared) => cleared.has_deadline,
                _ => is_running(version),
            };
        if has_deadline {
            self.deadlines.note(version, None);
        }
    }

    /// True if there is a deadline at a snapshot, at the time of its highest entry.
    fn has_deadline(&self, snapshot: &Vector) -> bool {
        let now_us = snapshot.highest().micros().max(self.latest);
        let life = self.deadlines.last_end(now_us).max(self.life);
        self.deadlines.current(life).is_some()
    }

    fn cell(&self, place: &Place) -> Option<&Cell> {
        match place {
            Place::Value => Some(&self.value),
            Place::Field(field) => self.fields.get(field),
            Place::Score(member) => self.scores.get(member),
        }
    }

    /// Changes a cell, and removes it if nothing is left of it.
    fn change(&mut self, place: &Place, with: impl FnOnce(&mut Cell)) {
        let is_empty = |cell: &Cell| *cell == Cell::default();
        match place {
            Place::Value => with(&mut self.value),
            Place::Field(field) => change(&mut self.fields, field, with, is_empty),
            Place::Score(member) => change(&mut self.scores, member, with, is_empty),
        }
    }

    /// Returns all cells, with their places.
    fn cells(&self) -> impl Iterator<Item = (impl Fn() -> Place, &Cell)> {
        fn of(
            cells: &OrdMap<Value, Cell>,
            place: fn(Value) -> Place,
        ) -> impl Iterator<Item = (Option<&Value>, fn(Value) -> Place, &Cell)> {
            cells.iter().map(move |(key, cell)| (Some(key), place, cell))
        }
        let value = std::iter::once((None, Place::Field as fn(Value) -> Place, &self.value));
        let all = value.chain(of(&self.fields, Place::Field)).chain(of(&self.scores, Place::Score));
        all.map(|(key, place, cell)| {
            (move || key.map_or(Place::Value, |key| place(key.clone())), cell)
        })
    }

    /// Returns the cells with a sum.
    fn added_places(&self) -> Vec<Place> {
        let has = |cell: &&Cell| !cell.added.is_empty();
        let of = |(key, cell): (&Value, &Cell), place: fn(Value) -> Place| {
            has(&cell).then(|| place(key.clone()))
        };
        let value = has(&&self.value).then_some(Place::Value);
        let fields = self.fields.iter().filter_map(|entry| of(entry, Place::Field));
        let scores = self.scores.iter().filter_map(|entry| of(entry, Place::Score));
        value.into_iter().chain(fields).chain(scores).collect()
    }

    /// Returns the form in which an operation of a transaction with this snapshot is replicated; see
    /// [`State::measured`](super::State::measured).
    pub(super) fn measured(&self, op: &ItemOp, snapshot: &Vector, recent: &[Recent<'_>]) -> ItemOp {
        let removal = |place: &Place| {
            let cell = self.cell(place).filter(|cell| !cell.added.is_empty())?;
            // Additions under ids are not in the sum.
            let missing = recent.iter().filter(|recent| !recent.is_held && recent.id.is_none());
            let missing = missing.filter_map(|recent| match recent.op {
                Op::Item(ItemOp::Add(of, amount)) if of == place => Some((recent.version, *amount)),
                _ => None,
            });
            let missing: Vec<_> = missing.collect();
            Some(cell.added.removal(snapshot, &missing, self.horizon))
        };
        let removals = || {
            let places = self.added_places().into_iter();
            let removals =
                places.filter_map(|place| removal(&place).map(|removal| (place, removal)));
            removals.collect::<Vec<_>>()
        };
        let cleared = || {
            let (added, has_deadline) = (removals(), self.has_deadline(snapshot));
            let is_measured = has_deadline || !added.is_empty();
            is_measured.then_some(Cleared { added, has_deadline })
        };
        match op {
            ItemOp::Put(place, value) => match removal(place) {
                Some(removal) => ItemOp::PutSeen(place.clone(), value.clone(), removal),
                None => op.clone(),
            },
            ItemOp::Drop(place) => match removal(place) {
                Some(removal) => ItemOp::DropSeen(place.clone(), removal),
                None => op.clone(),
            },
            ItemOp::Set(value) => match cleared() {
                Some(cleared) => ItemOp::SetSeen(value.clone(), cleared),
                None => op.clone(),
            },
            ItemOp::Delete => cleared().map_or(ItemOp::Delete, ItemOp::DeleteSeen),
            _ => op.clone(),
        }
    }

    /// Raises the horizon: all operations older than `horizon_us` are here. Drops the lives that have
    /// ended before it.
    pub(super) fn settle(&mut self, horizon_us: u64) {
        if horizon_us <= self.horizon {
            return;
        }
        let life = self.deadlines.last_end(horizon_us).max(self.life);
        if life > self.life {
            self.begin_life(life);
        }
        self.horizon = horizon_us;
        self.deadlines.settle(horizon_us);
        for place in std::mem::take(&mut self.open) {
            let mut is_open = false;
            self.change(&place, |cell| is_open = cell.added.settle(horizon_us));
            if is_open {
                self.open.insert(place);
            }
        }
    }

    /// Drops everything older than the beginning of a life.
    fn begin_life(&mut self, life: u64) {
        let horizon_us = self.horizon;
        self.life = life;
        let is_alive = |version: Version| time(version) >= life;
        self.value.begin_life(life, horizon_us);
        for cells in [&mut self.fields, &mut self.scores] {
            let kept = cells.iter().filter_map(|(key, cell)| {
                let mut cell = cell.clone();
                cell.begin_life(life, horizon_us);
                (cell != Cell::default()).then(|| (key.clone(), cell))
            });
            *cells = kept.collect();
        }
        let members = self.members.iter().filter_map(|(value, dots)| {
            let mut dots = dots.clone();
            dots.keep(is_alive);
            (!dots.is_empty()).then(|| (value.clone(), dots))
        });
        self.members = members.collect();
        self.list.keep(is_alive);
    }

    /// Joins another replica's state of the same item; see [`State::join`](super::State::join).
    pub(super) fn joined(
        &self,
        past: &Past<'_>,
        other: &Self,
        other_past: &Past<'_>,
        is_further: impl Fn(DcId) -> bool,
    ) -> Self {
        let life = self.life.max(other.life);
        let (mut own, mut theirs) = (self.clone(), other.clone());
        for (here, there) in past.ids.differing(other_past.ids) {
            own.deadlines.restamp(here, here.min(there));
            theirs.deadlines.restamp(there, here.min(there));
        }
        for item in [&mut own, &mut theirs] {
            if item.life < life {
                item.begin_life(life);
            }
        }
        let cell = |own: &Cell, theirs: &Cell| own.joined(past, theirs, other_past, &is_further);
        let cells = |own: &OrdMap<Value, Cell>, theirs: &OrdMap<Value, Cell>| {
            let none = Cell::default();
            let keys: BTreeSet<&Value> = own.keys().chain(theirs.keys()).collect();
            let of =
                |key: &Value| cell(own.get(key).unwrap_or(&none), theirs.get(key).unwrap_or(&none));
            let cells = keys.into_iter().map(|key| (key.clone(), of(key)));
            cells.filter(|(_, cell)| *cell != none).collect::<OrdMap<_, _>>()
        };
        let no_dots = Dots::default();
        let members: BTreeSet<&Value> = own.members.keys().chain(theirs.members.keys()).collect();
        let members = members.into_iter().map(|value| {
            let [own, theirs] =
                [&own.members, &theirs.members].map(|of| of.get(value).unwrap_or(&no_dots));
            (value.clone(), own.joined(past, theirs, other_past))
        });
        let mut joined = Self {
            life,
            horizon: own.horizon.min(theirs.horizon),
            latest: own.latest.max(theirs.latest),
            deadlines: own.deadlines.joined(own.horizon, &theirs.deadlines, theirs.horizon),
            value: cell(&own.value, &theirs.value),
            fields: cells(&own.fields, &theirs.fields),
            scores: cells(&own.scores, &theirs.scores),
            members: members.filter(|(_, dots)| !dots.is_empty()).collect(),
            list: own.list.joined(past, &theirs.list, other_past),
            open: own.open.clone().union(theirs.open.clone()),
        };
        joined.settle(own.horizon.max(theirs.horizon));
        joined
    }
}

/// Changes the entry of a key, and removes it if it is empty then.
fn change<T: Clone + Default>(
    map: &mut OrdMap<Value, T>,
    key: &Value,
    with: impl FnOnce(&mut T),
    is_empty: impl Fn(&T) -> bool,
) {
    if let Some(entry) = map.get_mut(key) {
        with(entry);
        if is_empty(entry) {
            map.remove(key);
        }
        return;
    }
    let mut entry = T::default();
    with(&mut entry);
    if !is_empty(&entry) {
        map.insert(key.clone(), entry);
    }
}
