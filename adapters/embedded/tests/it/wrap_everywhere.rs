//! The wrappers of `mingle-store` around a store's requests that are not about its data.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{at, open, session, usual, write};
use mingle_model::{Level, Origin, TransactionId};
use mingle_store::wrap::count::CountingStore;
use mingle_store::wrap::distance::{Distance, DistantStore};
use mingle_store::wrap::fault::{Call, Fault, FaultPlan, FaultyStore};
use mingle_store::wrap::history::{EventCall, RecordedStore, Recording};
use mingle_store::{
    Commit, DataStore, Guard, Outcome, RecordKey, RecordKind, StoreError, TestWorld, World, Write,
};
use mingle_store_embedded::EmbeddedConfig;

fn id() -> TransactionId {
    TransactionId { origin: Origin(1), sequence: 1 }
}

/// A commit that writes nothing and has a guard that holds.
fn guarded() -> Commit {
    let guards = vec![Guard::Absent(RecordKey::of(RecordKind::Witness, id(), 0))];
    Commit { id: Some(id()), guards, ..Commit::default() }
}

async fn judge(store: &Arc<dyn DataStore>) -> Result<(), StoreError> {
    store.begin(&session("r1")).await?.commit(guarded()).await.map(|_| ())
}

#[test]
fn wrappers_ask_for_what_is_everywhere_and_send_guards() {
    let world = TestWorld::new(1);
    let config = EmbeddedConfig::in_memory().with_replicas(2);
    let inner = open(&world, config, usual(Level::Causal));
    let plan = FaultPlan::scripted([
        (Call::Everywhere, 1, Fault::Conflict),
        (Call::Everywhere, 2, Fault::LostAfter),
        (Call::Commit, 1, Fault::LostAfter),
    ]);
    let distance: Distance = "80ms".parse().expect("a distance");
    let recording = Arc::new(Recording::default());
    let store = FaultyStore::new(inner, plan.clone());
    let (store, counters) = CountingStore::new(store);
    let store = DistantStore::new(store, distance, world.clone());
    let store: Arc<dyn DataStore> = RecordedStore::new(store, recording.clone(), world.clone());
    world.block_on(async {
        let add = vec![Write::Add(at("a", 1), 1)];
        let written = write(&store, &session("r1"), add).await.expect("a commit");
        assert_eq!(store.everywhere().await, Ok(written.stamp));
        for _ in 0..2 {
            let failed = store.everywhere().await;
            assert!(matches!(failed, Err(StoreError::Unavailable { .. })), "{failed:?}");
        }
        let unknown = StoreError::Unknown { store: "notes".into(), id: Some(id()) };
        assert_eq!(judge(&store).await, Err(unknown), "an answer that was lost");
        assert_eq!(store.outcome(id()).await, Ok(Outcome::Committed));
    });
    assert_eq!(world.elapsed(), Duration::from_millis(6 * 80), "a round trip each");
    let counts = counters.now();
    assert_eq!((counts.everywheres, counts.commits, counts.outcomes), (3, 2, 1));
    assert_eq!((counts.round_trips(), counts.errors), (6, 3));
    assert_eq!((plan.calls(Call::Everywhere), plan.calls(Call::Commit)), (3, 2));
    let asked = recording.events().into_iter().filter_map(|event| match event.call {
        EventCall::Everywhere(answer) => Some((event.transaction, answer.is_ok())),
        _ => None,
    });
    assert_eq!(asked.collect::<Vec<_>>(), [(0, true), (0, false), (0, false)]);
}
