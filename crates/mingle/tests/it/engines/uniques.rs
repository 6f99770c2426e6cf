//! `unique` over PostgreSQL and Redis, in tables and keys of Mingle's own: two processes take the same values, and data
//! that are there.

use mingle::{Binding, Database, Error, OpenError, Session};
use mingle_services::Engine;
use serde_json::json;

use crate::engines::site::{RealSite, block_on, bound, space};
use crate::support::scenarios::Site;

const OBJECT: &str = "store shop: linearizable;
object Item in shop {
    key name: string;
    color: string;
    shelf: int;
    place: option<int>;
    unique color;
    unique shelf, place as spot;
}
";

const TRANSACTIONS: &str = "
transaction paint(item: ref Item, color: string) { item.color = color; }
transaction make(name: string, color: string) { let _ = new Item { name: name, color: color }; }
transaction put_at(item: ref Item, shelf: int, place: int) { item.shelf = shelf; item.place = some(place); }
transaction follow(item: ref Item, from: ref Item) {
    let color = from.color;
    item.shelf = 8;
    from.color = \"\";
    item.color = color;
    from.color = \"last\";
}
transaction swap(one: ref Item, other: ref Item) {
    let color = one.color;
    let next = other.color;
    one.color = \"swapped\";
    other.color = color;
    one.color = next;
}
transaction drop(item: ref Item) { item.delete(); }
";

const READS: &str = "
transaction of_color(color: string) -> int { return Item.by_color(color).count(9); }
transaction at(shelf: int) -> int { return Item.spot(shelf).count(9); }
";

fn text() -> String {
    format!("{OBJECT}{TRANSACTIONS}{READS}")
}

/// Calls a transaction at two processes at once; returns true for each that took effect.
fn both(sites: &[RealSite; 2], name: &str, calls: [&[(&str, &str)]; 2]) -> [bool; 2] {
    let call = async |site: &RealSite, arguments: &[(&str, &str)]| {
        let arguments = site.database.arguments(name, arguments.iter().copied()).expect("they fit");
        match site.database.call(name, arguments, Session::default()).await {
            Ok(_) => true,
            Err(Error::Taken(_)) => false,
            Err(error) => panic!("{name}: {error}"),
        }
    };
    block_on(async {
        let (one, other) = tokio::join!(call(&sites[0], calls[0]), call(&sites[1], calls[1]));
        [one, other]
    })
}

/// A value is taken many times by two processes at once.
pub fn race(sites: &[RealSite; 2], rounds: usize) {
    for round in 0..rounds {
        let (color, shelf) = (format!("color {round}"), round.to_string());
        let [one, other] = ["a", "b"].map(|name| format!("{name} {round}"));
        let names = [[("name", &*one), ("color", &*color)], [("name", &*other), ("color", &color)]];
        let made = both(sites, "make", [&names[0], &names[1]]);
        assert_ne!(made[0], made[1], "round {round}: {made:?}");
        let [one, other] = ["c", "d"].map(|name| format!("{name} {round}"));
        let places = [
            [("item", &*one), ("shelf", &*shelf), ("place", "1")],
            [("item", &*other), ("shelf", &*shelf), ("place", "1")],
        ];
        let placed = both(sites, "put_at", [&places[0], &places[1]]);
        assert_ne!(placed[0], placed[1], "round {round}: {placed:?}");
        assert_eq!(sites[0].ok("of_color", &[("color", &color)]), json!(1), "round {round}");
        assert_eq!(sites[1].ok("at", &[("shelf", &shelf)]), json!(1), "round {round}");
    }
}

