//! Queries and commands of a store see the writes made before them, and are seen by the reads
//! made after them.

use std::collections::BTreeMap;

use crate::support::Setup;
use mingle_lang::explain::explain;
use serde_json::json;

const PROGRAM: &str = "store notes: causal {
        query lines(note: ref Note) -> int;
        query all() -> list<string>;
        command say(note: ref Note, line: int);
    }
    object Note in notes { key name: string; log: log<int>; count: counter; }
    transaction mixed(note: ref Note) -> int {
        note.log.append(1);
        let first = notes.lines(note);
        notes.say(note, 2);
        let second = note.log.size();
        note.log.append(3);
        return first * 100 + second * 10 + note.log.size();
    }
    transaction many(note: ref Note, count: int) -> list<int> {
        var sizes: list<int> = [];
        var round = 0;
        while round < count {
            notes.say(note, round);
            sizes = sizes + [note.log.size()];
            round += 1;
        }
        return sizes;
    }
    transaction each(names: list<string>) -> int {
        var sum = 0;
        for name in names {
            notes.say(Note[name], 5);
            sum += Note[name].log.size();
        }
        return sum;
    }
    transaction known() -> list<string> { return notes.all(); }";

const BINDING: &str = "[stores.notes.operations]
    lines = \"builtin:size Note.log\"
    all = \"builtin:keys Note\"
    say = \"builtin:append\"";

fn setup() -> Setup {
    Setup::with(PROGRAM, BINDING, &BTreeMap::new())
}

#[test]
fn operations_see_what_was_written_before_them() {
    let setup = setup();
    assert_eq!(setup.ok("mixed", &[("note", "a")]), json!(123));
    assert_eq!(setup.show("Note", "a")["log"], json!([1, 2, 3]));
    assert_eq!(setup.ok("known", &[]), json!(["a"]));
}

#[test]
fn operations_in_loops_see_the_rounds_before() {
    let setup = setup();
    assert_eq!(setup.ok("many", &[("note", "a"), ("count", "4")]), json!([1, 2, 3, 4]));
    assert_eq!(setup.ok("each", &[("names", "[\"p\",\"q\",\"p\"]")]), json!(4));
    assert_eq!(setup.show("Note", "p")["log"], json!([5, 5]));
}

#[test]
fn operations_take_no_more_round_trips_than_explain_says() {
    let setup = setup();
    let checked = mingle_lang::check(PROGRAM);
    let program = checked.program.as_ref().expect("the program is right");
    for (name, arguments, rounds) in [
        ("mixed", vec![("note", "a")], 0),
        ("many", vec![("note", "a"), ("count", "4")], 4),
        ("each", vec![("names", "[\"p\",\"q\",\"p\"]")], 3),
        ("known", vec![], 0),
    ] {
        let report = setup.call(name, &arguments).expect("it runs");
        let plan = program.plan(name).expect("the transaction is there");
        let cost = &explain(&checked.source, program, plan).phases[0].round_trips;
        let loops: u32 = cost.per_iteration.iter().map(|extra| extra.count * rounds).sum();
        let taken = report.phases[0].round_trips;
        assert!(taken <= cost.fixed + loops, "{name}: {taken} round trips, explained as {cost:?}");
    }
}
