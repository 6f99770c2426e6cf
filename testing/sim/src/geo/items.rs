//! Items of any type: the operations of clients on them, and their form in recorded runs.
//!
//! Runs name an element of a list by its transaction and the place of the push there. The store
//! names it by a version, whose transaction may not be known when a client reads the element. So a
//! recorded name first holds the version, and is resolved when the run is over.

use std::collections::{HashMap, HashSet};

use mingle_checker::geo::{
    Action, Body, Content, Element, Item, ItemOp, Op, Place, Run, Side, What,
};
use mingle_geo::types::item::{self, ItemType};
use mingle_geo::{DcId, Key, State, Timestamp, Update, Version};
use mingle_model::random::Random;
use mingle_model::{Origin, TransactionId, Value};

use super::node::EPOCH_US;
use super::script::Step;
use super::setup::{Setup, within};
use super::world::World;

/// The origin of a name that holds a version of the first data center; those of the others follow
/// downwards. No session has such an origin.
const VERSIONS: u128 = u128::MAX - 1;

/// The range of deadlines, in microseconds from the time of the operation.
const DEADLINES_US: [(i64, i64); 4] =
    [(-2_000, 1_000), (1_000, 10_000), (5_000, 300_000), (200_000, 3_000_000)];

/// Draws the steps that change an item; `number` is a value that no other operation writes.
pub(super) fn draw(random: &mut Random, key: Key, number: i64) -> Vec<Step> {
    let write = |op| vec![Step::Write(Update { key: key.clone(), op, id: None })];
    let small = Value::Int(random.below(3) as i64);
    let place = match random.below(6) {
        0..=2 => item::Place::Value,
        3 | 4 => item::Place::Field(small.clone()),
        _ => item::Place::Score(small.clone()),
    };
    let value = if random.one_in(10) { "text".into() } else { Value::Int(number) };
    let amount = 1 + random.below(9) as i64;
    let side = *random.pick(&[item::Side::Left, item::Side::Right]);
    let op = match random.below(24) {
        0 | 1 => item::ItemOp::Set(value),
        2 => item::ItemOp::Delete,
        3 | 4 => item::ItemOp::Put(place, value),
        5..=9 => item::ItemOp::Add(place, amount),
        10 => item::ItemOp::Drop(place),
        11 | 12 => item::ItemOp::Insert(small),
        13 => item::ItemOp::Remove(small),
        // Elements of equal values are different elements.
        14..=16 => item::ItemOp::Push(side, Value::Int(number % 3)),
        17..=19 => {
            let count = 1 + random.below(2);
            return vec![Step::Read(vec![key.clone()]), Step::Pop { key, side, count }];
        }
        20 => item::ItemOp::Expire(None),
        _ => {
            let (least, most) = *random.pick(&DEADLINES_US);
            let in_us = least + within(random, (0, (most - least) as u64)) as i64;
            return vec![Step::Expire { key, in_us }];
        }
    };
    write(mingle_geo::Op::Item(op))
}

/// Returns the operation of an id on an item; every client that runs it gets the same one.
pub(super) fn helped(setup: &Setup, task: u64, position: u32, drawn: &mut Random) -> item::ItemOp {
    let number = Value::Int(task as i64 * 100 + i64::from(position));
    let small = Value::Int(drawn.below(3) as i64);
    let amount = 1 + drawn.below(9) as i64;
    let field = item::Place::Field(small.clone());
    let side = *drawn.pick(&[item::Side::Left, item::Side::Right]);
    // Three acts of a client belong to a task, so this is about the time at which they run.
    let about_us = EPOCH_US + task * 3 * (setup.think_us.0 + setup.think_us.1) / 2;
    let deadline_us = about_us + within(drawn, (0, 400_000));
    match drawn.below(18) {
        0 => item::ItemOp::Set(number),
        1 => item::ItemOp::Delete,
        2 => item::ItemOp::Put(item::Place::Value, number),
        3 => item::ItemOp::Put(field, number),
        4..=7 => item::ItemOp::Add(item::Place::Value, amount),
        8 => item::ItemOp::Add(field, amount),
        9 => item::ItemOp::Drop(field),
        10 | 11 => item::ItemOp::Insert(small),
        12 => item::ItemOp::Remove(small),
        13..=15 => item::ItemOp::Push(side, number),
        16 => item::ItemOp::Expire(None),
        _ => item::ItemOp::Expire(Some(deadline_us)),
    }
}

