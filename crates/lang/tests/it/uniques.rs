//! `unique` in objects: its meaning in the plain interpreter, its rules, and mistakes.

use mingle_lang::diagnostic::Diagnostic;
use mingle_lang::explain::{explain, render};
use mingle_lang::format::format;
use mingle_lang::plain::{Abort, State, run};
use mingle_lang::syntax::{lex, parse};
use mingle_lang::{apply_edits, check};
use mingle_model::{Ref, Time, Value};

const OBJECTS: &str = "store shop: linearizable;
object Item in shop {
    key name: string;
    color: string = \"gray\";
    shelf: int;
    place: option<int>;
    count: int;
    unique color;
    unique shelf, place as spot;
    unique count;
}
";

fn item(name: &str) -> Ref {
    Ref::new("Item", Value::from(name))
}

/// Runs statements over items `a`, which is red and at place 2 of shelf 1, and `b`, which has no place.
fn ran(statements: &str) -> Result<State, String> {
    let text = format!(
        "{OBJECTS}transaction t(a: ref Item, b: ref Item, no: option<int>) {{ {statements} }}"
    );
    let checked = check(text.as_str());
    let program = checked.program.unwrap_or_else(|| panic!("{text}: {:?}", checked.diagnostics));
    let mut state = State::default();
    let field = |name: &str| {
        program.schema().objects["Item"].field_index(name).expect("a field of it") as u16
    };
    state.assign(&item("a"), field("color"), Value::from("red"));
    state.assign(&item("a"), field("shelf"), Value::Int(1));
    state.assign(&item("a"), field("place"), Value::some(Value::Int(2)));
    state.create(&item("b"));
    let arguments = [Value::Ref(item("a")), Value::Ref(item("b")), Value::NONE];
    let transaction = &program.checked.transactions[0];
    let before = state.clone();
    match run(&program.checked, transaction, &arguments, &mut state, Time::default(), 1, 10_000) {
        Ok(_) => Ok(state),
        Err(Abort::Taken(taken)) => {
            assert_eq!(state, before, "{statements}");
            Err(taken.to_string())
        }
        Err(other) => panic!("{statements}: {other:?}"),
    }
}

#[track_caller]
fn runs(statements: &str) {
    ran(statements).unwrap_or_else(|taken| panic!("{statements}: {taken}"));
}

#[track_caller]
fn is_taken(statements: &str, message: &str) {
    assert_eq!(ran(statements).err().as_deref(), Some(message), "{statements}");
}

#[test]
fn no_two_objects_get_the_same_value() {
    is_taken("b.color = \"red\";", "another Item has color \"red\"");
    is_taken("put Item { name: \"b\", color: \"red\" };", "another Item has color \"red\"");
    is_taken("let _ = new Item { name: \"c\", color: \"red\" };", "another Item has color \"red\"");
    is_taken("let _ = new Item { color: \"red\" };", "another Item has color \"red\"");
    is_taken("b.color = \"r\"; b.color += \"ed\";", "another Item has color \"red\"");
    is_taken("a.count = 1; b.count += 1;", "another Item has count 1");
    runs("b.color = \"blue\";");
}

#[test]
fn an_object_may_have_its_own_values() {
    runs("a.color = \"red\";");
    runs("put Item { name: \"a\", color: \"red\", shelf: 1, place: some(2) };");
    runs("a.place = some(2); a.shelf = 1;");
}

#[test]
fn all_fields_of_it_count_together() {
    runs("b.shelf = 1;");
    runs("b.shelf = 1; b.place = some(3);");
    is_taken("b.shelf = 1; b.place = some(2);", "another Item has shelf 1 and place 2");
    is_taken("b.place = some(2); b.shelf = 1;", "another Item has shelf 1 and place 2");
    is_taken(
        "put Item { name: \"b\", shelf: 1, place: some(2) };",
        "another Item has shelf 1 and place 2",
    );
    // The object has the shelf, and gets the place.
    is_taken(
        "b.shelf = 1; put Item { name: \"b\", place: some(2) };",
        "another Item has shelf 1 and place 2",
    );
    runs("let _ = new Item { name: \"c\", shelf: 1 };");
    // The shelf of `b` was never written: 0 is only its default.
    runs("a.shelf = 0; b.place = some(2);");
}

