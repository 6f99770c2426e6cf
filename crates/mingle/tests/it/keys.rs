//! Calls with a key take effect once, even if processes die, are late or call at the same time.

use std::sync::Arc;
use std::time::Duration;

use crate::support::dying::{Dying, Life};
use crate::support::shared::Stores;
use mingle::{Call, CallKey, CallReport, Database, Error, Session};
use mingle_store::World;
use serde_json::{Value as Json, json};

/// The operations count, so that a repeated one would show. The result of `pay` is known when it first
/// writes; the result of `late` is computed by a later phase.
const TEXT: &str = "store bank: linearizable; store feed: causal; store journal: eventual;
    object Account in bank { key owner: string; balance: int; }
    object Inbox in feed { key owner: string; unread: counter; lines: log<string>; }
    object Day in journal { key name: string; count: counter; }
    transaction pay(to: ref Account, inbox: ref Inbox, day: ref Day) -> int {
        to.balance += 10;
        inbox.unread.add(1);
        day.count.add(1);
        return to.balance;
    }
    transaction late(to: ref Account, inbox: ref Inbox, day: ref Day) -> int {
        to.balance += 10;
        inbox.unread.add(1);
        day.count.add(1);
        return inbox.unread.value();
    }
    transaction quick(to: ref Account) -> int { to.balance += 10; return to.balance; }
    transaction note(inbox: ref Inbox) { inbox.unread.add(1); }
    transaction empty(to: ref Account) -> string {
        require to.balance < 10 else \"there is some\" as rich;
        to.balance += 10;
        return \"ok\";
    }
    transaction many(to: ref Account, doublings: int) -> list<int> {
        to.balance += 10;
        var all = [1000000000000];
        var at = 0;
        while at < doublings { all = all + all; at += 1; }
        return all;
    }
    transaction peek(of: ref Account) -> int { return of.balance; }
    transaction look(of: ref Account, inbox: ref Inbox, day: ref Day) -> list<int> {
        return [of.balance, inbox.unread.value(), day.count.value()];
    }
    ";

const BINDING: &str = "[runtime]\ndeadline = \"3s\"\n[stores.bank]\ndistance = \"20ms\"\n\
    [stores.feed]\nreplicas = 3\ndelay = \"40ms±10ms\"\ndistance = \"1ms\"\n\
    [stores.journal]\nreplicas = 3\ndelay = \"30ms±10ms\"\ndistance = \"1ms\"";

const PAY: [(&str, &str); 3] = [("to", "ana"), ("inbox", "ana"), ("day", "monday")];
const LOOK: [(&str, &str); 3] = [("of", "ana"), ("inbox", "ana"), ("day", "monday")];

async fn keyed(
    server: &Database,
    session: &Session,
    key: &str,
    transaction: &str,
    arguments: &[(&str, &str)],
) -> Result<CallReport, Error> {
    let arguments = server.arguments(transaction, arguments.iter().copied())?;
    let key = Some(CallKey::new("test", key));
    let call = Call { session: session.clone(), key, ..Call::new(transaction, arguments) };
    server.submit(call).await
}

fn again(
    stores: &Stores,
    server: &Database,
    transaction: &str,
    arguments: &[(&str, &str)],
) -> Result<CallReport, Error> {
    stores.world.block_on(keyed(server, &Session::at("r1"), "k", transaction, arguments))
}

/// A process calls, and dies at one of its store calls. Returns true if it made that call.
fn call_and_die(stores: &Stores, life: &Arc<Life>, transaction: &'static str) -> bool {
    let server =
        stores.server_over(stores.world.clone(), |_, store| Dying::within(store, life.clone()));
    stores.world.spawn(Box::pin(async move {
        let _ = keyed(&server, &Session::at("r1"), "k", transaction, &PAY).await;
        server.settle(Duration::from_secs(1)).await;
    }));
    stores.pass(1);
    life.is_over()
}

