//! Files that are damaged, empty or gone: an error that names the store, never a panic, never a fresh
//! store, never other data.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::{at, count_series, nth, read, usual, write};
use mingle_model::{Level, Value};
use mingle_store::random::next_random;
use mingle_store::{Data, DataStore, Read, Session, StoreError, TestWorld};
use mingle_store_embedded::{Embedded, EmbeddedConfig, GeoConfig, OpenError};
use tempfile::TempDir;

const COMMITS: u64 = 20;

/// The engine of a file.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Serializable,
    Replicated,
    Datacenters,
}

fn open(
    world: &Arc<TestWorld>,
    kind: Kind,
    folder: &Path,
) -> Result<Arc<dyn DataStore>, OpenError> {
    let config = EmbeddedConfig::in_folder(folder);
    let (config, level) = match kind {
        Kind::Serializable => (config, Level::Linearizable),
        Kind::Replicated => (config.with_replicas(2), Level::Causal),
        Kind::Datacenters => (config.with_geo(GeoConfig::new(["r1", "r2", "r3"])), Level::Causal),
    };
    Embedded::open(config, usual(level), world.clone())
}

/// Makes a folder with a closed store of some commits, and returns it and the store's file.
fn made(kind: Kind) -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a temporary folder");
    let world = TestWorld::new(1);
    let store = open(&world, kind, folder.path()).expect("a new store");
    for n in 1..=COMMITS {
        world.block_on(write(&store, &Session::default(), nth(n))).expect("a commit");
    }
    assert_eq!(count_series(&world, &store, &Session::default()), COMMITS);
    drop(store);
    let file = folder.path().join("notes.redb");
    (folder, file)
}

/// Opens the store and reads all of it: true if it is unchanged, false if opening or reading fails. An error
/// must name the store.
#[track_caller]
fn is_intact(kind: Kind, folder: &Path, what: &str) -> bool {
    let world = TestWorld::new(2);
    let store = match open(&world, kind, folder) {
        Ok(store) => store,
        Err(error) => {
            let text = error.to_string();
            assert!(matches!(error, OpenError::Storage { .. }), "{what}: {text}");
            assert!(text.contains("store notes") && text.contains("notes.redb"), "{what}: {text}");
            return false;
        }
    };
    let lines = [Read::LogLast(at("c", 2), u64::MAX), Read::Register(at("a", 0))];
    match world.block_on(read(&store, &Session::default(), &lines)) {
        Ok(found) => {
            let all = (1..=COMMITS).map(|n| Value::Int(n.cast_signed())).collect();
            assert_eq!(found[0].data, Data::Values(all), "{what}: other data, and no error");
            assert_eq!(count_series(&world, &store, &Session::default()), COMMITS, "{what}");
            true
        }
        Err(StoreError::Unavailable { store, reason }) => {
            assert!(*store == *"notes" && reason.contains("damaged"), "{what}: {reason}");
            false
        }
        Err(other) => panic!("{what}: {other}"),
    }
}

/// Flips one bit at a time. Most of a small file is unused, so every other bit is in a used
/// place, and every fourth one in the header.
fn flip_often(kind: Kind, seed: u64, times: u64) {
    let (folder, file) = made(kind);
    let whole = fs::read(&file).expect("the file is there");
    let used: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] != 0).collect();
    let mut random = seed;
    let mut refused = 0;
    for round in 0..times {
        let drawn = next_random(&mut random) as usize;
        let at = match round % 4 {
            0 => drawn % 320,
            1 => drawn % whole.len(),
            _ => used[drawn % used.len()],
        };
        let bit = next_random(&mut random) % 8;
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << bit;
        fs::write(&file, &flipped).expect("the file can be written");
        let what = format!("{kind:?}, round {round} of seed {seed}: bit {bit} at {at}");
        let opened = std::panic::catch_unwind(|| is_intact(kind, folder.path(), &what));
        refused += u64::from(!opened.unwrap_or_else(|_| panic!("{what}: it panicked")));
    }
    assert!(refused > times / 10, "of {times} flips, {refused} were noticed");
}

