use super::*;
use crate::syntax::{Source, lex, parse};

fn names(text: &str) -> (Source, Names) {
    let source = lex(text);
    let (tree, _) = parse(&source);
    let names = Names::of(&tree);
    (source, names)
}

/// Returns the `nth` token with this text, counted from 0.
fn token(source: &Source, text: &str, nth: usize) -> u32 {
    let tokens = 0..source.tokens.len() as u32;
    tokens.filter(|token| source.token_text(*token) == text).nth(nth).expect("it is there")
}

const TEXT: &str = "level near between causal and eventual;
store s: near { query all(n: int) -> list<ref O>; }
struct P { a: int, o: option<ref O> }
object O in s { key k: string; n: int; p: P; tags: set<string>; }
fn twice(x: int) -> int { let y = x; y + x }
transaction t(o: ref O) -> int {
    let p = P { a: o.n, o: some(o) };
    var sum = twice(p.a);
    for tag in o.tags { put O { k: tag, n: sum }; sum += O[tag].n; }
    for other in s.all(3) { other.n = 1; }
    match p.o { some(r) => { r.tags.insert(r.k); } none => {} }
    return sum;
}";

#[test]
fn every_use_leads_to_its_declaration() {
    let (source, names) = names(TEXT);
    for (text, declared, uses) in [
        ("near", 0, 1),
        ("s", 0, 2),
        ("all", 0, 1),
        ("P", 0, 2),
        ("O", 2, 5),
        ("k", 0, 2),
        ("n", 1, 4),
        ("tags", 0, 2),
        ("a", 0, 2),
        ("twice", 0, 1),
        ("x", 0, 2),
        ("y", 0, 1),
        ("sum", 0, 3),
        ("tag", 0, 2),
        ("other", 0, 1),
        ("r", 0, 2),
    ] {
        let at = token(&source, text, declared);
        let found = names.at(at).unwrap_or_else(|| panic!("`{text}` is declared"));
        assert_eq!((&*found.name, found.span), (text, Span::token(at)));
        let references: Vec<_> = names.references(found.span).collect();
        assert!(references.iter().all(|span| source.span_text(*span) == text), "{text}");
        assert!(references.iter().all(|span| names.at(span.start) == Some(found)), "{text}");
        assert_eq!(references.len(), uses, "uses of `{text}`");
    }
}

#[test]
fn declarations_are_shown_as_written() {
    let (_, names) = names(TEXT);
    let shown: Vec<&str> = names.declarations().map(|found| &*found.shown).collect();
    for expected in [
        "level near between causal and eventual",
        "store s: near",
        "query all(n: int) -> list<ref O>",
        "object O in s",
        "key k: string",
        "tags: set<string>",
        "fn twice(x: int) -> int",
        "var sum: int",
        "tag: string",
        "r: ref O",
        "transaction t(o: ref O) -> int",
    ] {
        assert!(shown.contains(&expected), "{expected}: {shown:?}");
    }
}

#[test]
fn types_have_members() {
    let (source, names) = names(TEXT);
    let before = |text: &str, nth| names.type_before(token(&source, text, nth)).cloned();
    let object = before(".", 0).unwrap();
    assert_eq!(object.to_string(), "ref O");
    let members: Vec<_> = names.members(&object).into_iter().map(|found| found.name).collect();
    assert_eq!(members, ["k", "n", "p", "tags", "exists", "delete"]);
    let tags = Typed::Collection(FieldType::Set(Type::String));
    assert!(names.members(&tags).iter().any(|found| found.name == "to_list"));
    assert_eq!(names.operations("s")[0].name, "all");
}

#[test]
fn what_cannot_be_read_hides_nothing_else() {
    let (source, names) = names(
        "store s: causal; object O in s { key k: int; n: int; }
        transaction t(o: ref O) { let x = o.n; let y = ; let z = twice(o.n, x); }",
    );
    let n = names.at(token(&source, "n", 0)).unwrap();
    assert_eq!(names.references(n.span).count(), 2);
    let o = names.at(token(&source, "o", 0)).unwrap();
    assert_eq!(o.kind, Kind::Parameter);
}

#[test]
fn a_shadowed_name_is_another() {
    let (source, names) =
        names("transaction t(a: int) { if a > 0 { let a = 1; let b = a; } let c = a; }");
    let outer = names.at(token(&source, "a", 0)).unwrap().span;
    let inner = names.at(token(&source, "a", 2)).unwrap().span;
    assert_ne!(outer, inner);
    assert_eq!(names.at(token(&source, "a", 3)).unwrap().span, inner);
    assert_eq!(names.at(token(&source, "a", 4)).unwrap().span, outer);
}
