//! The states that replicas have seen, and sessions that move from one replica to another.

use mingle_model::{Level, Stamp, Value};

use super::schema::{NUMBER, at};
use super::{Bench, Checked, commit, ensure, ensure_eq, get, one, tests};
use crate::operation::{Data, Read, Write};
use crate::store::{Commit, Session, StoreError};

tests![a_store_without_stamps_asks_for_none];

/// Those that only causal stores must pass.
pub(super) const CAUSAL_TESTS: &[(&str, super::Test)] = &[
    ("a_session_that_moves_waits_for_what_it_has_seen", |bench| {
        Box::pin(a_session_that_moves_waits_for_what_it_has_seen(bench))
    }),
    ("a_weaker_answer_does_not_wait_for_what_its_session_has_seen", |bench| {
        Box::pin(a_weaker_answer_does_not_wait_for_what_its_session_has_seen(bench))
    }),
    ("a_stamp_is_that_of_the_snapshot_or_of_the_commit", |bench| {
        Box::pin(a_stamp_is_that_of_the_snapshot_or_of_the_commit(bench))
    }),
    ("everywhere_is_what_every_replica_has_seen", |bench| {
        Box::pin(everywhere_is_what_every_replica_has_seen(bench))
    }),
];

fn assign(n: i64) -> Vec<Write> {
    vec![Write::Assign(at("x", NUMBER), Value::Int(n))]
}

fn read() -> [Read; 1] {
    [Read::Register(at("x", NUMBER))]
}

async fn a_store_without_stamps_asks_for_none(bench: &Bench<'_>) -> Checked {
    let is_causal = bench.store.capabilities().level == Level::Causal;
    // A stamp seen at one store of an engine holds for all stores of the engine.
    let is_shared = bench.store.engine().is_some();
    // One that is linearizable only for some of its transactions counts for the others.
    let is_partly = bench.store.capabilities().level == Level::Linearizable
        && !bench.store.capabilities().serializable;
    if is_causal && bench.replicas().len() > 1 || is_shared || is_partly {
        return Ok(());
    }
    let after = Stamp::from_iter([("r1".into(), 7), ("r2".into(), 7)]);
    let session = Session { after, ..Session::default() };
    let mut open = bench.store.begin(&session).await?;
    open.read(&read()).await?;
    let written = open.commit(commit(assign(1))).await?;
    ensure_eq!(written.stamp, Stamp::default(), "the stamp of a commit");
    let mut open = bench.store.begin(&session).await?;
    open.read(&read()).await?;
    let nothing = open.commit(Commit::default()).await?;
    ensure_eq!(nothing.stamp, Stamp::default(), "the stamp of a commit without writes");
    ensure_eq!(bench.store.everywhere().await?, Stamp::default(), "everywhere");
    Ok(())
}

async fn a_session_that_moves_waits_for_what_it_has_seen(bench: &Bench<'_>) -> Checked {
    let after = bench.write_at(0, assign(1)).await?.stamp;
    ensure!(!after.is_empty(), "a commit at a causal store has no stamp");
    for replica in 1..bench.replicas().len() {
        let session = Session { after: after.clone(), ..bench.session(replica) };
        let behind = StoreError::Behind {
            store: bench.store.capabilities().store.clone(),
            replica: bench.replicas()[replica].clone(),
        };
        let mut open = bench.store.begin(&session).await?;
        ensure_eq!(open.read(&read()).await, Err(behind.clone()), "a read at {replica}");
        ensure_eq!(open.read(&read()).await, Err(behind.clone()), "again");
        ensure_eq!(open.commit(Commit::default()).await, Err(behind.clone()), "its commit");
        let open = bench.store.begin(&session).await?;
        ensure_eq!(open.commit(commit(assign(2))).await, Err(behind.clone()), "a blind commit");
        let mut open = bench.store.begin(&session).await?;
        ensure_eq!(open.flush(assign(2)).await, Err(behind), "a flush");
    }
    let home = Session { after: after.clone(), ..bench.session(0) };
    let mut open = bench.store.begin(&home).await?;
    ensure_eq!(get(&mut open, read()[0].clone()).await?, number(1), "where it was written");
    let mut waiting = Vec::new();
    for replica in 1..bench.replicas().len() {
        let session = Session { after: after.clone(), ..bench.session(replica) };
        waiting.push(bench.store.begin(&session).await?);
    }
    bench.deliver().await;
    for mut open in waiting {
        ensure_eq!(get(&mut open, read()[0].clone()).await?, number(1), "once it was delivered");
        let stamp = open.commit(Commit::default()).await?.stamp;
        ensure!(stamp.covers(&after), "{stamp:?} does not cover {after:?}");
    }
    Ok(())
}

