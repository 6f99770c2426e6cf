//! The formatter on chosen programs, and on random ones with random comments.

mod generate;

use proptest::prelude::*;

use super::format;
use crate::syntax::{Source, lex, parse};

fn formatted(text: &str) -> String {
    let source = lex(text);
    let (program, diagnostics) = parse(&source);
    assert_eq!(diagnostics, [], "{text}");
    format(&source, &program)
}

/// Returns the tree as text, without the spans.
fn shape(source: &Source) -> String {
    let (program, diagnostics) = parse(source);
    assert_eq!(diagnostics, [], "{}", source.text);
    let debug = format!("{program:?}");
    let mut shape = String::new();
    let mut rest = debug.as_str();
    while let Some(at) = rest.find("Span {") {
        shape.push_str(&rest[..at]);
        let end = rest[at..].find('}').expect("a span ends");
        rest = &rest[at + end + 1..];
    }
    shape + rest
}

/// Returns the comments in order, without their slashes: a doc comment that moves becomes a plain
/// comment.
fn comments(source: &Source) -> Vec<&str> {
    let texts = source.trivia.iter().map(|comment| source.trivia_text(*comment));
    texts.map(|text| text.trim_start_matches('/')).collect()
}

/// Checks the properties that hold for every program.
fn check_rules(text: &str) {
    let once = formatted(text);
    assert_eq!(formatted(&once), once, "not idempotent:\n{text}\n---\n{once}");
    let (before, after) = (lex(text), lex(once.as_str()));
    assert_eq!(shape(&before), shape(&after), "{text}\n---\n{once}");
    assert_eq!(comments(&before), comments(&after), "{text}\n---\n{once}");
    assert!(once.is_empty() || once.ends_with('\n') && !once.ends_with("\n\n"));
    assert!(!once.contains("\n\n\n"), "{once}");
    assert!(once.lines().all(|line| line.trim_end() == line), "{once}");
}

/// Checks a source, and returns it and its formatted text.
fn check(text: &str) -> String {
    check_rules(text);
    format!("{text}\n--- formatted ---\n{}", formatted(text))
}

#[test]
fn items() {
    insta::assert_snapshot!(check(
        "level regional between linearizable and causal ;store a:linearizable;
store b : regional; // near


store c: causal{ query by_city(city: string,limit:int)->list<string>;command reset( ); }
/// A user.
/// With a name.
object User in a{key name:string;/// What is left.
left:option<option<int>>= none;  inbox:log < string >;


groups: map<ref User,set<int>>; }
struct P{x:int,y:int}
struct Empty {}
fn f(p:P)->int{p.x+p.y}
fn g(p: P) -> int { let a = p.x; let b = a * 2; a + b }
isolated transaction t() {}
transaction long(first_parameter: ref User, second_parameter: option<list<string>>, third: int) -> int { return 1; }"
    ));
}

#[test]
fn levels_with_several_bounds() {
    let text = "level both between linearizable,snapshot and left , right;";
    check_rules(text);
    assert_eq!(formatted(text), "level both between linearizable, snapshot and left, right;\n");
}

#[test]
fn statements() {
    insta::assert_snapshot!(check(
        "transaction t(u: ref User, n: int) -> int {


    let a = 1; var b: option<int> = some( 2 );
    b=none;  u.left-=1;

    // before the if
    if a>1&&!(n==2){u.inbox.append(\"x\");}else if n<0{}else{b = some(-1);}
    while a < very_long_name_of_a_value_in_the_condition && another_long_name_of_a_value_in_it || third_one { b = none; }
    for k,v in u.groups{ for x in v { } }
    match b { none=>{} , some(x) => { u.left = x; }, }
    require u.left>=0 else \"nothing is left\" as empty;
    require u.left >= some_function_of(n) else \"nothing is left, or what is left is less than asked for\" as empty;
    u.delete();
    return if n > 1 { a } else { b ?? 0 };
}"
    ));
}

#[test]
fn expressions() {
    insta::assert_snapshot!(check(
        "transaction t(u: ref User) {
let a = put User{name:\"ana\",left:1};
let b = new User {  };
let c = put User{name:\"ana\",left:1,another_field: \"with a long value\",a_third_field: [1,2,3], fourth: none};
let d = first_function(with_an_argument, second_function(with_another_argument, and_a_third_one), [1, 2]);
let e = alpha_alpha_alpha + beta_beta_beta * gamma_gamma_gamma - delta_delta_delta + (epsilon_epsilon + 1);
let f = a_rather_long_option_name ?? another_rather_long_option_name ?? a_third_long_name ?? 1;
let g = endorse(u.inbox.size() > 3) as linearizable because \"the count is shown to people, who know that it may lag\";
let h = User[\"ana\"].left+-1- -1 + - x;
let i = if a_long_condition_that_is_true { a_long_value_for_the_first_branch } else if b { 2 } else { 3_000 };
let j = b\"\\x00\"; let k = 1.50e3; let l = \"ü\\u{1F600}\\n\";
f([], S {}, t.now());
}"
    ));
}

#[test]
fn comments_stay_where_they_are() {
    insta::assert_snapshot!(check(
        "// The first line.

// Apart.
/// Documents the store.
store a: causal; // trailing
// own line
object O in a { // of the object
    // before the key
    /// The key.
    key k: string; // of the key
    n: int
    = 0 // before the semicolon
    ;
    // last in the object
}
// between

// far between
transaction t( // of the parameters
    a: int, // of a
    // of b
    b: int // last
) { // of the body
    // first

    // second
    f(a, // one
      b); // after
    let x = // of the value
        a + // plus
        b;
    if x > 1 // of the condition
    {
        // only a comment
    } // of the if
    // before else
    else {
        x; // of x
    }
    match x { // of the match
        // of some
        some(y) => {} // after some
        none => {} // after none
        // last in the match
    }
    return; // the end
    // the very end
}
// after everything"
    ));
}

#[test]
fn nothing_gives_nothing() {
    assert_eq!(formatted(""), "");
    assert_eq!(formatted("\n\n  \n"), "");
    assert_eq!(
        formatted("\n\n// only this\r\n\r\n\r\n\r\n// and this"),
        "// only this\n\n// and this\n"
    );
}

#[test]
fn docs_in_odd_places_document_nothing_else() {
    check_rules(
        "store a /// one\n: causal /// two\n; /// three\nobject O in a { key /// four\n k: int /// five\n ; /// six\n n: int; }",
    );
    check_rules(
        "/// a\ntransaction /// b\nt( /// c\na: int /// d\n, b: int /// e\n) /// f\n{ /// g\n} /// h",
    );
}

#[test]
fn deep_nesting_is_laid_out() {
    let open = "f(".repeat(100);
    let close = ")".repeat(100);
    check_rules(&format!(
        "transaction t() {{ let x = {open}1{close}; {} }}",
        "if a {".repeat(50) + &"}".repeat(50)
    ));
    check_rules(&format!("fn f() -> int {{ 1{} }}", " + 1".repeat(200)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_keep_the_rules(
        choices in prop::collection::vec(any::<u16>(), 0..300),
        blanks in prop::collection::vec(0_u8..40, 1..200),
    ) {
        let tokens = generate::program(choices);
        check_rules(&generate::spaced(&tokens, &blanks));
    }
}
