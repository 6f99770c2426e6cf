//! `unique` over the embedded engine: the promise holds however many calls write at once, and over all data that a
//! program finds.

use std::path::Path;
use std::time::Duration;

use mingle::{Binding, Database, Error, OpenError, Session, check_binding};
use mingle_model::Value;
use mingle_store::BoxFuture;
use mingle_store_embedded::OpenError::Locked;
use serde_json::json;

use crate::support::shared::{Stores, call};

const TEXT: &str = "store shop: snapshot;
object Item in shop {
    key name: string;
    color: string;
    shelf: int;
    place: option<int>;
    unique color;
    unique shelf, place as spot;
}
transaction paint(item: ref Item, color: string) { item.color = color; }
transaction make(name: string, color: string) { let _ = new Item { name: name, color: color }; }
transaction put_at(item: ref Item, shelf: int, place: int) { item.shelf = shelf; item.place = some(place); }
transaction drop(item: ref Item) { item.delete(); }
transaction follow(item: ref Item, from: ref Item) {
    let color = from.color;
    from.shelf = 7;
    item.shelf = 8;
    from.color = \"\";
    item.color = color;
    from.delete();
    from.color = \"last\";
}
transaction all_to(color: string, items: list<ref Item>) { for item in items { item.color = color + item.name; } }
transaction of_color(color: string) -> int { return Item.by_color(color).count(9); }
transaction at(shelf: int) -> int { return Item.spot(shelf).count(9); }
";

const TIMES: usize = 12;

/// Calls a transaction for several items at once; returns the numbers of calls that took effect and that met a value
/// which another object has.
fn at_once(
    stores: &Stores,
    arguments: &[Vec<(&'static str, String)>],
    name: &'static str,
) -> (usize, usize) {
    let servers = [stores.server(), stores.server()];
    let calls = arguments.iter().enumerate().map(|(number, arguments)| {
        let (server, arguments) = (servers[number % 2].clone(), arguments.clone());
        let calling: BoxFuture<'static, Result<(), Error>> = Box::pin(async move {
            let arguments: Vec<(&str, &str)> =
                arguments.iter().map(|(name, value)| (*name, &**value)).collect();
            call(&server, &Session::default(), name, &arguments).await.map(|_| ())
        });
        calling
    });
    let calls = calls.collect();
    let (mut done, mut taken) = (0, 0);
    for end in stores.world.block_on(mingle_store::test_world::join_all(calls)) {
        match end {
            Ok(()) => done += 1,
            Err(Error::Taken(_)) => taken += 1,
            Err(error) => panic!("{name}: {error}"),
        }
    }
    (done, taken)
}

#[test]
fn of_many_calls_at_once_one_gets_the_value() {
    for seed in 0..8 {
        let binding = "[runtime]\ndeadline = \"60s\"\n[stores.shop]\ndistance = \"20ms\"";
        let stores = Stores::seeded(TEXT, binding, seed);
        for round in 0..TIMES {
            let color = format!("color {round}");
            let (item, text) = (|at: usize| format!("item {round} {at}"), color.clone());
            // Two items are there already, two are new.
            let painted = (0..2).map(|at| vec![("item", item(at)), ("color", text.clone())]);
            assert_eq!(
                at_once(&stores, &painted.collect::<Vec<_>>(), "paint"),
                (1, 1),
                "seed {seed}"
            );
            let made = (2..4).map(|at| vec![("name", item(at)), ("color", text.clone())]);
            assert_eq!(at_once(&stores, &made.collect::<Vec<_>>(), "make"), (0, 2), "seed {seed}");
            let placed = (0..3).map(|at| {
                vec![("item", item(at)), ("shelf", round.to_string()), ("place", "1".to_owned())]
            });
            assert_eq!(
                at_once(&stores, &placed.collect::<Vec<_>>(), "put_at"),
                (1, 2),
                "seed {seed}"
            );
            let server = stores.server();
            let found = stores.ok(&server, &Session::default(), "of_color", &[("color", &color)]);
            assert_eq!(found, json!(1), "seed {seed}");
        }
    }
}

