use std::time::Duration;

use super::*;
use crate::workload::calls::{ClientCall, Kind, Object};
use crate::workload::history::Final;

/// Returns a call of a separate client on the objects number 0, at a given second.
fn call(kind: Kind, tag: u32, second: u64, seen: &[(Object, &[&str])]) -> Operation {
    let call = ClientCall {
        kind,
        account: 0,
        shelf: 0,
        board: 0,
        inbox: 0,
        tag,
        patience_ms: None,
        until: None,
        is_twin: false,
        moves_to: None,
        process: None,
        is_keyed: false,
        again: None,
    };
    let text = |entries: &[&str]| entries.iter().map(|entry| (*entry).to_owned()).collect();
    let seen = seen.iter().map(|(object, entries)| (*object, text(entries))).collect();
    let visits = call.visits().len();
    Operation {
        client: tag as usize,
        call,
        began: Duration::from_secs(second),
        ended: Duration::from_secs(second + 10),
        end: End::Done { seen, weaker: None, mark: 0, has_rest: false, visits },
        after: Vec::new(),
        again: None,
    }
}

fn history(operations: Vec<Operation>, logs: &[(Object, &[&str])]) -> History {
    let log = |(object, entries): &(Object, &[&str])| {
        let entries = entries.iter().map(|entry| (*entry).to_owned()).collect();
        (*object, vec![Final { entries, ..Final::default() }])
    };
    let finals = logs.iter().map(log).collect();
    History { operations, finals, ..History::default() }
}

const ACCOUNT: Object = Object::Account(0);
const SHELF: Object = Object::Shelf(0);
const INBOX: Object = Object::Inbox(0);

#[test]
fn a_documented_anomaly_is_an_exception_that_is_counted() {
    let logs: &[(Object, &[&str])] = &[(ACCOUNT, &["1"]), (INBOX, &["1"])];
    let transfer = || call(Kind::Transfer, 1, 0, &[(ACCOUNT, &[])]);
    let look = |account, inbox| call(Kind::Look, 2, 0, &[(ACCOUNT, account), (INBOX, inbox)]);
    let clean = mixed(&history(vec![transfer(), look(&["1"], &["1"])], logs));
    assert_eq!(clean, Ok(BTreeMap::new()));
    let old_then_new = mixed(&history(vec![transfer(), look(&[], &["1"])], logs));
    let counted = BTreeMap::from([(exception(Told::ReadsApart).to_owned(), 1)]);
    assert_eq!(old_then_new, Ok(counted));
}

#[test]
fn what_was_written_first_may_be_seen_before_the_rest_has_read() {
    let board = Object::Board(0);
    let logs: &[(Object, &[&str])] =
        &[(ACCOUNT, &["2"]), (SHELF, &["1"]), (board, &["1", "2"]), (INBOX, &["1", "2"])];
    // The account write of a post is visible, but the board write not yet; the post later finds
    // an order on the board.
    let order = || {
        let own = ClientCall { account: 1, ..call(Kind::Order, 1, 0, &[]).call };
        Operation { call: own, ..call(Kind::Order, 1, 0, &[(SHELF, &[])]) }
    };
    let post = |board_seen| call(Kind::Post, 2, 0, &[(board, board_seen)]);
    let look = || call(Kind::Look, 3, 0, &[(ACCOUNT, &["2"]), (SHELF, &[])]);
    let found = mixed(&history(vec![order(), post(&["1"]), look()], logs)).unwrap();
    assert_eq!(found.get(exception(Told::LaterReads)), Some(&1), "{found:?}");
    // The data that it had read before it wrote must be visible.
    let logs: &[(Object, &[&str])] = &[(ACCOUNT, &["1", "2"]), (SHELF, &["1"]), (INBOX, &[])];
    let order = call(Kind::Order, 1, 0, &[(ACCOUNT, &[]), (SHELF, &[])]);
    let transfer = call(Kind::Transfer, 2, 0, &[(ACCOUNT, &["1"])]);
    let found = mixed(&history(vec![order, transfer, look_at(&["1", "2"], &[])], logs));
    assert_eq!(found.map_err(|broken| broken.promise), Err("P1 mixed consistency"));
}

