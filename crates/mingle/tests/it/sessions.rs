//! Sessions: a session that reads a write also sees all that the writer had seen, at any store and replica.
//!
//! `MINGLE_SESSION_TRANSACTIONS` is the number of transactions of the longest session, 20,000 by
//! default. With 100,000 the longest token has 84 characters.

use std::time::Duration;

use crate::support::shared::{Stores, call};
use mingle::{Error, Session, SessionKey, TokenError};
use mingle_store::test_world::join_all;
use mingle_store::{BoxFuture, World};
use serde_json::{Value as Json, json};

const TEXT: &str = "store bank: linearizable; store feed: causal;
    object Account in bank { key owner: string; balance: int; note: string; }
    object Inbox in feed { key owner: string; lines: log<string>; unread: counter; }
    transaction post(to: ref Inbox, line: string) { to.lines.append(line); }
    transaction read(of: ref Inbox) -> list<string> { return of.lines.to_list(); }
    transaction note(of: ref Account, text: string) { of.note = text; }
    transaction noted(of: ref Account) -> string { return of.note; }
    transaction pay(to: ref Account, inbox: ref Inbox) -> int {
        to.balance += 1;
        inbox.unread.add(1);
        return to.balance;
    }
    transaction unread(of: ref Inbox) -> int { return of.unread.value(); }
    ";

const BINDING: &str = "[stores.bank]\ndistance = \"20ms\"\n\
    [stores.feed]\nreplicas = 3\ndelay = \"400ms±100ms\"\ndistance = \"1ms\"";

fn key() -> SessionKey {
    SessionKey::new(*b"thirty-two bytes that are secret")
}

fn to(owner: &str) -> [(&str, &str); 1] {
    [("of", owner)]
}

#[test]
fn a_token_is_a_session() {
    let stores = Stores::new(TEXT, BINDING);
    let server = stores.server();
    let session = Session::at("r1");
    let fresh = session.token(&key());
    stores.ok(&server, &session, "post", &[("to", "ana"), ("line", "hello")]);
    let token = session.token(&key());
    assert!(token.len() > fresh.len(), "it has something to keep");
    assert!(token.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'), "{token}");
    let resumed = Session::from_token(&key(), &token).expect("it is its own token");
    assert_eq!(resumed, session);
    assert_eq!(resumed.token(&key()), token);
    // The session without a token reads the present state, the one with a token its own write.
    let elsewhere = Session::at("r2");
    assert_eq!(stores.ok(&server, &elsewhere, "read", &to("ana")), json!([]));
    resumed.move_to("r2");
    assert_eq!(stores.ok(&server, &resumed, "read", &to("ana")), json!(["hello"]));
}

#[test]
fn tokens_that_are_not_ours_are_refused() {
    let session = Session::at("r1");
    let token = session.token(&key());
    let other = SessionKey::new([9; 32]);
    assert_eq!(Session::from_token(&other, &token), Err(TokenError::Signature));
    for at in 0..token.len() {
        let mut changed = token.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).expect("it is ASCII");
        // The last character may hold unused bits: changes of these are refused as well.
        assert!(Session::from_token(&key(), &changed).is_err(), "character {at}");
        assert!(Session::from_token(&key(), &token[..at]).is_err(), "its first {at} characters");
    }
    assert!(Session::from_token(&key(), &format!("{token}A")).is_err());
    for odd in ["", "=", "no token", "żółw", "AAAA", "\0"] {
        assert!(Session::from_token(&key(), odd).is_err(), "{odd:?}");
    }
    let long = "A".repeat(10 << 20);
    assert_eq!(Session::from_token(&key(), &long), Err(TokenError::TooLong(10 << 20)));
}

/// A browser sends two requests at once with one cookie; two servers answer with a cookie each.
#[test]
fn two_requests_at_once_from_one_cookie_lose_nothing() {
    let stores = Stores::new(TEXT, BINDING);
    let servers = [stores.server(), stores.server()];
    let before = Session::at("r1");
    stores.ok(&servers[0], &before, "post", &[("to", "ana"), ("line", "first")]);
    let cookie = before.token(&key());
    let requests = servers.iter().zip(["r1", "r2"]).map(|(server, replica)| {
        let session = Session::from_token(&key(), &cookie).expect("it is a token");
        session.move_to(replica);
        let request: BoxFuture<'_, String> = Box::pin(async move {
            let line = format!("from {replica}");
            let arguments = [("to", "ana"), ("line", &*line)];
            call(server, &session, "post", &arguments).await.expect("it runs");
            let arguments = [("to", "bob"), ("inbox", "bob")];
            call(server, &session, "pay", &arguments).await.expect("it runs");
            session.token(&key())
        });
        request
    });
    let answers = stores.world.block_on(join_all(requests.collect()));
    let joined = Session::from_token(&key(), &answers[0]).expect("it is a token");
    joined.join(&Session::from_token(&key(), &answers[1]).expect("it is a token"));
    joined.move_to("r3");
    let lines = stores.ok(&servers[1], &joined, "read", &to("ana"));
    let mut lines: Vec<&Json> = lines.as_array().expect("a list").iter().collect();
    lines.sort_by_key(ToString::to_string);
    assert_eq!(lines, [&json!("first"), &json!("from r1"), &json!("from r2")]);
    assert_eq!(stores.ok(&servers[0], &joined, "unread", &to("bob")), json!(2));
}

