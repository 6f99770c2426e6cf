//! The server's descriptions of itself: the OpenAPI document, the program, figures.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::http::client::{Served, TEXT};

/// Checks that all references in a document resolve.
pub fn check_references(document: &Json, part: &Json) {
    match part {
        Json::Object(members) => {
            if let Some(Json::String(reference)) = members.get("$ref") {
                let pointer = reference.strip_prefix('#').expect("it is within the document");
                assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
            }
            members.values().for_each(|inner| check_references(document, inner));
        }
        Json::Array(items) => items.iter().for_each(|inner| check_references(document, inner)),
        _ => {}
    }
}

/// True if a value fits a schema, for the part of JSON Schema that the documents use.
fn fits(document: &Json, schema: &Json, value: &Json) -> bool {
    if let Some(Json::String(reference)) = schema.get("$ref") {
        let pointer = reference.strip_prefix('#').expect("it is within the document");
        return fits(document, document.pointer(pointer).expect("it leads somewhere"), value);
    }
    if let Some(Json::Array(any)) = schema.get("anyOf") {
        return any.iter().any(|schema| fits(document, schema, value));
    }
    if let Some(Json::Array(known)) = schema.get("enum") {
        return known.contains(value);
    }
    match schema["type"].as_str().expect("a schema has a type") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_i64(),
        "number" => value.is_number(),
        "array" => value.as_array().is_some_and(|items| {
            items.iter().enumerate().all(|(at, item)| {
                let schema = schema["prefixItems"].get(at).unwrap_or(&schema["items"]);
                fits(document, schema, item)
            })
        }),
        "object" => value.as_object().is_some_and(|members| {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let has_all =
                required.iter().filter_map(Json::as_str).all(|name| members.contains_key(name));
            has_all
                && members.iter().all(|(name, value)| match schema["properties"].get(name) {
                    Some(schema) => fits(document, schema, value),
                    None => match &schema["additionalProperties"] {
                        Json::Bool(false) => false,
                        Json::Object(_) => fits(document, &schema["additionalProperties"], value),
                        _ => true,
                    },
                })
        }),
        other => panic!("no schema has the type {other}"),
    }
}

#[test]
fn the_document_is_well_formed() {
    let served = Served::new();
    let answer = served.get("/openapi.json");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let document = answer.json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["title"], "program", "the server was given no name");
    let version = document["info"]["version"].as_str().expect("a version");
    assert!(version.len() == 12 && version.chars().all(|c| c.is_ascii_hexdigit()), "{version}");
    check_references(&document, &document);
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("there are paths") {
        for operation in item.as_object().expect("there are operations").values() {
            let id = operation["operationId"].as_str().expect("it has an id");
            assert!(ids.insert(id.to_owned()), "{id} is there twice");
            let in_path = operation["parameters"].as_array().expect("it is a list");
            let in_path = in_path.iter().filter(|parameter| parameter["in"] == "path").count();
            assert_eq!(in_path, path.matches('{').count(), "{path}");
            let responses = operation["responses"].as_object().expect("there are some");
            assert!(responses.contains_key("200") && responses.contains_key("400"), "{path}");
        }
    }
    let names = document["components"]["schemas"].as_object().expect("there are schemas");
    let is_name = |name: &String| {
        name.chars().all(|found| found.is_ascii_alphanumeric() || "._-".contains(found))
    };
    assert!(names.keys().all(is_name), "{:?}", names.keys());
    let expected = ["call_add", "call_buy", "show_Item", "show_Inbox"];
    assert!(expected.iter().all(|id| ids.contains(*id)), "{ids:?}");
}

#[test]
fn doc_comments_and_refusals_are_in_it() {
    let served = Served::new();
    let document = served.get("/openapi.json").json();
    let add = &document["paths"]["/v1/transactions/add"]["post"];
    assert_eq!(add["summary"], "Puts items on the shelf.");
    let text = add["description"].as_str().expect("it is described");
    assert!(text.contains("Any number of them.") && text.contains("writes `stock`"), "{text}");
    let buy = &document["paths"]["/v1/transactions/buy"]["post"];
    assert_eq!(buy["x-mingle-require-codes"], json!(["count", "sold_out"]));
    assert_eq!(buy["x-mingle-phases"][1]["store"], "feed");
    let item = &document["components"]["schemas"]["Item"];
    assert_eq!(item["description"], "What is sold.");
    assert_eq!(item["properties"]["count"]["description"], "How many there are.");
    assert_eq!(document["security"], Json::Null);
}

