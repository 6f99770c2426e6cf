//! Sessions: what a client has seen goes with it.

use serde_json::json;

use crate::client::{Request, Served, TEXT};

const REPLICAS: &str = "[stores.feed]\nreplicas = [\"oslo\", \"rome\"]\ndelay = \"200ms\"";

#[test]
fn what_a_session_has_written_it_sees_and_tokens_join() {
    let served = Served::with(TEXT, REPLICAS, |config| config.replica = Some("oslo".into()));
    let tell = |text: &str| served.call("tell", &json!({ "buyer": "ana", "text": text }));
    let (one, two) = (tell("one"), tell("two"));
    let read = |value: &str| {
        let request = Request::call("read", &json!({ "of": "ana" }));
        served.send(&request.header("mingle-session", value))
    };
    let both = format!("{}, {}", one.session(), two.session());
    assert_eq!(read(&both).json()["result"], json!(["one", "two"]));
    let after = read(one.session());
    assert_eq!(after.status, 200);
    let shown = Request::get("/v1/objects/Inbox/ana").header("mingle-session", after.session());
    assert_eq!(served.send(&shown).status, 200);
}

#[test]
fn a_session_of_another_server_is_refused() {
    let (served, other) = (Served::new(), Served::new());
    let foreign = other.call("ping", &json!({})).session().to_owned();
    let long = "A".repeat(300_000);
    let many = vec![served.call("ping", &json!({})).session().to_owned(); 17].join(",");
    for token in ["x", "", ",", &foreign, &foreign[1..], "é", &long, &many] {
        let request = Request::call("ping", &json!({})).header("mingle-session", token);
        let answer = served.send(&request);
        assert_eq!((answer.status, &*answer.code()), (400, "invalid-session"), "{token:.20}");
    }
}