/// Ana writes to the causal store at r1 and then to the linearizable one. A session that reads the
/// second write sees the first, at any replica.
#[test]
fn causality_crosses_stores() {
    let run = |reads_note: bool| {
        let stores = Stores::new(TEXT, BINDING);
        let servers = [stores.server(), stores.server()];
        let ana = Session::at("r1");
        stores.ok(&servers[0], &ana, "post", &[("to", "bob"), ("line", "look here")]);
        stores.ok(&servers[0], &ana, "note", &[("of", "ana"), ("text", "posted")]);
        let bob = Session::at("r2");
        if reads_note {
            assert_eq!(stores.ok(&servers[1], &bob, "noted", &to("ana")), json!("posted"));
        }
        let lines = stores.ok(&servers[1], &bob, "read", &to("bob"));
        // The dependencies of the note are dropped once every replica has the post.
        stores.pass(60);
        assert_eq!(stores.left(), Vec::<String>::new());
        lines
    };
    assert_eq!(run(true), json!(["look here"]));
    assert_eq!(run(false), json!([]), "without the note nothing says that there is a post");
}

/// The same, handed on: Bob reads the note and writes one of his own, which Eve reads.
#[test]
fn causality_is_handed_on() {
    let stores = Stores::new(TEXT, BINDING);
    let servers = [stores.server(), stores.server(), stores.server()];
    let ana = Session::at("r1");
    stores.ok(&servers[0], &ana, "post", &[("to", "eve"), ("line", "hello, eve")]);
    stores.ok(&servers[0], &ana, "note", &[("of", "ana"), ("text", "posted")]);
    let bob = Session::at("r2");
    stores.ok(&servers[1], &bob, "noted", &to("ana"));
    stores.ok(&servers[1], &bob, "note", &[("of", "bob"), ("text", "ana has")]);
    let eve = Session::at("r3");
    assert_eq!(stores.ok(&servers[2], &eve, "noted", &to("bob")), json!("ana has"));
    let before = stores.world.elapsed();
    assert_eq!(stores.ok(&servers[2], &eve, "read", &to("eve")), json!(["hello, eve"]));
    let took = stores.world.elapsed().saturating_sub(before);
    assert!(took < Duration::from_millis(200), "it asks at r1, and does not wait: {took:?}");
}

#[test]
fn a_session_that_waits_too_long_is_told_so() {
    let binding = "[runtime]\ndeadline = \"1s\"\n[stores.feed]\nreplicas = 2\ndelay = \"60min\"";
    let stores = Stores::new(TEXT, binding);
    let server = stores.server();
    let session = Session::at("r1");
    stores.ok(&server, &session, "post", &[("to", "ana"), ("line", "hello")]);
    session.move_to("r2");
    // A read may go to the replica of the post; a write stays at the session's replica.
    assert_eq!(stores.ok(&server, &session, "read", &to("ana")), json!(["hello"]));
    let arguments = [("to", "ana"), ("line", "again")];
    let error = stores.call(&server, &session, "post", &arguments).expect_err("it is too far");
    assert!(matches!(error, Error::Store(_)), "{error}");
    let expected =
        "replica r2 of store feed has not yet seen what the session has; nothing was written";
    assert_eq!(error.to_string(), expected);
}

/// In a session of any length, dependencies are pruned once every replica has them.
#[test]
fn the_token_of_a_long_session_is_short() {
    let count = std::env::var("MINGLE_SESSION_TRANSACTIONS");
    let count: usize = count.map_or(20_000, |text| text.parse().expect("it is a number"));
    let stores = Stores::new(TEXT, "[stores.feed]\nreplicas = 3\ndelay = \"40ms±20ms\"");
    let server = stores.server();
    let session = Session::at("r1");
    let mut longest = 0;
    for number in 0..count {
        let owner = format!("owner{}", number % 97);
        session.move_to(format!("r{}", number / 10 % 3 + 1));
        match number % 4 {
            0 => {
                stores.ok(&server, &session, "pay", &[("to", &owner), ("inbox", &owner)]);
            }
            1 => {
                stores.ok(&server, &session, "post", &[("to", &owner), ("line", "x")]);
            }
            2 => {
                stores.ok(&server, &session, "note", &[("of", &owner), ("text", "y")]);
            }
            _ => {
                stores.ok(&server, &session, "unread", &to(&owner));
            }
        }
        longest = longest.max(session.token(&key()).len());
    }
    println!("{count} transactions: at most {longest} characters");
    assert!(longest < 512, "{longest} characters");
    stores.pass(60);
    assert_eq!(stores.left(), Vec::<String>::new());
}
