//! Sessions: what a client has seen goes with it.

use serde_json::json;

use crate::http::client::{Request, Served, TEXT};

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

const CITIES: &str =
    "[stores.feed]\ndatacenters = [\"oslo\", \"rome\", \"lima\"]\nbetween = \"5s\"";

#[test]
fn who_has_seen_what_was_lost_with_a_data_center_goes_on_once_it_says_so() {
    let served = Served::with(TEXT, CITIES, |config| config.replica = Some("oslo".into()));
    let state = |city: &str, state: &str| {
        let labels = format!("store=\"feed\",datacenter=\"{city}\",state=\"{state}\"");
        let body = served.get("/metrics").body;
        let line = format!("mingle_datacenter_state{{{labels}}} ");
        let found = body.lines().find_map(|found| found.strip_prefix(&line)).map(str::to_owned);
        found.unwrap_or_else(|| panic!("{line} is not in\n{body}"))
    };
    assert_eq!((state("oslo", "up"), state("oslo", "given up")), ("1".into(), "0".into()));
    // It is gone before anybody else has heard of that.
    let told = served.call("tell", &json!({ "buyer": "ana", "text": "one" }));
    assert_eq!(told.status, 200);
    let feed = served.database.geo("feed").expect("it has data centers");
    feed.kill("oslo").expect("it is there");
    let given_up = served.block_on(feed.give_up("oslo")).expect("the others agree");
    assert_eq!(given_up.lost, Some(1));
    assert_eq!((state("oslo", "up"), state("oslo", "given up")), ("0".into(), "1".into()));
    assert_eq!(state("rome", "up"), "1");
    let read = |headers: &[(&str, &str)]| {
        let mut request = Request::call("read", &json!({ "of": "ana" }));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        served.send(&request)
    };
    let session = ("mingle-session", told.session());
    for headers in [&[session][..], &[session, ("mingle-accept-loss", "perhaps")]] {
        let refused = read(headers);
        assert!(refused.status >= 400 && refused.detail().contains("is lost"), "{}", refused.body);
    }
    let accepted = read(&[session, ("mingle-accept-loss", "true")]);
    assert_eq!((accepted.status, &accepted.json()["result"]), (200, &json!([])));
    // It goes on at another data center, and need not say so again.
    assert_eq!(read(&[("mingle-session", accepted.session())]).status, 200);
    assert_eq!(read(&[]).status, 200);
}
