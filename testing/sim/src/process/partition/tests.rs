use mingle_model::{Level, Origin, TransactionId};
use mingle_store::conformance::schema::{COUNT, at, store_schema};
use mingle_store::wrap::layer::Layered;
use mingle_store::{Commit, Data, DataStore, Once, Outcome, Read, Session, StoreError, Write};
use mingle_store_embedded::{Embedded, EmbeddedConfig};
use mingle_store_replay::{ReplayConfig, ReplayStore};

use super::*;
use crate::SimulatedWorld;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn cut(from: &str, to: &str, since: u64, until: u64) -> Cut {
    Cut { from: from.into(), to: to.into(), since: ms(since), until: ms(until) }
}

#[test]
fn cuts_have_their_time_their_ends_and_their_way() {
    let world = SimulatedWorld::new(1);
    let cuts = vec![cut("a/r1", "a/r2", 10, 20), cut("p", "b", 10, 30), cut("*", "c", 10, 30)];
    let partitions = Partitions::new(world.clone(), cuts);
    let ups = |partitions: &Partitions| {
        [("a/r1", "a/r2"), ("a/r2", "a/r1"), ("p", "b/r3"), ("b/r3", "p"), ("p", "bb"), ("q", "c")]
            .map(|(from, to)| partitions.is_up(from, to))
    };
    assert_eq!(ups(&partitions), [true; 6]);
    world.run(world.sleep(ms(10)));
    assert_eq!(ups(&partitions), [false, true, false, true, true, false]);
    world.run(world.sleep(ms(10)));
    assert_eq!(ups(&partitions), [true, true, false, true, true, false]);
    partitions.cut(cut("b", "p", 0, 1_000));
    assert_eq!(ups(&partitions), [true, true, false, false, true, false]);
    partitions.heal();
    assert_eq!(ups(&partitions), [true; 6]);
}

#[test]
fn a_seed_draws_the_same_cuts_each_time() {
    let rates = PartitionRates {
        links: vec![("p1".into(), "a".into()), ("a/r1".into(), "a/r2".into())],
        count: 200,
        within: ms(1_000),
        longest: ms(100),
        one_way: 300,
    };
    let cuts = rates.draw(5);
    assert_eq!(cuts, rates.draw(5));
    assert_ne!(cuts, rates.draw(6));
    assert!((300..400).contains(&cuts.len()), "{} cuts, most of them of pairs", cuts.len());
    for cut in &cuts {
        assert!(cut.since < ms(1_000) && cut.since < cut.until, "{cut:?}");
        assert!(cut.until <= cut.since + ms(100), "{cut:?}");
    }
    assert!(cuts.is_sorted_by_key(|cut| cut.since));
    assert_eq!(PartitionRates::default().draw(5), []);
}

fn session(replica: &str) -> Session {
    Session::at(replica)
}

fn id(sequence: u64) -> TransactionId {
    TransactionId { origin: Origin(1), sequence }
}

fn add(sequence: u64) -> Commit {
    let writes = vec![Write::Add(at("x", COUNT), 1)];
    Commit { id: Some(id(sequence)), writes, ..Commit::default() }
}

async fn counter(store: &dyn DataStore, replica: &str) -> Result<Data, StoreError> {
    let mut reader = store.begin(&session(replica)).await?;
    let answers = reader.read(&[Read::Counter(at("x", COUNT))]).await?;
    Ok(answers[0].data.clone())
}

/// Creates two engines that cut the same links.
fn replicated(
    world: &Arc<SimulatedWorld>,
    partitions: &Arc<Partitions>,
) -> Vec<Arc<dyn DataStore>> {
    let replay = ReplayConfig::new(2, Once::ById).with_links(partitions.links("suite"));
    let replay = ReplayStore::open(replay, store_schema(Level::Causal), world.clone());
    let embedded =
        EmbeddedConfig::in_memory().with_replicas(2).with_links(partitions.links("suite"));
    let embedded = Embedded::open(embedded, store_schema(Level::Causal), world.clone());
    vec![replay.expect("it opens"), embedded.expect("it opens")]
}