#[test]
fn what_nobody_could_learn_of_is_no_violation() {
    let one = |index: u8, operation: Operation| {
        let call = ClientCall { account: index, shelf: 0, ..operation.call };
        Operation { call, ..operation }
    };
    let other = Object::Account(1);
    let logs: &[(Object, &[&str])] = &[(ACCOUNT, &["1"]), (other, &["3"]), (SHELF, &["4", "1"])];
    // The first is visible at the bank and has not visited the shop yet. The same client finds
    // an account as it was before a third transaction wrote it; the fourth finds that write,
    // and visits the shop before the first.
    let order = call(Kind::Order, 1, 0, &[(ACCOUNT, &[]), (SHELF, &["4"])]);
    let order = Operation { ended: Duration::from_mins(1), ..order };
    let reader = |kind, tag, seen: &[(Object, &[&str])]| Operation {
        client: 9,
        ..call(kind, tag, u64::from(tag), seen)
    };
    let seen = reader(Kind::ReadAccount, 11, &[(ACCOUNT, &["1"])]);
    let before = one(1, reader(Kind::ReadAccount, 12, &[(other, &[])]));
    let deposit = one(1, call(Kind::Deposit, 3, 12, &[(other, &[])]));
    let later = one(1, call(Kind::BankToShop, 4, 13, &[(other, &["3"])]));
    let found =
        mixed(&history(vec![order.clone(), seen.clone(), before, deposit, later.clone()], logs));
    assert!(found.is_ok(), "{found:?}");
    // Where each has learned of the previous one, it is a violation.
    let informed = one(1, call(Kind::Deposit, 3, 12, &[(other, &[])]));
    let informed = Operation { client: 9, ..informed };
    let found = mixed(&history(vec![order, seen, informed, later], logs));
    assert_eq!(found.map_err(|broken| broken.promise), Err("P1 mixed consistency"));
}

fn look_at(account: &[&str], shelf: &[&str]) -> Operation {
    call(Kind::Look, 3, 0, &[(ACCOUNT, account), (SHELF, shelf)])
}

#[test]
fn what_no_page_documents_is_a_violation() {
    let logs: &[(Object, &[&str])] = &[(ACCOUNT, &["1"]), (INBOX, &["1"])];
    let transfer = call(Kind::Transfer, 1, 0, &[(ACCOUNT, &[])]);
    // New at the first store and old at the second: a reader must find there the write that it
    // has seen.
    let look = call(Kind::Look, 2, 0, &[(ACCOUNT, &["1"]), (INBOX, &[])]);
    let found = mixed(&history(vec![transfer, look], logs));
    assert_eq!(found.map_err(|broken| broken.promise), Err("P1 mixed consistency"));
    // Two writers that two stores order differently.
    let logs: &[(Object, &[&str])] = &[(ACCOUNT, &["1", "2"]), (SHELF, &["2", "1"])];
    let order =
        |tag, account, shelf| call(Kind::Order, tag, 0, &[(ACCOUNT, account), (SHELF, shelf)]);
    let found = mixed(&history(vec![order(1, &[], &["2"]), order(2, &["1"], &[])], logs));
    assert_eq!(found.map_err(|broken| broken.promise), Err("P1 mixed consistency"));
}

#[test]
fn isolated_transactions_have_no_exception() {
    let logs: &[(Object, &[&str])] = &[(ACCOUNT, &["2"]), (SHELF, &["1"])];
    // Each reads the object that the other writes, and neither sees the other's write.
    let skew = vec![
        call(Kind::BankToShop, 1, 0, &[(ACCOUNT, &[])]),
        call(Kind::ShopToBank, 2, 0, &[(SHELF, &[])]),
    ];
    let found = mixed(&history(skew, logs));
    assert_eq!(found.map_err(|broken| broken.promise), Err("P5 isolated"));
    let one_sees = vec![
        call(Kind::BankToShop, 1, 0, &[(ACCOUNT, &[])]),
        call(Kind::ShopToBank, 2, 0, &[(SHELF, &["1"])]),
    ];
    assert_eq!(mixed(&history(one_sees, logs)), Ok(BTreeMap::new()));
}