impl World<'_> {
    /// Replaces a step by the write that it is at this time; `None` if it has nothing to do.
    pub(super) fn drawn(&self, slot: usize, step: Step) -> Option<Step> {
        match step {
            Step::Expire { key, in_us } => {
                let wall_us = self.clients[slot].clock.wall_us(self.now_us);
                let deadline_us = wall_us.saturating_add_signed(in_us);
                let op = mingle_geo::Op::Item(item::ItemOp::Expire(Some(deadline_us)));
                Some(Step::Write(Update { key, op, id: None }))
            }
            Step::Pop { key, side, count } => self.pop(slot, key, side, count).map(Step::Write),
            step => Some(step),
        }
    }

    /// Returns the operation that takes elements off an end of the list that the last read of an
    /// item showed, if it showed any.
    fn pop(&self, slot: usize, key: Key, side: item::Side, count: usize) -> Option<Update> {
        let client = &self.clients[slot];
        let (open, of) = (client.open.as_ref()?, self.recorder.item(&key));
        let mut actions = open.transaction.actions.iter().rev();
        let elements = actions.find_map(|action| match action {
            Action::Read { item, found } if *item == of => Some(found),
            _ => None,
        });
        let Content::Item { body: Some(Body::List(elements)), .. } = elements? else { return None };
        let own = (open.transaction.id, client.dc());
        let versions = elements.iter().map(|(element, _)| version(element, own));
        let versions: Vec<Version> = match side {
            item::Side::Left => versions.take(count).collect(),
            item::Side::Right => versions.rev().take(count).collect(),
        };
        let op = mingle_geo::Op::Item(item::ItemOp::Pull(versions));
        Some(Update { key, op, id: None })
    }
}

/// Returns the name that holds a version; `own` is the running transaction.
fn held(version: Version, own: TransactionId) -> Element {
    let index = version.index as usize;
    if version.timestamp == Timestamp(u64::MAX) {
        return Element { transaction: own, index };
    }
    let origin = Origin(VERSIONS - u128::from(version.origin.0));
    Element { transaction: TransactionId { origin, sequence: version.timestamp.0 }, index }
}

/// Returns the version that a name holds; `own` is the running transaction and its data center.
fn version(element: &Element, own: (TransactionId, u8)) -> Version {
    let Element { transaction, index } = *element;
    let index = index as u32;
    match version_in(&transaction) {
        Some((timestamp, origin)) => {
            Version { timestamp: Timestamp(timestamp), origin: DcId(origin), index }
        }
        None => Version { timestamp: Timestamp(u64::MAX), origin: DcId(own.1), index },
    }
}

fn version_in(transaction: &TransactionId) -> Option<(u64, u8)> {
    let below = VERSIONS.checked_sub(transaction.origin.0)?;
    let origin = u8::try_from(below).ok().filter(|origin| *origin <= DcId::STRONG.0)?;
    Some((transaction.sequence, origin))
}

/// Returns the content of an item of [`Kind::Item`](mingle_geo::Kind::Item) for a reader that has reached this time.
pub(super) fn content(state: &State, now_us: u64, own: TransactionId) -> Content {
    let Some(view) = state.as_item().map(|item| item.at(now_us)) else {
        return Content::Item { body: None, deadline_us: None };
    };
    let owned = |(key, value): (&Value, Value)| (key.clone(), value);
    let body = view.shown_type().and_then(|of| match of {
        ItemType::Value => view.value().map(Body::Value),
        ItemType::Hash => Some(Body::Hash(view.fields().map(owned).collect())),
        ItemType::SortedSet => Some(Body::SortedSet(view.scores().map(owned).collect())),
        ItemType::Set => Some(Body::Set(view.members().cloned().collect())),
        ItemType::List => {
            let elements = view.elements();
            let elements = elements.map(|one| (held(one.version, own), one.value.clone()));
            Some(Body::List(elements.collect()))
        }
    });
    Content::Item { body, deadline_us: view.deadline_us() }
}