#[test]
fn names_that_are_not_ascii_are_escaped() {
    let text = "store s: causal; object Größe in s { key schlüssel: string; n: int; }
        struct Maß { m: int } transaction zähle(maß: Maß, o: ref Größe) { o.n += maß.m; }";
    let served = Served::with(text, "", |_| {});
    let document = served.get("/openapi.json").json();
    check_references(&document, &document);
    let path = "/v1/transactions/z%C3%A4hle";
    assert!(document["paths"][path]["post"].is_object(), "{:?}", document["paths"]);
    let body = json!({ "maß": { "m": 2 }, "o": "x" });
    let schema = &document["paths"][path]["post"]["requestBody"]["content"]["application/json"];
    assert!(fits(&document, &schema["schema"], &body));
    assert_eq!(served.call("z%C3%A4hle", &body).status, 200);
    assert_eq!(served.get("/v1/objects/Gr%C3%B6%C3%9Fe/x").json()["n"], 2);
}

#[test]
fn enums_are_lists_of_their_labels() {
    let text = "store s: causal;
        /// How far it is.
        enum Status { open, paid = \"it's \\\"paid\\\"\" }
        object O in s { key k: Status; n: int; was: option<Status>; }
        transaction t(o: ref O, s: Status) -> Status { o.was = some(s); o.n += 1; return o.k; }";
    let served = Served::with(text, "", |_| {});
    let document = served.get("/openapi.json").json();
    check_references(&document, &document);
    let labels = json!(["open", "it's \"paid\""]);
    let status = json!({ "type": "string", "enum": labels, "description": "How far it is." });
    assert_eq!(document["components"]["schemas"]["Status"], status);
    for label in labels.as_array().expect("a list") {
        let answer = served.call("t", &json!({ "o": label, "s": label }));
        assert_eq!((answer.status, &answer.json()["result"]), (200, label), "{}", answer.json());
    }
    let shown = served.get("/v1/objects/O/open").json();
    assert_eq!(shown, json!({ "k": "open", "n": 1, "was": "open" }));
    assert_eq!(served.get("/v1/objects/O/it%27s%20%22paid%22").json()["n"], 1);
    for wrong in [json!("paid"), json!(""), json!(1), json!(null)] {
        let answer = served.call("t", &json!({ "o": "open", "s": wrong }));
        let detail = answer.json()["detail"].to_string();
        assert!(answer.status == 400 && detail.contains("expected one of"), "{detail}");
    }
    let program = served.get("/v1/program").json();
    let shape = json!({ "kind": "enum", "name": "Status", "values": labels });
    assert_eq!(program["transactions"][0]["params"][1]["shape"], shape);
}

#[test]
fn what_is_answered_is_what_the_document_says() {
    let served = Served::new();
    let document = served.get("/openapi.json").json();
    let bodies = [
        ("add", json!({ "item": "tea", "count": 5 })),
        ("buy", json!({ "item": "tea", "count": 1, "buyer": "ana" })),
        ("buy", json!({ "item": "tea", "count": 0, "buyer": "ana" })),
        ("order", json!({ "lines": [{ "item": "tea", "count": 1, "note": null }] })),
        ("tell", json!({ "buyer": "ana", "text": "x" })),
        ("read", json!({ "of": "ana" })),
        ("echo", json!({ "a": "9223372036854775807", "b": 1, "c": 0.5, "d": "", "e": 0 })),
        ("slot", json!({ "of": 1 })),
        ("ping", json!({})),
    ];
    for (transaction, body) in bodies {
        let operation = &document["paths"][format!("/v1/transactions/{transaction}")]["post"];
        let asked = &operation["requestBody"]["content"]["application/json"]["schema"];
        assert!(fits(&document, asked, &body), "{transaction}: {body}");
        assert!(!fits(&document, asked, &json!({ "none": 1 })), "{transaction}");
        let answer = served.call(transaction, &body);
        let mut response = &operation["responses"][answer.status.to_string()];
        if let Some(Json::String(reference)) = response.get("$ref") {
            response = document.pointer(&reference[1..]).expect("it leads somewhere");
        }
        let kind = answer.header("content-type").expect("it has a type");
        let schema = &response["content"][kind]["schema"];
        assert!(fits(&document, schema, &answer.json()), "{transaction}: {}", answer.body);
    }
    for (path, name) in [("/v1/objects/Item/tea", "Item"), ("/v1/objects/Slot/1", "Slot")] {
        let shown = served.get(path).json();
        let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        assert!(fits(&document, &schema, &shown), "{path}: {shown}");
    }
}

#[test]
fn the_program_is_there_to_read() {
    let served = Served::new();
    let program = served.get("/v1/program").json();
    assert_eq!(program["text"], TEXT);
    let buy = program["transactions"].as_array().expect("it is a list");
    let buy = buy.iter().find(|found| found["name"] == "buy").expect("it is there");
    assert_eq!(buy["phases"][0]["store"], "stock");
    let shape = json!({ "kind": "ref", "object": "Item", "key": { "kind": "string" } });
    assert_eq!(buy["params"][0], json!({ "name": "item", "type": "ref Item", "shape": shape }));
    assert_eq!(program["structs"]["Line"][2]["name"], "note");
    assert_eq!(program["can_crash"], false);
    let page = served.get("/");
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").expect("it has one").contains("'none'"));
}

#[test]
fn figures_count_calls_by_outcome_and_phases_by_store() {
    let served = Served::new();
    served.ok("add", &json!({ "item": "tea", "count": 1 }));
    served.ok("buy", &json!({ "item": "tea", "count": 1, "buyer": "ana" }));
    served.call("buy", &json!({ "item": "tea", "count": 1, "buyer": "ana" }));
    served.get("/nothing");
    let answer = served.get("/metrics");
    let kind = answer.header("content-type").expect("it has a type");
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    for line in [
        "mingle_calls_total{transaction=\"buy\",outcome=\"ok\"} 1",
        "mingle_calls_total{transaction=\"buy\",outcome=\"require\"} 1",
        "mingle_call_seconds_count{transaction=\"buy\"} 2",
        "mingle_phases_total{store=\"stock\"} 2",
        "mingle_phases_total{store=\"feed\"} 1",
        "mingle_phase_seconds_count{store=\"stock\"} 2",
        "mingle_phase_waits_total{store=\"stock\"} 0",
        "mingle_runtime_events_total{event=\"begun\"} 1",
        "mingle_runtime_events_total{event=\"helped\"} 0",
        "mingle_http_answers_total{status=\"404\"} 1",
        "mingle_parked_transactions 0",
        "mingle_store_away{store=\"stock\",replica=\"\"} 0",
        "# EOF",
    ] {
        assert!(
            answer.body.lines().any(|found| found == line),
            "{line}\nis not in\n{}",
            answer.body
        );
    }
    // The server notices the end of a connection a little after its client.
    let deadline = Instant::now() + Duration::from_secs(30);
    let asks_alone = |body: &str| body.lines().any(|found| found == "mingle_http_connections 1");
    let mut body = answer.body;
    while !asks_alone(&body) {
        assert!(Instant::now() < deadline, "connections stay open:\n{body}");
        std::thread::yield_now();
        body = served.get("/metrics").body;
    }
    assert_eq!(served.get("/healthz").body, "ok\n");
    for path in ["/readyz", "/readyz?needs=all", "/readyz?"] {
        assert_eq!(served.get(path).body, "ready\n", "{path}");
    }
    for path in ["/readyz?needs=nowhere", "/readyz?needs=", "/readyz?all"] {
        let answer = served.get(path);
        assert_eq!((answer.status, &*answer.code()), (400, "invalid-argument"), "{path}");
    }
}

/// Returns the names of figures in a text.
fn figures(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
    let names = text.split(|c| !is_part(c)).filter(|word| word.starts_with("mingle_"));
    // The names of modules and crates begin in the same way.
    let modules = ["mingle_runtime", "mingle_server"];
    names.filter(|name| !modules.contains(name)).map(str::to_owned).collect()
}

/// The figures that are shown only if there is a value to show.
const SELDOM: [&str; 6] = [
    "mingle_background_failures_total",
    "mingle_calls_refused_away_total",
    "mingle_datacenter_state",
    "mingle_store_answer_seconds_total",
    "mingle_store_answers_total",
    "mingle_store_errors_total",
];

#[test]
fn operators_are_told_of_each_figure_and_see_them_drawn() {
    let served = Served::new();
    served.ok("add", &json!({ "item": "tea", "count": 1 }));
    served.ok("buy", &json!({ "item": "tea", "count": 1, "buyer": "ana" }));
    let told = served.get("/metrics").body;
    let types = told.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let mut shown: BTreeSet<String> = types
        .map(
            |(name, kind)| {
                if kind == "counter" { format!("{name}_total") } else { name.to_owned() }
            },
        )
        .collect();
    shown.extend(SELDOM.map(str::to_owned));

    let page = figures(include_str!("../../../../../docs/operations.md"));
    assert_eq!(page, shown, "the page of the book, and what there is");
    let dashboard = include_str!("../../../../../docs/grafana.json");
    serde_json::from_str::<serde_json::Value>(dashboard).expect("it is JSON");
    let bare = |name: String| name.strip_suffix("_bucket").map_or(name.clone(), str::to_owned);
    let drawn: BTreeSet<String> = figures(dashboard).into_iter().map(bare).collect();
    assert_eq!(drawn, shown, "the dashboard, and what there is");
    let alarms = figures(include_str!("../../../../../docs/alarms.yml"));
    assert!(!alarms.is_empty() && alarms.is_subset(&shown), "{:?}", alarms.difference(&shown));
}