#[test]
fn a_read_at_an_eventual_store_is_granted_if_some_transaction_wrote_its_value() {
    let logs: &[(Object, &[&str])] = &[(ACCOUNT, &["1"]), (INBOX, &["1"])];
    let found = |inbox: &[&str]| {
        let transfer = call(Kind::Transfer, 1, 0, &[(ACCOUNT, &[])]);
        let look = call(Kind::Look, 2, 0, &[(ACCOUNT, &["1"]), (INBOX, inbox)]);
        let eventual = [Store::Feed].into();
        mixed(&History { eventual, ..history(vec![transfer, look], logs) })
    };
    let counted = |granted: u64| {
        let judged = (eventual::JUDGED.to_owned(), 1);
        let granted = (granted > 0).then(|| (eventual::GRANTED.to_owned(), granted));
        Ok([judged].into_iter().chain(granted).collect::<BTreeMap<_, _>>())
    };
    assert_eq!(found(&["1"]), counted(0));
    assert_eq!(found(&[]), counted(1));
    let of_nothing = found(&["7"]).map_err(|broken| broken.promise);
    assert_eq!(of_nothing, Err("P1 mixed consistency"));
}

#[test]
fn replicas_of_an_eventual_store_must_agree_in_the_end() {
    let logs: &[(Object, &[&str])] = &[(INBOX, &["1"])];
    let mut all = history(vec![call(Kind::Note, 1, 0, &[])], logs);
    all.eventual = [Store::Feed].into();
    assert_eq!(mixed(&all).map(|counts| counts.get(eventual::JUDGED).copied()), Ok(Some(0)));
    let behind = Final { entries: Vec::new(), ..Final::default() };
    all.finals.get_mut(&INBOX).unwrap().push(behind);
    assert_eq!(mixed(&all).map_err(|broken| broken.promise), Err("P1 mixed consistency"));
}

#[test]
fn an_anomaly_that_shows_through_an_eventual_store_is_counted_as_elsewhere() {
    let board = Object::Board(0);
    let logs: &[(Object, &[&str])] =
        &[(ACCOUNT, &["1", "2"]), (board, &["2"]), (INBOX, &["1", "2"])];
    // The second writer knows of the first only through the eventual inbox. The reader visits the bank
    // between the two, and the wall after both.
    let transfer = call(Kind::Transfer, 1, 0, &[(ACCOUNT, &[])]);
    let by_the_second = |kind, tag, second, seen: &[(Object, &[&str])]| Operation {
        client: 9,
        ..call(kind, tag, second, seen)
    };
    let learns = by_the_second(Kind::ReadInbox, 11, 20, &[(INBOX, &["1"])]);
    let send = by_the_second(Kind::Send, 2, 40, &[]);
    let look = |account: &[&str]| {
        let seen: &[(Object, &[&str])] =
            &[(ACCOUNT, account), (SHELF, &[]), (board, &["2"]), (INBOX, &["1", "2"])];
        Operation { ended: Duration::from_mins(2), ..call(Kind::Look, 3, 15, seen) }
    };
    let found = |look| {
        let operations = vec![transfer.clone(), learns.clone(), send.clone(), look];
        mixed(&History { eventual: [Store::Feed].into(), ..history(operations, logs) })
    };
    let counts = found(look(&["1"])).unwrap();
    assert_eq!(counts.get(exception(Told::ReadsApart)), Some(&1), "{counts:?}");
    let counts = found(look(&["1", "2"])).unwrap();
    assert_eq!(counts.get(exception(Told::ReadsApart)), None, "{counts:?}");
}

