//! A server that is killed and restarts.

use std::sync::Arc;

use mingle_services::Engine;
use mingle_store::conformance::schema::{COUNT, LINES, at};
use mingle_store::{Commit, Data, DataStore, Outcome, Read, Session, StoreError, Write};

use crate::support::{config, data, id, open, outcome, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_kill_9() {
    let Some(server) = mingle_services::private(Engine::Redis).await else { return };
    let server = Arc::new(server);
    let store = open(config(server.url())).await;
    let (mut acknowledged, mut sequence) = (Vec::new(), 0u64);
    for round in 0..3 {
        let (first, mut unknown, mut killing) = (sequence, Vec::new(), None);
        // Commits until the server is gone; it is killed in the middle of the series.
        loop {
            if sequence == first + 20 {
                let server = Arc::clone(&server);
                killing = Some(tokio::spawn(async move { server.kill9().await }));
            }
            sequence += 1;
            let writes = vec![
                Write::Add(at("c", COUNT), 1),
                Write::Append(at("c", LINES), text(&sequence.to_string())),
            ];
            let commit = Commit { id: Some(id(sequence)), writes, ..Commit::default() };
            let begun = store.begin(&Session::default()).await.expect("it begins");
            match begun.commit(commit).await {
                Ok(_) => acknowledged.push(sequence),
                Err(StoreError::Unknown { .. }) => unknown.push(sequence),
                Err(StoreError::Unavailable { .. }) if killing.is_some() => break,
                Err(error) => panic!("{error}"),
            }
        }
        let killing = killing.expect("it was killed");
        killing.await.expect("no panic").expect("it is ours");
        server.restart().await.expect("it comes back");
        for one in unknown {
            let outcome = outcome(&store, id(one)).await;
            if outcome == Outcome::Committed {
                acknowledged.push(one);
            }
        }
        acknowledged.sort_unstable();
        let lines = data(&store, Read::LogLast(at("c", LINES), u64::MAX)).await;
        let expected = acknowledged.iter().map(|one| text(&one.to_string())).collect();
        assert_eq!(lines, Data::Values(expected), "round {round}");
        let count = i128::try_from(acknowledged.len()).expect("a few");
        assert_eq!(data(&store, Read::Counter(at("c", COUNT))).await, Data::Counter(count));
    }
    assert!(acknowledged.len() >= 57, "{acknowledged:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_idle_while_the_server_restarted_does_not_notice() {
    let Some(server) = mingle_services::private(Engine::Redis).await else { return };
    let store = open(config(server.url())).await;
    for round in 1..=3 {
        let begun = store.begin(&Session::default()).await.expect("it begins");
        let writes = vec![Write::Add(at("c", COUNT), 1)];
        begun.commit(Commit { writes, ..Commit::default() }).await.expect("the server is there");
        server.kill9().await.expect("it is ours");
        server.restart().await.expect("it comes back");
        assert_eq!(data(&store, Read::Counter(at("c", COUNT))).await, Data::Counter(round));
    }
}