#[test]
fn what_a_transaction_frees_it_can_give_at_once() {
    let stores = Stores::new(TEXT, "");
    let server = stores.server();
    let session = Session::default();
    stores.ok(&server, &session, "paint", &[("item", "a"), ("color", "red")]);
    let refused = stores.call(&server, &session, "paint", &[("item", "b"), ("color", "red")]);
    let refused = refused.expect_err("`a` is red");
    assert_eq!((refused.code(), refused.is_retryable()), ("taken", false));
    assert_eq!(refused.to_string(), "another Item has color \"red\"");
    stores.ok(&server, &session, "follow", &[("item", "b"), ("from", "a")]);
    stores.ok(&server, &session, "paint", &[("item", "b"), ("color", "red")]);
    let refused = stores.call(&server, &session, "paint", &[("item", "c"), ("color", "last")]);
    assert_eq!(refused.expect_err("`a` has it").code(), "taken");
    stores.ok(&server, &session, "drop", &[("item", "b")]);
    stores.ok(&server, &session, "paint", &[("item", "c"), ("color", "red")]);
    let items = "[\"x\", \"y\", \"x\"]";
    stores.ok(&server, &session, "all_to", &[("color", "c-"), ("items", items)]);
    let found = stores.ok(&server, &session, "of_color", &[("color", "c-x")]);
    assert_eq!(found, json!(1));
}

async fn open(folder: &Path, text: &str) -> Result<Database, OpenError> {
    let program = mingle::compile(text).unwrap_or_else(|errors| panic!("{errors}"));
    let binding = Binding::parse("[stores.shop]").expect("a binding");
    loop {
        match Database::open(program.clone(), &binding, Some(folder)).await {
            // Tasks of the earlier database release the folder a little later than the test does.
            Err(OpenError::Embedded(Locked { .. })) => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            opened => return opened,
        }
    }
}

async fn paint(folder: &Path, text: &str, name: &str, color: &str) -> Result<(), Error> {
    let database = open(folder, text).await.unwrap_or_else(|error| panic!("{error}"));
    let item = Value::Ref(mingle_model::Ref::new("Item", Value::from(name)));
    database.call("paint", vec![item, Value::from(color)], Session::default()).await.map(|_| ())
}

/// Returns the program without what begins with one of these words.
fn without(words: &[&str]) -> String {
    let kept = TEXT.lines().filter(|line| !words.iter().any(|word| line.trim().starts_with(word)));
    kept.collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn data_that_breaks_a_new_one_are_refused_with_both_objects() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let plain = without(&["unique", "transaction of", "transaction at"]);
    let indexed = plain.replace("place: option<int>;", "place: option<int>; index by color;");
    for (text, name, color) in
        [(&plain, "a", "red"), (&plain, "b", "blue"), (&indexed, "c", "red"), (&plain, "d", "red")]
    {
        paint(folder, text, name, color).await.expect("any color will do");
    }
    for _ in 0..2 {
        let Err(error) = open(folder, TEXT).await else { panic!("two items are red") };
        assert!(error.is_misconfiguration(), "{error}");
        let expected = "Item[\"a\"] and Item[\"c\"] have the same color: \"red\". The program declares `unique color`";
        assert!(error.to_string().contains(expected), "{error}");
    }
    paint(folder, &plain, "c", "green").await.expect("any color will do");
    let error = open(folder, TEXT).await.err().expect("two items are still red").to_string();
    assert!(error.contains("Item[\"a\"] and Item[\"d\"]"), "{error}");
    paint(folder, &indexed, "d", "brown").await.expect("any color will do");
    paint(folder, TEXT, "e", "black").await.expect("no item is black");
    assert_eq!(paint(folder, TEXT, "f", "black").await.expect_err("`e` is").code(), "taken");
    // A program without it promises nothing, and one with it looks again.
    paint(folder, &plain, "f", "black").await.expect("any color will do");
    let error = open(folder, TEXT).await.err().expect("two items are black").to_string();
    assert!(error.contains("Item[\"e\"] and Item[\"f\"]"), "{error}");
}

#[test]
fn stores_without_indexes_are_refused_with_a_way_out() {
    let program = mingle::compile(TEXT).expect("it compiles");
    let binding = "[stores.shop]\nengine = \"mingled\"\naddress = \"127.0.0.1:6500\"";
    let binding = Binding::parse(binding).expect("a binding");
    let error = check_binding(&program, &binding).expect_err("mingled keeps no index").to_string();
    assert!(error.contains("has a `unique`") && error.contains("the key of an object"), "{error}");
}
