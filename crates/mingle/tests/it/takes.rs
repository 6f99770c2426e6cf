//! Bounded counters never leave their bounds, and nothing that was taken is lost, however many calls take at once and
//! wherever a process dies.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::dying::{Dying, Life};
use crate::support::shared::{Stores, call};
use mingle::{Database, Error, Session};
use mingle_store::wrap::fault::{Call as StoreCall, Fault, FaultPlan, FaultyStore};
use mingle_store::{BoxFuture, World};
use serde_json::{Value as Json, json};

/// `buy` takes ahead of its first write; `buy_here` takes where it writes first.
const TEXT: &str = "store office: linearizable; store seats: snapshot;
    object Event in office { key id: string; title: string; left: counter min 0; sold: counter; }
    object Order in office { key id: string; event: ref Event; }
    object Stock in seats { key id: string; left: counter min 0; sold: counter; }
    transaction fill(event: ref Event, stock: ref Stock, seats: int) {
        event.left.give(seats);
        stock.left.give(seats);
    }
    transaction buy(event: ref Event, stock: ref Stock) {
        require stock.left.take(1) else \"sold out\" as sold_out;
        let _order = new Order { event: event };
        event.sold.add(1);
        stock.sold.add(1);
    }
    transaction buy_here(event: ref Event, stock: ref Stock) {
        require event.left.take(1) else \"sold out\" as sold_out;
        let _order = new Order { event: event };
        event.sold.add(1);
        stock.sold.add(1);
    }
    transaction fails(event: ref Event, stock: ref Stock) {
        require stock.left.take(1) else \"sold out\" as sold_out;
        require event.title != \"\" else \"no title\" as no_title;
        event.sold.add(1);
    }
    transaction look(event: ref Event, stock: ref Stock) -> list<int> {
        return [event.left.value(), event.sold.value(), stock.left.value(), stock.sold.value()];
    }
    ";

const BINDING: &str = "[runtime]\ndeadline = \"3s\"\n[stores.office]\ndistance = \"20ms\"\n\
    [stores.seats]\ndistance = \"2ms\"";

const EVENT: [(&str, &str); 2] = [("event", "gala"), ("stock", "gala")];

fn fill(stores: &Stores, server: &Arc<Database>, seats: &str) {
    let arguments = [EVENT[0], EVENT[1], ("seats", seats)];
    stores.ok(server, &Session::default(), "fill", &arguments);
}

fn look(stores: &Stores, server: &Arc<Database>) -> Json {
    stores.ok(server, &Session::default(), "look", &EVENT)
}

/// Makes many calls at once; returns the number of those that took effect, and of those that were refused.
fn sell(
    stores: &Stores,
    servers: &[Arc<Database>],
    name: &'static str,
    calls: usize,
) -> (u32, u32) {
    let calls = (0..calls).map(|number| {
        let server = servers[number % servers.len()].clone();
        let buying: BoxFuture<'static, Result<(), Error>> =
            Box::pin(
                async move { call(&server, &Session::default(), name, &EVENT).await.map(|_| ()) },
            );
        buying
    });
    let ended = stores.world.block_on(mingle_store::test_world::join_all(calls.collect()));
    let (mut sold, mut refused) = (0, 0);
    for end in ended {
        match end {
            Ok(()) => sold += 1,
            Err(Error::Require { code: Some(code), .. }) if *code == *"sold_out" => refused += 1,
            Err(error) => panic!("{name}: {error}"),
        }
    }
    (sold, refused)
}

#[test]
fn many_calls_at_once_sell_exactly_the_stock() {
    for name in ["buy", "buy_here"] {
        for seed in 0..5 {
            let binding = BINDING.replace("3s", "60s");
            let stores = Stores::seeded(TEXT, &binding, seed);
            let servers = [stores.server(), stores.server()];
            fill(&stores, &servers[0], "7");
            assert_eq!(sell(&stores, &servers, name, 20), (7, 13), "{name}, seed {seed}");
            stores.pass(2);
            let expected = if name == "buy" { json!([7, 7, 0, 7]) } else { json!([0, 7, 7, 7]) };
            assert_eq!(look(&stores, &servers[1]), expected, "{name}, seed {seed}");
        }
    }
}