#[test]
fn a_flipped_bit_is_an_error_or_harmless_at_a_serializable_store() {
    flip_often(Kind::Serializable, 11, 300);
}

#[test]
fn a_flipped_bit_is_an_error_or_harmless_at_a_replicated_store() {
    flip_often(Kind::Replicated, 12, 200);
}

#[test]
fn a_flipped_bit_is_an_error_or_harmless_at_data_centers() {
    flip_often(Kind::Datacenters, 13, 60);
}

#[test]
fn a_file_that_is_cut_off_empty_or_something_else_is_an_error() {
    let (folder, file) = made(Kind::Serializable);
    let whole = fs::read(&file).expect("the file is there");
    let mut random = 14;
    for _ in 0..40 {
        let length = next_random(&mut random) as usize % whole.len();
        fs::write(&file, &whole[..length]).expect("the file can be written");
        let what = format!("cut off after {length} bytes");
        assert!(!is_intact(Kind::Serializable, folder.path(), &what), "{what}");
    }
    let zeros = vec![0; 1 << 20];
    for other in [&b""[..], b"x", b"SQLite format 3\0", &zeros] {
        fs::write(&file, other).expect("the file can be written");
        let what = format!("{} other bytes", other.len());
        assert!(!is_intact(Kind::Serializable, folder.path(), &what), "{what}");
    }
    fs::write(&file, &whole).expect("the file can be written");
    assert!(is_intact(Kind::Serializable, folder.path(), "the copy that was put back"));
}

#[test]
fn a_file_that_is_gone_is_an_error_until_its_line_is_removed() {
    let (folder, file) = made(Kind::Replicated);
    let whole = fs::read(&file).expect("the file is there");
    fs::remove_file(&file).expect("the file can be removed");
    let error = open(&TestWorld::new(3), Kind::Replicated, folder.path()).err().expect("no store");
    let text = error.to_string();
    assert!(text.contains("store notes") && text.contains("notes.redb"), "{text}");
    assert!(text.contains("gone") && text.contains("stores to begin with an empty"), "{text}");
    // The attempt left no file behind.
    assert!(!file.exists());
    // The same holds if the lock file is gone too.
    fs::remove_file(file.with_extension("lock")).expect("the lock file can be removed");
    assert!(open(&TestWorld::new(3), Kind::Replicated, folder.path()).is_err());

    fs::write(&file, &whole).expect("the file can be written");
    assert!(is_intact(Kind::Replicated, folder.path(), "the copy that was put back"));

    fs::remove_file(&file).expect("the file can be removed");
    fs::write(folder.path().join("stores"), "").expect("the list can be written");
    let world = TestWorld::new(4);
    let store = open(&world, Kind::Replicated, folder.path()).expect("a new store");
    assert_eq!(count_series(&world, &store, &Session::default()), 0);
}

/// A folder of an earlier version has no list of its stores.
#[test]
fn a_file_that_is_gone_from_a_folder_without_a_list_is_an_error() {
    let (folder, file) = made(Kind::Serializable);
    fs::remove_file(folder.path().join("stores")).expect("the list can be removed");
    assert!(is_intact(Kind::Serializable, folder.path(), "a folder of an earlier version"));
    fs::remove_file(folder.path().join("stores")).expect("the list was made");
    fs::remove_file(&file).expect("the file can be removed");
    assert!(!is_intact(Kind::Serializable, folder.path(), "its lock file is there, and it is not"));
}

/// Another program's file, which contains no store.
#[test]
fn a_file_without_a_store_in_it_is_an_error() {
    let (folder, file) = made(Kind::Serializable);
    fs::remove_file(&file).expect("the file can be removed");
    drop(redb::Database::create(&file).expect("a database"));
    assert!(!is_intact(Kind::Serializable, folder.path(), "an empty database"));
}
