//! Sessions: a client keeps the state that it has seen.

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

#[test]
fn a_session_belongs_to_its_program_and_its_binding() {
    let key = || mingle::SessionKey::new([7; 32]);
    let served = |text: &str, binding: &str| {
        Served::with(text, binding, |config| config.session_key = key())
    };
    let first = served(TEXT, "");
    let token = first.call("ping", &json!({})).session().to_owned();
    let ping = |served: &Served| {
        served.send(&Request::call("ping", &json!({})).header("mingle-session", &token))
    };
    // Another server over the same stores, with the same key.
    let beside = first.beside(|config| config.session_key = key());
    assert_eq!((ping(&first).status, ping(&beside).status), (200, 200));

    let declared = TEXT.replace("count: int;", "count: int; weight: int;");
    let replicas = served(TEXT, REPLICAS);
    for (other, why) in [
        (served(&declared, ""), "another program"),
        // A binding to stores in memory: the state that the session has seen is not there.
        (served(TEXT, ""), "another binding"),
        (replicas, "another binding"),
    ] {
        let answer = ping(&other);
        assert_eq!((answer.status, &*answer.code()), (400, "invalid-session"), "{why}");
        assert!(answer.detail().contains(why), "{}", answer.detail());
        assert_eq!(answer.header("mingle-session"), None);
    }
}

#[test]
fn a_session_in_a_folder_goes_on_and_not_in_another_one() {
    let key = || mingle::SessionKey::new([7; 32]);
    let open = |text: &str, folder: &std::path::Path| {
        Served::in_folder(text, folder, |config| config.session_key = key())
    };
    let (here, there) = (tempfile::tempdir(), tempfile::tempdir());
    let (here, there) = (here.expect("a folder"), there.expect("a folder"));
    let mut first = open(TEXT, here.path());
    let add = json!({ "item": "tea", "count": 1 });
    let token = first.call("add", &add).session().to_owned();
    assert!(first.stop());
    drop(first);
    let count = Request::call("count", &json!({ "item": "tea" })).header("mingle-session", &token);
    // An additional transaction changes nothing for sessions.
    let more = format!("{TEXT}\ntransaction more() {{}}");
    let again = open(&more, here.path()).send(&count);
    assert_eq!((again.status, &again.json()["result"]), (200, &json!(1)), "{}", again.body);
    let other = open(TEXT, there.path()).send(&count);
    assert_eq!((other.status, &*other.code()), (400, "invalid-session"));
    assert!(other.detail().contains("another binding"), "{}", other.detail());
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
    // The data center is lost before another one has received the write.
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
    // The session continues at another data center, and need not name it again.
    assert_eq!(read(&[("mingle-session", accepted.session())]).status, 200);
    assert_eq!(read(&[]).status, 200);
}
