//! Outcomes by id.

use mingle_model::{Origin, TransactionId, Value};

use super::schema::{COUNT, TEXT, at, store_schema};
use super::{Bench, Checked, ensure, ensure_eq, tests};
use crate::operation::{Data, Read, Write};
use crate::store::{Commit, Once, Outcome, StoreError};

tests![
    the_outcome_of_a_commit_is_known,
    a_late_commit_of_what_was_not_committed_fails,
    one_id_takes_effect_once,
    outcomes_survive_a_restart,
];

fn id(sequence: u64) -> TransactionId {
    TransactionId { origin: Origin(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef), sequence }
}

fn add(sequence: u64) -> Commit {
    Commit {
        id: Some(id(sequence)),
        writes: vec![Write::Add(at("c", COUNT), 1)],
        ..Commit::default()
    }
}

async fn the_outcome_of_a_commit_is_known(bench: &Bench<'_>) -> Checked {
    bench.begin().await?.commit(add(1)).await?;
    let committed = bench.store.outcome(id(1)).await?;
    ensure_eq!(committed, Outcome::Committed, "the outcome of a commit");
    // The outcome stays as first reported, and ids that differ slightly are different.
    for _ in 0..2 {
        let unheard = bench.store.outcome(id(2)).await?;
        ensure_eq!(unheard, Outcome::NotCommitted, "the outcome of no commit");
        let committed = bench.store.outcome(id(1)).await?;
        ensure_eq!(committed, Outcome::Committed, "the outcome, asked again");
    }
    Ok(())
}

async fn a_late_commit_of_what_was_not_committed_fails(bench: &Bench<'_>) -> Checked {
    let mut open = bench.begin().await?;
    open.flush(vec![Write::Assign(at("c", TEXT), Value::from("late"))]).await?;
    let outcome = bench.store.outcome(id(1)).await?;
    ensure_eq!(outcome, Outcome::NotCommitted, "an open transaction");
    let result = open.commit(add(1)).await;
    ensure!(result.is_err(), "a late commit gave {result:?}");
    let result = bench.begin().await?.commit(add(1)).await;
    ensure!(result.is_err(), "a commit that began late gave {result:?}");
    let reads = [Read::Counter(at("c", COUNT)), Read::Register(at("c", TEXT))];
    let found = bench.read(&reads).await?;
    let found: Vec<Data> = found.into_iter().map(|answer| answer.data).collect();
    ensure_eq!(found[..], [Data::Counter(0), Data::Register(None)][..], "what a late commit left");
    bench.begin().await?.commit(add(2)).await?;
    Ok(())
}

async fn one_id_takes_effect_once(bench: &Bench<'_>) -> Checked {
    if bench.store.capabilities().once != Once::Serial {
        return Ok(());
    }
    let replicas = bench.replicas().len().max(1);
    for replica in 0..replicas {
        let result = bench.begin_at(replica).await?.commit(add(1)).await;
        let is_fine = match &result {
            Ok(_) => replica == 0,
            Err(error) => replica > 0 && *error == StoreError::Conflict,
        };
        ensure!(is_fine, "commit {replica} of one id gave {result:?}");
        let again = bench.begin_at(replica).await?.commit(add(1)).await;
        ensure!(again.is_err(), "a second commit of one id gave {again:?}");
    }
    bench.deliver().await;
    for replica in 0..replicas {
        let found = bench.data_at(replica, Read::Counter(at("c", COUNT))).await?;
        ensure_eq!(found, Data::Counter(1), "commits of one id");
    }
    Ok(())
}

async fn outcomes_survive_a_restart(bench: &Bench<'_>) -> Checked {
    let schema = store_schema(bench.factory.level());
    let store = bench.factory.open(schema.clone()).await;
    let before = Bench { factory: bench.factory, store };
    before.begin().await?.commit(add(1)).await?;
    let outcome = before.store.outcome(id(2)).await?;
    ensure_eq!(outcome, Outcome::NotCommitted, "before a restart");
    let Some(store) = bench.factory.reopen(before.store, schema).await else {
        return Ok(());
    };
    let after = Bench { factory: bench.factory, store };
    let late = after.begin().await?.commit(add(2)).await;
    ensure!(late.is_err(), "a late commit after a restart gave {late:?}");
    let outcome = after.store.outcome(id(1)).await?;
    ensure_eq!(outcome, Outcome::Committed, "after a restart");
    Ok(())
}
