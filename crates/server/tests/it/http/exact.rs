//! Documents in requests and answers: as JSON, exact, and refused where they are no `json`.

use serde_json::json;

use crate::http::client::{Request, Served};

const TEXT: &str = "store s: linearizable;
    object Page in s { key id: int; body: json; draft: option<json>; all: map<string, json>; }
    transaction keep(page: ref Page, body: json, draft: option<json>) -> json {
        page.body = body; page.draft = draft; page.all.put(\"a\", body);
        return page.body;
    }
    transaction draft(page: ref Page) -> option<json> { return page.draft; }";

fn sent(served: &Served, transaction: &str, body: &str) -> (u16, String) {
    let answer = served.send(&Request::call(transaction, &json!({})).body(body));
    (answer.status, answer.body)
}

#[test]
fn documents_are_json_and_keep_every_digit() {
    let served = Served::with(TEXT, "", |_| {});
    for (given, kept) in [
        ("null", "null"),
        (
            r#"{"b": 12345678901234567890.10, "a": [1e3, -0.0]}"#,
            r#"{"a":[1000,0],"b":12345678901234567890.1}"#,
        ),
        (r#""\u00e9\ud83d\ude00""#, "\"é😀\""),
        (r#"{"some":[1e22]}"#, r#"{"some":[10000000000000000000000]}"#),
    ] {
        let body = format!(r#"{{"page":1,"body":{given},"draft":{{"some":{given}}}}}"#);
        let answer = sent(&served, "keep", &body);
        assert_eq!(answer, (200, format!(r#"{{"result":{kept}}}"#)));
        let is_odd = matches!(given, "null") || given.contains("some");
        let draft = if is_odd { format!(r#"{{"some":{kept}}}"#) } else { kept.to_owned() };
        let answer = sent(&served, "draft", r#"{"page":1}"#);
        assert_eq!(answer, (200, format!(r#"{{"result":{draft}}}"#)));
        let shown = served.get("/v1/objects/Page/1").body;
        assert_eq!(
            shown,
            format!(r#"{{"id":1,"body":{kept},"draft":{draft},"all":{{"a":{kept}}}}}"#)
        );
    }
    // A document that cannot be mistaken may stand as itself.
    for (given, kept) in
        [("null", "null"), ("[1.0]", "[1]"), (r#"{"some":1,"x":2}"#, r#"{"some":1,"x":2}"#)]
    {
        let body = format!(r#"{{"page":1,"body":0,"draft":{given}}}"#);
        assert_eq!(sent(&served, "keep", &body).0, 200);
        let answer = sent(&served, "draft", r#"{"page":1}"#);
        assert_eq!(answer.1, format!(r#"{{"result":{kept}}}"#));
    }
}

#[test]
fn documents_that_no_json_can_be_are_refused_with_the_reason() {
    let served = Served::with(TEXT, "", |_| {});
    let deep = "[".repeat(101) + &"]".repeat(101);
    for (document, reason) in [
        (r#"{"a":1,"a":2}"#, "the member `a` is there twice"),
        (r#""\u0000""#, "at .body: a text in a json value holds no U+0000"),
        (r#"["\ud800"]"#, "one half of a surrogate pair"),
        ("1e400", "at .body: a number in a json value has at most 400 digits"),
        (&deep, "at .body: a json value nests at most 100 deep"),
        ("01", "a number begins with no 0"),
    ] {
        let (status, answer) = sent(&served, "keep", &format!(r#"{{"page":1,"body":{document}}}"#));
        assert!(status == 400 && answer.contains(reason), "{document}: {status} {answer}");
    }
    let (status, answer) = sent(&served, "keep", r#"{"page":1}"#);
    assert!(status == 400 && answer.contains("keep needs body, of type json"), "{answer}");
}

#[test]
fn the_description_takes_any_document() {
    let served = Served::with(TEXT, "", |_| {});
    let document = served.get("/openapi.json").json();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["mingle.json"], json!({ "description": "Any JSON document." }));
    let page = &schemas["Page"]["properties"];
    assert_eq!(page["body"]["$ref"], "#/components/schemas/mingle.json");
    assert_eq!(page["draft"]["$ref"], "#/components/schemas/mingle.json.option");
    assert!(schemas["mingle.json.option"].get("type").is_none());
    let program = served.get("/v1/program").json();
    let params = &program["transactions"][0]["params"];
    assert_eq!(params[1]["shape"], json!({ "kind": "json" }));
    assert_eq!(params[2]["shape"], json!({ "kind": "option", "of": { "kind": "json" } }));
}
