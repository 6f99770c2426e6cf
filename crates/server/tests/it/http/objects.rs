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
fn the_objects_of_a_kind_are_listed_page_by_page() {
    let served = Served::new();
    assert_eq!(served.get("/v1/objects/Item").json(), json!({ "objects": [], "next": null }));
    for (count, item) in ["tea", "", "pot / ä", "cup", "jug"].into_iter().enumerate() {
        served.ok("add", &json!({ "item": item, "count": count }));
    }
    let (mut names, mut path) = (Vec::new(), "/v1/objects/Item?count=2&limit=0".to_owned());
    let mut pages = 0;
    loop {
        let answer = served.get(&path);
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert!(!answer.session().is_empty());
        let page = answer.json();
        pages += 1;
        for object in page["objects"].as_array().expect("a list") {
            names.push(object["name"].as_str().expect("a name").to_owned());
            assert_eq!(object["tags"], json!([]), "no element is asked for");
            assert!(object["count"].is_number(), "{object}");
        }
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/objects/Item?count=2&limit=0&after={next}");
    }
    names.sort();
    assert_eq!((names, pages), (["", "cup", "jug", "pot / ä", "tea"].map(String::from).into(), 3));

    // At a causal store, with keys that are numbers, and with more elements than are shown.
    for line in 0..5 {
        served.ok("tell", &json!({ "buyer": "ana", "text": line.to_string() }));
    }
    let inboxes = served.get("/v1/objects/Inbox").json();
    assert_eq!(inboxes["objects"], json!([{ "owner": "ana", "lines": ["2", "3", "4"] }]));
    served.ok("slot", &json!({ "of": 7 }));
    assert_eq!(served.get("/v1/objects/Slot").json()["objects"][0]["number"], 7);
    for (query, part) in [
        ("count=0", "count is 1 to 100"),
        ("count=101", "count is 1 to 100"),
        ("limit=x", "limit is 0 to"),
        ("before=1", "\"before\""),
    ] {
        let answer = served.get(&format!("/v1/objects/Item?{query}"));
        assert_eq!((answer.status, &*answer.code()), (400, "invalid-argument"), "{query}");
        assert!(answer.detail().contains(part), "{query}: {}", answer.detail());
    }
    let answer = served.get("/v1/objects/Item?after=x");
    assert_eq!((answer.status, &*answer.code()), (400, "invalid-argument"), "{}", answer.body);
    assert!(answer.detail().contains("\"x\" is no cursor of a page"), "{}", answer.detail());
}

#[test]
fn what_is_not_there_is_not_found() {
    let served = Served::new();
    for path in [
        "/v1/objects/Item/tea",
        "/v1/objects/Items/tea",
        "/v1/objects/Items",
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
