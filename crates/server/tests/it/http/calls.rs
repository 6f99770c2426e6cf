//! Calls: their arguments and their answers.

use serde_json::json;

use crate::http::client::{Request, Served};

#[test]
fn a_call_gives_its_result() {
    let served = Served::new();
    let answer = served.call("add", &json!({ "item": "tea", "count": 5 }));
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body, r#"{"result":5}"#);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert!(!answer.session().is_empty());
    let bought = served.ok("buy", &json!({ "item": "tea", "count": 2, "buyer": "ana" }));
    assert_eq!(bought, json!(3));
    let told = served.call("tell", &json!({ "buyer": "ana", "text": "hello" }));
    assert_eq!(told.body, r#"{"result":null}"#);
    let lines = json!([{ "item": "tea", "count": 1 }, { "item": "tea", "count": 1, "note": "x" }]);
    assert_eq!(served.ok("order", &json!({ "lines": lines })), json!(2));
    assert_eq!(served.ok("count", &json!({ "item": "tea" })), json!(1));
}

#[test]
fn values_have_the_one_json_form() {
    let served = Served::new();
    let all = json!({
        "a": "9007199254740993", "b": null, "c": "NaN", "d": "AAE=", "e": "2026-01-02T03:04:05Z",
    });
    assert_eq!(served.ok("echo", &all), json!(["9007199254740993", "NaN"]));
}

#[test]
fn a_call_without_parameters_needs_no_body() {
    let served = Served::new();
    for request in [
        Request::new("POST", "/v1/transactions/ping"),
        Request::new("POST", "/v1/transactions/ping").body(""),
        Request::call("ping", &json!({})),
    ] {
        let answer = served.send(&request);
        assert_eq!((answer.status, &*answer.body), (200, r#"{"result":"pong"}"#));
    }
}

#[test]
fn arguments_that_do_not_fit_are_named() {
    let served = Served::new();
    for (body, path, expected) in [
        (json!({ "count": 1 }), ".item", "add needs item, of type ref Item"),
        (json!({ "item": "a", "count": true }), ".count", "expected an int, found true"),
        (json!({ "item": 7, "count": 1 }), ".item", "expected a string, found 7"),
        (json!({ "item": "a", "count": 1, "x": 1 }), ".x", "add has no parameter \"x\""),
    ] {
        let answer = served.call("add", &body);
        assert_eq!((answer.status, &*answer.code()), (400, "invalid-argument"), "{body}");
        assert_eq!(answer.json()["path"], path, "{body}");
        assert!(answer.detail().contains(expected), "{}", answer.body);
    }
    let answer = served.call("order", &json!({ "lines": [{ "item": "a", "count": "x" }] }));
    assert_eq!(answer.json()["path"], ".lines[0].count");
    let answer = served.send(&Request::call("add", &json!([1])));
    assert_eq!(answer.code(), "invalid-argument");
}

#[test]
fn what_a_transaction_refuses_has_its_code() {
    let served = Served::new();
    for (count, code) in [(0, "count"), (1, "sold_out")] {
        let answer = served.call("buy", &json!({ "item": "tea", "count": count, "buyer": "a" }));
        assert_eq!((answer.status, &*answer.code()), (422, "require"));
        assert_eq!(answer.json()["require_code"], code);
        assert_eq!(answer.json()["retryable"], false);
        assert_eq!(answer.header("mingle-session"), None, "nothing was written");
    }
}

#[test]
fn a_value_that_another_object_has_is_a_conflict() {
    let text = "store shop: linearizable;
        object Item in shop { key name: string; color: string; unique color; }
        transaction paint(item: ref Item, color: string) { item.color = color; }";
    let served = Served::with(text, "", |_| {});
    served.ok("paint", &json!({ "item": "a", "color": "red" }));
    let answer = served.call("paint", &json!({ "item": "b", "color": "red" }));
    let body = answer.json();
    assert_eq!((answer.status, &*answer.code()), (409, "taken"));
    assert_eq!((&body["object"], &body["fields"]), (&json!("Item"), &json!(["color"])));
    assert_eq!(
        (&body["retryable"], &*answer.detail()),
        (&json!(false), "another Item has color \"red\"")
    );
    assert_eq!(answer.header("mingle-session"), None, "nothing was written");
}

#[test]
fn until_answers_before_the_rest() {
    let binding = "[stores.feed]\ndistance = \"300ms\"";
    let served = Served::with(crate::http::client::TEXT, binding, |_| {});
    served.ok("add", &json!({ "item": "tea", "count": 1 }));
    let buy = json!({ "item": "tea", "count": 1, "buyer": "ana" });
    let answer = served.call("buy?until=stock", &buy);
    assert_eq!(answer.json(), json!({ "result": 0, "follows": ["feed"] }));
    // The read waits for the remaining writes of its session's call.
    let read = Request::call("read", &json!({ "of": "ana" }));
    let read = served.send(&read.header("mingle-session", answer.session()));
    assert_eq!(read.json()["result"], json!(["bought"]));
    let wrong = served.call("buy?until=stocks", &buy);
    assert_eq!((wrong.status, &*wrong.code()), (400, "misuse"));
}

#[test]
fn deadlines_are_bounded() {
    let served = Served::new();
    for bad in ["deadline_ms=0", "deadline_ms=x", "deadline_ms=-1", "deadline_ms=99999999", "x=1"] {
        let answer = served.call(&format!("count?{bad}"), &json!({ "item": "a" }));
        assert_eq!((answer.status, &*answer.code()), (400, "invalid-argument"), "{bad}");
    }
    let answer = served.call("count?deadline_ms=30000", &json!({ "item": "a" }));
    assert_eq!(answer.status, 200);
}

#[test]
fn a_watched_call_tells_of_its_phases() {
    let served = Served::new();
    served.ok("add", &json!({ "item": "tea", "count": 1 }));
    let buy = json!({ "item": "tea", "count": 1, "buyer": "ana" });
    let watch = |body| {
        let request = Request::call("buy", body).header("accept", "text/event-stream");
        let answer = served.send(&request);
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        let events = answer.body.split("\n\n").filter(|event| !event.is_empty());
        events
            .map(|event| {
                let (name, data) = event.split_once('\n').expect("an event has data");
                let data = data.strip_prefix("data: ").expect("it begins so");
                let data: serde_json::Value = serde_json::from_str(data).expect("it is JSON");
                (name.strip_prefix("event: ").expect("it has a name").to_owned(), data)
            })
            .collect::<Vec<_>>()
    };
    let events = watch(&buy);
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["began", "committed", "began", "committed", "answer"]);
    assert_eq!(events[0].1["store"], "stock");
    assert_eq!((&events[3].1["store"], &events[3].1["attempts"]), (&json!("feed"), &json!(1)));
    assert!(events[3].1["took_ms"].is_number() && events[3].1["waited_ms"].is_number());
    let last = &events[4].1;
    assert_eq!((&last["status"], &last["body"]), (&json!(200), &json!({ "result": 0 })));
    assert!(last["session"].is_string());

    let refused = watch(&buy);
    let last = &refused.last().expect("there is an answer").1;
    assert_eq!((&last["status"], &last["body"]["code"]), (&json!(422), &json!("require")));
}
