//! Tokens of sessions, the time of acknowledgements, and labels.

use std::time::{Duration, Instant};

use mingled::process::Durability;
use mingled::server::Tokens;

use super::serving::{Serving, until};
use super::{Raw, Started};

fn token(client: &mut Raw) -> String {
    let token = client.ask("SESSION TOKEN");
    let token = token.strip_prefix('"').and_then(|token| token.strip_suffix('"'));
    token.expect("a token").to_owned()
}

fn with_tokens(lifetime: Duration) -> Started {
    let key = b"a key for tests of tokens".to_vec();
    Started::with(|settings| settings.tokens = Some(Tokens { key, lifetime }))
}

#[test]
fn a_session_goes_on_at_another_data_center_and_sees_its_writes() {
    let serving = Serving::started(3, &["--delay", "100ms"]);
    let (mut first, mut second) = (serving.client(0), serving.client(1));
    for round in 0..3 {
        first.expect(&format!("SET a {round} => +OK"));
        let token = token(&mut first);
        assert_ne!(second.ask("GET a"), format!("\"{round}\""), "it cannot be there yet");
        second.expect(&format!("SESSION ATTACH {token} => +OK\nGET a => \"{round}\""));
        // A token may be used again.
        second.expect(&format!("SESSION ATTACH {token} => +OK"));
    }
    second.expect("SET a back => +OK");
    let token = token(&mut second);
    first.expect(&format!("SESSION ATTACH {token} => +OK\nGET a => \"back\""));
}

#[test]
fn a_token_survives_a_kill_of_the_process_that_made_it() {
    let mut serving = Serving::started(2, &[]);
    let mut client = serving.client(0);
    client.expect("SESSION DURABLE memory => +OK\nSET a 1 => +OK");
    // All that it names is on disk before it leaves.
    let token = token(&mut client);
    serving.kill(0);
    serving.start(0, &[]);
    let mut client = serving.client(0);
    until("it serves", || client.ask(&format!("SESSION ATTACH {token}")) == "+OK");
    client.expect("GET a => \"1\"");
}

#[test]
fn a_token_of_lost_writes_is_refused() {
    let mut serving = Serving::started(3, &[]);
    serving.kill(0);
    serving.kill(1);
    let mut client = serving.client(2);
    client.expect("SET a lost => +OK");
    let lost = token(&mut client);
    serving.kill(2);
    serving.start(0, &[]);
    serving.start(1, &[]);
    serving.connected();
    let mut client = serving.client(0);
    client.expect("SET b kept => +OK");
    assert!(client.ask("FENCE d2").starts_with("[\"name\", \"d2\""));
    let refused = client.ask(&format!("SESSION ATTACH {lost}"));
    assert!(
        refused.starts_with("-LOST part of what the session read or wrote is lost: of d2"),
        "{refused}"
    );
    // The connection's own session is as before.
    client.expect("GET b => \"kept\"\nGET a => nil");
    let own = token(&mut client);
    client.expect(&format!("SESSION ATTACH {own} => +OK"));
}

#[test]
fn a_token_of_another_life_of_the_folder_is_refused() {
    let mut serving = Serving::new(1, &[]);
    serving.start(0, &[]);
    serving.client(0).expect("SET a 1 => +OK");
    serving.kill(0);
    let copy = serving.folder(0).with_extension("copy");
    copy_all(&serving.folder(0), &copy);
    serving.start(0, &[]);
    let mut client = serving.client(0);
    until("it serves", || client.ask("SET a 2") == "+OK");
    let token = token(&mut client);
    serving.kill(0);
    std::fs::remove_dir_all(serving.folder(0)).expect("it is there");
    copy_all(&copy, &serving.folder(0));
    serving.start(0, &[]);
    let mut client = serving.client(0);
    let refused = client.ask(&format!("SESSION ATTACH {token}"));
    let expected = "-LOST start 2 of d0 that made the token is unknown to this one, start 2";
    assert!(refused.starts_with(expected), "{refused}");
}

fn copy_all(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_all(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("it can be copied");
        }
    }
}

#[test]
fn wrong_tokens_have_errors_of_their_own() {
    let mut started = with_tokens(Duration::from_millis(200));
    let mut client = started.client();
    client.expect("SET a 1 => +OK");
    let good = token(&mut client);
    let mut forged = good.clone();
    let last = if forged.pop() == Some('A') { 'E' } else { 'A' };
    forged.push(last);
    let refused = client.ask(&format!("SESSION ATTACH {forged}"));
    assert_eq!(refused, "-BADTOKEN the token is not signed with the key of this cluster");
    let refused = client.ask("SESSION ATTACH me");
    assert_eq!(refused, "-BADTOKEN this is no token, expected one of SESSION TOKEN");
    until("it expires", || {
        client.ask(&format!("SESSION ATTACH {good}")).starts_with("-EXPIRED the token was made")
    });
    let fresh = token(&mut client);
    let mut other = with_tokens(Duration::from_mins(1));
    let refused = other.client().ask(&format!("SESSION ATTACH {fresh}"));
    // The same key, cluster and data center, and another folder.
    assert!(refused.starts_with("-LOST start 1 of d0 that made the token is unknown"), "{refused}");
    other.stop();
    client.expect(
        "
        SESSION ATTACH => -ERR wrong number of arguments for 'session' command
        SESSION UP => -ERR found 'up', expected TOKEN, ATTACH or DURABLE
        MULTI => +OK
        SESSION TOKEN => -ERR SESSION is not allowed in a transaction
        DISCARD => +OK
        ",
    );
    started.stop();
    let mut without = Started::new();
    let refused = without.client().ask("SESSION TOKEN");
    assert!(refused.starts_with("-ERR there is no key for tokens"), "{refused}");
    without.stop();
}