/// Calls again after each death of the first caller: at once, or after a sweep has finished its
/// transactions. Returns the number of first calls that had taken effect.
fn survives(transaction: &'static str, result: i64, is_swept: bool) -> usize {
    let mut repeated = 0;
    for arrives in [false, true] {
        for last in 0.. {
            let stores = Stores::new(TEXT, BINDING);
            let life = Life::until(last, arrives);
            if !call_and_die(&stores, &life, transaction) {
                break;
            }
            let place = format!("{transaction}, call {last}, arrives: {arrives}");
            let server = stores.server();
            if is_swept {
                stores.pass(60);
            }
            let report = again(&stores, &server, transaction, &PAY);
            let report = report.unwrap_or_else(|error| panic!("{place}: {error}"));
            assert_eq!(server.result_json(transaction, &report), json!(result), "{place}");
            repeated += usize::from(report.is_repeated);
            let seen = stores.ok(&server, &Session::at("r1"), "look", &LOOK);
            assert_eq!(seen, json!([10, 1, 1]), "{place}");
            // Requests that are still on their way do not make it two.
            stores.pass(60);
            let left: Vec<String> = stores.left();
            assert!(left.iter().all(|left| left.contains(": Called ")), "{place}: {left:?}");
            for replica in ["r1", "r2", "r3"] {
                let seen = stores.ok(&server, &Session::at(replica), "look", &LOOK);
                assert_eq!(seen, json!([10, 1, 1]), "{place}, at {replica}");
            }
        }
    }
    repeated
}

#[test]
fn a_call_again_after_a_crash_has_the_first_result() {
    let found = survives("pay", 10, false);
    assert!(found > 5, "{found} calls had taken effect");
}

#[test]
fn a_call_again_after_a_sweep_has_the_first_result() {
    let found = survives("pay", 10, true);
    assert!(found > 5, "{found} calls had taken effect");
}

#[test]
fn a_result_that_a_later_phase_computes_survives_a_crash() {
    for is_swept in [false, true] {
        let found = survives("late", 1, is_swept);
        assert!(found > 5, "{found} calls had taken effect, swept: {is_swept}");
    }
}

#[test]
fn a_call_again_is_answered_from_the_record_and_not_by_what_is_now() {
    let stores = Stores::new(TEXT, BINDING);
    let server = stores.server();
    let to = [("to", "ana")];
    let first = again(&stores, &server, "empty", &to).expect("nothing is there");
    let second = again(&stores, &server, "empty", &to).expect("it is the same call");
    assert!(!first.is_repeated && second.is_repeated);
    assert_eq!(first.result, second.result);
    assert_eq!(second.phases, []);
    // Without the key it is another call.
    let refused = stores.call(&server, &Session::default(), "empty", &to);
    assert!(matches!(refused, Err(Error::Require { .. })), "{refused:?}");
    let mistaken = again(&stores, &server, "empty", &[("to", "bob")]);
    assert_eq!(mistaken, Err(Error::KeyReused));
    assert_eq!(again(&stores, &server, "quick", &to), Err(Error::KeyReused));
    assert_eq!(stores.ok(&server, &Session::default(), "peek", &[("of", "ana")]), json!(10));
}

#[test]
fn of_calls_at_the_same_time_one_takes_effect() {
    let stores = Stores::new(TEXT, BINDING);
    let servers = [stores.server(), stores.server()];
    for (key, transaction, arguments) in
        [("a", "quick", &PAY[..1]), ("b", "pay", &PAY), ("c", "late", &PAY)]
    {
        let before = stores.ok(&servers[0], &Session::at("r1"), "peek", &[("of", "ana")]);
        let results: Vec<Json> = stores.world.block_on(async {
            let calls = (0..8).map(|at| {
                let server = servers[at % 2].clone();
                async move {
                    let session = Session::at("r1");
                    let ended = keyed(&server, &session, key, transaction, arguments).await;
                    let report = ended.unwrap_or_else(|error| panic!("{transaction}: {error}"));
                    server.result_json(transaction, &report)
                }
            });
            join_all(calls).await
        });
        assert!(results.iter().all(|result| *result == results[0]), "{transaction}: {results:?}");
        let after = stores.ok(&servers[0], &Session::at("r1"), "peek", &[("of", "ana")]);
        let (before, after) = (before.as_i64(), after.as_i64());
        assert_eq!(after, before.map(|before| before + 10), "{transaction}");
    }
}

