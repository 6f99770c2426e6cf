//! The measured round trips equal the numbers of `explain`.

use crate::support::Setup;
use mingle_lang::explain::explain;

/// Calls a transaction whose loops run so many rounds, and compares the round trips at each store
/// with the numbers of `explain`.
fn check(
    text: &str,
    prepare: &[(&str, &[(&str, &str)])],
    transaction: &str,
    arguments: &[(&str, &str)],
    rounds: u64,
) {
    let setup = Setup::new(text);
    for (transaction, arguments) in prepare {
        setup.ok(transaction, arguments);
    }
    let before: Vec<(String, u64)> =
        setup.counters.keys().map(|store| (store.clone(), setup.round_trips(store))).collect();
    let report = setup.call(transaction, arguments).unwrap_or_else(|error| panic!("{error}"));
    let checked = mingle_lang::check(text);
    let program = checked.program.as_ref().expect("the program is right");
    let plan = program.plan(transaction).expect("the transaction is there");
    let explained = explain(&checked.source, program, plan);
    for (phase, reported) in explained.phases.iter().zip(&report.phases) {
        let store = phase.store.clone().expect("every phase here visits a store");
        let loops: u64 = phase
            .round_trips
            .per_iteration
            .iter()
            .map(|cost| u64::from(cost.count) * rounds.div_ceil(u64::from(cost.iterations)))
            .sum();
        let predicted = u64::from(phase.round_trips.fixed) + loops;
        assert_eq!(u64::from(reported.round_trips), predicted, "{store} in {transaction}");
        let at_start =
            before.iter().find(|(name, _)| *name == store).map_or(0, |(_, count)| *count);
        assert_eq!(
            setup.round_trips(&store) - at_start,
            predicted,
            "counted at {store} in {transaction}"
        );
    }
}

const STORES: &str = "store bank: linearizable; store feed: causal;
    object A in bank { key k: string; n: int; next: ref A; s: set<ref B>; l: list<string>; c: counter; }
    object B in feed { key k: string; n: int; next: ref B; s: set<int>; g: log<int>; }\n";

#[test]
fn reads_with_known_refs_go_out_together() {
    let text = format!(
        "{STORES} transaction t(a: ref A, b: ref A) -> int {{ let x = a.n; let y = b.n; let z = A[\"q\"].c.value(); return x + y + z; }}"
    );
    check(&text, &[], "t", &[("a", "x"), ("b", "y")], 0);
    let explained = {
        let checked = mingle_lang::check(text.as_str());
        let program = checked.program.clone().expect("the program is right");
        explain(&checked.source, &program, &program.plans[0])
    };
    assert_eq!(explained.phases[0].round_trips.fixed, 1);
}

#[test]
fn a_chain_of_refs_takes_a_trip_for_each() {
    let text = format!(
        "{STORES} transaction t(a: ref A) -> int {{ return a.next.next.n; }}
        transaction link(a: ref A, b: ref A) {{ a.next = b; }}"
    );
    let prepare: &[(&str, &[(&str, &str)])] =
        &[("link", &[("a", "x"), ("b", "y")]), ("link", &[("a", "y"), ("b", "z")])];
    check(&text, prepare, "t", &[("a", "x")], 0);
}

#[test]
fn writes_go_out_with_the_commit() {
    let text = format!(
        "{STORES} transaction t(a: ref A) {{ a.n += 1; a.c.add(2); A[\"w\"].n = 5; B[\"w\"].n = a.n; }}"
    );
    check(&text, &[], "t", &[("a", "x")], 0);
}

#[test]
fn a_loop_fetches_in_chunks() {
    let text = format!(
        "{STORES} transaction fill(a: ref A, names: list<string>) {{ for name in names {{ a.s.insert(B[name]); }} }}
         transaction t(a: ref A) -> int {{ var sum = 0; for b in a.s {{ sum += b.n; }} return sum; }}
         transaction u(a: ref A) -> int {{ var sum = 0; for b in a.s {{ sum += b.next.n; }} return sum; }}"
    );
    let names: Vec<String> = (0..2_500).map(|number| format!("b{number}")).collect();
    let names = serde_json::to_string(&names).expect("strings are JSON");
    let prepare: &[(&str, &[(&str, &str)])] = &[("fill", &[("a", "x"), ("names", &names)])];
    check(&text, prepare, "t", &[("a", "x")], 2_500);
    // The second ref of each round is known only after the read of the first.
    let text = text
        .replace("transaction t(", "transaction unused(")
        .replace("transaction u(", "transaction t(");
    let few = "[\"p\", \"q\", \"r\"]";
    let prepare: &[(&str, &[(&str, &str)])] = &[("fill", &[("a", "x"), ("names", few)])];
    // All three name the same next object, which is read once.
    let setup = Setup::new(&text);
    for (transaction, arguments) in prepare {
        setup.ok(transaction, arguments);
    }
    let report = setup.call("t", &[("a", "x")]).expect("it runs");
    assert_eq!(report.phases[1].round_trips, 2);
}

