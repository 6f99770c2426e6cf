//! Random transactions that write `unique`s: a split run ends as the plain one, with the same values taken.

use std::sync::Arc;

use mingle_lang::check;
use mingle_lang::generate::Random;
use mingle_lang::plain::{self, Abort, Outside, State};
use mingle_lang::split::Mutation;
use mingle_model::{Ref, Time, Value};
use mingle_runtime::Error;

use crate::harness::{run_split, unique_seed};

const OBJECT: &str = "store shop: linearizable;
object Item in shop {
    key name: string;
    color: int;
    shelf: int;
    place: option<int>;
    count: int;
    unique color;
    unique shelf, place as spot;
    index by count;
}
";

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

/// Returns a random statement; `number` makes its names its own.
fn statement(random: &mut Random, number: usize, depth: usize) -> String {
    let item = format!("Item[\"{}\"]", random.pick(&KEYS));
    let (one, other) = (random.below(7), random.below(3));
    match random.below(if depth == 0 { 14 } else { 17 }) {
        0 => format!("{item}.color = {one};"),
        1 => format!("{item}.color += {other};"),
        2 => format!("{item}.color = Item[\"{}\"].color - {other};", random.pick(&KEYS)),
        3 => format!("{item}.shelf = {other};"),
        4 => format!("{item}.place = some({other});"),
        5 => format!("{item}.place = none;"),
        6 => format!("{item}.place = Item[\"{}\"].place;", random.pick(&KEYS)),
        7 => format!("{item}.count = {one};"),
        8 => format!("put Item {{ name: \"{}\", color: {one} }};", random.pick(&KEYS)),
        9 => format!(
            "put Item {{ name: \"{}\", shelf: {other}, place: some({other}) }};",
            random.pick(&KEYS)
        ),
        10 => format!("new Item {{ color: {one}, shelf: {other} }};"),
        11 => format!("new Item {{ name: \"new {number}\", shelf: {other}, place: some({one}) }};"),
        12 => format!("{item}.delete();"),
        // A query: what was written is sent before it.
        13 => {
            format!("{item}.count = Item.by_count({other}).count(9) + Item.spot({other}).count(9);")
        }
        14 => format!("if {item}.color > {one} {{ {} }}", statement(random, number, depth - 1)),
        15 => format!(
            "for i{number} in [Item[\"a\"], Item[\"c\"], {item}] {{ i{number}.color += {other}; }}"
        ),
        _ => {
            let (inner, more) = (statement(random, number, depth - 1), random.below(9));
            format!("for i{number} in [1, 2] {{ Item[\"b\"].shelf = i{number} + {more}; {inner} }}")
        }
    }
}

/// Returns items that keep the promise.
fn items(random: &mut Random) -> State {
    let mut state = State::default();
    for (at, key) in KEYS.into_iter().enumerate() {
        let item = Ref::new("Item", Value::from(key));
        let at = at as i64;
        if random.one_in(4) {
            continue;
        }
        state.create(&item);
        for (field, value) in
            [(0, Value::Int(at)), (1, Value::Int(at / 2)), (2, Value::some(Value::Int(at % 2)))]
        {
            if !random.one_in(3) {
                state.assign(&item, field, value);
            }
        }
    }
    state
}

#[test]
fn transactions_that_write_uniques_end_as_the_program_says() {
    let (mut done, mut taken) = (0, 0);
    for seed in 0..3_000 {
        let mut random = Random::new(seed);
        let count = 2 + random.below(8);
        let body: Vec<String> =
            (0..count).map(|number| statement(&mut random, number, 2)).collect();
        let text = format!(
            "{OBJECT}transaction t() -> int {{\n{}\nreturn Item.by_color().count(99) * 100 + Item.spot().count(99);\n}}",
            body.join("\n")
        );
        let checked = check(text.as_str());
        let program =
            checked.program.unwrap_or_else(|| panic!("{text}: {:?}", checked.diagnostics));
        let (program, state) = (Arc::new(program), items(&mut random));
        let (split, after_split) = run_split(&program, &[], &state, seed, (Mutation::None, None));
        let mut after_plain = state.clone();
        let plain = plain::run_with(
            &program.checked,
            &program.checked.transactions[0],
            &[],
            &mut after_plain,
            (Time::from_millis(1_000), unique_seed(seed), 1_000_000),
            Outside::default(),
        );
        match (&plain, &split) {
            (Ok(a), Ok(b)) => {
                assert_eq!(a, b, "seed {seed}: {text}");
                done += 1;
            }
            (Err(Abort::Taken(a)), Err(Error::Taken(b))) => {
                assert_eq!(a, b, "seed {seed}: {text}");
                taken += 1;
            }
            (Err(Abort::Exists(a)), Err(Error::Exists(b))) => {
                assert_eq!(a, b, "seed {seed}: {text}");
            }
            _ => panic!("seed {seed}: plain {plain:?}, split {split:?}: {text}"),
        }
        assert_eq!(after_plain.normal(), after_split.normal(), "seed {seed}: {text}");
    }
    assert!(done > 600 && taken > 600, "{done} took effect, {taken} met a value that was taken");
}