#[test]
fn what_is_none_or_was_never_written_is_never_taken() {
    runs("b.shelf = 1; a.place = none; b.place = none;");
    runs("b.shelf = 1; a.place = no; b.place = no;");
    runs("a.place = none; b.shelf = 1; b.place = some(2);");
    // The default of `color` is the same for both.
    runs("let _ = new Item { name: \"c\" }; let _ = new Item { name: \"d\" };");
    is_taken(
        "b.color = \"gray\"; let _ = new Item { color: \"gray\" };",
        "another Item has color \"gray\"",
    );
}

#[test]
fn a_statement_sees_those_before_it() {
    runs("a.color = \"blue\"; b.color = \"red\";");
    runs("a.delete(); b.color = \"red\";");
    runs("a.delete(); a.shelf = 1; b.color = \"red\";");
    is_taken("b.color = \"blue\"; a.color = \"blue\";", "another Item has color \"blue\"");
    // Values are swapped by way of another one.
    is_taken(
        "b.color = \"blue\"; a.color = \"blue\"; b.color = \"red\";",
        "another Item has color \"blue\"",
    );
    runs("b.color = \"blue\"; a.color = \"\"; b.color = \"red\"; a.color = \"blue\";");
}

#[test]
fn it_is_read_as_any_index() {
    let text = format!(
        "{OBJECTS}transaction t(c: string) -> list<ref Item> {{ let _ = Item.spot(1).before(5).count(9); return Item.by_color(c).first(1); }}"
    );
    assert!(check(text).program.is_some());
}

#[track_caller]
fn codes(text: &str, expected: &[&str]) -> Vec<Diagnostic> {
    let checked = check(text);
    let errors: Vec<_> = checked
        .diagnostics
        .into_iter()
        .filter(|found| found.code.text().starts_with('M'))
        .collect();
    let found: Vec<&str> = errors.iter().map(|found| found.code.text()).collect();
    assert_eq!(found, expected, "{text}");
    errors
}

