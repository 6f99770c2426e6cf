//! Creates the changes of a transaction's writes.
//!
//! An update is applied as a whole, so only the net effect counts: an effect that a later write
//! undoes is left out.

use std::collections::BTreeMap;

use mingle_model::{Ref, Value};
use mingle_store::{Address, Write};

use crate::state::State;
use crate::update::{Change, Dot, Part, Payload, Scope, Unit};

/// Returns the effect of `writes`, which fit, at a replica in this state.
pub fn build(state: &State, writes: &[Write]) -> (Vec<Scope>, Vec<Change>) {
    let mut build = Build { state, scopes: Vec::new(), net: BTreeMap::new() };
    for write in writes {
        build.write(write);
    }
    let changes = build.net.into_iter().map(|(unit, net)| Change {
        unit,
        removed: net.removed,
        added: net.added,
    });
    let has_effect = |change: &Change| change.added.is_some() || !change.removed.is_empty();
    (build.scopes, changes.filter(has_effect).collect())
}

struct Build<'a> {
    state: &'a State,
    scopes: Vec<Scope>,
    net: BTreeMap<Unit, Net>,
}

/// The net effect on one unit so far.
#[derive(Default)]
struct Net {
    removed: Vec<Dot>,
    added: Option<Payload>,
}

impl Build<'_> {
    fn write(&mut self, write: &Write) {
        match write {
            Write::Create(object) => self.touch(object),
            Write::Delete(object) => self.take(Scope { object: object.clone(), field: None }),
            Write::Assign(address, value) => {
                let part = Part::Field(address.field);
                self.put(address, part, Payload::Value(value.clone()));
            }
            Write::Add(address, amount) => self.add(address, *amount),
            Write::Insert(address, element) => {
                self.put(address, Part::Element(address.field, element.canonical()), Payload::Mark);
            }
            Write::Put(address, key, value) => {
                let part = Part::Element(address.field, key.canonical());
                self.put(address, part, Payload::Value(value.clone()));
            }
            Write::Remove(address, element) | Write::Erase(address, element) => {
                self.touch(&address.object);
                let part = Part::Element(address.field, element.canonical());
                self.set(Unit::Object(address.object.clone(), part), None);
            }
            Write::Append(address, line) => self.append(address, line),
            Write::Clear(address) => {
                self.touch(&address.object);
                self.take(Scope { object: address.object.clone(), field: Some(address.field) });
            }
            Write::Witness(row) => self.set(Unit::Row(row.clone()), Some(Payload::Mark)),
            Write::Forget(id) => {
                let rows: Vec<_> = self.state.all_rows().filter(|row| row.id == *id).collect();
                for row in rows {
                    self.set(Unit::Row(row.clone()), None);
                }
                self.drop_added(|unit| matches!(unit, Unit::Row(row) if row.id == *id));
            }
            Write::Record(key, value) => {
                self.set(Unit::Record(key.clone()), Some(Payload::Bytes(value.clone())));
            }
            Write::Discard(key) => self.set(Unit::Record(key.clone()), None),
            Write::Command { .. } => unreachable!("commands do not fit"),
        }
    }

    /// Makes the object exist.
    fn touch(&mut self, object: &Ref) {
        self.set(Unit::Object(object.clone(), Part::Presence), Some(Payload::Mark));
    }

    fn put(&mut self, address: &Address, part: Part, payload: Payload) {
        self.touch(&address.object);
        self.set(Unit::Object(address.object.clone(), part), Some(payload));
    }

    /// Replaces all that was in a unit.
    fn set(&mut self, unit: Unit, added: Option<Payload>) {
        let seen = self.state.get(&unit).into_iter().flat_map(|cell| cell.live.keys());
        let net = Net { removed: seen.copied().collect(), added };
        self.net.insert(unit, net);
    }

    fn field(&mut self, address: &Address) -> &mut Net {
        self.touch(&address.object);
        let unit = Unit::Object(address.object.clone(), Part::Field(address.field));
        self.net.entry(unit).or_default()
    }

    fn add(&mut self, address: &Address, amount: i128) {
        let net = self.field(address);
        match &mut net.added {
            Some(Payload::Amount(sum)) => *sum = sum.wrapping_add(amount),
            added => *added = Some(Payload::Amount(amount)),
        }
    }

    fn append(&mut self, address: &Address, line: &Value) {
        let net = self.field(address);
        match &mut net.added {
            Some(Payload::Lines(lines)) => lines.push(line.clone()),
            added => *added = Some(Payload::Lines(vec![line.clone()])),
        }
    }

    /// Removes everything in a scope.
    fn take(&mut self, scope: Scope) {
        let parts = self.state.parts(&scope.object).filter(|(unit, _)| scope.contains(unit));
        let units: Vec<Unit> = parts.map(|(unit, _)| unit.clone()).collect();
        for unit in units {
            self.set(unit, None);
        }
        self.drop_added(|unit| scope.contains(unit));
        self.scopes.push(scope);
    }

    /// Drops pending additions to these units.
    fn drop_added(&mut self, is_taken: impl Fn(&Unit) -> bool) {
        for (unit, net) in &mut self.net {
            if is_taken(unit) {
                net.added = None;
            }
        }
    }
}