#[test]
fn replicas_are_parted_one_way() {
    let world = SimulatedWorld::new(1);
    let partitions = Partitions::new(world.clone(), vec![cut("suite/r1", "suite/r2", 0, 50)]);
    for store in replicated(&world, &partitions) {
        let since = world.elapsed();
        partitions.cut(Cut { since, until: since + ms(50), ..cut("suite/r1", "suite/r2", 0, 0) });
        world.run(async {
            for (replica, sequence) in [("r1", 1), ("r2", 2)] {
                let begun = store.begin(&session(replica)).await.expect("it begins");
                begun.commit(add(sequence)).await.expect("it commits");
            }
            assert_eq!(counter(&*store, "r1").await, Ok(Data::Counter(2)), "this way is open");
            assert_eq!(counter(&*store, "r2").await, Ok(Data::Counter(1)), "that way is not");
            world.sleep(ms(50)).await;
            assert_eq!(counter(&*store, "r2").await, Ok(Data::Counter(2)), "after the cut");
        });
    }
}

fn is_unavailable<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Unavailable { .. }))
}

/// Returns a process's view of a store of two replicas, the store itself, and the cuts.
fn parted(
    world: &Arc<SimulatedWorld>,
) -> (Arc<Layered<PartitionedStore>>, Arc<dyn DataStore>, Arc<Partitions>) {
    let partitions = Partitions::new(world.clone(), Vec::new());
    let store = replicated(world, &partitions).remove(0);
    let seen =
        PartitionedStore::new(store.clone(), "p", partitions.clone(), ms(100), world.clone());
    assert!(seen.capabilities().may_lose_answers);
    (seen, store, partitions)
}

#[test]
fn a_call_that_does_not_get_there_does_nothing() {
    let world = SimulatedWorld::new(1);
    let (seen, store, partitions) = parted(&world);
    world.run(async {
        let mut open = seen.begin(&session("r1")).await.expect("it begins");
        let commits = seen.begin(&session("r1")).await.expect("it begins");
        partitions.cut(cut("p", "suite/r1", 0, 1_000));
        let begun = world.elapsed();
        assert!(is_unavailable(&seen.begin(&session("r1")).await));
        assert_eq!(world.elapsed(), begun + ms(100), "after the time-out");
        assert!(is_unavailable(&open.read(&[Read::Counter(at("x", COUNT))]).await));
        assert!(is_unavailable(&open.flush(add(1).writes).await));
        assert!(is_unavailable(&commits.commit(add(1)).await));
        assert_eq!(counter(&*seen, "r2").await, Ok(Data::Counter(0)), "the other replica");
        assert_eq!(counter(&*store, "r1").await, Ok(Data::Counter(0)));
        assert_eq!(seen.outcome(id(2)).await, Ok(Outcome::NotCommitted), "the store as a whole");
        partitions.cut(cut("p", "suite", 0, 1_000));
        assert!(is_unavailable(&seen.outcome(id(3)).await));
        assert!(is_unavailable(&seen.everywhere().await));
        world.sleep(ms(1_000)).await;
        let begun = seen.begin(&session("r1")).await.expect("it is over");
        assert!(begun.commit(add(3)).await.is_ok(), "no one was told that it did not commit");
    });
}

#[test]
fn a_call_whose_answer_does_not_get_back_was_made() {
    let world = SimulatedWorld::new(1);
    let (seen, store, partitions) = parted(&world);
    world.run(async {
        let mut flushes = seen.begin(&session("r1")).await.expect("it begins");
        let empty = seen.begin(&session("r1")).await.expect("it begins");
        let commits = seen.begin(&session("r1")).await.expect("it begins");
        partitions.cut(cut("suite", "p", 0, 1_000));
        assert!(is_unavailable(&seen.begin(&session("r1")).await));
        assert!(is_unavailable(&flushes.flush(add(1).writes).await));
        let unknown = |id| Err(StoreError::Unknown { store: "suite".into(), id });
        assert_eq!(flushes.commit(Commit::default()).await, unknown(None), "the flushed add");
        assert_eq!(commits.commit(add(2)).await, unknown(Some(id(2))));
        assert!(is_unavailable(&empty.commit(Commit::default()).await), "no effect to be unknown");
        assert_eq!(counter(&*store, "r1").await, Ok(Data::Counter(2)));
        partitions.heal();
        assert_eq!(seen.outcome(id(2)).await, Ok(Outcome::Committed));
    });
}