/// A weaker answer comes from the replica as it is: old at first, new after delivery, and in each case from
/// values that were written.
async fn a_weaker_answer_does_not_wait_for_what_its_session_has_seen(bench: &Bench<'_>) -> Checked {
    let offered = &bench.store.capabilities().weaker_answers;
    let own = bench.store.capabilities().level;
    ensure!(!offered.contains(&own), "{own} is its own level, not a weaker one");
    ensure!(offered.is_sorted(), "{offered:?} are not strongest first");
    bench.write_at(0, assign(1)).await?;
    bench.deliver().await;
    let after = bench.write_at(0, assign(2)).await?.stamp;
    for level in offered {
        let mut found = Vec::new();
        for replica in 0..bench.replicas().len() {
            let session = Session { level: Some(*level), ..bench.session(replica) };
            let mut open = bench.store.begin(&session).await?;
            found.push(get(&mut open, read()[0].clone()).await?);
            open.commit(Commit::default()).await?;
        }
        ensure_eq!(found[0], number(2), "at {level} where it was written");
        for found in &found[1..] {
            ensure_eq!(*found, number(1), "at {level} where it is on its way");
        }
    }
    bench.deliver().await;
    for level in offered {
        let session = Session { level: Some(*level), ..bench.session(1) };
        let mut open = bench.store.begin(&session).await?;
        ensure_eq!(get(&mut open, read()[0].clone()).await?, number(2), "after delivery");
    }
    let session = Session { after, ..bench.session(1) };
    let mut open = bench.store.begin(&session).await?;
    ensure_eq!(get(&mut open, read()[0].clone()).await?, number(2), "at its own level");
    Ok(())
}

fn number(n: i64) -> Data {
    Data::Register(Some(Value::Int(n)))
}

async fn a_stamp_is_that_of_the_snapshot_or_of_the_commit(bench: &Bench<'_>) -> Checked {
    let mut reader = bench.begin().await?;
    let mut writer = bench.begin().await?;
    for open in [&mut reader, &mut writer] {
        one(open.read(&read()).await?)?;
    }
    let first = bench.write_at(0, assign(1)).await?.stamp;
    let before = reader.commit(Commit::default()).await?.stamp;
    ensure!(!before.covers(&first), "a snapshot has seen what came later: {before:?}");
    let second = writer.commit(commit(assign(2))).await?.stamp;
    ensure!(!first.covers(&second), "{first:?} covers what came later: {second:?}");
    // The writer's snapshot may be older than that of the first in what came from other replicas.
    let after = bench.begin().await?.commit(Commit::default()).await?.stamp;
    ensure!(after.covers(&first) && after.covers(&second), "{after:?} after both");
    let apart = bench.write_at(1, assign(3)).await?.stamp;
    ensure!(!apart.covers(&first), "what was not delivered is seen: {apart:?}");
    ensure!(!second.covers(&apart), "{second:?} covers what came later: {apart:?}");
    bench.deliver().await;
    let idle = bench.begin_at(2).await?.commit(Commit::default()).await?.stamp;
    ensure!(idle.covers(&second) && idle.covers(&apart), "{idle:?} after delivery");
    Ok(())
}

async fn everywhere_is_what_every_replica_has_seen(bench: &Bench<'_>) -> Checked {
    let mut written = Vec::new();
    for replica in 0..bench.replicas().len() {
        let stamp = bench.write_at(replica, assign(1)).await?.stamp;
        let everywhere = bench.store.everywhere().await?;
        ensure!(!everywhere.covers(&stamp), "{everywhere:?} covers {stamp:?} at once");
        written.push(stamp);
    }
    for _ in 0..20 {
        bench.factory.step(&*bench.store).await;
        let everywhere = bench.store.everywhere().await?;
        for replica in 0..bench.replicas().len() {
            let seen = bench.begin_at(replica).await?.commit(Commit::default()).await?.stamp;
            ensure!(seen.covers(&everywhere), "{seen:?} at {replica}, {everywhere:?} everywhere");
        }
    }
    bench.deliver().await;
    let everywhere = bench.store.everywhere().await?;
    for stamp in written {
        ensure!(everywhere.covers(&stamp), "{everywhere:?} lacks {stamp:?} after delivery");
    }
    Ok(())
}
