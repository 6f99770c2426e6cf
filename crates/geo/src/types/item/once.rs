//! Operations on items that carry an [`OpId`], of which one run counts (see [`ids`](super::super::ids)).
//!
//! - A value, a member and an element that was pushed remember their id, and stand where the lowest run
//!   does: it is their version, and so their time.
//! - An addition under an id is not summed up with others. It stands by itself, like a value, until a put,
//!   a drop or a removal of all has seen one of its runs. So no removal has to name it, whichever runs it
//!   saw, and removals that saw different runs take it away once.
//! - The fact of an [`Expire`](super::ItemOp::Expire) has the version of the lowest run. A `Set` or
//!   `Delete` with an id is always a fact: runs that saw different deadlines are one operation still.
//! - A removal takes what any of its runs saw, or named and saw.
//!
//! No run that is older than the horizon can come. So a run that lowers the version of an operation comes
//! before the horizon has reached either, and no life that is decided depends on it.
//!
//! As bytes, an item with such parts is a variant of its own: the item, and these parts beside it.

use serde::{Deserialize, Serialize};

use super::super::dots::{Dots, Seen};
use super::super::ids::Past;
use super::super::{Cause, OpId};
use super::op::{ItemOp, Place};
use super::{Item, time};
use crate::timestamp::Version;

/// The additions to a cell under operation ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named(Option<Box<Dots<i64>>>);

impl Named {
    fn new(dots: Dots<i64>) -> Self {
        Self((!dots.is_empty()).then(|| Box::new(dots)))
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn iter(&self) -> impl Iterator<Item = &super::super::dots::Dot<i64>> {
        self.0.iter().flat_map(|dots| dots.iter())
    }

    /// Changes the additions.
    pub fn change(&mut self, with: impl FnOnce(&mut Dots<i64>)) {
        let mut dots = self.0.take().unwrap_or_default();
        with(&mut dots);
        self.0 = (!dots.is_empty()).then_some(dots);
    }

    /// Removes the additions that were seen.
    pub fn displace(&mut self, seen: &Seen<'_>) {
        if !self.is_empty() {
            self.change(|dots| dots.displace(seen));
        }
    }

    /// Keeps the additions of a life that began at this time.
    pub fn begin_life(&mut self, life: u64) {
        if !self.is_empty() {
            self.change(|dots| dots.keep(|version| time(version) >= life));
        }
    }

    /// Returns the sum in a life that began at this time; `None` if there are no additions.
    pub fn live(&self, life: u64) -> Option<i128> {
        let alive = self.iter().filter(|dot| time(dot.mark.version) >= life);
        alive.map(|dot| i128::from(dot.value)).reduce(i128::wrapping_add)
    }

    /// Returns the highest version of an addition in a life that began at this time.
    pub fn highest(&self, life: u64) -> Option<Version> {
        self.iter().map(|dot| dot.mark.version).filter(|version| time(*version) >= life).max()
    }

    /// Returns the operation ids.
    pub fn ids(&self) -> impl Iterator<Item = &OpId> {
        self.0.iter().flat_map(|dots| dots.ids())
    }

    /// Returns the additions that are in either and were not removed in the other.
    pub fn joined(&self, past: &Past<'_>, other: &Self, other_past: &Past<'_>) -> Self {
        if self.is_empty() && other.is_empty() {
            return Self::default();
        }
        let none = Dots::default();
        let [own, other] = [self, other].map(|named| named.0.as_deref().unwrap_or(&none));
        Self::new(own.joined(past, other, other_past))
    }
}

/// The parts of an item that operation ids need, as they are written beside it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Once {
    added: Vec<(Place, Dots<i64>)>,
    pushed: Vec<(Version, OpId)>,
}

impl Once {
    /// Returns these parts of an item, if it has any.
    pub fn of(item: &Item) -> Option<Self> {
        let named = item.cells().filter_map(|(place, cell)| {
            let dots = cell.named.0.as_deref()?;
            Some((place(), dots.clone()))
        });
        let once = Self { added: named.collect(), pushed: item.list.named().collect() };
        (!once.added.is_empty() || !once.pushed.is_empty()).then_some(once)
    }

    /// Adds these parts to the item beside which they were written.
    pub fn put_into(self, item: &mut Item) {
        for (place, dots) in self.added {
            item.change(&place, |cell| cell.named = Named::new(dots));
        }
        for (version, id) in self.pushed {
            item.list.name(version, id);
        }
    }
}

impl Item {
    /// Returns the operation ids of all that stands.
    pub fn ids(&self) -> impl Iterator<Item = &OpId> {
        let cells = self.cells().map(|(_, cell)| cell);
        let cells = cells.flat_map(|cell| cell.writes.ids().chain(cell.named.ids()));
        cells.chain(self.members.values().flat_map(Dots::ids)).chain(self.list.ids())
    }

    /// Handles a run of an operation that already counts under the version `was`: the lower one wins.
    pub fn restamp(&mut self, cause: &Cause, op: &ItemOp, id: &OpId, was: Version) {
        let (mark, version) = (cause.mark(), cause.version);
        if version >= was {
            return;
        }
        match op {
            ItemOp::Put(place, _) | ItemOp::PutSeen(place, ..) => {
                self.change(place, |cell| cell.writes.restamp(id, mark));
            }
            ItemOp::Set(_) | ItemOp::SetSeen(..) => {
                self.change(&Place::Value, |cell| cell.writes.restamp(id, mark));
                self.deadlines.restamp(was, version);
            }
            ItemOp::Delete | ItemOp::DeleteSeen(_) | ItemOp::Expire(_) => {
                self.deadlines.restamp(was, version);
            }
            ItemOp::Add(place, _) => {
                self.change(place, |cell| cell.named.change(|dots| dots.restamp(id, mark)));
            }
            ItemOp::Insert(member) => {
                if let Some(dots) = self.members.get_mut(member) {
                    dots.restamp(id, mark);
                }
            }
            ItemOp::Push(side, _) => self.list.restamp(*side, id, was, mark),
            ItemOp::Drop(_) | ItemOp::DropSeen(..) | ItemOp::Remove(_) | ItemOp::Pull(_) => {}
        }
    }
}