#[test]
fn a_call_that_fails_gives_back_what_it_held() {
    let stores = Stores::new(TEXT, BINDING);
    let server = stores.server();
    fill(&stores, &server, "1");
    for _ in 0..3 {
        let error = stores.call(&server, &Session::default(), "fails", &EVENT);
        let error = error.expect_err("the event has no title");
        assert!(
            matches!(&error, Error::Require { code: Some(code), .. } if **code == *"no_title"),
            "{error}"
        );
        assert_eq!(look(&stores, &server), json!([1, 0, 1, 0]));
    }
    stores.ok(&server, &Session::default(), "buy", &EVENT);
    assert_eq!(look(&stores, &server), json!([1, 1, 0, 1]));
}

/// A conflict at the office repeats the phase that needs the take: the last seat is still the transaction's own.
#[test]
fn an_attempt_finds_what_the_attempt_before_it_holds() {
    let plan =
        FaultPlan::scripted((0..4).map(|number| (StoreCall::Commit, number, Fault::Conflict)));
    let stores = Stores::wrapped(TEXT, BINDING, |name, inner| {
        if name == "office" { FaultyStore::new(inner, plan.clone()) } else { inner }
    });
    let server = stores.server();
    fill(&stores, &server, "1");
    stores.ok(&server, &Session::default(), "buy", &EVENT);
    assert_eq!(look(&stores, &server), json!([1, 1, 0, 1]));
}

/// A process buys, and dies at one of its store calls. Returns true if it made that call.
fn buy_and_die(stores: &Stores, life: &Arc<Life>) -> bool {
    let server =
        stores.server_over(stores.world.clone(), |_, store| Dying::within(store, life.clone()));
    let ended = Arc::new(Mutex::new(false));
    let at_end = ended.clone();
    stores.world.spawn(Box::pin(async move {
        let _ = call(&server, &Session::default(), "buy", &EVENT).await;
        server.settle(Duration::from_secs(1)).await;
        *at_end.lock().expect("no thread panics with the lock") = true;
    }));
    stores.pass(1);
    life.is_over()
}

#[test]
fn a_crash_at_any_call_neither_oversells_nor_strands_stock() {
    let (mut undone, mut done) = (0, 0);
    for arrives in [false, true] {
        for last in 0.. {
            let stores = Stores::new(TEXT, BINDING);
            let first = stores.server();
            fill(&stores, &first, "2");
            stores.pass(2);
            drop(first);
            let life = Life::until(last, arrives);
            if !buy_and_die(&stores, &life) {
                break;
            }
            let place =
                format!("call {last}, which {}", if arrives { "arrives" } else { "does not" });
            // Once the lease has run out, another process finishes the transaction or gives back what it held.
            let sweeper = stores.server();
            stores.pass(60);
            let seen = look(&stores, &sweeper);
            if seen == json!([2, 1, 1, 1]) {
                done += 1;
            } else {
                assert_eq!(seen, json!([2, 0, 2, 0]), "{place}");
                undone += 1;
            }
            assert_eq!(stores.left(), Vec::<String>::new(), "{place}");
            // All seats that are left can be sold, and no more.
            let rest = if seen == json!([2, 1, 1, 1]) { 1 } else { 2 };
            assert_eq!(sell(&stores, &[sweeper], "buy", 4), (rest, 4 - rest), "{place}");
        }
    }
    assert!(undone >= 4 && done >= 4, "{undone} undone, {done} done");
}

/// While a process is only slow, others take it for dead and give back what it holds. It must not sell that seat.
#[test]
fn a_process_that_was_taken_for_dead_sells_nothing_that_was_given_back() {
    for held_up in 0..6 {
        let plan = FaultPlan::scripted([(StoreCall::Commit, held_up, Fault::HeldUp)]);
        let stores = Stores::wrapped(TEXT, BINDING, |_, inner| inner);
        let first = stores.server();
        fill(&stores, &first, "1");
        stores.pass(2);
        drop(first);
        let slow = stores
            .server_over(stores.world.clone(), |_, store| FaultyStore::new(store, plan.clone()));
        stores.world.spawn(Box::pin(async move {
            let _ = call(&slow, &Session::default(), "buy", &EVENT).await;
        }));
        stores.pass(1);
        let other = stores.server();
        stores.pass(60);
        let (sold, _) = sell(&stores, std::slice::from_ref(&other), "buy", 2);
        stores.world.block_on(plan.release());
        stores.pass(60);
        let seen = look(&stores, &other);
        let total = seen[1].as_i64().expect("a number");
        assert_eq!(
            seen,
            json!([1, total, 1 - total, total]),
            "commit {held_up}, {sold} sold by the other"
        );
        assert!((0..=1).contains(&total), "commit {held_up}: {total} seats sold of one");
    }
}