fn place(place: &item::Place) -> Place {
    match place.clone() {
        item::Place::Value => Place::Value,
        item::Place::Field(field) => Place::Field(field),
        item::Place::Score(member) => Place::Score(member),
    }
}

/// Converts an operation of a running transaction to the checkers' form.
pub(super) fn op(from: &item::ItemOp, own: TransactionId) -> ItemOp {
    match from {
        item::ItemOp::Set(value) => ItemOp::Set(value.clone()),
        item::ItemOp::Delete => ItemOp::Delete,
        item::ItemOp::Put(at, value) => ItemOp::Put(place(at), value.clone()),
        item::ItemOp::Add(at, amount) => ItemOp::Add(place(at), *amount),
        item::ItemOp::Drop(at) => ItemOp::Drop(place(at)),
        item::ItemOp::Insert(value) => ItemOp::Insert(value.clone()),
        item::ItemOp::Remove(value) => ItemOp::Remove(value.clone()),
        item::ItemOp::Push(item::Side::Left, value) => ItemOp::Push(Side::Left, value.clone()),
        item::ItemOp::Push(item::Side::Right, value) => ItemOp::Push(Side::Right, value.clone()),
        item::ItemOp::Pull(elements) => {
            ItemOp::Pull(elements.iter().map(|version| held(*version, own)).collect())
        }
        item::ItemOp::Expire(deadline_us) => ItemOp::Expire(*deadline_us),
        item::ItemOp::SetSeen(..)
        | item::ItemOp::DeleteSeen(_)
        | item::ItemOp::PutSeen(..)
        | item::ItemOp::DropSeen(..) => unreachable!("no client writes {from:?}"),
    }
}

/// Replaces the names that hold versions; `by_version` has the transaction of each timestamp and
/// origin. A name whose version no transaction has stays as it is.
pub(super) fn resolve(run: &mut Run, by_version: &HashMap<(u64, u8), TransactionId>) {
    let sent = sent(run);
    let partition_of = run.system.partition_of.clone();
    let name = |item: &Item, element: &mut Element| {
        let Some(key) = version_in(&element.transaction) else { return };
        let Some(transaction) = by_version.get(&key) else { return };
        let partition = partition_of.get(item).copied().unwrap_or_default();
        let at_partition = sent.get(&(*transaction, partition));
        if let Some(index) = at_partition.and_then(|sent| sent.get(element.index)) {
            *element = Element { transaction: *transaction, index: *index };
        }
    };
    let in_content = |item: &Item, found: &mut Content| {
        if let Content::Item { body: Some(Body::List(elements)), .. } = found {
            for (element, _) in elements {
                name(item, element);
            }
        }
    };
    let calls = run.sessions.iter_mut().flat_map(|session| &mut session.calls);
    for call in calls {
        let What::Transaction(transaction) = &mut call.what else { continue };
        for action in &mut transaction.actions {
            match action {
                Action::Read { item, found } => in_content(item, found),
                Action::Update { item, op: Op::Item(ItemOp::Pull(elements)), .. } => {
                    for element in elements {
                        name(item, element);
                    }
                }
                Action::Update { .. } => {}
            }
        }
    }
    for view in &mut run.end.views {
        view.items.iter_mut().for_each(|(item, found)| in_content(item, found));
    }
}

/// Returns, for each transaction and partition, the places of the updates that its session sent
/// there: all but the pushes that it took back.
fn sent(run: &Run) -> HashMap<(TransactionId, u16), Vec<usize>> {
    let mut sent: HashMap<(TransactionId, u16), Vec<usize>> = HashMap::new();
    for (_, _, transaction) in run.transactions() {
        let mut taken_back: HashSet<usize> = HashSet::new();
        for (_, op, _) in transaction.updates() {
            if let Op::Item(ItemOp::Pull(elements)) = op {
                let own = elements.iter().filter(|of| of.transaction == transaction.id);
                taken_back.extend(own.map(|of| of.index));
            }
        }
        for (index, (item, ..)) in transaction.updates().enumerate() {
            let partition = run.system.partition_of.get(&item).copied().unwrap_or_default();
            if !taken_back.contains(&index) {
                sent.entry((transaction.id, partition)).or_default().push(index);
            }
        }
    }
    sent
}
