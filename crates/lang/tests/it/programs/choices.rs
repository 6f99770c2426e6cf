//! Operators that send a query only if their first operand requires it: `&&`, `||`, `??` and `if`.

use super::common::shown;
use mingle_lang::check;
use mingle_lang::explain::{Explained, explain};

const DECLARED: &str = "store strong: linearizable { query known(a: ref S) -> option<int>; }
    store other: linearizable { query count(b: ref O) -> option<int>; }
    store weak: causal { query exact(b: ref W) -> int; query maybe(b: ref W) -> option<int>; }
    object S in strong { key id: string; n: int; flag: bool; }
    object O in other { key id: string; n: int; }
    object W in weak { key id: string; n: int; flag: bool; m: option<int>; }
    fn asked(b: ref W) -> int { weak.exact(b) + 1 }\n";

fn explained(transaction: &str) -> Explained {
    let checked = check(format!("{DECLARED}{transaction}"));
    let program = checked.program.as_ref().unwrap_or_else(|| panic!("{}", shown(&checked)));
    explain(&checked.source, program, &program.plans[0])
}

/// Returns the number of fetches of a query outside and within branches.
fn asked(explained: &Explained, query: &str) -> (usize, usize) {
    let lines = explained.phases.iter().flat_map(|phase| &phase.code);
    let fetches =
        lines.filter(|line| line.trim_start().starts_with("fetch") && line.contains(query));
    let (within, at_once): (Vec<_>, Vec<_>) = fetches.partition(|line| line.starts_with(' '));
    (at_once.len(), within.len())
}

fn check_asked(transaction: &str, query: &str, expected: (usize, usize)) {
    let explained = explained(transaction);
    assert_eq!(asked(&explained, query), expected, "{transaction}\n{explained:#?}");
}

#[test]
fn a_query_is_asked_only_if_its_operand_counts() {
    for condition in [
        "b.n > 9 && weak.exact(b) > 9",
        "b.flag || weak.exact(b) > 9",
        "(b.m ?? weak.exact(b)) > 9",
        "(b.m ?? weak.maybe(b)).is_some()",
        "(if b.flag { weak.exact(b) } else { 3 }) > 9",
        "(if b.flag { 3 } else { weak.exact(b) }) > 9",
        "b.flag && (b.n > 3 && (weak.maybe(b) ?? 0) > 9)",
    ] {
        let transaction = format!("transaction t(b: ref W) {{ if {condition} {{ b.n = 1; }} }}");
        check_asked(&transaction, "weak.", (0, 1));
    }
}

#[test]
fn a_query_in_a_function_is_asked_only_if_its_operand_counts() {
    let transaction = "transaction t(b: ref W) { if b.n > 9 && asked(b) > 9 { b.n = 1; } }";
    check_asked(transaction, "weak.", (0, 1));
}

#[test]
fn explain_shows_what_decides() {
    for (condition, shown) in [
        ("b.n > 9 && weak.exact(b) > 9", "if b.n > 9 {"),
        ("(b.m ?? weak.exact(b)) > 9", "if b.m is some {"),
    ] {
        let explained =
            explained(&format!("transaction t(b: ref W) {{ if {condition} {{ b.n = 1; }} }}"));
        assert!(explained.phases[0].code.iter().any(|line| line == shown), "{explained:#?}");
    }
}

#[test]
fn other_reads_go_out_together() {
    let transaction = "transaction t(b: ref W) { if b.n > 9 && b.flag { b.n = 1; } }";
    let explained = explained(transaction);
    assert_eq!(explained.phases[0].code[0], "fetch b.n, b.flag");
}

/// MixT's Figure 13: the exact size is queried only if the near size has reached the goal. Endorsed
/// values are read before any write, so the query may fail.
#[test]
fn an_endorsed_condition_asks_only_if_it_must() {
    let transaction = "transaction t(a: ref S, b: ref W) {
        if endorse(b.n >= 9 && weak.exact(b) >= 9) as linearizable because \"it only grows\" {
            a.n = 1;
        }
        b.n += 1;
    }";
    check_asked(transaction, "exact", (0, 1));
    let explained = explained(transaction);
    // The query is a separate round trip at its place, and counted as one.
    assert_eq!(explained.phases[0].round_trips.fixed, 2);
}

/// The left side must not decide the queries to a stronger store, so the query is sent beforehand.
#[test]
fn a_weaker_operand_decides_nothing() {
    let transaction = "transaction t(a: ref S, b: ref W) {
        if b.n > 9 && strong.known(a).is_some() { b.n = 1; }
    }";
    check_asked(transaction, "known", (1, 0));
    // The same holds inside an endorsement.
    let transaction = "transaction t(a: ref S, b: ref W) {
        if endorse(b.n > 9 && strong.known(a).is_some()) as linearizable because \"so\" {
            a.n = 1;
        }
    }";
    check_asked(transaction, "known", (1, 0));
}

/// Stores of one level: the query's store is visited first for another reason.
#[test]
fn an_order_of_stores_is_kept() {
    let decided =
        "transaction t(a: ref S, b: ref O) -> bool { return a.flag && other.count(b).is_some(); }";
    check_asked(decided, "count", (0, 1));
    let transaction = "transaction t(a: ref S, b: ref O) -> bool {
        let both = a.flag && other.count(b).is_some();
        a.n = b.n;
        return both;
    }";
    check_asked(transaction, "count", (1, 0));
    let isolated = "isolated transaction t(a: ref S, b: ref O) -> bool {
        return b.n > 3 && strong.known(a).is_some();
    }";
    check_asked(isolated, "known", (1, 0));
}

/// The path to an endorsement inside is decided before everything else, so the endorsement does not
/// wait.
#[test]
fn an_endorsement_inside_is_computed_beforehand() {
    let transaction = "transaction t(a: ref S, b: ref W) {
        if a.flag && endorse(weak.maybe(b).is_some()) as linearizable because \"so\" { a.n = 1; }
    }";
    check_asked(transaction, "maybe", (1, 0));
}

#[test]
fn what_an_operand_depends_on_is_the_same() {
    // The chosen value depends on both sides, as before.
    let checked = check(format!(
        "{DECLARED}transaction t(a: ref S, b: ref W) {{ a.flag = b.flag && (weak.maybe(b) ?? 0) > 1; }}"
    ));
    let codes: Vec<&str> = checked.diagnostics.iter().map(|found| found.code.text()).collect();
    assert!(codes.contains(&"M0301"), "{}", shown(&checked));
}
