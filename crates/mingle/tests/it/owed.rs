//! The commit witness of a last phase is omitted if the floor of its origin replaces it.

use std::sync::Arc;
use std::time::Duration;

use crate::support::shared::{Stores, call, found_at};
use mingle::{Database, Session};
use mingle_lang::hir::StoreId;
use mingle_runtime::stats::Counted;
use mingle_store::wrap::distance::{Distance, DistantStore};
use mingle_store::{Once, World};
use mingle_store_replay::{ReplayConfig, ReplayStore};

const TEXT: &str = "store bank: linearizable; store archive: eventual; store journal: eventual;
    object Account in bank { key owner: string; balance: int; }
    object Copy in archive { key owner: string; last: int; }
    object Day in journal { key name: string; last: int; }
    transaction pay(to: ref Account, day: ref Day) {
        to.balance += 1;
        day.last = day.last + 1;
    }
    transaction store(to: ref Account, copy: ref Copy) {
        to.balance += 1;
        copy.last = copy.last + 1;
    }
    transaction total(day: ref Day) -> int { return day.last; }
    ";

const DAY: [(&str, &str); 2] = [("to", "ana"), ("day", "monday")];

/// A bank, an archive at this distance, and a journal for which floors suffice.
fn stores(archive: &str) -> Stores {
    let mut stores = Stores::new(TEXT, "");
    let open = |store, config: ReplayConfig| {
        let schema = stores.server().store_schema(StoreId(store));
        ReplayStore::open(config, schema, stores.world.clone()).expect("it opens")
    };
    let journal = open(2, ReplayConfig::new(1, Once::ById).with_floor_suffices());
    let far = open(1, ReplayConfig::new(1, Once::ById));
    let distance = archive.parse::<Distance>().expect("it is one");
    stores.all[1] = DistantStore::new(far, distance, stores.world.clone());
    stores.all[2] = journal;
    stores
}

fn stood(server: &Database) -> u64 {
    server.runtime().stats().get(Counted::FloorStood)
}

fn pay(stores: &Stores, server: &Arc<Database>) {
    stores.ok(server, &Session::at("r1"), "pay", &DAY);
}

fn total(stores: &Stores, server: &Arc<Database>) -> serde_json::Value {
    stores.ok(server, &Session::at("r1"), "total", &DAY[1..])
}

/// The records and rows in the journal.
fn in_journal(stores: &Stores) -> Vec<String> {
    stores.world.block_on(found_at(&*stores.all[2]))
}

fn pause(stores: &Stores, milliseconds: u64) {
    stores.world.block_on(stores.world.sleep(Duration::from_millis(milliseconds)));
}

#[test]
fn one_floor_stands_for_many_commit_witnesses() {
    let stores = stores("0ms");
    let server = stores.server();
    for _ in 0..10 {
        pay(&stores, &server);
    }
    assert_eq!(in_journal(&stores), [""; 0], "nothing is there yet");
    pause(&stores, 30);
    let found = in_journal(&stores);
    assert!(found.len() == 1 && found[0].contains(": Floor "), "{found:?}");
    assert_eq!(stood(&server), 10);
    stores.pass(2);
    assert_eq!(stores.left(), [""; 0]);
    assert!(server.runtime().is_clean());
    assert_eq!(total(&stores, &server), 10);
}

#[test]
fn whoever_meets_one_waits_for_its_floor() {
    let stores = stores("0ms");
    let (other, server) = (stores.server(), stores.server());
    pay(&stores, &other);
    let begin = stores.world.elapsed();
    pay(&stores, &server);
    let waited = stores.world.elapsed().saturating_sub(begin);
    let range = Duration::from_millis(20)..Duration::from_millis(200);
    assert!(range.contains(&waited), "{waited:?}");
    assert_eq!(server.runtime().stats().get(Counted::Helped), 0, "the floor came before that");
    stores.pass(2);
    assert_eq!(stores.left(), [""; 0]);
    assert_eq!(total(&stores, &server), 2);
}

#[test]
fn what_cannot_wait_has_its_commit_witness_written() {
    let stores = stores("1s");
    let server = stores.server();
    stores.world.block_on(async {
        let session = Session::at("r1");
        let slow = call(&server, &session, "store", &[("to", "bo"), ("copy", "bo")]);
        let quick = async {
            // By then the transaction over the slow archive is under way.
            stores.world.sleep(Duration::from_millis(600)).await;
            call(&server, &session, "pay", &DAY).await.expect("it commits");
            stores.world.sleep(Duration::from_millis(60)).await;
            let found = found_at(&*stores.all[2]).await;
            assert_eq!(found, [""; 0], "a transaction before it is not over");
            stores.world.sleep(Duration::from_millis(90)).await;
            let found = found_at(&*stores.all[2]).await;
            assert!(found.len() == 1 && found[0].contains(": Witness "), "{found:?}");
        };
        let (slow, ()) = tokio::join!(slow, quick);
        slow.expect("it commits");
    });
    assert_eq!(stood(&server), 0);
    pay(&stores, &server);
    pause(&stores, 60);
    assert_eq!(stood(&server), 1, "what was written keeps no floor down");
    let found = in_journal(&stores);
    // The journal's clean-up waits for no other store, so the witness may be removed by now.
    assert!(found.iter().any(|one| one.contains(": Floor ")), "{found:?}");
    // The row of a process is removed by the first sweep that finds nothing else of the process.
    for _ in 0..60 {
        stores.pass(1);
        if server.runtime().is_clean() && stores.left().is_empty() {
            break;
        }
    }
    assert_eq!(stores.left(), [""; 0]);
    assert!(server.runtime().is_clean());
    assert_eq!(total(&stores, &server), 2);
}

#[test]
fn who_dies_before_the_floor_stands_is_finished_by_others() {
    let stores = stores("0ms");
    let (other, server) = (stores.server(), stores.server());
    for _ in 0..3 {
        pay(&stores, &other);
    }
    drop(other);
    stores.pass(1);
    assert_eq!(in_journal(&stores), [""; 0], "nobody is there to raise it");
    let swept = stores.world.block_on(server.runtime().sweep(true)).expect("the stores answer");
    assert_eq!(swept.finished.len(), 3, "{swept:?}");
    assert_eq!(total(&stores, &server), 3, "what runs again counts once");
    pay(&stores, &server);
    assert_eq!(total(&stores, &server), 4);
    stores.pass(30);
    assert_eq!(stores.left(), [""; 0]);
}
