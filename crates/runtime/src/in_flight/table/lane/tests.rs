use std::time::Duration;

use mingle_model::{Name, Stamp};

use super::*;

const BANK: usize = 0;
const WALL: usize = 1;
const FEED: usize = 2;

/// The records of a transaction that began at `bank` and then wrote another store.
fn left_at(other: usize) -> Left {
    Left {
        intent: Some(BANK),
        witnesses: [other].into(),
        rows: [BANK, other].into(),
        ..Left::default()
    }
}

fn id(sequence: u64) -> TransactionId {
    TransactionId { origin: Origin(7), sequence }
}

/// Creates a table in which `count` transactions run.
fn running(count: u64) -> Table {
    let mut own = Table::new(Origin(7));
    for sequence in 1..=count {
        assert_eq!(own.allocate(Duration::ZERO), id(sequence));
    }
    own
}

/// Returns the numbers over which the floor of a store rises next.
fn batch(own: &Table, store: usize) -> Vec<u64> {
    own.batch(store, false).iter().map(|(id, _)| id.sequence).collect()
}

fn none() -> Vec<u64> {
    Vec::new()
}

/// Raises the floor of a store as far as possible; every replica has it.
fn advance(own: &mut Table, store: usize) {
    if let Some((last, _)) = own.batch(store, false).last() {
        own.raise(store, *last, BTreeMap::from([(*last, 2)]));
        own.confirm(store, *last);
    }
}

/// Removes the records of a store that can be removed. Returns the numbers of the witnesses, the rows and
/// the intents.
fn remove(own: &mut Table, store: usize) -> [Vec<u64>; 3] {
    let removable = own.removable(store, |store| store == BANK, false);
    own.removed(store, &removable);
    let numbers = |ids: Vec<TransactionId>| ids.iter().map(|id| id.sequence).collect();
    [
        numbers(removable.witnesses.iter().map(|(id, _)| *id).collect()),
        numbers(removable.rows.iter().map(|(id, _)| *id).collect()),
        numbers(removable.intents),
    ]
}

#[test]
fn a_store_that_is_away_keeps_only_the_records_that_need_it() {
    let mut own = running(2);
    own.over(id(1), left_at(FEED));
    own.over(id(2), left_at(WALL));
    assert_eq!(
        (batch(&own, WALL), batch(&own, FEED), batch(&own, BANK)),
        (vec![2], vec![1], none())
    );
    advance(&mut own, WALL);
    assert_eq!(remove(&mut own, WALL), [vec![2], vec![2], none()]);
    assert_eq!(remove(&mut own, BANK), [none(), vec![2], none()], "its intent is above the floor");
    assert_eq!(remove(&mut own, FEED), [none(), none(), none()]);
    assert_eq!(batch(&own, BANK), none(), "the first one needs its intent");
    assert_eq!(own.open(), 2);
    // The feed is back.
    advance(&mut own, FEED);
    assert_eq!(remove(&mut own, FEED), [vec![1], vec![1], none()]);
    assert_eq!(batch(&own, BANK), [1, 2]);
    advance(&mut own, BANK);
    assert_eq!(remove(&mut own, BANK), [none(), vec![1], vec![1, 2]]);
    assert!(own.is_clean());
}

#[test]
fn a_floor_that_is_not_everywhere_removes_nothing() {
    let mut own = running(1);
    own.over(id(1), left_at(WALL));
    own.raise(WALL, id(1), BTreeMap::from([(id(1), 3)]));
    assert_eq!(own.unconfirmed(WALL), Some(id(1)));
    assert_eq!(remove(&mut own, WALL), [none(), none(), none()]);
    assert_eq!(batch(&own, BANK), none());
    own.confirm(WALL, id(1));
    assert_eq!(own.unconfirmed(WALL), None);
    let removable = own.removable(WALL, |_| false, false);
    assert_eq!(removable.witnesses, [(id(1), 3)], "all its parts are removed");
    assert_eq!(removable.rows, [], "a replica of its first store may not have it yet");
}

#[test]
fn transactions_in_opposite_orders_do_not_wait_for_each_other() {
    let mut own = running(4);
    for sequence in 1..=4 {
        let (first, other) = if sequence % 2 == 0 { (BANK, WALL) } else { (WALL, BANK) };
        let left = Left {
            intent: Some(first),
            witnesses: [other].into(),
            rows: [first].into(),
            ..Left::default()
        };
        own.over(id(sequence), left);
    }
    for _ in 0..5 {
        for store in [BANK, WALL] {
            advance(&mut own, store);
            remove(&mut own, store);
        }
    }
    assert!(own.is_clean(), "{} are left", own.open());
}

#[test]
fn a_transaction_that_is_not_over_holds_up_only_its_own_stores() {
    let mut own = running(4);
    for sequence in [3, 4] {
        own.over(id(sequence), left_at(WALL));
    }
    assert_eq!(batch(&own, WALL), none(), "the first one may write anything");
    own.gives_up(id(1), Some([BANK, FEED].into()));
    assert_eq!(batch(&own, WALL), none(), "so may the second one");
    own.gives_up(id(2), Some([FEED].into()));
    assert_eq!((batch(&own, WALL), batch(&own, BANK)), (vec![3, 4], none()));
    own.parks(id(1), left_at(FEED));
    assert!(!own.is_at_rest(), "the others can be cleaned up in part");
    own.over(id(2), Left::default());
    advance(&mut own, WALL);
    for store in [WALL, BANK] {
        remove(&mut own, store);
    }
    assert_eq!((batch(&own, WALL), batch(&own, BANK)), (none(), none()));
    assert_eq!(own.open(), 3, "their intents are left");
}

#[test]
fn nothing_is_noted_for_an_origin_of_before() {
    let mut own = running(1);
    let seen = [(Name::from("feed"), Stamp::from_iter([("r1".into(), 3)]))].into();
    own.over(id(1), Left { rows: [WALL].into(), seen, ..Left::default() });
    let other = TransactionId { origin: Origin(8), sequence: 9 };
    own.raise(WALL, other, BTreeMap::new());
    own.confirm(WALL, other);
    assert_eq!(batch(&own, WALL), [1]);
    let old = Removable { rows: vec![(other, Left::default())], ..Removable::default() };
    assert_eq!(own.removed(WALL, &old), 0);
    assert!(own.end_lane(Origin(8), WALL), "its task ends");
    assert!(!own.end_lane(Origin(7), WALL));
}
