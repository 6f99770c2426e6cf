//! Transactions of several commands, and classes of consistency.

use std::thread;

use super::{Started, shown};

#[test]
fn queued_commands_run_together() {
    let mut started = Started::new();
    started.client().expect(
        r#"
        MULTI => +OK
        SET a 1 => +QUEUED
        INCR a => +QUEUED
        LPUSH l x y => +QUEUED
        LRANGE l 0 -1 => +QUEUED
        GET l => +QUEUED
        PING => +QUEUED
        EXEC => [+OK, :2, :2, ["y", "x"], -WRONGTYPE Operation against a key holding the wrong kind of value, +PONG]
        GET a => "2"
        MULTI => +OK
        MULTI => -ERR MULTI calls can not be nested
        NOSUCH => -ERR unknown command 'NOSUCH', with args beginning with:
        SET a 9 => +QUEUED
        EXEC => -EXECABORT Transaction discarded because of previous errors.
        GET a => "2"
        MULTI => +OK
        SET a 9 => +QUEUED
        DISCARD => +OK
        GET a => "2"
        EXEC => -ERR EXEC without MULTI
        DISCARD => -ERR DISCARD without MULTI
        MULTI => +OK
        EXEC => []
        MULTI => +OK
        KEYS * => -ERR KEYS is not allowed in a transaction
        EXEC => -EXECABORT Transaction discarded because of previous errors.
        MULTI => +OK
        ZADD z 1.5 m => +QUEUED
        ZINCRBY z 1 m => +QUEUED
        SETNX a 5 => +QUEUED
        EXEC => [:1, "2.5", :0]
        WATCH a => +OK
        UNWATCH => +OK
        "#,
    );
    started.stop();
}

#[test]
fn a_watched_item_that_changed_stops_the_transaction() {
    let mut started = Started::new();
    let (mut one, mut other) = (started.client(), started.client());
    one.expect("SET a 1 => +OK\nWATCH a b => +OK");
    other.expect("SET a 2 => +OK");
    one.expect("MULTI => +OK\nINCR a => +QUEUED\nEXEC => nil\nGET a => \"2\"");
    // It is forgotten with EXEC.
    one.expect("MULTI => +OK\nINCR a => +QUEUED\nEXEC => [:3]");
    // An item that begins to exist has changed, too.
    one.expect("WATCH new => +OK");
    other.expect("SADD new m => :1");
    one.expect("MULTI => +OK\nPING => +QUEUED\nEXEC => nil");
    one.expect("WATCH a => +OK\nMULTI => +OK\nINCR a => +QUEUED\nEXEC => [:4]");
    one.expect("WATCH a => +OK\nSET a 1 => +OK\nMULTI => +OK\nEXEC => nil");
    started.stop();
}

#[test]
fn transactions_of_begin_answer_at_once() {
    let mut started = Started::new();
    let (mut one, mut other) = (started.client(), started.client());
    one.expect(
        r#"
        BEGIN => +OK
        SET a 1 => +OK
        GET a => "1"
        SETNX b 1 => -ERR this SETNX is strong, and the transaction is causal: use BEGIN STRONG
        INCR a => :2
        "#,
    );
    other.expect("GET a => nil");
    one.expect("COMMIT => +OK\nGET a => \"2\"");
    one.expect("BEGIN CAUSAL => +OK\nSET a 9 => +OK\nABORT => +OK\nGET a => \"2\"");
    one.expect("COMMIT => -ERR COMMIT without BEGIN\nABORT => -ERR ABORT without BEGIN");
    one.expect("BEGIN UP => -ERR found 'up', expected CAUSAL or STRONG");
    one.expect("BEGIN => +OK\nCOMMIT => +OK\nBEGIN STRONG => +OK\nGET a => \"2\"");
    // A strong transaction that read what another one changed has a conflict.
    other.expect("SETRANGE a 0 7 => :1");
    one.expect("SET a 3 => +OK");
    let commit = one.ask("COMMIT");
    assert!(commit.starts_with("-CONFLICT "), "{commit}");
    one.expect("GET a => \"7\"");
    one.expect("BEGIN STRONG => +OK\nSETNX b 1 => :1\nCOMMIT => +OK\nGET b => \"1\"");
    let unknown = one.ask("OUTCOME x");
    assert!(unknown.starts_with("-ERR no unknown outcome of x"), "{unknown}");
    started.stop();
}

#[test]
fn one_of_many_clients_gets_each_thing() {
    let mut started = Started::new();
    let mut client = started.client();
    let all: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    let push: Vec<&str> =
        ["RPUSH", "queue"].into_iter().chain(all.iter().map(String::as_str)).collect();
    assert_eq!(shown(&client.call(&push)), ":12");
    let address = started.address();
    let takers = (0..3).map(|_| {
        thread::spawn(move || {
            let (mut client, mut taken) = (super::Raw::connect(address), Vec::new());
            loop {
                match client.ask("LPOP queue") {
                    none if none == "nil" => return taken,
                    conflict if conflict.starts_with("-CONFLICT ") => {}
                    one => taken.push(one),
                }
            }
        })
    });
    let takers: Vec<_> = takers.collect();
    let mut taken: Vec<String> =
        takers.into_iter().flat_map(|taker| taker.join().expect("it ends")).collect();
    taken.sort();
    let mut expected: Vec<String> = all.iter().map(|number| format!("\"{number}\"")).collect();
    expected.sort();
    assert_eq!(taken, expected);
    started.stop();
}

#[test]
fn clients_that_add_at_the_same_time_lose_nothing() {
    let mut started = Started::new();
    let address = started.address();
    let adders = (0..4).map(|_| {
        thread::spawn(move || {
            let mut client = super::Raw::connect(address);
            for _ in 0..50 {
                client.ask("INCR causal");
                client.ask("HINCRBY h f 2");
            }
        })
    });
    for adder in adders.collect::<Vec<_>>() {
        adder.join().expect("it ends");
    }
    let mut client = started.client();
    client.expect("GET causal => \"200\"\nHGET h f => \"400\"");
    // Writes of keys that match these patterns are strong, so each addition has a number of its own.
    client.expect("INCR strong-a => :1\nINCR strong-a => :2\nGET strong-a => \"2\"");
    client.expect("BEGIN CAUSAL => +OK\nSET :lock x => +OK\nCOMMIT => +OK\nBEGIN CAUSAL => +OK");
    let why = "this SET is strong, and the transaction is causal: use BEGIN STRONG";
    client.expect(&format!("SET job:lock x => -ERR {why}\nABORT => +OK\nSET job:lock x => +OK"));
    client.expect("SET strong-a x => +OK\nMULTI => +OK\nSET strong-a y => +QUEUED\nEXEC => [+OK]");
    started.stop();
}
