//! A server that crashes and restarts.

use std::time::{Duration, Instant};

use crate::support::{at, data, notes, open, write};
use mingle_model::{Level, Origin, TransactionId, Value};
use mingle_services::Engine;
use mingle_store::{Commit, Data, DataStore, Outcome, Read, Session, StoreError, Write};
use mingle_store_postgres::PostgresConfig;

fn id(sequence: u64) -> TransactionId {
    TransactionId { origin: Origin(7), sequence }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_the_server() {
    let Some(server) = mingle_services::private(Engine::Postgres).await else { return };
    let store = open(PostgresConfig::at(server.url()), notes(Level::Linearizable)).await;
    let mut acknowledged = 0;
    let mut unknown = Vec::new();
    for round in 1..=3u64 {
        for n in 0..20 {
            let commit = Commit {
                id: Some(id(round * 100 + n)),
                writes: vec![Write::Append(at("a", 4), Value::from(format!("{round}.{n}")))],
                ..Commit::default()
            };
            let open = store.begin(&Session::default()).await.expect("a transaction");
            if n == 10 {
                let commit = tokio::spawn(open.commit(commit));
                server.kill9().await.expect("the server is killed");
                match commit.await.expect("no panic") {
                    Ok(_) => acknowledged += 1,
                    Err(StoreError::Unknown { id, .. }) => unknown.extend(id),
                    Err(StoreError::Unavailable { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
                let down = write(&*store, vec![Write::Add(at("b", 1), 1)]).await;
                assert!(matches!(down, Err(StoreError::Unavailable { .. })), "it gave {down:?}");
                server.restart().await.expect("the server is back");
                continue;
            }
            open.commit(commit).await.expect("a commit");
            acknowledged += 1;
        }
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    for id in unknown {
        loop {
            match store.outcome(id).await.expect("an outcome") {
                Outcome::Committed => acknowledged += 1,
                Outcome::NotCommitted => {}
                Outcome::Unknown => {
                    assert!(Instant::now() < deadline, "nobody says what became of {id}");
                    continue;
                }
            }
            break;
        }
    }
    assert_eq!(data(&*store, Read::LogSize(at("a", 4))).await, Data::Count(acknowledged));
}
