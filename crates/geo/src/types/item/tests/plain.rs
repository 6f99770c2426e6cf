//! A plain sequential model of items without deadlines: one client, one copy.

use std::collections::BTreeMap;

use super::*;

/// A cell: the number of its last change, its value, and its additions since.
#[derive(Clone, Debug, Default)]
struct PlainCell {
    changed: usize,
    base: Option<Value>,
    added: Option<i64>,
}

/// All types under one name, as a database with one copy has them.
#[derive(Default)]
struct Plain {
    cells: BTreeMap<Place, PlainCell>,
    members: BTreeMap<Value, usize>,
    list: Vec<(usize, Value)>,
}

impl Plain {
    fn run(&mut self, number: usize, op: &ItemOp) {
        match op {
            ItemOp::Set(value) => {
                *self = Self::default();
                self.put(number, Place::Value, value);
            }
            ItemOp::Delete => *self = Self::default(),
            ItemOp::Put(place, value) => self.put(number, place.clone(), value),
            ItemOp::Add(place, amount) => {
                let cell = self.cells.entry(place.clone()).or_default();
                cell.added = Some(cell.added.unwrap_or(0) + amount);
                cell.changed = number;
            }
            ItemOp::Drop(place) => {
                self.cells.remove(place);
            }
            ItemOp::Insert(member) => {
                self.members.insert(member.clone(), number);
            }
            ItemOp::Remove(member) => {
                self.members.remove(member);
            }
            ItemOp::Push(Side::Left, value) => self.list.insert(0, (number, value.clone())),
            ItemOp::Push(Side::Right, value) => self.list.push((number, value.clone())),
            other => panic!("the model does not have {other:?}"),
        }
    }

    fn put(&mut self, number: usize, place: Place, value: &Value) {
        let cell = PlainCell { changed: number, base: Some(value.clone()), added: None };
        self.cells.insert(place, cell);
    }

    /// Returns all that it shows, as [`shown`] does.
    fn shown(&self) -> String {
        let of = |place: &Place| match place {
            Place::Value => ItemType::Value,
            Place::Field(_) => ItemType::Hash,
            Place::Score(_) => ItemType::SortedSet,
        };
        let cells = self.cells.iter().map(|(place, cell)| (cell.changed, of(place)));
        let members = self.members.values().map(|number| (*number, ItemType::Set));
        let elements = self.list.iter().map(|(number, _)| (*number, ItemType::List));
        let last = cells.chain(members).chain(elements).max_by_key(|(number, _)| *number);
        let last = last.map(|(_, of)| of);
        let value = |cell: &PlainCell| match (&cell.base, cell.added) {
            (Some(Value::Int(base)), added) => Value::Int(base + added.unwrap_or(0)),
            (Some(base), _) => base.clone(),
            (None, added) => Value::Int(added.unwrap_or(0)),
        };
        let all = |kind: ItemType| {
            let cells = self.cells.iter().filter(|(place, _)| of(place) == kind);
            let cells = cells.filter(|_| last == Some(kind)).map(|(place, cell)| match place {
                Place::Value => (Value::Int(0), value(cell)),
                Place::Field(key) | Place::Score(key) => (key.clone(), value(cell)),
            });
            cells.collect::<Vec<_>>()
        };
        let only = all(ItemType::Value).pop().map(|(_, value)| value);
        let members: Vec<&Value> =
            self.members.keys().filter(|_| last == Some(ItemType::Set)).collect();
        let elements = self.list.iter().filter(|_| last == Some(ItemType::List));
        let elements: Vec<&Value> = elements.map(|(_, value)| value).collect();
        let (fields, scores) = (all(ItemType::Hash), all(ItemType::SortedSet));
        let none: Option<u64> = None;
        format!("{last:?} {only:?} {fields:?} {scores:?} {members:?} {elements:?} {none:?}")
    }
}

proptest! {
    /// With and without ids: a repeated operation changes neither.
    #[test]
    fn one_client_finds_the_plain_model(
        steps in prop::collection::vec((item_op(), prop::option::of(0u32..8)), 0..40),
    ) {
        let (mut world, mut plain) = (World::new(), Plain::default());
        let mut ran = BTreeSet::new();
        for (number, (op, named)) in steps.into_iter().enumerate() {
            let op = named.map_or(op, identified);
            if matches!(op, ItemOp::Expire(_)) {
                continue;
            }
            if named.is_none_or(|named| ran.insert(named)) {
                plain.run(number, &op);
            }
            world.run_once(0, 10 + number as u64, op, named.map(once::id));
            let view = world.sites[0].0.as_item().expect("an item").at(10_000);
            prop_assert_eq!(shown(view), plain.shown());
        }
    }
}