#[test]
fn a_connection_chooses_when_its_commits_are_acknowledged() {
    let mut started = Started::with(|settings| settings.durability = Durability::Disk);
    let mut client = started.client();
    client.expect(
        r#"
        SESSION DURABLE => "disk"
        SESSION DURABLE memory => +OK
        SESSION DURABLE => "memory"
        SET a 1 => +OK
        MSET a 2 b 2 c 2 d 2 => +OK
        MGET a b c d => ["2", "2", "2", "2"]
        SESSION DURABLE often => -ERR found 'often', expected memory, disk or uniform
        SESSION DURABLE UNIFORM => +OK
        INCR a => :3
        MULTI => +OK
        INCR a => +QUEUED
        EXEC => [:4]
        BEGIN => +OK
        GET a => "4"
        COMMIT => +OK
        SETNX e 1 => :1
        RESET => +RESET
        SESSION DURABLE => "disk"
        "#,
    );
    started.stop();
}

#[test]
fn a_uniform_commit_waits_for_another_data_center() {
    let mut serving = Serving::started(3, &["--delay", "100ms", "--durability", "uniform"]);
    let mut client = serving.client(0);
    client.expect("SESSION DURABLE => \"uniform\"");
    let begin = Instant::now();
    client.expect("SET a 1 => +OK");
    let found = begin.elapsed();
    assert!(
        found >= Duration::from_millis(200),
        "there and back takes 200 ms, and it took {found:?}"
    );
    client.expect("SESSION DURABLE disk => +OK\nSET a 2 => +OK\nSESSION DURABLE uniform => +OK");
    serving.kill(1);
    client.expect("SET a 3 => +OK");
    serving.kill(2);
    // Nothing is given back: it is committed here.
    let refused = client.ask("SET a 4");
    assert!(
        refused.starts_with("-NOTUNIFORM ") && refused.contains("is committed in"),
        "{refused}"
    );
    client.expect("GET a => \"4\"");
}

#[test]
fn labels_declare_the_conflicts_of_strong_transactions() {
    let labels = ["--label", "withdraw=withdraw", "--label", "deposit"];
    let serving = Serving::started(1, &labels);
    let (mut one, mut other) = (serving.client(0), serving.client(0));
    one.expect(
        "
        SET account 10 => +OK
        BEGIN STRONG LABEL rob => -ERR found label 'rob', expected deposit, withdraw
        BEGIN CAUSAL LABEL deposit => -ERR only strong transactions have a label: use BEGIN STRONG LABEL
        BEGIN STRONG LABEL => -ERR syntax error
        ",
    );
    // Deposits commute.
    for client in [&mut one, &mut other] {
        client.expect("BEGIN STRONG LABEL deposit => +OK");
        client.expect("INCRBY account 5 => :15");
    }
    one.expect("COMMIT => +OK");
    other.expect("COMMIT => +OK\nGET account => \"20\"");
    // Of two withdrawals one must see the other.
    for client in [&mut one, &mut other] {
        client.expect("BEGIN STRONG LABEL withdraw => +OK\nDECRBY account 15 => :5");
    }
    one.expect("COMMIT => +OK");
    let commit = other.ask("COMMIT");
    assert!(commit.starts_with("-CONFLICT "), "{commit}");
    other.expect("GET account => \"5\"");
    // A withdrawal does not conflict with a deposit, and does with a transaction without a label.
    one.expect("BEGIN STRONG LABEL withdraw => +OK\nDECRBY account 1 => :4");
    other.expect("BEGIN STRONG LABEL deposit => +OK\nINCRBY account 1 => :6\nCOMMIT => +OK");
    one.expect("COMMIT => +OK\nGET account => \"5\"");
    one.expect("BEGIN STRONG LABEL withdraw => +OK\nDECRBY account 1 => :4");
    other.expect("BEGIN STRONG => +OK\nINCRBY account 1 => :6\nCOMMIT => +OK");
    let commit = one.ask("COMMIT");
    assert!(commit.starts_with("-CONFLICT "), "{commit}");

    let mut started = Started::new();
    started.client().expect("BEGIN STRONG LABEL a => -ERR found label 'a', and none is declared");
    started.stop();
}
