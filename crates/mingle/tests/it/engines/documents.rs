//! JSON documents through every engine, wherever one can stand, compared by the program itself.

use mingle_model::random::{Random, hostile_json};
use mingle_services::Engine;
use serde_json::json;

use crate::engines::site::{RealSite, block_on, bound, space};
use crate::support::scenarios::Site;

const SEED: u64 = 31_744;

fn program(level: &str) -> String {
    format!(
        "store place: {level};
        struct Paper {{ body: json, draft: option<json> }}
        object Item in place {{
            key id: int; one: json; maybe: option<json>; many: list<json>; paper: Paper; by: map<string, json>;
            lines: log<json>;
        }}
        transaction put_all(item: ref Item, a: json, b: json) {{
            item.one = a; item.maybe = some(b); item.many = [a, b]; item.paper = Paper {{ body: a, draft: some(b) }};
            item.by.put(\"k\", a); item.lines.append(b);
        }}
        transaction same(item: ref Item, a: json, b: json) -> list<bool> {{
            return [item.one == a, item.maybe == some(b), item.many == [a, b],
                item.paper == Paper {{ body: a, draft: some(b) }}, item.by.get(\"k\") == some(a), item.lines.last(1) == [b]];
        }}
        transaction none_is_no_document(item: ref Item) -> bool {{
            item.maybe = none;
            return item.maybe == none;
        }}
        transaction is_none(item: ref Item) -> bool {{ return item.maybe == none && item.one != Item[-1].one; }}"
    )
}

fn round_trip(engine: Option<Engine>) {
    let Some(binding) = block_on(bound("place", engine, &space())) else { return };
    let level = if engine == Some(Engine::Cassandra) { "eventual" } else { "causal" };
    let site = RealSite::new(&program(level), &binding);
    println!("seed {SEED}");
    let mut random = Random::new(SEED);
    for number in 0..25 {
        let id = number.to_string();
        let (a, b) = match number {
            0 => ("[1]".to_owned(), "null".to_owned()),
            1 => (r#"{"some":{"some":null}}"#.to_owned(), r#"{"some":null}"#.to_owned()),
            _ => (hostile_json(&mut random), hostile_json(&mut random)),
        };
        let arguments = [("item", &*id), ("a", &*a), ("b", &*b)];
        site.ok("put_all", &arguments);
        let same = site.ok("same", &arguments);
        assert_eq!(same, json!([true, true, true, true, true, true]), "{engine:?}: {a} {b}");
    }
    site.ok("none_is_no_document", &[("item", "0")]);
    assert_eq!(site.ok("is_none", &[("item", "0")]), json!(true), "{engine:?}");
    assert!(site.settles());
}

#[test]
fn documents_come_back_from_the_embedded_engine() {
    round_trip(None);
}

#[test]
fn documents_come_back_from_postgres() {
    round_trip(Some(Engine::Postgres));
}

#[test]
fn documents_come_back_from_redis() {
    round_trip(Some(Engine::Redis));
}

#[test]
fn documents_come_back_from_cassandra() {
    round_trip(Some(Engine::Cassandra));
}
