//! Crashes, power losses and failed writes, over a disk that fails as a seed determines.

use std::sync::Arc;
use std::time::Duration;

use crate::support::disk::{DiskFault, TwinDisk};
use crate::support::{count_series, nth, session, usual};
use mingle_model::{Level, Origin, TransactionId};
use mingle_store::random::next_random;
use mingle_store::{
    Commit, Committed, DataStore, Outcome, Session, StoreError, TestWorld, World, Write,
};
use mingle_store_embedded::storage::disk::DiskStorage;
use mingle_store_embedded::{Embedded, EmbeddedConfig};

const DELAY: Duration = Duration::from_millis(10);

fn open(world: &Arc<TestWorld>, level: Level, disk: &TwinDisk) -> Option<Arc<dyn DataStore>> {
    let replicas = if level == Level::Causal { 2 } else { 1 };
    let config =
        EmbeddedConfig::in_memory().with_replicas(replicas).with_delay(DELAY, Duration::ZERO);
    let storage = DiskStorage::open_backend(disk.clone()).ok()?;
    let world: Arc<dyn World> = world.clone();
    Embedded::open_over(Box::new(storage), &config, &usual(level), world).ok()
}

/// The test's knowledge of the store.
struct Known {
    /// The number of acknowledged commits.
    acknowledged: u64,
    /// The id of one more commit whose answer was lost.
    unknown: Option<TransactionId>,
    /// The number of attempted commits.
    tried: u64,
}

async fn commit(
    store: &Arc<dyn DataStore>,
    id: TransactionId,
    writes: Vec<Write>,
) -> Result<Committed, StoreError> {
    let transaction = store.begin(&Session::default()).await?;
    let commit = Commit { id: Some(id), writes, ..Commit::default() };
    transaction.commit(commit).await
}

/// Commits until the disk fails.
fn run(world: &TestWorld, store: &Arc<dyn DataStore>, disk: &TwinDisk, known: &mut Known) {
    for _ in 0..60 {
        let next = known.acknowledged + 1;
        known.tried += 1;
        let id = TransactionId { origin: Origin(1), sequence: known.tried };
        match world.block_on(commit(store, id, nth(next))) {
            Ok(_) => known.acknowledged = next,
            Err(error) => {
                assert!(disk.has_failed(), "no fault, but {error}");
                known.unknown = matches!(error, StoreError::Unknown { .. }).then_some(id);
                let again = world.block_on(commit(store, id, nth(next)));
                let is_refused = matches!(again, Err(StoreError::Unavailable { .. }));
                assert!(is_refused, "after a failure: {again:?}");
                return;
            }
        }
        world.advance(DELAY / 3);
    }
}

/// One life after another of one store, each ended by a crash.
fn lives(seed: u64, level: Level, fault: DiskFault) -> u64 {
    let mut random = seed;
    let world = TestWorld::new(seed);
    let mut disk = TwinDisk::new();
    let mut known = Known { acknowledged: 0, unknown: None, tried: 0 };
    let mut is_made = false;
    for life in 0..4 {
        let calls = next_random(&mut random) % 120;
        disk.fail_after(calls, fault);
        is_made |= DiskStorage::open_backend(disk.clone()).is_ok();
        if is_made && let Some(store) = open(&world, level, &disk) {
            run(&world, &store, &disk, &mut known);
        }
        disk = disk.crash(&mut random);
        if !is_made {
            // An unfinished file is never moved to its place.
            disk = TwinDisk::new();
        }
        let store = open(&world, level, &disk);
        let store = store.unwrap_or_else(|| panic!("life {life}: the store does not open"));
        let found = count_series(&world, &store, &Session::default());
        let most = known.acknowledged + u64::from(known.unknown.is_some());
        assert!(
            (known.acknowledged..=most).contains(&found),
            "life {life}: {} were acknowledged, found {found}",
            known.acknowledged
        );
        if level == Level::Causal {
            world.advance(DELAY * 2);
            let there = count_series(&world, &store, &session("r2"));
            assert_eq!(there, found, "life {life}: at the other replica");
        }
        if let Some(id) = known.unknown.take() {
            let expected =
                if found > known.acknowledged { Outcome::Committed } else { Outcome::NotCommitted };
            let outcome = world.block_on(store.outcome(id));
            assert_eq!(outcome, Ok(expected), "life {life}");
        }
        known.acknowledged = found;
        drop(store);
        // The writes of reopening may be lost as well.
        disk = disk.crash(&mut random);
    }
    known.acknowledged
}

#[track_caller]
fn check(level: Level, fault: DiskFault, seeds: std::ops::Range<u64>) {
    let mut total = 0;
    for seed in seeds {
        let lived = std::panic::catch_unwind(|| lives(seed, level, fault));
        match lived {
            Ok(commits) => total += commits,
            Err(panic) => {
                eprintln!("seed {seed}, {level}, {fault:?}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    assert!(total > 100, "hardly anything was committed, so nothing was tested");
}

#[test]
fn a_power_loss_loses_nothing_acknowledged() {
    check(Level::Linearizable, DiskFault::PowerLoss, 0..60);
}

#[test]
fn a_power_loss_loses_no_update_on_its_way() {
    check(Level::Causal, DiskFault::PowerLoss, 100..130);
}

#[test]
fn a_failed_write_is_not_acknowledged() {
    check(Level::Linearizable, DiskFault::OneError, 200..240);
    check(Level::Causal, DiskFault::OneError, 300..320);
}

/// The disk itself must lose unsynced writes, or the tests above test nothing.
#[test]
fn the_disk_loses_what_was_not_synced() {
    use redb::StorageBackend;
    let outcomes = (0..50u64).map(|seed| {
        let disk = TwinDisk::new();
        disk.set_len(1024).expect("no fault");
        disk.sync_data().expect("no fault");
        disk.write(0, &[1; 1024]).expect("no fault");
        disk.write(0, &[2; 1024]).expect("no fault");
        let found = disk.crash(&mut { seed });
        let mut bytes = [9; 1024];
        found.read(0, &mut bytes).expect("no fault");
        (bytes[0], bytes[1023])
    });
    let outcomes: std::collections::BTreeSet<(u8, u8)> = outcomes.collect();
    assert_eq!(outcomes.len(), 9, "each sector old, older or new: {outcomes:?}");
}
