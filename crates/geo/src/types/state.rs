//! The state of a data item of any type.

use serde::{Deserialize, Serialize};

use super::body::Body;
use super::ids::{Ids, Noted, Past};
use super::{
    Cause, Counter, Kind, Log, Map, Mark, Op, OpId, Recent, Register, Set, counter, dots, item,
};
use crate::timestamp::Version;
use crate::vector::Vector;

/// The state of one data item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub(super) body: Body,
    pub(super) ids: Ids,
    /// The sum of the digests of all operations; the order of arrival does not matter.
    changes: u64,
    /// The same sum over operations that take away.
    removals: u64,
}

impl State {
    /// Creates an unchanged item of this type.
    pub fn new(kind: Kind) -> Self {
        let body = match kind {
            Kind::Register => Body::Register(Register::default()),
            Kind::Counter => Body::Counter(Counter::default()),
            Kind::Set => Body::Set(Set::default()),
            Kind::Map => Body::Map(Map::default()),
            Kind::Log => Body::Log(Log::default()),
            Kind::Item => Body::Item(Box::default()),
        };
        Self { body, ids: Ids::default(), changes: 0, removals: 0 }
    }

    /// Applies an operation. All operations that its transaction saw must have been applied before.
    /// An operation that does not fit the item's type is ignored (replicas refuse it on arrival).
    pub fn apply(&mut self, cause: &Cause, op: &Op, id: Option<&OpId>) {
        let digest = cause.version.digest();
        self.changes = self.changes.wrapping_add(digest);
        if op.takes_away() {
            self.removals = self.removals.wrapping_add(digest);
        }
        if let Body::Item(item) = &mut self.body
            && !item.note_time(cause.version)
        {
            return;
        }
        let noted = id.map_or(Noted::First, |id| self.ids.note(id, cause, op));
        if noted == Noted::Seen {
            return;
        }
        self.displace(cause, op, id);
        match noted {
            Noted::Repeat { was } => {
                if let Some(id) = id {
                    self.restamp(cause, op, id, was);
                }
            }
            _ => self.place(cause, op, id),
        }
    }

    /// Applies an operation of a running transaction to the state at its snapshot. Sums are not
    /// measured yet: a removal takes away the whole sum.
    pub fn apply_own(&mut self, cause: &Cause, op: &Op, id: Option<&OpId>) {
        if !id.is_some_and(|id| self.ids.observed(id, cause)) {
            match (&mut self.body, op) {
                (Body::Item(item), Op::Item(op)) => item.clear_own(op),
                (Body::Counter(counter), Op::Reset) => *counter = Counter::default(),
                (Body::Map(map), Op::Delete(key)) => map.clear_count(key),
                (Body::Map(map), Op::Empty) => map.clear_counts(),
                _ => {}
            }
        }
        self.apply(cause, op, id);
    }

    /// Removes everything that `op` removes.
    fn displace(&mut self, cause: &Cause, op: &Op, id: Option<&OpId>) {
        let seen = dots::Seen { cause, ids: &self.ids };
        match (&mut self.body, op) {
            (Body::Register(register), Op::Write(_) | Op::Erase) => register.displace(&seen),
            (Body::Counter(counter), Op::ResetSeen(removal)) => counter.remove(removal),
            // A transaction that saw another run may remove it; the earlier insertions must then
            // still be here.
            (Body::Set(_), Op::Insert(_)) if id.is_some() => {}
            (Body::Set(set), Op::Insert(value) | Op::Remove(value)) => set.displace(value, &seen),
            (Body::Set(set), Op::Clear) => set.displace_all(&seen),
            (Body::Map(map), Op::Put(key, _) | Op::Delete(key)) => map.displace(key, &seen),
            (Body::Map(map), Op::DeleteSeen(key, removal)) => {
                map.displace(key, &seen);
                map.remove_count(key, removal);
            }
            (Body::Map(map), Op::Empty) => map.displace_all(&seen),
            (Body::Map(map), Op::EmptySeen(keys)) => {
                map.displace_all(&seen);
                for (key, removal) in keys {
                    map.remove_count(key, removal);
                }
            }
            (Body::Log(log), Op::Clear) => log.displace_all(&seen),
            (Body::Item(item), Op::Item(op)) => item.displace(&seen, op, id),
            _ => {}
        }
    }

    /// Adds the value or amount of `op`.
    fn place(&mut self, cause: &Cause, op: &Op, id: Option<&OpId>) {
        let (mark, version) = (cause.mark(), cause.version);
        match (&mut self.body, op) {
            (Body::Register(register), Op::Write(value)) => register.place(mark, id, value),
            (Body::Counter(counter), Op::Add(amount)) => counter.add(version, *amount),
            (Body::Set(set), Op::Insert(value)) => set.place(mark, id, value),
            (Body::Map(map), Op::Put(key, value)) => map.place(mark, id, key, value),
            (Body::Map(map), Op::Increment(key, amount)) => map.add(version, key, *amount),
            (Body::Log(log), Op::Append(value)) => log.place(mark, id, value),
            (Body::Item(item), Op::Item(op)) => item.place(cause, op, id),
            _ => {}
        }
    }

