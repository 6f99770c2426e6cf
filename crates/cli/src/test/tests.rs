//! Tests of the runner: it must notice effects that are lost or doubled.

use super::*;

const PROGRAM: &str = "store office: linearizable;
store feed: causal;
object Item in office { key sku: string; stock: int; }
object Feed in feed { key name: string; lines: log<string>; }
transaction stock(sku: string, count: int) -> ref Item { return new Item { sku: sku, stock: count }; }
transaction buy(feed: ref Feed, item: ref Item) -> int {
    require item.stock > 0 else \"sold out\" as sold_out;
    item.stock -= 1;
    feed.lines.append(\"bought\");
    return item.stock;
}
transaction hurry(feed: ref Feed, item: ref Item) {
    require endorse(feed.lines.size() == 0) as linearizable because \"seen here\" else \"too late\" as late;
    item.stock -= 1;
    feed.lines.append(\"bought\");
}";

/// Runs the one test of a text; returns the numbers of seeds and crashes, and the fault.
fn run_text(text: &str, has_keys: bool) -> Result<(u64, u64), String> {
    let program = Arc::new(mingle_lang::check(PROGRAM).program.expect("a good program"));
    let binding = default_binding(&program);
    let replicas = ["east".to_owned(), "west".to_owned()].into();
    let scripts = scripts(&program, &lex(text), &replicas);
    let scripts = scripts.map_err(|found| found[0].title.clone())?;
    let setting = Setting { program: &scripts.program, binding: &binding, has_keys };
    let ended = run_test(&setting, &scripts.scripts[0], &Seeds::default());
    match ended.failed {
        None => Ok((ended.seeds, ended.crashes)),
        Some(Failed { fault, seed }) => {
            let parts = [vec![fault.message], fault.details, fault.crash.into_iter().collect()];
            Err(format!("seed {seed}: {}", parts.concat().join("; ")))
        }
    }
}

const SALE: &str = "test \"a sale\" crash everywhere {
    let tea = stock(\"tea\", 3);
    expect buy(Feed[\"ana\"], tea) == 2;
    expect tea.stock == 2;
    expect Feed[\"ana\"].lines.size() == 1;
}";

#[test]
fn a_crash_at_any_step_loses_and_doubles_nothing() {
    let (seeds, crashes) = run_text(SALE, true).expect("the test passes");
    assert_eq!(seeds, 1);
    assert!(crashes >= 20, "{crashes} places are too few for a transaction over two stores");
}

#[test]
fn a_client_that_repeats_without_a_key_is_noticed() {
    let failed = run_text(SALE, false).expect_err("some crash comes after the first commit");
    assert!(failed.contains("after committing at office"), "{failed}");
}

#[test]
fn concurrent_calls_meet_in_different_orders() {
    let race = |buyers: &str| {
        format!(
            "test \"one left\" {{
                stock(\"pot\", 1);
                client ana at east;
                client bob at west;
                together {{
                    as ana: let first = try {buyers}(Feed[\"x\"], Item[\"pot\"]);
                    as bob: let second = try {buyers}(Feed[\"x\"], Item[\"pot\"]);
                }}
                expect first != second;
            }}"
        )
    };
    assert_eq!(run_text(&race("buy"), true), Ok((SEEDS, 0)));
    // The replicas hear of each other's sales late, and the endorsement says that this is fine.
    let failed = run_text(&race("hurry"), true).expect_err("both are served");
    assert!(failed.contains("this is not so; left:  true; right: true"), "{failed}");
}

#[test]
fn each_order_of_two_calls_occurs() {
    let first = |name: &str| {
        format!(
            "test \"the first one\" {{
                stock(\"pot\", 1);
                together {{
                    let first = try buy(Feed[\"x\"], Item[\"pot\"]);
                    let second = try buy(Feed[\"x\"], Item[\"pot\"]);
                }}
                expect {name};
            }}"
        )
    };
    for name in ["first", "second"] {
        let failed = run_text(&first(name), true).expect_err("the other order occurs");
        assert!(failed.contains("this is not so"), "{failed}");
    }
}

#[test]
fn time_is_virtual_and_replicas_lag_in_it() {
    let late = |wait: &str, size: u32| {
        format!(
            "test \"late\" {{
                stock(\"pot\", 1);
                client bob at west;
                buy(Feed[\"x\"], Item[\"pot\"]);
                {wait}
                as bob: expect Feed[\"x\"].lines.size() == {size};
            }}"
        )
    };
    assert_eq!(run_text(&late("", 0), true), Ok((1, 0)));
    assert_eq!(run_text(&late("wait 2h;", 1), true), Ok((1, 0)));
    assert_eq!(run_text(&late("settle;", 1), true), Ok((1, 0)));
}

#[test]
fn expectations_that_do_not_hold_fail() {
    for (step, expected) in [
        (
            "expect buy(Feed[\"x\"], Item[\"pot\"]) == 7;",
            "`buy` gave another result; result:   0; expected: 7",
        ),
        (
            "expect buy(Feed[\"x\"], Item[\"pot\"]) fails;",
            "`buy` succeeded, and was expected to fail",
        ),
        ("buy(Feed[\"x\"], Item[\"tea\"]);", "`buy` failed: "),
        (
            "buy(Feed[\"x\"], Item[\"pot\"]); expect buy(Feed[\"x\"], Item[\"pot\"]) fails other;",
            "expected to fail with the code `other`, and failed otherwise: sold out [sold_out]",
        ),
        ("expect Item[\"pot\"].stock > 1;", "this is not so; left:  1; right: 1"),
        ("expect Item[\"tea\"].exists();", "this is not so"),
        ("expect (1 == 2) || Item[\"tea\"].exists();", "this is not so"),
    ] {
        let text = format!("test \"t\" {{ stock(\"pot\", 1); {step} }}");
        let failed = run_text(&text, true).expect_err(step);
        assert!(failed.contains(expected), "{step}: {failed}");
    }
}

#[test]
fn mistakes_are_named() {
    for (text, expected) in [
        ("tset \"a\" {}", "expected `test \"NAME\" { … }`, found `tset`"),
        ("test a {}", "expected the name of the test, in quotes, found `a`"),
        ("test \"a\" crash {}", "expected `everywhere`, found `{`"),
        ("test \"a\" seeds 0 {}", "expected a number of seeds, 1 to 100000, found `0`"),
        ("test \"a\" {", "expected a call, `let`"),
        ("test \"a\" { wait 5; }", "expected a time such as"),
        ("test \"a\" { wait 99999999999h; }", "expected a time such as"),
        ("test \"a\" { expect ; }", "expected an expression, found `;`"),
        ("test \"a\" { expect (1 == 1; }", "expected `)`"),
        ("test \"a\" { buy(Feed[\"x\"]); }", "`item` of `buy` is missing"),
        ("test \"a\" { buy(feed: Feed[\"x\"], feed: Feed[\"x\"]); }", "`feed` is given twice"),
        ("test \"a\" { sell(); }", "no transaction is called `sell`"),
        ("test \"a\" { as bob: stock(\"a\", 1); }", "no client is called `bob`"),
        ("test \"a\" { client a; client a; }", "there is already a client `a`"),
        ("test \"a\" { client a at north; }", "no store has a replica `north`"),
        ("test \"a\" { together { expect 1 == 1; } }", "only calls run together"),
        ("test \"a\" { let x = hurry(Feed[\"x\"], Item[\"a\"]); }", "`hurry` has no result"),
        ("test \"a\" { expect stock(1, 2) fails; }", "expected `string`, found `int`"),
        ("test \"a\" { expect Item[\"a\"].stok == 1; }", "no field of `Item` is called `stok`"),
        ("test \"a\" { expect nothing; }", "`nothing`"),
    ] {
        let found = run_text(text, true).expect_err(text);
        assert!(found.contains(expected), "{text}: {found}");
    }
}