#[test]
fn what_a_loop_reads_of_an_earlier_phase_is_fetched_in_chunks_too() {
    let text = "store bank: linearizable; store feed: causal;
        object A in bank { key k: string; owner: ref B; }
        object B in feed { key k: string; n: int; }
        transaction own(a: ref A, b: ref B) { a.owner = b; }
        transaction t(list: list<ref A>) -> int { var sum = 0; for a in list { sum += a.owner.n; } return sum; }";
    let names: Vec<String> = (0..1_200).map(|number| format!("a{number}")).collect();
    let names = serde_json::to_string(&names).expect("strings are JSON");
    let setup = Setup::new(text);
    for number in 0..1_200 {
        setup.ok("own", &[("a", &format!("a{number}")), ("b", &format!("b{number}"))]);
    }
    let report = setup.call("t", &[("list", &names)]).expect("it runs");
    let trips: Vec<u32> = report.phases.iter().map(|phase| phase.round_trips).collect();
    assert_eq!(trips, [2, 2]);
    check(text, &[], "t", &[("list", "[\"p\", \"q\"]")], 2);
}

#[test]
fn a_size_after_own_writes_asks_which_of_them_are_new() {
    let text =
        format!("{STORES} transaction t(b: ref B) -> int {{ b.s.insert(1); return b.s.size(); }}");
    check(&text, &[], "t", &[("b", "x")], 0);
}

#[test]
fn branches_pay_for_what_they_read() {
    let text = format!(
        "{STORES} transaction t(a: ref A) -> int {{ if a.n > 0 {{ return 0; }} return a.c.value() + A[\"q\"].n; }}"
    );
    check(&text, &[], "t", &[("a", "x")], 0);
}

#[test]
fn the_examples_take_what_explain_says() {
    let text = include_str!("../../../../examples/message_groups.mingle");
    let prepare: &[(&str, &[(&str, &str)])] = &[
        ("create_user", &[("name", "ana")]),
        ("join_group", &[("user", "ana"), ("group", "rust")]),
        ("add_post", &[("group", "rust"), ("post", "hello")]),
    ];
    check(text, prepare, "add_post", &[("group", "rust"), ("post", "again")], 1);
    check(text, prepare, "join_group", &[("user", "bob"), ("group", "rust")], 1);
    check(text, prepare, "check_inbox", &[("user", "ana")], 1);
    check(text, prepare, "create_user", &[("name", "eve")], 1);
}

const ITEMS: &str = "store shop: linearizable;
    object Item in shop { key name: string; color: string; shelf: int; place: option<int>; unique color; unique shelf, place; }
    transaction make(name: string, color: string) { let _ = new Item { name: name, color: color }; }
    transaction shelve(item: ref Item, shelf: int) { item.shelf = shelf; }
    transaction move(item: ref Item, place: int) { item.place = some(place); }
    transaction all(items: list<ref Item>) { for item in items { item.color = \"new \" + item.name; } }
    transaction both(one: ref Item, other: ref Item) { one.color = \"1\"; other.color = \"2\"; }";

#[test]
fn a_check_of_a_unique_is_read_with_everything_else() {
    check(ITEMS, &[], "make", &[("name", "a"), ("color", "red")], 0);
    let prepare: &[(&str, &[(&str, &str)])] = &[("make", &[("name", "a"), ("color", "red")])];
    let shelved: &[(&str, &[(&str, &str)])] = &[("shelve", &[("item", "a"), ("shelf", "1")])];
    check(ITEMS, shelved, "move", &[("item", "a"), ("place", "3")], 0);
    check(ITEMS, prepare, "all", &[("items", "[\"a\", \"b\", \"c\"]")], 3);
    check(ITEMS, prepare, "both", &[("one", "a"), ("other", "b")], 0);
}