    /// Handles an operation that already counts under the version `was`: the lower version wins.
    fn restamp(&mut self, cause: &Cause, op: &Op, id: &OpId, was: Version) {
        let (mark, version) = (cause.mark(), cause.version);
        match (&mut self.body, op) {
            (Body::Register(register), Op::Write(_)) => register.restamp(id, mark),
            (Body::Counter(counter), Op::Add(amount)) => counter.restamp(was, version, *amount),
            (Body::Set(set), Op::Insert(value)) => set.restamp(id, mark, value),
            (Body::Map(map), Op::Put(key, _)) => map.restamp(id, mark, key),
            (Body::Map(map), Op::Increment(key, amount)) => {
                map.restamp_count(was, version, key, *amount);
            }
            (Body::Log(log), Op::Append(_)) => log.restamp(id, was, mark),
            (Body::Item(item), Op::Item(op)) => item.restamp(cause, op, id, was),
            _ => {}
        }
    }

    /// Returns the form in which `op`, of a transaction with this snapshot, is replicated. The
    /// state must be the snapshot's. `recent` are the unfolded operations on the item whose
    /// timestamps are within the snapshot's entries.
    pub fn measured(&self, op: &Op, snapshot: &Vector, recent: &[Recent<'_>]) -> Op {
        // Among several runs the lowest counts, and a run that saw another one adds nothing.
        let is_counted = |one: &&Recent<'_>| {
            one.id.is_none_or(|id| {
                let is_lower =
                    |other: &Recent<'_>| other.id == one.id && other.version < one.version;
                self.ids.may_stand(id, one.version) && !recent.iter().any(is_lower)
            })
        };
        let recent: Vec<Recent<'_>> = recent.iter().filter(is_counted).copied().collect();
        let recent = recent.as_slice();
        match (&self.body, op) {
            (Body::Item(item), Op::Item(op)) => Op::Item(item.measured(op, snapshot, recent)),
            (Body::Counter(counter), Op::Reset) => Op::ResetSeen(counter.removal(
                snapshot,
                &counter::additions(recent),
                &self.ids.repeats(),
            )),
            (Body::Map(map), Op::Delete(key)) => {
                match map.removal(key, snapshot, recent, &self.ids.repeats()) {
                    Some(removal) => Op::DeleteSeen(key.clone(), removal),
                    None => op.clone(),
                }
            }
            (Body::Map(map), Op::Empty) => {
                let removals = map.removals(snapshot, recent, &self.ids.repeats());
                if removals.is_empty() { op.clone() } else { Op::EmptySeen(removals) }
            }
            _ => op.clone(),
        }
    }

    /// Joins another replica's state of the same item. This state has the operations that `at`
    /// covers, and the other has those that `other_at` covers. Both snapshots must contain every
    /// transaction that their entries reach, so that for each origin one of the two has everything
    /// that either has.
    ///
    /// The number of [changes](Self::changes) changes if the two states had different ones.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_geo::{Cause, DcId, Kind, Op, State, Timestamp, Vector, Version};
    ///
    /// let bases = [(0, 7), (1, 5)].map(|(dc, amount)| {
    ///     let version = Version { timestamp: Timestamp(10), origin: DcId(dc), index: 0 };
    ///     let mut state = State::new(Kind::Counter);
    ///     state.apply(&Cause { version, seen: Vector::ZERO }, &Op::Add(amount), None);
    ///     (state, Vector::ZERO.with(DcId(dc), Timestamp(10)))
    /// });
    /// let [(mut state, at), (other, other_at)] = bases;
    /// state.join(&at, &other, &other_at);
    /// assert_eq!(state.as_counter().expect("a counter").value(), 12);
    /// ```
    pub fn join(&mut self, at: &Vector, other: &Self, other_at: &Vector) {
        let (past, other_past) =
            (Past { ids: &self.ids, at }, Past { ids: &other.ids, at: other_at });
        let is_further = |origin| other_at[origin] > at[origin];
        let corrections = Ids::corrections(&past, &other_past, is_further);
        match (&mut self.body, &other.body) {
            (Body::Register(own), Body::Register(it)) => *own = own.joined(&past, it, &other_past),
            (Body::Counter(own), Body::Counter(it)) => {
                own.join(it, is_further);
                for correction in &corrections {
                    own.correct(correction);
                }
            }
            (Body::Set(own), Body::Set(it)) => *own = own.joined(&past, it, &other_past),
            (Body::Map(own), Body::Map(it)) => {
                *own = own.joined(&past, it, &other_past, is_further);
                for correction in &corrections {
                    own.correct(correction);
                }
            }
            (Body::Log(own), Body::Log(it)) => *own = own.joined(&past, it, &other_past),
            (Body::Item(own), Body::Item(it)) => {
                **own = own.joined(&past, it, &other_past, is_further);
            }
            // An item of another type is another item.
            _ => return,
        }
        self.ids = Ids::joined(&past, &other_past);
        let sums = [(&mut self.changes, other.changes), (&mut self.removals, other.removals)];
        for (sum, other) in sums.into_iter().filter(|(sum, other)| **sum != *other) {
            *sum = sum.wrapping_add(other);
        }
    }

