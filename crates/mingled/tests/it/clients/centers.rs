//! Data centers that are lost, given up, and come back.

use std::time::{SystemTime, UNIX_EPOCH};

use super::serving::{Serving, field, until};
use super::{Raw, Started};

/// Returns the reply to a strong command once a majority can give it.
fn strong(client: &mut Raw, line: &str) -> String {
    let mut reply = String::new();
    until("a majority answers", || {
        reply = client.ask(line);
        let is_late = ["-NOQUORUM", "-UNKNOWN", "-CONFLICT"];
        !is_late.iter().any(|word| reply.starts_with(word))
    });
    reply
}

#[test]
fn a_lost_data_center_is_given_up_and_comes_back_with_the_data_of_the_others() {
    let mut serving = Serving::started(3, &[]);
    let mut clients = [0, 1].map(|dc| serving.client(dc));
    serving.client(2).expect("SET a old => +OK\nINCR n => :1\nBARRIER => +OK");
    let connected = clients[0].ask("FENCE d2");
    assert!(connected.starts_with("-ERR d2 is connected, and would lose"), "{connected}");
    serving.kill(2);
    until("its loss is seen", || field(&mut clients[0], 2, "state") == "away");
    let since: u128 = field(&mut clients[0], 2, "since_ms").parse().expect("a time");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    assert!(since <= now && now - since < 60_000, "{since} at {now}");
    assert!(!field(&mut clients[0], 2, "why").is_empty());
    until("it lags", || field(&mut clients[0], 2, "lag_ms").parse::<u64>().expect("a time") > 300);
    for part in [
        "held_back:stage=uniformity,of=d2,since_ms=",
        ",why=nothing later of d2 has arrived at partition ",
    ] {
        until(part, || clients[0].ask("INFO progress").contains(part));
    }
    let refused = clients[0].ask("ADMIT d2");
    assert!(refused.starts_with("-ERR d2 was not given up"), "{refused}");

    let fenced = clients[0].ask("FENCE d2");
    assert!(fenced.starts_with("[\"name\", \"d2\", \"incarnation\", :0"), "{fenced}");
    for client in &mut clients {
        until("all know it", || field(client, 2, "state") == "fenced");
        assert_eq!(field(client, 2, "lag_ms"), "nil");
        until("nothing waits for it", || !client.ask("INFO progress").contains("of=d2"));
    }
    let again = clients[1].ask("FENCE d2");
    assert_eq!(again, "-ERR incarnation 0 of d2 was given up already");
    assert_eq!(strong(&mut clients[0], "SETNX lock me"), ":1");
    clients[0].expect("INCR n => :2\nSET a new => +OK");

    // The old one comes back with its disk, and does not serve.
    serving.start(2, &[]);
    let mut old = serving.client(2);
    until("it learns of its end", || old.ask("GET a").starts_with("-FENCED incarnation 0 of d2"));
    assert_eq!(field(&mut old, 2, "state"), "fenced");
    let refused = old.ask("FENCE d1");
    assert!(refused.starts_with("-FENCED incarnation 0 of d2, which was asked"), "{refused}");
    serving.kill(2);

    until("it is gone", || serving.client(0).ask("INFO replication").contains("centers:1"));
    let admitted = clients[1].ask("ADMIT d2");
    assert_eq!(admitted, "[\"name\", \"d2\", \"incarnation\", :1]");
    serving.start(2, &["--incarnation", "1"]);
    assert!(serving.folder(2).join("journal-of-incarnation-0").is_dir(), "it is kept");
    let mut back = serving.client(2);
    until("it has copied the data", || back.ask("MGET a n lock") == "[\"new\", \"2\", \"me\"]");
    assert_eq!(field(&mut back, 2, "incarnation"), "1");
    assert_eq!(strong(&mut back, "SETNX lock other"), ":0");
    until("its writes count", || back.ask("INCR n") == ":3");
    until("all have them", || clients.iter_mut().all(|it| it.ask("GET n") == "\"3\""));
    // The next start needs no argument.
    serving.kill(2);
    serving.start(2, &[]);
    let mut back = serving.client(2);
    until("it serves", || back.ask("GET n") == "\"3\"");
}

#[test]
fn a_change_that_cannot_be_agreed_on_is_refused_with_the_reason() {
    let mut serving = Serving::started(3, &[]);
    let mut client = serving.client(0);
    client.expect(
        "
        FENCE d3 => -ERR there is no data center d3, expected d0 to d2
        FENCE x => -ERR found 'x', expected a data center such as d1
        FENCE d0 => -ERR d0 is this data center: ask another one that is not lost
        FENCE d1 NOW => -ERR syntax error
        ADMIT d0 => -ERR d0 is this data center: ask another one that is not lost
        ADMIT 9 => -ERR there is no data center d9, expected d0 to d2
        ",
    );
    until("what it wrote is uniform", || {
        let progress = client.ask("INFO progress");
        progress.contains("uniform_age_ms:d0=") && !progress.contains("uniform_age_ms:d0=-")
    });
    serving.kill(1);
    serving.kill(2);
    until("they are away", || client.ask("DATACENTERS").matches("\"away\"").count() == 2);
    let expected = "-NOQUORUM 2 data centers other than d2 must agree, and 1 can: d0";
    assert_eq!(client.ask("FENCE d2"), expected);
    assert_eq!(client.ask("INCR causal"), ":1", "it goes on");
    for part in [
        "held_back:stage=uniformity,of=d0,since_ms=",
        ",why=of d1, d2, too few have reported that they have it\r\n",
        "held_back:stage=uniformity,of=d2,since_ms=",
        "held_back:stage=folding,of=d1,since_ms=",
    ] {
        until(part, || client.ask("INFO progress").contains(&part.escape_default().to_string()));
    }
    let asked = client.ask("INFO progress");
    let since = asked.split("of=d0,since_ms=").nth(1).expect("it is held back");
    let since: u128 = since.split(',').next().and_then(|it| it.parse().ok()).expect("a time");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    assert!(now - 60_000 < since && since < now - 2_000, "{since} at {now}");
    serving.start(1, &[]);
    until("nothing of it is held back", || !client.ask("INFO progress").contains("of=d0"));
}

#[test]
fn a_data_center_that_runs_is_given_up_only_by_force() {
    let serving = Serving::started(3, &[]);
    let (mut client, mut other) = (serving.client(0), serving.client(1));
    assert!(client.ask("FENCE d1").starts_with("-ERR d1 is connected"));
    assert!(client.ask("FENCE d1 FORCE").starts_with("[\"name\", \"d1\""));
    until("it serves no more", || other.ask("SET a 1").starts_with("-FENCED "));
    let refused = other.ask("GET a");
    assert_eq!(refused, "-FENCED incarnation 0 of d1 is given up; nothing was written");
    assert_eq!(field(&mut other, 1, "state"), "fenced");
    assert_eq!(strong(&mut client, "SETNX lock me"), ":1", "the other two are a majority");
}

#[test]
fn a_single_data_center_has_no_other_to_agree_with() {
    let mut started = Started::new();
    started.client().expect(
        "
        FENCE d1 => -ERR there is no data center d1: d0 is the only one
        FENCE d0 => -ERR d0 is this data center: ask another one that is not lost
        MULTI => +OK
        FENCE d1 => -ERR FENCE is not allowed in a transaction
        DISCARD => +OK
        ",
    );
    assert_eq!(field(&mut started.client(), 0, "state"), "here");
    assert_eq!(field(&mut started.client(), 0, "lag_ms"), "0");
    started.stop();
}