#[test]
fn only_stores_that_can_keep_it_may_have_one() {
    for (level, expected) in [
        ("linearizable", &[][..]),
        ("snapshot", &[]),
        ("near", &[]),
        ("causal", &["M0608"]),
        ("eventual", &["M0608"]),
        ("far", &["M0608"]),
    ] {
        let text = format!(
            "level near between linearizable and snapshot; level far between linearizable and causal; store shop: {level};
object Item in shop {{ key name: string; color: string; unique color; }}
transaction t(i: ref Item) -> int {{ i.color = \"red\"; return Item.by_color(\"red\").count(1); }}"
        );
        for found in codes(&text, expected) {
            assert!(found.title.starts_with("`unique color` at `shop` ("), "{}", found.title);
            let index = apply_edits(&lex(&text), &found.help[0].edits);
            assert!(index.contains("string; index by color; }"), "{index}");
        }
    }
}

const TWO: &str = "store bank: linearizable;
store shop: snapshot;
object Account in bank { key name: string; balance: int; }
object Item in shop { key name: string; color: string; unique color; }
";

#[test]
fn a_write_of_one_may_fail_so_no_stronger_store_is_written() {
    for write in [
        "item.color = \"red\"",
        "put Item { name: \"x\", color: \"red\" }",
        "new Item { color: \"red\" }",
    ] {
        let text = format!(
            "{TWO}transaction t(item: ref Item, a: ref Account) {{ a.balance = 1; {write}; }}"
        );
        let found = codes(&text, &["M0304"]);
        let title = "this write of `unique color` of `Item` depends on `shop` (snapshot), but the transaction writes the stronger store `bank` (linearizable)";
        assert_eq!(found[0].title, title);
        assert_eq!(found[0].labels[0].message, "no two objects may have the same values here");
    }
    // These cannot fail.
    for write in ["item.delete()", "put Item { name: \"x\" }", "new Item { }"] {
        let text = format!(
            "{TWO}transaction t(item: ref Item, a: ref Account) {{ a.balance = 1; {write}; }}"
        );
        codes(&text, &[]);
    }
    codes(
        &format!(
            "{TWO}transaction t(item: ref Item, a: ref Account) {{ item.color = string(a.balance); }}"
        ),
        &[],
    );
}

#[test]
fn a_condition_around_a_write_counts_as_around_a_require() {
    let text = "store shop: linearizable; store feed: causal;
object Item in shop { key name: string; color: string; unique color; }
object Post in feed { key id: string; likes: int; }
transaction t(item: ref Item, post: ref Post) { if post.likes > 1 { item.color = \"red\"; } }";
    let found = codes(text, &["M0304", "M0302"]);
    assert!(found[0].title.contains("the stronger store `shop`"), "{}", found[0].title);
}

#[test]
fn the_check_is_read_with_everything_else() {
    let text = format!(
        "{OBJECTS}transaction t(a: ref Item, b: ref Item) {{
            a.color = b.color + \"!\";
            b.shelf = 3;
            b.color = \"blue\";
            for i in [a, b] {{ i.count = 1; }}
        }}"
    );
    let checked = check(text.as_str());
    let program = checked.program.expect("it is right");
    let explained = explain(&checked.source, &program, &program.plans[0]);
    insta::assert_snapshot!(render(&explained));
}

#[test]
fn mistakes_in_declarations_say_what_fits() {
    for (declared, code, title, mended) in [
        ("unique tags;", "M0201", "cannot be ordered", None),
        ("unique nothing;", "M0101", "nothing", None),
        ("unique color, color;", "M0102", "color", None),
        ("unique color; index by color;", "M0102", "by_color", None),
        ("unique by color;", "M0001", "without `by`", Some("unique color;")),
        ("unique (color, size);", "M0001", "without parentheses", Some("unique color, size;")),
        ("unique color", "M0001", "`;`", Some("unique color;")),
        ("mail: string unique;", "M0001", "`unique mail;`", Some("mail: string; unique mail;")),
        (
            "mail: string UNIQUE NOT NULL;",
            "M0001",
            "`unique mail;`",
            Some("mail: string; unique mail;"),
        ),
    ] {
        let text = |declared: &str| {
            format!(
                "store shop: linearizable;
object Item in shop {{ key name: string; color: string; size: int; tags: set<string>; {declared} }}
transaction t(i: ref Item) {{ i.size = 1; }}"
            )
        };
        let broken = text(declared);
        let found = codes(&broken, &[code]);
        assert!(found[0].title.contains(title), "{declared}: {}", found[0].title);
        if let Some(mended) = mended {
            let after = apply_edits(&lex(&broken), &found[0].help[0].edits);
            let words = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(words(&after), words(&text(mended)));
            codes(&after, &[]);
        }
    }
}

#[test]
fn a_field_may_be_called_unique() {
    codes(
        "store shop: linearizable;
object Item in shop { key name: string; unique: int; other: int; unique other, unique; }
transaction t(i: ref Item) { i.unique = 1; let _ = unique(); }",
        &[],
    );
}

#[test]
fn it_is_laid_out_as_an_index() {
    let text = "store shop: linearizable; object Item in shop { key name: string;
        /// One of each.
        unique  color;
    color: string; shelf: int; unique shelf,color   as spot; // last
}
transaction t(i: ref Item) { i.shelf = 1; }";
    let source = lex(text);
    let (tree, _) = parse(&source);
    let laid_out = format(&source, &tree);
    let expected = "    /// One of each.\n    unique color;\n    color: string;\n    shelf: int;\n    unique shelf, color as spot; // last\n}";
    assert!(laid_out.contains(expected), "{laid_out}");
}
