//! The outcomes of commits are kept for a while, and then removed.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{nth, usual};
use mingle_model::{Level, Origin, TransactionId};
use mingle_store::{Commit, DataStore, Outcome, Session, StoreError, TestWorld};
use mingle_store_embedded::limits::OUTCOMES_KEPT;
use mingle_store_embedded::storage::disk::DiskStorage;
use mingle_store_embedded::storage::{Changes, Direction, Storage};
use mingle_store_embedded::{Embedded, EmbeddedConfig};
use tempfile::TempDir;

fn open(world: &Arc<TestWorld>, level: Level, folder: &Path) -> Arc<dyn DataStore> {
    let replicas = if level == Level::Causal { 2 } else { 1 };
    let config = EmbeddedConfig::in_folder(folder).with_replicas(replicas);
    Embedded::open(config, usual(level), world.clone()).expect("it opens")
}

fn id(origin: u128, sequence: u64) -> TransactionId {
    TransactionId { origin: Origin(origin), sequence }
}

fn commit(
    world: &TestWorld,
    store: &Arc<dyn DataStore>,
    id: TransactionId,
) -> Result<(), StoreError> {
    world.block_on(async {
        let transaction = store.begin(&Session::default()).await?;
        let commit = Commit { id: Some(id), writes: nth(1), ..Commit::default() };
        transaction.commit(commit).await.map(|_| ())
    })
}

/// Returns the number of kept outcomes, and of origins with a row for their removed outcomes.
fn rows(folder: &Path) -> (usize, usize) {
    let disk =
        DiskStorage::open(&folder.join("notes.redb"), false).expect("no process has it open");
    let view = disk.snapshot().expect("it can be read");
    let count = |prefix: &[u8]| {
        let mut count = 0;
        let mut visit = |_: &[u8], _: &[u8]| {
            count += 1;
            true
        };
        view.scan(prefix, None, Direction::Forward, &mut visit).expect("it can be read");
        count
    };
    (count(b"o"), count(b"p"))
}

fn kept_for_a_while(level: Level) {
    let folder = TempDir::new().expect("a temporary folder");
    let world = TestWorld::new(1);
    let store = open(&world, level, folder.path());
    for sequence in 1..=200 {
        commit(&world, &store, id(u128::from(sequence % 7), sequence)).expect("a commit");
    }
    assert_eq!(world.block_on(store.outcome(id(9, 5))), Ok(Outcome::NotCommitted));
    world.advance(OUTCOMES_KEPT.saturating_sub(Duration::from_secs(5)));
    for sequence in 201..=400 {
        commit(&world, &store, id(u128::from(sequence % 7), sequence)).expect("a commit");
    }
    assert_eq!(world.block_on(store.outcome(id(1, 1))), Ok(Outcome::Committed), "not long ago");
    assert_eq!(world.block_on(store.outcome(id(9, 5))), Ok(Outcome::NotCommitted));
    drop(store);
    assert_eq!(rows(folder.path()), (401, 0), "{level}");

    // The same holds in another process.
    let store = open(&world, level, folder.path());
    world.advance(Duration::from_secs(10));
    for sequence in 401..=600 {
        commit(&world, &store, id(u128::from(sequence % 7), sequence)).expect("a commit");
    }
    for gone in [id(1, 1), id(9, 5), id(3, 3)] {
        assert_eq!(world.block_on(store.outcome(gone)), Ok(Outcome::Unknown), "{level}");
        let again = commit(&world, &store, gone);
        assert_eq!(again, Err(StoreError::Conflict), "it may have taken effect");
    }
    assert_eq!(world.block_on(store.outcome(id(401 % 7, 401))), Ok(Outcome::Committed));
    drop(store);
    let (outcomes, gone) = rows(folder.path());
    assert!(outcomes <= 405, "{level}: {outcomes} are kept, of 401 that are not old");
    assert_eq!(gone, 8, "one for each process");
}

#[test]
fn outcomes_of_a_serializable_store_are_kept_for_a_while() {
    kept_for_a_while(Level::Linearizable);
}

#[test]
fn outcomes_of_a_replicated_store_are_kept_for_a_while() {
    kept_for_a_while(Level::Causal);
}

/// A store that runs for days keeps the outcomes of at most about two retention times.
#[test]
fn outcomes_do_not_grow_without_bound() {
    let folder = TempDir::new().expect("a temporary folder");
    let world = TestWorld::new(1);
    let store = open(&world, Level::Linearizable, folder.path());
    for sequence in 1..=1_000 {
        commit(&world, &store, id(1, sequence)).expect("a commit");
        world.advance(Duration::from_secs(10));
    }
    drop(store);
    let (outcomes, gone) = rows(folder.path());
    let within = (OUTCOMES_KEPT.as_secs() / 10) as usize;
    assert!((within..within * 2).contains(&outcomes), "{outcomes} are kept, {within} are not old");
    assert_eq!(gone, 1);
}

#[test]
fn outcomes_of_an_earlier_version_are_kept_from_now_on() {
    let folder = TempDir::new().expect("a temporary folder");
    let world = TestWorld::new(1);
    drop(open(&world, Level::Linearizable, folder.path()));
    let key = |sequence: u64| {
        let mut key = b"o".to_vec();
        key.extend(1u128.to_be_bytes());
        key.extend(sequence.to_be_bytes());
        key
    };
    let file = folder.path().join("notes.redb");
    let disk = DiskStorage::open(&file, false).expect("no process has it open");
    let changes = (1..=50).map(|sequence| (key(sequence).into(), Some([1].as_slice().into())));
    disk.commit(changes.collect::<Changes>()).expect("it is written");
    drop(disk);

    let store = open(&world, Level::Linearizable, folder.path());
    let known = |sequence| world.block_on(store.outcome(id(1, sequence)));
    assert_eq!(known(50), Ok(Outcome::Committed));
    (1..=40).for_each(|n| commit(&world, &store, id(2, n)).expect("a commit"));
    assert_eq!(known(1), Ok(Outcome::Committed), "its time has begun");
    world.advance(OUTCOMES_KEPT + Duration::from_secs(5));
    (41..=80).for_each(|n| commit(&world, &store, id(2, n)).expect("a commit"));
    let found: BTreeSet<String> = [1, 25, 50].map(|n| format!("{:?}", known(n))).into();
    assert_eq!(found, BTreeSet::from(["Ok(Unknown)".to_owned()]));
}
