//! Looking at objects.

use serde_json::json;

use crate::http::client::Served;

#[test]
fn an_object_is_shown_as_mingle_show_prints_it() {
    let served = Served::new();
    served.ok("add", &json!({ "item": "earl grey / 1ä", "count": 5 }));
    let answer = served.get("/v1/objects/Item/earl%20grey%20%2F%201%C3%A4");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let expected = json!({ "name": "earl grey / 1ä", "count": 5, "tags": ["new"], "prices": [] });
    assert_eq!(answer.json(), expected);
    assert!(!answer.session().is_empty());
    let fewer = served.get("/v1/objects/Item/earl%20grey%20%2F%201%C3%A4?limit=0");
    assert_eq!(fewer.json()["tags"], json!([]));

    served.ok("slot", &json!({ "of": 7 }));
    assert_eq!(
        served.get("/v1/objects/Slot/7").json(),
        json!({ "number": 7, "note": { "some": null } })
    );
    served.ok("add", &json!({ "item": "", "count": 1 }));
    assert_eq!(served.get("/v1/objects/Item/").json()["count"], 1);
}

#[test]
fn what_is_not_there_is_not_found() {
    let served = Served::new();
    for path in [
        "/v1/objects/Item/tea",
        "/v1/objects/Items/tea",
        "/v1/objects/Item",
        "/v1/objects/Item/a/b",
        "/v1/transactions",
        "/v1/transactions/",
        "/nothing",
        "//",
        "/v1/../v1/program",
    ] {
        let answer = served.get(path);
        assert_eq!((answer.status, &*answer.code()), (404, "not-found"), "{path}");
    }
    let answer = served.call("sell", &json!({}));
    assert_eq!((answer.status, &*answer.code()), (404, "not-found"));
    for (path, part) in [
        ("/v1/objects/Slot/seven", "the key of Slot"),
        ("/v1/objects/Item/tea?limit=x", "limit is 0 to"),
        ("/v1/objects/Item/tea?limit=10001", "limit is 0 to"),
        ("/v1/objects/Item/tea?limits=1", "\"limits\""),
        ("/v1/objects/Item/%ff", "UTF-8"),
    ] {
        let answer = served.get(path);
        assert_eq!((answer.status, &*answer.code()), (400, "invalid-argument"), "{path}");
        assert!(answer.detail().contains(part), "{path}: {}", answer.detail());
    }
}