/// Values pass from object to object within transactions.
pub fn passes_on(site: &RealSite) {
    site.ok("paint", &[("item", "p"), ("color", "red")]);
    site.ok("paint", &[("item", "q"), ("color", "blue")]);
    let refused = site.call("paint", &[("item", "q"), ("color", "red")]).expect_err("`p` is red");
    assert_eq!(refused.to_string(), "another Item has color \"red\"");
    site.ok("swap", &[("one", "p"), ("other", "q")]);
    assert_eq!(site.show("Item", "p")["color"], json!("blue"));
    site.ok("swap", &[("one", "p"), ("other", "q")]);
    site.ok("follow", &[("item", "r"), ("from", "p")]);
    assert_eq!(site.show("Item", "r")["color"], json!("red"));
    site.ok("drop", &[("item", "r")]);
    site.ok("paint", &[("item", "q"), ("color", "red")]);
    site.ok("make", &[("name", "r"), ("color", "blue")]);
}

fn never_gives_two_objects_one_value(engine: Engine) {
    let Some(binding) = block_on(bound("shop", Some(engine), &space())) else { return };
    let sites = [RealSite::new(&text(), &binding), RealSite::new(&text(), &binding)];
    race(&sites, 25);
    passes_on(&sites[1]);
}

#[test]
fn two_processes_at_postgres_never_give_two_objects_one_value() {
    never_gives_two_objects_one_value(Engine::Postgres);
}

#[test]
fn two_processes_at_redis_never_give_two_objects_one_value() {
    never_gives_two_objects_one_value(Engine::Redis);
}

fn opened(text: &str, binding: &str) -> Result<Database, OpenError> {
    let program = mingle::compile(text).unwrap_or_else(|errors| panic!("{errors}"));
    let binding = Binding::parse(binding).expect("a binding");
    block_on(Database::open(program, &binding, None))
}

/// Opens a program with a `unique` that data break, and that they do not break any more; `code` is that of a write by the
/// process of the earlier program that would break it.
fn refuses_data_that_break_a_new_one(engine: Engine, code: &str) {
    let Some(binding) = block_on(bound("shop", Some(engine), &space())) else { return };
    let plain = OBJECT.lines().filter(|line| !line.trim().starts_with("unique"));
    let plain = plain.collect::<Vec<_>>().join("\n");
    let plain = format!("{plain}\n{TRANSACTIONS}");
    let before = RealSite::new(&plain, &binding);
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        before.ok("paint", &[("item", name), ("color", color)]);
        before.ok("put_at", &[("item", name), ("shelf", "1"), ("place", "2")]);
    }
    let refused = || opened(&text(), &binding).err().expect("it is refused").to_string();
    let error = refused();
    assert!(error.contains("Item[\"a\"] and Item[\"c\"] have the same color: \"red\""), "{error}");
    before.ok("paint", &[("item", "c"), ("color", "green")]);
    let error = refused();
    assert!(
        error.contains("Item[\"a\"] and Item[\"b\"] have the same shelf, place: 1, 2"),
        "{error}"
    );
    // What is deleted has nothing in common with another object.
    before.ok("drop", &[("item", "a")]);
    before.ok("put_at", &[("item", "b"), ("shelf", "2"), ("place", "2")]);
    before.ok("make", &[("name", "d"), ("color", "white")]);
    before.ok("make", &[("name", "e"), ("color", "grey")]);
    let after = RealSite::new(&text(), &binding);
    after.call("paint", &[("item", "b"), ("color", "green")]).expect_err("`c` is green");
    // The process of the earlier program is still there: the database keeps the promise of the later one, or refuses
    // all that the earlier one writes.
    let taken = before.call("paint", &[("item", "b"), ("color", "green")]);
    assert_eq!(taken.expect_err("the index refuses it").code(), code);
    // A program without it that starts takes the index away, and one with it looks again.
    let again = RealSite::new(&plain, &binding);
    again.ok("paint", &[("item", "b"), ("color", "green")]);
    let error = refused();
    assert!(error.contains("Item[\"b\"] and Item[\"c\"] have the same color"), "{error}");
}

#[test]
fn data_at_postgres_that_break_a_new_one_are_refused_with_both_objects() {
    refuses_data_that_break_a_new_one(Engine::Postgres, "constraint_conflict");
}

#[test]
fn data_at_redis_that_break_a_new_one_are_refused_with_both_objects() {
    refuses_data_that_break_a_new_one(Engine::Redis, "store");
}
