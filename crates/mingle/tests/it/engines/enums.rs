//! Values of an enumeration through every engine, wherever a value can stand.

use mingle_services::Engine;
use serde_json::{Value as Json, json};

use crate::engines::site::{RealSite, block_on, bound, space};
use crate::support::scenarios::Site;

/// Labels that the syntax of some engine might take for something else.
const LABELS: [&str; 6] = ["open", "NC-17", "it's \"odd\"; --", "\\ % _", "é😀\u{10ffff}", "null"];

fn program(level: &str) -> String {
    let values = LABELS.iter().enumerate().map(|(at, label)| {
        // JSON and the language escape these labels in the same way.
        format!("v{at} = {}", Json::from(*label))
    });
    let values: Vec<String> = values.collect();
    format!(
        "store place: {level};
        enum Status {{ {} }}
        struct Part {{ status: Status, before: option<Status> }}
        object Item in place {{
            key status: Status; one: Status; maybe: option<Status>; many: list<Status>; part: Part; next: ref Item;
            all: set<Status>; by: map<Status, Status>; lines: log<Status>;
        }}
        transaction put_all(item: ref Item, s: Status, other: Status) {{
            item.one = s; item.maybe = some(s); item.many = [s, other, s];
            item.part = Part {{ status: other, before: some(s) }}; item.next = Item[other];
            item.all.insert(s); item.all.insert(other); item.by.put(s, other); item.by.put(other, s);
            item.lines.append(s); item.lines.append(other);
        }}
        transaction same(item: ref Item, s: Status) -> list<bool> {{
            return [item.status == s, item.one == s, (item.maybe ?? item.one) == s, item.all.contains(s),
                item.by.get(s).is_some(), item.part.before == some(s), item.next == Item[s]];
        }}",
        values.join(", ")
    )
}

fn round_trip(engine: Option<Engine>) {
    let Some(binding) = block_on(bound("place", engine, &space())) else { return };
    let level = if engine == Some(Engine::Cassandra) { "eventual" } else { "causal" };
    let site = RealSite::new(&program(level), &binding);
    for (at, label) in LABELS.into_iter().enumerate() {
        let other = LABELS[(at + 1) % LABELS.len()];
        let texts = [label, other].map(|label| Json::from(label).to_string());
        let arguments = [("item", &*texts[0]), ("s", &*texts[0]), ("other", &*texts[1])];
        site.ok("put_all", &arguments);
        let shown = site.show("Item", &texts[0]);
        let both = |found: &Json| {
            let found = found.as_array().expect("a list");
            found.len() == 2 && [label, other].iter().all(|it| found.contains(&json!(it)))
        };
        assert_eq!((&shown["status"], &shown["one"]), (&json!(label), &json!(label)), "{engine:?}");
        assert_eq!(shown["maybe"], json!(label));
        assert_eq!(shown["many"], json!([label, other, label]));
        assert_eq!(shown["part"], json!({ "status": other, "before": label }));
        assert_eq!(shown["next"], json!(other));
        assert_eq!(shown["lines"], json!([label, other]));
        assert!(both(&shown["all"]), "{shown}");
        let by = shown["by"].as_array().expect("pairs");
        assert!(by.len() == 2 && by.contains(&json!([label, other])), "{shown}");
        let same = site.ok("same", &[("item", &texts[0]), ("s", &texts[0])]);
        assert_eq!(same, json!([true, true, true, true, true, true, false]), "{engine:?}");
    }
    assert!(site.settles());
}

#[test]
fn labels_come_back_from_the_embedded_engine() {
    round_trip(None);
}

#[test]
fn labels_come_back_from_postgres() {
    round_trip(Some(Engine::Postgres));
}

#[test]
fn labels_come_back_from_redis() {
    round_trip(Some(Engine::Redis));
}

#[test]
fn labels_come_back_from_cassandra() {
    round_trip(Some(Engine::Cassandra));
}