    /// Forgets the operation ids for which `is_past` holds, given the id and its runs.
    pub fn forget_ids(&mut self, is_past: impl Fn(&OpId, &[Mark]) -> bool) {
        let body = &self.body;
        self.ids.forget(is_past, || body.standing_ids().copied().collect());
    }

    /// True if [`forget_ids`](Self::forget_ids) would forget an id.
    pub fn has_past_ids(&self, is_past: impl Fn(&OpId, &[Mark]) -> bool) -> bool {
        self.ids.has_past(is_past, || self.body.standing_ids().copied().collect())
    }

    /// True if it remembers operation ids.
    pub fn remembers_ids(&self) -> bool {
        !self.ids.is_empty()
    }

    /// Returns the number of remembered operation ids.
    pub fn remembered_ids(&self) -> usize {
        self.ids.count()
    }

    /// Returns a number that changes with every operation on the item; 0 if there was none.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns a number that changes with every removal; 0 if there was none.
    pub fn removals(&self) -> u64 {
        self.removals
    }

    /// True if it has no values and no ids, even if it was changed before.
    pub fn is_blank(&self) -> bool {
        self.ids.is_empty()
            && match &self.body {
                Body::Register(register) => register.value().is_none(),
                Body::Counter(counter) => *counter == Counter::default(),
                Body::Set(set) => set.count() == 0,
                Body::Map(map) => *map == Map::default(),
                Body::Log(log) => log.count() == 0,
                Body::Item(item) => item.is_blank(),
            }
    }

    /// Returns its type.
    pub fn kind(&self) -> Kind {
        match self.body {
            Body::Register(_) => Kind::Register,
            Body::Counter(_) => Kind::Counter,
            Body::Set(_) => Kind::Set,
            Body::Map(_) => Kind::Map,
            Body::Log(_) => Kind::Log,
            Body::Item(_) => Kind::Item,
        }
    }

    /// Returns the register, if it is one.
    pub fn as_register(&self) -> Option<&Register> {
        match &self.body {
            Body::Register(register) => Some(register),
            _ => None,
        }
    }

    /// Returns the counter, if it is one.
    pub fn as_counter(&self) -> Option<&Counter> {
        match &self.body {
            Body::Counter(counter) => Some(counter),
            _ => None,
        }
    }

    /// Returns the set, if it is one.
    pub fn as_set(&self) -> Option<&Set> {
        match &self.body {
            Body::Set(set) => Some(set),
            _ => None,
        }
    }

    /// Returns the map, if it is one.
    pub fn as_map(&self) -> Option<&Map> {
        match &self.body {
            Body::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Returns the log, if it is one.
    pub fn as_log(&self) -> Option<&Log> {
        match &self.body {
            Body::Log(log) => Some(log),
            _ => None,
        }
    }

    /// Returns the item of [`Kind::Item`], if it is one.
    pub fn as_item(&self) -> Option<&item::Item> {
        match &self.body {
            Body::Item(item) => Some(item),
            _ => None,
        }
    }

    /// Creates the state of an item that is not there, where all operations older than this time, in
    /// microseconds since 1970, are: none of them has any effect any more.
    pub fn absent(kind: Kind, horizon_us: u64) -> Self {
        let mut state = Self::new(kind);
        if let Body::Item(item) = &mut state.body {
            **item = item::Item::absent(horizon_us);
        }
        state
    }

    /// Tells an item of [`Kind::Item`] that all operations older than this time, in microseconds,
    /// are here.
    pub fn settle(&mut self, horizon_us: u64) {
        if let Body::Item(item) = &mut self.body {
            item.settle(horizon_us);
        }
    }

    /// Returns the time that the horizon must reach for [`settle`](Self::settle) to have an effect;
    /// `None` if it has none.
    pub fn due_us(&self) -> Option<u64> {
        self.as_item().and_then(item::Item::due_us)
    }
}
