//! Connections that break, and lost answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use mingle_proxy::fault::Rates;
use mingle_proxy::{Fault, Proxy};
use mingle_services::{Engine, Server};
use mingle_store::conformance::schema::{COUNT, TEXT, at};
use mingle_store::{Commit, Data, DataStore, Outcome, Read, Session, StoreError, Write};
use mingle_store_redis::Redis;

use crate::support::{config, data, id, open, outcome, refusal};

const SEED: u64 = 411;

async fn through_a_proxy(server: &Server) -> (Proxy, Arc<Redis>) {
    let address = server.url().trim_start_matches("redis://").trim_end_matches('/');
    let address: SocketAddr = address.parse().expect("an address");
    let proxy = Proxy::start(address, SEED).await.expect("a proxy");
    let store = open(config(&format!("redis://{}", proxy.address()))).await;
    (proxy, store)
}

fn add(sequence: u64) -> Commit {
    let writes = vec![Write::Add(at("c", COUNT), 1)];
    Commit { id: Some(id(sequence)), writes, ..Commit::default() }
}

async fn commit(store: &Redis, commit: Commit) -> Result<(), StoreError> {
    let open = store.begin(&Session::default()).await?;
    open.commit(commit).await.map(|_| ())
}

#[tokio::test]
async fn a_lost_answer_is_unknown_until_the_outcome_is_asked() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let (proxy, store) = through_a_proxy(server).await;
    let unknown =
        |sequence| Err(StoreError::Unknown { store: "suite".into(), id: Some(id(sequence)) });
    proxy.once_containing(b"EVALSHA", Fault::LoseAnswer);
    assert_eq!(commit(&store, add(1)).await, unknown(1));
    assert_eq!(proxy.planned(), 0, "the answer was not lost");
    assert_eq!(store.outcome(id(1)).await, Ok(Outcome::Committed));
    proxy.once_containing(b"EVALSHA", Fault::CutRequest);
    assert_eq!(commit(&store, add(2)).await, unknown(2));
    assert_eq!(store.outcome(id(2)).await, Ok(Outcome::NotCommitted));
    let late = refusal(commit(&store, add(2)).await);
    assert!(late.contains("said to be not committed"), "{late}");
    assert_eq!(commit(&store, add(1)).await, Err(StoreError::Conflict));
    assert_eq!(data(&store, Read::Counter(at("c", COUNT))).await, Data::Counter(1));
}

#[tokio::test]
async fn nobody_waits_for_another_to_connect() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let (proxy, store) = through_a_proxy(server).await;
    proxy.once_containing(b"EVALSHA", Fault::CutRequest);
    let lost = commit(&store, add(1)).await;
    assert!(matches!(lost, Err(StoreError::Unknown { .. })), "{lost:?}");
    let mut open = store.begin(&Session::default()).await.expect("it begins");
    let reads = [Read::Counter(at("c", COUNT))];
    let mut held = open.read(&reads);
    let polled = held.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "it has to connect anew");
    // More than the time to connect, even on a busy machine.
    let answered = tokio::time::timeout(Duration::from_secs(20), data(&store, reads[0].clone()));
    let answer = answered.await.expect("it does not wait for who does not look");
    assert_eq!(held.await.expect("it is answered as well")[0].data, answer);
}

#[tokio::test]
async fn whatever_breaks_what_was_said_is_true() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    println!("seed {SEED}");
    let (proxy, store) = through_a_proxy(server).await;
    proxy.set_rates(Rates { cut_request: 0.15, lose_answer: 0.15, ..Rates::default() });
    let (mut took_effect, mut were_unknown) = (0, 0);
    for sequence in 1..=60 {
        match commit(&store, add(sequence)).await {
            Ok(()) => took_effect += 1,
            Err(StoreError::Unknown { .. }) => {
                were_unknown += 1;
                let outcome = outcome(&store, id(sequence)).await;
                assert_ne!(outcome, Outcome::Unknown);
                took_effect += i128::from(outcome == Outcome::Committed);
            }
            // The connection that broke before is opened again.
            Err(StoreError::Unavailable { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    proxy.set_rates(Rates::default());
    assert!(were_unknown > 3, "only {were_unknown} broke");
    assert_eq!(data(&store, Read::Counter(at("c", COUNT))).await, Data::Counter(took_effect));
}

#[tokio::test]
async fn a_server_out_of_reach_is_unavailable_and_comes_back() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let (proxy, store) = through_a_proxy(server).await;
    commit(&store, add(1)).await.expect("it commits");
    proxy.down().await;
    proxy.cut();
    let read = [Read::Register(at("a", TEXT))];
    let is_away = |error: &StoreError| matches!(error, StoreError::Unavailable { .. });
    for _ in 0..2 {
        let mut open = store.begin(&Session::default()).await.expect("begins without it");
        assert!(open.read(&read).await.is_err_and(|error| is_away(&error)));
    }
    let away = commit(&store, add(2)).await;
    assert!(away.as_ref().is_err_and(is_away), "nothing was sent: {away:?}");
    proxy.up().await.expect("it listens again");
    assert_eq!(outcome(&store, id(1)).await, Outcome::Committed);
    commit(&store, add(3)).await.expect("it is back");
    assert_eq!(store.outcome(id(2)).await, Ok(Outcome::NotCommitted));
    assert_eq!(data(&store, Read::Counter(at("c", COUNT))).await, Data::Counter(2));
    assert_eq!(data(&store, read[0].clone()).await, Data::Register(None));
}
