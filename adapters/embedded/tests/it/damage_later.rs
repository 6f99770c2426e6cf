//! Files that go bad while a store has them open: an error that names the store, never a panic, never other
//! data; and the store reopens once the file is restored.

use std::sync::Arc;
use std::time::Duration;

use crate::support::disk::TwinDisk;
use crate::support::{at, read, schema, write};
use mingle_model::{FieldType, Level, Type, Value};
use mingle_store::random::next_random;
use mingle_store::{Data, DataStore, Read, Session, StoreError, TestWorld, World, Write};
use mingle_store_embedded::limits::REOPEN_EVERY;
use mingle_store_embedded::storage::disk::DiskStorage;
use mingle_store_embedded::{Embedded, EmbeddedConfig, GeoConfig};

/// Objects, each with a text; the last one's has many pages.
const OBJECTS: u64 = 60;

const BLOCK: usize = 4096;

/// A cache so small that pages are read from the disk again and again.
const CACHE_BYTES: usize = 1 << 15;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Serializable,
    Replicated,
    Datacenters,
}

/// A process with the store open, and its disk.
struct Running {
    world: Arc<TestWorld>,
    store: Arc<dyn DataStore>,
    disk: TwinDisk,
}

fn text(n: u64) -> Value {
    Value::from(format!("{n}, ").repeat(if n == OBJECTS { 30_000 } else { 700 }).as_str())
}

fn address(n: u64) -> mingle_store::Address {
    at(&format!("key {n}"), 0)
}

impl Running {
    fn open(kind: Kind, disk: TwinDisk) -> Self {
        let world = TestWorld::new(1);
        let memory = EmbeddedConfig::in_memory();
        let (config, level) = match kind {
            Kind::Serializable => (memory, Level::Linearizable),
            Kind::Replicated => (memory.with_replicas(2), Level::Causal),
            Kind::Datacenters => {
                (memory.with_geo(GeoConfig::new(["r1", "r2", "r3"])), Level::Causal)
            }
        };
        let storage =
            DiskStorage::open_backend_with(disk.clone(), CACHE_BYTES).expect("the disk works");
        let schema = schema(level, &[("text", FieldType::Register(Type::String))]);
        let shared: Arc<dyn World> = world.clone();
        let store = Embedded::open_over(Box::new(storage), &config, &schema, shared);
        Self { store: store.expect("it opens"), world, disk }
    }

    fn commit(&self, n: u64) -> Result<(), StoreError> {
        let writes = vec![Write::Assign(address(n), text(n))];
        self.world.block_on(write(&self.store, &Session::default(), writes)).map(drop)
    }

    /// Reads everything. True if it is unchanged, false if the store says that its disk failed.
    #[track_caller]
    fn is_intact(&self, what: &str) -> bool {
        for n in 1..=OBJECTS {
            let lines = [Read::Register(address(n))];
            let found = self.world.block_on(read(&self.store, &Session::default(), &lines));
            match found {
                Ok(found) => {
                    assert!(found[0].data == Data::Register(Some(text(n))), "{what}: other data");
                }
                Err(error) => {
                    is_unavailable(&error, what);
                    return false;
                }
            }
        }
        true
    }

    fn health(&self) -> Result<(), StoreError> {
        self.world.block_on(self.store.health())
    }

    /// Waits until the store tries to open the disk again.
    fn wait(&self) {
        self.world.block_on(self.world.sleep(REOPEN_EVERY));
    }
}

#[track_caller]
fn is_unavailable(error: &StoreError, what: &str) {
    let StoreError::Unavailable { store, reason } = error else { panic!("{what}: {error}") };
    assert_eq!(**store, *"notes", "{what}");
    assert!(reason.contains("damaged") || reason.contains("disk failed"), "{what}: {reason}");
}

/// The disk of a store that was closed.
fn made(kind: Kind) -> Vec<u8> {
    let running = Running::open(kind, TwinDisk::new());
    for n in 1..=OBJECTS {
        running.commit(n).expect("it is committed");
    }
    running.world.block_on(running.world.sleep(Duration::from_secs(1)));
    let disk = running.disk.clone();
    // The tasks that hold the store end with the world.
    drop(running);
    let image = disk.image();
    assert_eq!(
        image[9] & 2,
        0,
        "{kind:?}: it was not closed, so that all of it is read when it is opened"
    );
    image
}

