//! The operations that cost a round trip.

use mingle_services::{Engine, Server};
use mingle_store::conformance::schema::{COUNT, NUMBER, TEXT, at, thing};
use mingle_store::{Commit, DataStore, Read, RecordKey, RecordKind, Session, Write};

use crate::indexes::{BOTH, items, paint};
use crate::support::{Other, config, connect, id, open, text, write};

/// Returns the number of scripts that a server has run.
async fn scripts(other: &mut Other) -> u64 {
    let redis::Value::BulkString(found) = other.run("INFO commandstats").await else {
        panic!("no statistics")
    };
    let found = String::from_utf8_lossy(&found).into_owned();
    let calls = |line: &str| {
        let rest = line.strip_prefix("cmdstat_eval")?.split_once("calls=")?.1;
        rest.split(',').next()?.parse::<u64>().ok()
    };
    found.lines().filter_map(calls).sum()
}

async fn server() -> Option<Server> {
    mingle_services::private(Engine::Redis).await
}

#[tokio::test]
async fn each_batch_and_each_commit_is_one_round_trip() {
    let Some(server) = server().await else { return };
    let store = open(config(server.url())).await;
    let mut other = Other::at(server.url()).await;
    let add = || vec![Write::Add(at("a", COUNT), 1)];
    let record = Read::Record(RecordKey::of(RecordKind::Intent, id(1), 0));
    let batch = [
        Read::Register(at("a", TEXT)),
        Read::Counter(at("b", COUNT)),
        Read::Exists(thing("c")),
        record,
    ];
    let write = |writes| Commit { writes, ..Commit::default() };
    // Batches of reads, flushes, and the commit's writes.
    let cases = [
        (1, 0, vec![], 1, "a batch"),
        (3, 0, vec![], 3, "three batches"),
        (0, 0, add(), 1, "a blind write"),
        (1, 0, add(), 2, "a read and a write"),
        (2, 2, add(), 3, "with flushes"),
        (0, 1, vec![], 1, "a flush alone"),
        (0, 0, vec![], 0, "nothing"),
    ];
    for (batches, flushes, writes, expected, what) in cases {
        let before = scripts(&mut other).await;
        let mut open = store.begin(&Session::default()).await.expect("it begins");
        for _ in 0..flushes {
            open.flush(vec![Write::Assign(at("d", NUMBER), 1.into())]).await.expect("it flushes");
        }
        for _ in 0..batches {
            open.read(&batch).await.expect("it reads");
        }
        open.commit(write(writes)).await.expect("it commits");
        assert_eq!(scripts(&mut other).await - before, expected, "{what}");
    }
    let before = scripts(&mut other).await;
    store.outcome(id(9)).await.expect("it answers");
    assert_eq!(scripts(&mut other).await - before, 1, "an outcome");
}

#[tokio::test]
async fn what_is_refused_is_not_sent() {
    let Some(server) = server().await else { return };
    let store = open(config(server.url())).await;
    let mut other = Other::at(server.url()).await;
    let before = scripts(&mut other).await;
    let open = store.begin(&Session::default()).await.expect("it begins");
    let writes = vec![Write::Assign(at("a", NUMBER), text("no number"))];
    let refused = open.commit(Commit { writes, ..Commit::default() }).await;
    let reason = crate::support::refusal(refused);
    assert!(reason.contains("Thing.number") && reason.contains("int"), "{reason}");
    assert_eq!(scripts(&mut other).await, before);
}

/// Returns the number of calls of a command, those of scripts included.
async fn calls(other: &mut Other, command: &str) -> u64 {
    let redis::Value::BulkString(found) = other.run("INFO commandstats").await else {
        panic!("no statistics")
    };
    let found = String::from_utf8_lossy(&found).into_owned();
    let prefix = format!("cmdstat_{command}:calls=");
    let line = found.lines().find_map(|line| line.strip_prefix(&*prefix)?.split(',').next());
    line.map_or(0, |calls| calls.parse().expect("a number"))
}

/// One question finds that there are neither witness rows nor indexes; with an index, a commit looks at its state and
/// changes one entry.
#[tokio::test]
async fn a_program_without_indexes_calls_no_command_for_them() {
    let Some(server) = server().await else { return };
    let mut other = Other::at(server.url()).await;
    let plain = connect(config(server.url()), items(&[])).await.expect("it opens");
    let indexed = connect(config(server.url()), items(BOTH)).await.expect("it opens");
    let mut counts = Vec::new();
    for store in [&plain, &indexed] {
        write(store, vec![paint("a", "red")]).await.expect("it writes");
        let commands = ["exists", "hget", "type", "hset", "zadd", "zrem"];
        let mut before = Vec::new();
        for command in commands {
            before.push(calls(&mut other, command).await);
        }
        write(store, vec![paint("a", "blue")]).await.expect("it writes");
        let mut made = Vec::new();
        for (command, before) in commands.iter().zip(before) {
            made.push(calls(&mut other, command).await - before);
        }
        counts.push(made);
    }
    // Types: of the number of commits, the kinds, the object's versions and its registers.
    assert_eq!(counts[0], [1, 0, 4, 2, 0, 0]);
    assert_eq!(counts[1][4..], [1, 1]);
    assert!(counts[1][..4].iter().zip(&counts[0]).all(|(more, less)| more > less), "{counts:?}");
}