#[test]
fn a_session_goes_on_before_the_later_parts_of_a_call_that_was_answered_early() {
    let logs: &[(Object, &[&str])] = &[(ACCOUNT, &["1"]), (SHELF, &["1"])];
    let order = |has_rest| {
        let order = call(Kind::Order, 1, 0, &[]);
        let seen = vec![(ACCOUNT, Vec::new()), (SHELF, Vec::new())];
        let visits = order.call.visits().len();
        Operation {
            client: 9,
            end: End::Done { seen, weaker: None, mark: 0, has_rest, visits },
            ..order
        }
    };
    // The same client's next call has ended, and then another one visits the shop before the order does.
    let next = Operation { client: 9, ..call(Kind::ReadAccount, 2, 20, &[(ACCOUNT, &["1"])]) };
    let other = call(Kind::ShopToBank, 3, 40, &[(SHELF, &[])]);
    let other = Operation { call: ClientCall { account: 1, ..other.call.clone() }, ..other };
    let found =
        |has_rest| mixed(&history(vec![order(has_rest), next.clone(), other.clone()], logs));
    let counts = found(true).unwrap();
    assert_eq!(counts.get(exception(Told::InParts)), Some(&1), "{counts:?}");
    assert_eq!(found(false).map_err(|broken| broken.promise), Err("P1 mixed consistency"));
}

#[test]
fn strong_stores_too_show_a_write_before_its_transaction_has_read_elsewhere() {
    let other = Object::Account(1);
    // The first writes account 1, then a reader sees that and finds account 0 without the second, and only
    // then the second writes account 0 and the shelf, which the first reads last.
    let first = call(Kind::ShopToBank, 1, 0, &[(SHELF, &["2"])]);
    let first = Operation { call: ClientCall { account: 1, ..first.call.clone() }, ..first };
    let first = Operation { ended: Duration::from_mins(1), ..first };
    let reader = |tag, account: u8, second, object, seen: &[&str]| {
        let read = call(Kind::ReadAccount, tag, second, &[(object, seen)]);
        Operation { client: 9, call: ClientCall { account, ..read.call.clone() }, ..read }
    };
    let sees = reader(3, 1, 11, other, &["1"]);
    let misses = reader(4, 0, 22, ACCOUNT, &[]);
    let second = call(Kind::Both, 2, 33, &[(ACCOUNT, &[]), (SHELF, &[])]);
    let logs: &[(Object, &[&str])] = &[(ACCOUNT, &["2"]), (other, &["1"]), (SHELF, &["2"])];
    let found = mixed(&history(vec![first, sees, misses, second], logs)).unwrap();
    assert!(found.contains_key(exception(Told::LaterReads)), "{found:?}");
}

#[test]
fn an_anomaly_on_the_way_of_a_violation_is_found() {
    let other = Object::Account(1);
    let board = Object::Board(0);
    // An order is met by the second transaction at the shop, after that has written the bank. A third one has
    // read that account and goes to the wall before the order.
    let order = call(Kind::Order, 1, 0, &[(ACCOUNT, &[]), (SHELF, &[])]);
    let order = Operation { ended: Duration::from_mins(1), ..order };
    let second = call(Kind::Both, 2, 5, &[(other, &[]), (SHELF, &["1"])]);
    let second = Operation { call: ClientCall { account: 1, ..second.call.clone() }, ..second };
    let third = call(Kind::Order, 3, 6, &[(other, &["2"]), (Object::Shelf(1), &[])]);
    let own = ClientCall { account: 1, shelf: 1, ..third.call.clone() };
    let third = Operation { client: 9, call: own, ..third };
    let reader = Operation { client: 9, ..call(Kind::ReadBoard, 4, 20, &[(board, &["3", "1"])]) };
    let logs: &[(Object, &[&str])] = &[
        (ACCOUNT, &["1"]),
        (other, &["2", "3"]),
        (SHELF, &["1", "2"]),
        (Object::Shelf(1), &["3"]),
        (board, &["3", "1"]),
        (INBOX, &["3", "1"]),
    ];
    let found = mixed(&history(vec![order, second, third, reader], logs)).unwrap();
    assert!(found.contains_key(exception(Told::LaterReads)), "{found:?}");
}