async fn join_all<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    let mut done: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(result) = future.as_mut().poll(context)
            {
                *done = Some(result);
            }
        }
        if done.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[test]
fn at_a_store_with_replicas_a_key_holds_where_the_record_has_got() {
    let stores = Stores::new(TEXT, BINDING);
    let server = stores.server();
    let note = |replica: &str| {
        let session = Session::at(replica);
        let ended = keyed(&server, &session, "k", "note", &[("inbox", "ana")]);
        stores.world.block_on(ended).expect("nothing is in its way").is_repeated
    };
    assert!(!note("r1") && note("r1"));
    stores.pass(1);
    assert!(note("r2") && note("r3"));
    // A session that has seen the first call brings its knowledge along.
    let session = Session::at("r1");
    let one = keyed(&server, &session, "l", "note", &[("inbox", "bob")]);
    assert!(!stores.world.block_on(one).expect("nothing is in its way").is_repeated);
    session.move_to("r3");
    let two = keyed(&server, &session, "l", "note", &[("inbox", "bob")]);
    assert!(stores.world.block_on(two).expect("it waits for the replica").is_repeated);
}

#[test]
fn what_is_old_is_forgotten_and_a_read_leaves_nothing() {
    let stores = Stores::new(TEXT, BINDING);
    let server = stores.server();
    again(&stores, &server, "peek", &[("of", "ana")]).expect("it only reads");
    stores.pass(10);
    assert_eq!(stores.left(), Vec::<String>::new());
    again(&stores, &server, "quick", &[("to", "ana")]).expect("nothing is in its way");
    stores.pass(10);
    let forget = |age| {
        let age = Duration::from_secs(age);
        stores.world.block_on(server.runtime().forget_keys(age)).expect("the stores answer")
    };
    assert_eq!(forget(60), 0);
    assert!(again(&stores, &server, "quick", &[("to", "ana")]).expect("it is kept").is_repeated);
    assert_eq!(forget(5), 1);
    assert_eq!(stores.left(), Vec::<String>::new());
    let report = again(&stores, &server, "quick", &[("to", "ana")]).expect("it is a new call");
    assert!(!report.is_repeated);
    assert_eq!(server.result_json("quick", &report), json!(20));
}

#[test]
fn a_large_result_is_kept_in_parts_and_forgotten_with_them() {
    let stores = Stores::new(TEXT, BINDING);
    let server = stores.server();
    let many = [("to", "ana"), ("doublings", "14")];
    let first = again(&stores, &server, "many", &many).expect("it is long");
    let second = again(&stores, &server, "many", &many).expect("it is kept");
    assert!(second.is_repeated);
    assert_eq!(first.result, second.result);
    stores.pass(10);
    assert!(stores.left().len() > 1, "it is in one part");
    let forgotten = server.runtime().forget_keys(Duration::from_secs(1));
    assert_eq!(stores.world.block_on(forgotten), Ok(1));
    assert_eq!(stores.left(), Vec::<String>::new());
}

#[test]
fn a_result_that_is_too_large_to_keep_is_gone_and_the_effect_stays_one() {
    let stores = Stores::new(TEXT, BINDING);
    let server = stores.server();
    let many = [("to", "ana"), ("doublings", "18")];
    again(&stores, &server, "many", &many).expect("nothing is in its way");
    let second = again(&stores, &server, "many", &many);
    assert_eq!(second, Err(Error::ResultGone { id: None }));
    assert_eq!(stores.ok(&server, &Session::default(), "peek", &[("of", "ana")]), json!(10));
}
