//! Notes of the outcomes of commits: told as long as a helper may ask, and removed later.

use std::sync::Arc;
use std::time::Duration;

use crate::support::at;
use crate::support::members::{CITIES, Kept, config, geo, pass};
use mingle_model::{Level, Origin, TransactionId};
use mingle_store::{Commit, Committed, DataStore, Outcome, Session, StoreError, TestWorld, Write};
use mingle_store_embedded::{EmbeddedConfig, GeoStore};

/// Longer than a note is kept.
const LONG: Duration = Duration::from_mins(11);

/// As many commits as it takes until all notes of this test were looked at.
const ROUND: u64 = 260;

fn id(sequence: u64) -> TransactionId {
    TransactionId { origin: Origin(9), sequence }
}

fn add(
    world: &TestWorld,
    store: &GeoStore,
    city: &str,
    id: TransactionId,
) -> Result<Committed, StoreError> {
    let session = Session { transaction: Some("deposit".into()), ..Session::at(city) };
    let writes = vec![Write::Add(at("a", 1), 1)];
    world.block_on(async {
        let commit = Commit { id: Some(id), writes, ..Commit::default() };
        store.begin(&session).await?.commit(commit).await
    })
}

/// The kinds of stores whose notes outlast the process: causal, certified, and a causal one some of whose
/// transactions are certified.
fn kinds() -> [(Level, EmbeddedConfig); 3] {
    let upgraded = EmbeddedConfig::in_memory().with_geo(geo().with_conflicts([("a", "a")]));
    [(Level::Causal, config()), (Level::Linearizable, config()), (Level::Causal, upgraded)]
}

#[test]
fn old_notes_are_removed_and_what_they_said_is_not_forgotten() {
    for (level, config) in kinds() {
        let (world, disk) = (TestWorld::new(20), Kept::default());
        let store = disk.open(&world, level, &config);
        for (sequence, city) in (1..=30).zip(CITIES.iter().cycle()) {
            add(&world, &store, city, id(sequence)).expect("all are there");
        }
        // A helper was told that these did not take effect.
        for sequence in 31..=33 {
            let told = world.block_on(store.outcome(id(sequence)));
            assert_eq!(told, Ok(Outcome::NotCommitted), "{level}");
        }
        pass(&world, 2_000);
        assert_eq!(world.block_on(store.outcome(id(1))), Ok(Outcome::Committed), "{level}");
        for round in 1..=2 {
            for sequence in 1_000 * round + 1..=1_000 * round + ROUND {
                add(&world, &store, "rome", id(sequence)).expect("all are there");
            }
            world.advance(LONG);
            pass(&world, 2_000);
        }
        for sequence in 3_001..=3_000 + ROUND {
            add(&world, &store, "oslo", id(sequence)).expect("all are there");
        }
        pass(&world, 2_000);
        let check = |store: &Arc<GeoStore>| {
            for sequence in [1, 2, 30, 31, 33] {
                let told = world.block_on(store.outcome(id(sequence)));
                assert_eq!(told, Ok(Outcome::Unknown), "{level} {sequence}");
                for city in CITIES {
                    let again = add(&world, store, city, id(sequence));
                    assert!(
                        matches!(again, Err(StoreError::Refused { .. })),
                        "{level} {sequence} {city}: {again:?}"
                    );
                }
            }
            for sequence in [3_001, 3_000 + ROUND] {
                let told = world.block_on(store.outcome(id(sequence)));
                assert_eq!(told, Ok(Outcome::Committed), "{level} {sequence}");
            }
            let other = TransactionId { origin: Origin(8), sequence: 1 };
            let told = world.block_on(store.outcome(other));
            assert_eq!(told, Ok(Outcome::NotCommitted), "{level}: another origin");
        };
        check(&store);
        drop(store);
        check(&disk.open(&world, level, &config));
    }
}

#[test]
fn a_store_that_is_used_for_long_keeps_as_many_notes_as_its_last_commits_left() {
    for (level, config) in kinds().into_iter().take(2) {
        let (world, disk) = (TestWorld::new(21), Kept::default());
        let store = disk.open(&world, level, &config);
        let (mut counts, mut sequence) = (Vec::new(), 0);
        for _ in 0..4 {
            for _ in 0..ROUND {
                sequence += 1;
                add(&world, &store, "oslo", id(sequence)).expect("all are there");
            }
            world.advance(LONG);
            // Versions are folded, and removed notes are gone then.
            pass(&world, 15_000);
            counts.push(CITIES.map(|city| store.note_count(city).expect("it is there")));
        }
        println!("{level}: {counts:?}");
        let most = 3 * ROUND as usize;
        assert!(counts.iter().flatten().all(|count| *count < most), "{level}: {counts:?}");
        assert!(counts[0].iter().all(|count| *count >= ROUND as usize), "{level}: {counts:?}");
    }
}

/// While a data center is away, the outcomes of commits stay known: a caller may wait for it.
#[test]
fn notes_stay_while_a_data_center_is_away() {
    for (level, config) in kinds() {
        let (world, disk) = (TestWorld::new(22), Kept::default());
        let store = disk.open(&world, level, &config);
        add(&world, &store, "oslo", id(1)).expect("all are there");
        pass(&world, 2_000);
        store.kill("lima").expect("it is there");
        for round in 1..=3 {
            for sequence in 1_000 * round + 1..=1_000 * round + ROUND {
                add(&world, &store, "oslo", id(sequence)).expect("two of three are enough");
            }
            world.advance(LONG);
            pass(&world, 2_000);
        }
        store.start("lima").expect("it is there");
        pass(&world, 5_000);
        for (sequence, expected) in [(1_001, Outcome::Committed), (500, Outcome::NotCommitted)] {
            let told = world.block_on(store.outcome(id(sequence)));
            assert_eq!(told, Ok(expected), "{level} {sequence}");
        }
    }
}