/// Damages an open store in many ways; returns how often the damage was noticed.
fn damage(kind: Kind, seed: u64, rounds: u64) -> u64 {
    let closed = made(kind);
    let (mut random, mut noticed) = (seed, 0);
    for round in 0..rounds {
        let what = format!("{kind:?}, round {round} of seed {seed}");
        let running = Running::open(kind, TwinDisk::with(closed.clone()));
        let image = running.disk.image();
        let used: Vec<usize> = (BLOCK..image.len()).filter(|at| image[*at] != 0).collect();
        let drawn = next_random(&mut random) as usize;
        running.disk.change(|bytes| match round % 5 {
            // One bit anywhere, in the header, or in all blocks.
            0 => bytes[used[drawn % used.len()]] ^= 1 << (drawn % 8),
            1 => bytes[drawn % 320] ^= 1 << (drawn % 8),
            2 => bytes
                .iter_mut()
                .skip(BLOCK + drawn % BLOCK)
                .step_by(BLOCK)
                .for_each(|byte| *byte ^= 4),
            // A block that the disk lost, and blocks in each other's places.
            3 => {
                let begin = used[drawn % used.len()] / BLOCK * BLOCK;
                bytes[begin..begin + BLOCK].fill(0);
            }
            _ => bytes[BLOCK..].rotate_left(BLOCK),
        });
        let is_intact = running.is_intact(&what);
        noticed += u64::from(!is_intact);
        if is_intact {
            continue;
        }
        assert!(running.health().is_err(), "{what}: it is well");
        let refused = running.commit(1).expect_err("nothing is written to it");
        is_unavailable(&refused, &what);
        // The store stays failed while the file is damaged: an older commit is no way out.
        running.wait();
        let Err(error) = running.health() else {
            // The damage was in an unused part of a page.
            assert!(running.is_intact(&what), "{what}: it opened by itself");
            continue;
        };
        let told = error.to_string();
        assert!(told.contains("does not open again"), "{what}: {told}");
        running.disk.change(|bytes| bytes.clone_from(&image));
        running.wait();
        assert_eq!(running.health(), Ok(()), "{what}");
        assert!(running.is_intact(&what), "{what}: the copy that was put back");
        running.commit(1).expect("it serves");
    }
    noticed
}

#[test]
fn a_serializable_store_notices_pages_that_go_bad_while_it_is_open() {
    let noticed = damage(Kind::Serializable, 21, 50);
    assert!(noticed >= 20, "{noticed}");
}

#[test]
fn a_replicated_store_notices_pages_that_go_bad_while_it_is_open() {
    let noticed = damage(Kind::Replicated, 22, 50);
    assert!(noticed >= 20, "{noticed}");
}

/// Data centers read from memory only; they need the disk only after the end of the process.
#[test]
fn data_centers_go_on_or_notice_pages_that_go_bad_while_they_are_open() {
    damage(Kind::Datacenters, 23, 20);
}

/// A commit reads before it writes, and may not build on pages that went bad.
#[test]
fn nothing_is_written_upon_pages_that_went_bad() {
    for kind in [Kind::Serializable, Kind::Replicated] {
        let running = Running::open(kind, TwinDisk::with(made(kind)));
        let image = running.disk.image();
        running.disk.change(|bytes| bytes.iter_mut().skip(BLOCK).for_each(|byte| *byte ^= 1));
        let error = (1..=OBJECTS).find_map(|n| running.commit(n).err());
        match error.expect("a page that went bad is on its way") {
            // The damage was noticed during the commit.
            StoreError::Unknown { store, .. } => assert_eq!(*store, *"notes"),
            error => is_unavailable(&error, "a commit"),
        }
        running.disk.change(|bytes| *bytes = image);
        running.wait();
        assert_eq!(running.health(), Ok(()), "{kind:?}");
        assert!(running.is_intact("the copy that was put back"), "{kind:?}");
    }
}

#[test]
fn a_disk_that_cannot_be_read_is_an_error_until_it_can() {
    for kind in [Kind::Serializable, Kind::Replicated] {
        let running = Running::open(kind, TwinDisk::with(made(kind)));
        running.disk.fail_reads(true);
        assert!(!running.is_intact("reads fail"), "{kind:?}: nothing was read");
        running.wait();
        let told = running.health().expect_err("reads fail").to_string();
        assert!(told.contains("cannot be read"), "{kind:?}: {told}");
        running.disk.fail_reads(false);
        running.wait();
        assert_eq!(running.health(), Ok(()), "{kind:?}");
        assert!(running.is_intact("reads work again"), "{kind:?}");
    }
}
