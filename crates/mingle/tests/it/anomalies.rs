//! The anomalies that transactions without `isolated` may see, and those that they never see: the table
//! of `docs/promises.md`.

use std::time::Duration;

use crate::support::shared::{Stores, call};
use mingle::{Database, Session};
use mingle_store::test_world::join_all;
use mingle_store::{BoxFuture, World};
use serde_json::{Value as Json, json};

const TEXT: &str = "store a: linearizable; store b: linearizable;
    object A in a { key k: string; x: int; }
    object B in b { key k: string; y: int; }
    ISOLATED transaction first(a: ref A, b: ref B) -> int {
        let seen = a.x;
        b.y = 1;
        return seen;
    }
    ISOLATED transaction second(a: ref A, b: ref B) -> int {
        a.x = 1;
        return b.y;
    }
    ISOLATED transaction write(a: ref A, b: ref B) { a.x = 1; b.y = 1; }
    ISOLATED transaction read(a: ref A, b: ref B) -> list<int> { return [a.x, b.y]; }
    ";

const BINDING: &str = "[runtime]\nhelp_after = \"200ms\"\n\
    [stores.a]\ndistance = \"40ms±38ms\"\n[stores.b]\ndistance = \"60ms±58ms\"";

/// The results of two transactions that begin so many milliseconds apart.
fn apart(isolated: bool, ms: i64, one: &str, other: &str) -> (Json, Json) {
    let text = TEXT.replace("ISOLATED", if isolated { "isolated" } else { "" });
    // Other distances each time, so that possible anomalies occur.
    let stores = Stores::seeded(&text, BINDING, ms.unsigned_abs() * 2 + u64::from(ms < 0));
    let servers = [stores.server(), stores.server()];
    let calls = [(&servers[0], one, -ms), (&servers[1], other, ms)];
    let calls = calls.map(|(server, transaction, pause)| {
        let pause = Duration::from_millis(u64::try_from(pause).unwrap_or(0));
        let sleep = stores.world.sleep(pause);
        let running: BoxFuture<'_, Json> = Box::pin(async move {
            sleep.await;
            run(server, transaction).await
        });
        running
    });
    let [one, other] = <[Json; 2]>::try_from(stores.world.block_on(join_all(calls.into())))
        .expect("there are two");
    stores.pass(60);
    assert_eq!(stores.left(), Vec::<String>::new());
    (one, other)
}

async fn run(server: &Database, transaction: &str) -> Json {
    let arguments = [("a", "k"), ("b", "k")];
    let report = call(server, &Session::default(), transaction, &arguments).await;
    let report = report.unwrap_or_else(|error| panic!("{transaction}: {error}"));
    server.result_json(transaction, &report)
}

fn count(isolated: bool, one: &str, other: &str, anomaly: &(Json, Json)) -> usize {
    (-60..60).filter(|ms| apart(isolated, *ms, one, other) == *anomaly).count()
}

#[test]
fn write_skew_over_two_stores_is_seen_unless_both_are_isolated() {
    let skew = (json!(0), json!(0));
    assert!(count(false, "first", "second", &skew) > 0, "this is what may be seen");
    assert_eq!(count(true, "first", "second", &skew), 0);
}

#[test]
fn old_then_new_is_seen_unless_both_are_isolated() {
    let (old_then_new, new_then_old) = ((json!(null), json!([0, 1])), (json!(null), json!([1, 0])));
    assert!(count(false, "write", "read", &old_then_new) > 0, "this is what may be seen");
    assert_eq!(count(true, "write", "read", &old_then_new), 0);
    for isolated in [false, true] {
        assert_eq!(count(isolated, "write", "read", &new_then_old), 0, "and this never is");
    }
}

const COPIES: &str = "store a: linearizable; store b: snapshot;
    object A in a { key k: string; x: int; }
    object B in b { key k: string; y: int; }
    ISOLATED transaction copy(a: ref A, b: ref B) -> int {
        let seen = endorse(b.y) as linearizable because \"it only grows\";
        a.x = seen;
        return seen;
    }
    ISOLATED transaction grow(b: ref B) { b.y += 1; }
    ";

