//! Reads of a later phase are sent while the first phase runs; their answers are used only if they are
//! as good as those of a later read.

use std::sync::Arc;
use std::time::Duration;

use crate::support::shared::Stores;
use mingle::{Database, Session};
use mingle_lang::hir::StoreId;
use mingle_runtime::stats::Counted;
use mingle_store::wrap::distance::{Distance, DistantStore};
use mingle_store::{Once, World};
use mingle_store_replay::{ReplayConfig, ReplayStore};

const TEXT: &str = "store bank: linearizable; store journal: eventual;
    object Account in bank { key owner: string; balance: int; limit: int; }
    object Day in journal { key name: string; last: int; }
    transaction pay(to: ref Account, day: ref Day) {
        to.balance += 1;
        day.last = day.last + 1;
    }
    transaction pay_within(to: ref Account, day: ref Day) {
        require to.balance < to.limit else \"no more\";
        to.balance += 1;
        day.last = day.last + 1;
    }
    transaction note(to: ref Account, day: ref Day) {
        to.balance += 1;
        let so_far: int = to.balance;
        if so_far > 0 { day.last = day.last + so_far; }
    }
    transaction raise(to: ref Account, limit: int) { to.limit = limit; }
    transaction total(day: ref Day) -> int { return day.last; }
    ";

const TRIP: Duration = Duration::from_millis(20);

/// A bank, and a journal that has several copies and counts one, both at the same distance.
fn stores() -> Stores {
    let mut stores = Stores::new(TEXT, "[stores.bank]\ndistance = \"20ms\"\n[stores.journal]");
    let schema = stores.server().store_schema(StoreId(1));
    let replay = ReplayConfig::new(1, Once::ById);
    let journal = ReplayStore::open(replay, schema, stores.world.clone()).expect("it opens");
    let distance = "20ms".parse::<Distance>().expect("it is one");
    stores.all[1] = DistantStore::new(journal, distance, stores.world.clone());
    stores
}

fn counted(server: &Database) -> [u64; 2] {
    [Counted::ReadEarly, Counted::ReadAhead].map(|counted| server.runtime().stats().get(counted))
}

/// The duration of a call that must succeed.
fn time(stores: &Stores, server: &Arc<Database>, call: &str, to: &str) -> Duration {
    let begin = stores.world.elapsed();
    stores.ok(server, &Session::at("r1"), call, &[("to", to), ("day", "monday")]);
    stores.world.elapsed().saturating_sub(begin)
}

#[test]
fn both_stores_are_read_at_the_same_time_where_nothing_is_handed_on() {
    let stores = stores();
    let server = stores.server();
    assert_eq!(time(&stores, &server, "pay", "ana"), 3 * TRIP, "two reads at once, two commits");
    assert_eq!(counted(&server), [1, 1]);
    assert_eq!(
        time(&stores, &server, "note", "bo"),
        4 * TRIP,
        "what is written follows from the bank"
    );
    assert_eq!(counted(&server), [1, 2]);
    let total = stores.ok(&server, &Session::at("r1"), "total", &[("day", "monday")]);
    assert_eq!(total, serde_json::json!(2));
}

#[test]
fn what_was_read_early_is_read_again_where_somebody_was_met_meanwhile() {
    let stores = stores();
    let (other, server) = (stores.server(), stores.server());
    time(&stores, &other, "pay", "ana");
    // The rows of the other transaction still stand on the account, and this process has not seen it in
    // the journal: it checks whether that transaction is parked, and reads the journal again.
    assert_eq!(time(&stores, &server, "pay", "ana"), 5 * TRIP);
    assert_eq!(counted(&server), [0, 1]);
    // By now it knows that the rows of both are there.
    assert_eq!(time(&stores, &server, "pay", "ana"), 3 * TRIP);
    assert_eq!(counted(&server), [1, 2]);
    let total = stores.ok(&server, &Session::at("r1"), "total", &[("day", "monday")]);
    assert_eq!(total, serde_json::json!(3));
}

#[test]
fn a_transaction_that_aborts_does_not_wait_for_what_was_read_early() {
    let stores = stores();
    let server = stores.server();
    let begin = stores.world.elapsed();
    let arguments = [("to", "ana"), ("day", "monday")];
    let failed = stores.call(&server, &Session::at("r1"), "pay_within", &arguments);
    failed.expect_err("the limit is 0");
    assert_eq!(stores.world.elapsed().saturating_sub(begin), TRIP);
    assert_eq!(counted(&server), [0, 0]);
    stores.ok(&server, &Session::at("r1"), "raise", &[("to", "ana"), ("limit", "1")]);
    assert_eq!(time(&stores, &server, "pay_within", "ana"), 3 * TRIP);
    assert_eq!(counted(&server), [1, 1]);
}
