//! A store whose disk fails says so, and opens again by itself once the disk works.

use std::sync::Arc;
use std::time::Duration;

use crate::support::disk::{DiskFault, TwinDisk};
use crate::support::{count_series, nth, session, usual, write};
use mingle_model::{Level, Origin, TransactionId};
use mingle_store::random::next_random;
use mingle_store::{Commit, DataStore, Outcome, Session, StoreError, TestWorld, World};
use mingle_store_embedded::limits::REOPEN_EVERY;
use mingle_store_embedded::storage::disk::DiskStorage;
use mingle_store_embedded::{Embedded, EmbeddedConfig, GeoConfig};

const DELAY: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Serializable,
    Replicated,
    Datacenters,
    Certified,
    Mixed,
}

/// The transaction of this name is strong in a store of kind `Mixed`.
fn strong(session: Session) -> Session {
    Session { transaction: Some("strong".into()), ..session }
}

fn open(world: &Arc<TestWorld>, kind: Kind, disk: &TwinDisk) -> Arc<dyn DataStore> {
    let memory = EmbeddedConfig::in_memory();
    let (config, level) = match kind {
        Kind::Serializable => (memory, Level::Linearizable),
        Kind::Replicated => {
            (memory.with_replicas(2).with_delay(DELAY, Duration::ZERO), Level::Causal)
        }
        Kind::Datacenters => (memory.with_geo(GeoConfig::new(["r1", "r2", "r3"])), Level::Causal),
        Kind::Certified => {
            (memory.with_geo(GeoConfig::new(["r1", "r2", "r3"])), Level::Linearizable)
        }
        Kind::Mixed => {
            let geo = GeoConfig::new(["r1", "r2", "r3"]).with_conflicts([("strong", "strong")]);
            (memory.with_geo(geo), Level::Causal)
        }
    };
    let storage = DiskStorage::open_backend(disk.clone()).expect("the disk works");
    let world: Arc<dyn World> = world.clone();
    Embedded::open_over(Box::new(storage), &config, &usual(level), world).expect("it opens")
}

fn is_unavailable(found: Result<(), StoreError>) -> bool {
    matches!(found, Err(StoreError::Unavailable { reason, .. }) if reason.contains("disk failed"))
}

/// Commits until the disk fails; returns the number of acknowledged commits, and the failed one's id.
fn until_failure(
    world: &TestWorld,
    store: &Arc<dyn DataStore>,
    (from, round): (u64, u64),
) -> (u64, TransactionId) {
    for n in from + 1.. {
        let id = TransactionId { origin: Origin(1), sequence: round * 1_000_000 + n };
        let done = world.block_on(async {
            let transaction = store.begin(&strong(Session::default())).await?;
            transaction.commit(Commit { id: Some(id), writes: nth(n), ..Commit::default() }).await
        });
        if done.is_err() {
            return (n - 1, id);
        }
        world.advance(DELAY / 3);
    }
    unreachable!("the disk fails in the end");
}

fn fail_and_mend(kind: Kind, seed: u64) {
    let mut random = seed;
    let world = TestWorld::new(seed);
    let disk = TwinDisk::new();
    let store = open(&world, kind, &disk);
    let mut there = 0;
    let calls = if matches!(kind, Kind::Certified | Kind::Mixed) { 400 } else { 40 };
    for round in 0..3 {
        let what = format!("{kind:?}, round {round} of seed {seed}");
        assert_eq!(world.block_on(store.health()), Ok(()), "{what}");
        let begun = world.block_on(store.begin(&Session::default())).expect("it serves");
        disk.fail_after(next_random(&mut random) % calls, DiskFault::OneError);
        let (acknowledged, id) = until_failure(&world, &store, (there, round));
        assert!(is_unavailable(world.block_on(store.health())), "{what}");
        let again = world.block_on(write(&store, &Session::default(), nth(1)));
        assert!(is_unavailable(again.map(|_| ())), "{what}");

        world.block_on(world.sleep(REOPEN_EVERY));
        assert_eq!(world.block_on(store.health()), Ok(()), "{what}");
        // A transaction from before the failure may not continue from its snapshot.
        if !matches!(kind, Kind::Datacenters | Kind::Certified | Kind::Mixed) {
            let late = Commit { writes: nth(there + 1), ..Commit::default() };
            let late = world.block_on(begun.commit(late));
            assert!(matches!(late, Err(StoreError::Unavailable { .. })), "{what}: {late:?}");
        }
        let outcome = world.block_on(store.outcome(id)).expect("it serves");
        let found = count_series(&world, &store, &Session::default());
        let expected = acknowledged + u64::from(outcome == Outcome::Committed);
        assert_ne!(outcome, Outcome::Unknown, "{what}");
        assert_eq!(found, expected, "{what}: {outcome:?}");
        if kind != Kind::Serializable {
            world.block_on(world.sleep(Duration::from_secs(1)));
            assert_eq!(count_series(&world, &store, &session("r2")), found, "{what}: elsewhere");
        }
        there = found;
    }
    assert!(there > 0, "{kind:?}, seed {seed}: nothing was committed");
}

#[test]
fn a_serializable_store_opens_again() {
    (0..20).for_each(|seed| fail_and_mend(Kind::Serializable, seed));
}

#[test]
fn a_replicated_store_opens_again() {
    (100..115).for_each(|seed| fail_and_mend(Kind::Replicated, seed));
}

#[test]
fn data_centers_open_again() {
    (200..208).for_each(|seed| fail_and_mend(Kind::Datacenters, seed));
}

#[test]
fn data_centers_that_certify_open_again() {
    (300..304).for_each(|seed| fail_and_mend(Kind::Certified, seed));
}

#[test]
fn data_centers_of_a_causal_store_that_certify_open_again() {
    (400..404).for_each(|seed| fail_and_mend(Kind::Mixed, seed));
}

#[test]
fn a_disk_that_goes_on_failing_is_tried_once_a_while() {
    let world = TestWorld::new(5);
    let disk = TwinDisk::new();
    let store = open(&world, Kind::Serializable, &disk);
    disk.fail_after(3, DiskFault::PowerLoss);
    until_failure(&world, &store, (0, 0));
    for _ in 0..3 {
        world.block_on(world.sleep(REOPEN_EVERY));
        let health = world.block_on(store.health());
        assert!(is_unavailable(health.clone()), "{health:?}");
        let text = health.expect_err("it fails").to_string();
        assert!(text.contains("does not open again"), "{text}");
    }
}
