//! Outcomes are kept for a while; for removed ones the store never reports a false outcome.

use std::time::{Duration, Instant};

use mingle_services::Engine;
use mingle_store::conformance::schema::{COUNT, at};
use mingle_store::{Commit, DataStore, Outcome, Read, Session, StoreError, Write};
use mingle_store_redis::{Redis, RedisConfig};

use crate::support::{Other, bulk, config, data, id, open};

async fn commit(store: &Redis, sequence: u64) -> Result<(), StoreError> {
    let writes = vec![Write::Add(at("c", COUNT), 1)];
    let open = store.begin(&Session::default()).await?;
    open.commit(Commit { id: Some(id(sequence)), writes, ..Commit::default() }).await.map(|_| ())
}

#[tokio::test]
async fn old_outcomes_go_and_their_ids_never_take_effect_again() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let config = RedisConfig { keep_outcomes: Duration::from_millis(300), ..config(server.url()) };
    let prefix = config.prefix.clone().expect("it has one");
    let store = open(config).await;
    assert_eq!(store.outcome(id(1)).await, Ok(Outcome::NotCommitted));
    commit(&store, 2).await.expect("it commits");
    commit(&store, 4).await.expect("it commits");
    assert_eq!(store.outcome(id(2)).await, Ok(Outcome::Committed));
    let mut sequence = 10;
    let deadline = Instant::now() + Duration::from_secs(30);
    while store.outcome(id(4)).await != Ok(Outcome::Unknown) {
        assert!(Instant::now() < deadline, "old outcomes stay");
        commit(&store, sequence).await.expect("it commits");
        sequence += 1;
    }
    let count = data(&store, Read::Counter(at("c", COUNT))).await;
    // The barred id, the committed ids, and an id that was never used.
    for gone in [1, 2, 3, 4] {
        assert_eq!(store.outcome(id(gone)).await, Ok(Outcome::Unknown), "{gone}");
        assert_eq!(commit(&store, gone).await, Err(StoreError::Conflict), "{gone}");
    }
    assert_eq!(data(&store, Read::Counter(at("c", COUNT))).await, count);
    // Ids of other origins, and later ones, are not affected.
    assert_eq!(store.outcome(id(1 << 32)).await, Ok(Outcome::NotCommitted));
    assert_eq!(store.outcome(id(u64::MAX)).await, Ok(Outcome::NotCommitted));
    commit(&store, u64::MAX - 1).await.expect("it commits");
    let mut other = Other::at(server.url()).await;
    let kept = format!("{prefix}!outcomes");
    let (listed, dated) = (
        other.words(&["HLEN", &kept]).await,
        other.words(&["ZCARD", &format!("{kept}:age")]).await,
    );
    assert_eq!(listed, dated);
    let gone = other.words(&["HLEN", &format!("{kept}:gone")]).await;
    assert_eq!(gone, redis::Value::Int(1), "one for each origin");
    let barred = other.words(&["HGET", &kept, &format!("{:032x}-{:016x}", 77, u64::MAX)]).await;
    assert_eq!(barred, bulk("barred"));
}