/// Makes two copies of a value that grows in between; returns true if the older overwrites the younger.
fn copied_back(isolated: bool, number: u64) -> bool {
    let text = COPIES.replace("ISOLATED", if isolated { "isolated" } else { "" });
    let stores = Stores::seeded(&text, BINDING, number);
    let servers = [stores.server(), stores.server(), stores.server()];
    let both = [("a", "k"), ("b", "k")];
    let after = Duration::from_millis(number % 60);
    let calls = [
        ("copy", &both[..], Duration::ZERO),
        ("grow", &both[1..], after),
        ("copy", &both[..], after * 2),
    ];
    let calls = calls.iter().zip(&servers).map(|((transaction, arguments, pause), server)| {
        let sleep = stores.world.sleep(*pause);
        let running: BoxFuture<'_, Json> = Box::pin(async move {
            sleep.await;
            let report = call(server, &Session::default(), transaction, arguments).await;
            let report = report.unwrap_or_else(|error| panic!("{transaction}: {error}"));
            server.result_json(transaction, &report)
        });
        running
    });
    let given = stores.world.block_on(join_all(calls.collect()));
    stores.pass(60);
    assert_eq!(stores.left(), Vec::<String>::new());
    let object = servers[0].object("A", "k").expect("there are such");
    let session = Session::default();
    let shown = stores.world.block_on(servers[0].show(&object, &session, 10)).expect("it answers");
    // One copy has seen 0 and the other 1: in any order of the three transactions, 1 comes last.
    given[0] != given[2] && shown["x"] == json!(0)
}

#[test]
fn an_endorsed_read_is_ordered_as_all_else_is_if_all_are_isolated() {
    let count = |isolated| (0..240).filter(|number| copied_back(isolated, *number)).count();
    assert!(count(false) > 0, "this is what may be seen");
    assert_eq!(count(true), 0);
}

const CHAIN: &str = "store a: linearizable; store b: linearizable;
    object A in a { key k: string; n: int; }
    object B in b { key k: string; n: int; }
    ISOLATED transaction look(x: ref A, y: ref B) -> list<int> { return [x.n, y.n]; }
    ISOLATED transaction even(x: ref A, z: ref A) { x.n = 1; z.n = 1; }
    ISOLATED transaction follow(z: ref A, y: ref B) -> int {
        let seen = z.n;
        y.n = 1;
        return seen;
    }
    ISOLATED transaction only(y: ref B) { y.n = 1; }
    ";

/// A transaction looks at both stores. Another one, which visits the first alone, overwrites what it has seen
/// there. A third one, which comes after that by what it reads or (`by_time`) because it is called once that has
/// been answered, writes the second store. Returns true if the first has seen the third's write and not the
/// second's.
fn goes_round(isolated: bool, by_time: bool, number: u64) -> bool {
    let text = CHAIN.replace("ISOLATED", if isolated { "isolated" } else { "" });
    let stores = Stores::seeded(&text, BINDING, number);
    let servers = [stores.server(), stores.server(), stores.server()];
    let after = Duration::from_millis(number % 60);
    let run = async |at: usize, transaction: &str, arguments: &[(&str, &str)]| {
        let report = call(&servers[at], &Session::default(), transaction, arguments).await;
        let report = report.unwrap_or_else(|error| panic!("{transaction}: {error}"));
        servers[at].result_json(transaction, &report)
    };
    let look: BoxFuture<'_, Json> =
        Box::pin(async { run(0, "look", &[("x", "x"), ("y", "y")]).await });
    let rest: BoxFuture<'_, Json> = Box::pin(async {
        stores.world.sleep(after).await;
        let even: BoxFuture<'_, Json> = Box::pin(run(1, "even", &[("x", "x"), ("z", "z")]));
        if by_time {
            even.await;
            run(2, "only", &[("y", "y")]).await;
            return json!(1);
        }
        let follow: BoxFuture<'_, Json> = Box::pin(async {
            stores.world.sleep(after).await;
            run(2, "follow", &[("z", "z"), ("y", "y")]).await
        });
        join_all(vec![even, follow]).await.swap_remove(1)
    });
    let given = stores.world.block_on(join_all(vec![look, rest]));
    stores.pass(60);
    assert_eq!(stores.left(), Vec::<String>::new());
    given == [json!([0, 1]), json!(1)]
}

#[test]
fn a_chain_over_a_transaction_at_one_store_goes_round_unless_all_are_isolated() {
    for by_time in [false, true] {
        let count = |isolated| (0..240).filter(|n| goes_round(isolated, by_time, *n)).count();
        assert!(count(false) > 0, "this is what may be seen (by time: {by_time})");
        assert_eq!(count(true), 0, "by time: {by_time}");
    }
}
