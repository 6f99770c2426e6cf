//! A transaction takes effect as a whole, or not at all.

use mingle_model::Value;

use super::schema::{COUNT, LINES, MARKS, NUMBER, TAGS, TEXT, at, thing};
use super::{Bench, Checked, Wrong, commit, ensure, ensure_eq, get, tests};
use crate::limits::TRIES_MAX;
use crate::operation::{Data, Read, Write};
use crate::store::StoreError;
use crate::test_world::{join_all, yield_now};
use crate::world::BoxFuture;

tests![
    a_dropped_transaction_leaves_nothing,
    flushed_writes_are_seen_by_their_transaction_alone,
    a_refused_commit_leaves_nothing,
    all_writes_of_a_commit_are_seen_together,
    a_transaction_reads_one_snapshot,
    what_was_committed_is_seen_by_whoever_begins_later,
    concurrent_adds_are_all_kept,
];

fn everywhere(text: &str) -> Vec<Write> {
    let value = Value::from(text);
    vec![
        Write::Assign(at("a", TEXT), value.clone()),
        Write::Insert(at("b", TAGS), value.clone()),
        Write::Put(at("c", MARKS), value.clone(), Value::Int(1)),
        Write::Append(at("d", LINES), value),
        Write::Add(at("e", COUNT), 1),
    ]
}

fn reads() -> Vec<Read> {
    vec![
        Read::Register(at("a", TEXT)),
        Read::SetSize(at("b", TAGS)),
        Read::MapSize(at("c", MARKS)),
        Read::LogSize(at("d", LINES)),
        Read::Counter(at("e", COUNT)),
        Read::Exists(thing("e")),
    ]
}

async fn a_dropped_transaction_leaves_nothing(bench: &Bench<'_>) -> Checked {
    let before = bench.read(&reads()).await?;
    let mut transaction = bench.begin().await?;
    transaction.flush(everywhere("x")).await?;
    transaction.read(&reads()).await?;
    drop(transaction);
    ensure_eq!(bench.read(&reads()).await?, before, "after a drop");
    let mut transaction = bench.begin().await?;
    transaction.read(&reads()).await?;
    drop(transaction);
    bench.write(everywhere("y")).await?;
    let found = bench.data(Read::SetSize(at("b", TAGS))).await?;
    ensure_eq!(found, Data::Count(1), "after a drop and a commit");
    Ok(())
}

async fn flushed_writes_are_seen_by_their_transaction_alone(bench: &Bench<'_>) -> Checked {
    let before = bench.read(&reads()).await?;
    let mut transaction = bench.begin().await?;
    transaction.flush(everywhere("x")).await?;
    let own = get(&mut transaction, Read::Register(at("a", TEXT))).await?;
    let expected = Data::Register(Some(Value::from("x")));
    ensure_eq!(own, expected, "a transaction's own flushed write");
    ensure_eq!(bench.read(&reads()).await?, before, "another's flushed writes");
    transaction.commit(commit(Vec::new())).await?;
    let found = bench.data(Read::Register(at("a", TEXT))).await?;
    ensure_eq!(found, expected, "after the commit");
    Ok(())
}

async fn a_refused_commit_leaves_nothing(bench: &Bench<'_>) -> Checked {
    let before = bench.read(&reads()).await?;
    let mut writes = everywhere("x");
    writes.push(Write::Insert(at("a", TEXT), Value::from("no set")));
    let result = bench.begin().await?.commit(commit(writes)).await;
    let is_refused = matches!(result, Err(StoreError::Refused { .. }));
    ensure!(is_refused, "it gave {result:?}");
    ensure_eq!(bench.read(&reads()).await?, before, "after a refusal");
    Ok(())
}

async fn all_writes_of_a_commit_are_seen_together(bench: &Bench<'_>) -> Checked {
    if !bench.store.capabilities().atomic_commit {
        return Ok(());
    }
    for round in 1..=20u64 {
        bench.write(everywhere(&format!("x{round}"))).await?;
        let steps = 1 + round % 3;
        for replica in 0..bench.replicas().len().max(1) {
            for _ in 0..steps {
                bench.factory.step(&*bench.store).await;
            }
            let answers = bench.read_at(replica, &reads()).await?;
            let sizes: Vec<Data> = answers[1..4].iter().map(|a| a.data.clone()).collect();
            let Data::Count(size) = sizes[0] else {
                return Err(Wrong(format!("a size is {:?}", sizes[0])));
            };
            ensure!(sizes.iter().all(|s| *s == sizes[0]), "torn: {sizes:?}");
            let count = &answers[4].data;
            ensure_eq!(*count, Data::Counter(size.into()), "a counter beside a set");
        }
    }
    Ok(())
}

async fn a_transaction_reads_one_snapshot(bench: &Bench<'_>) -> Checked {
    if !bench.store.capabilities().atomic_commit {
        return Ok(());
    }
    bench.write(everywhere("x")).await?;
    for read_first in [0, 1, 4] {
        let mut reader = bench.begin().await?;
        let all = reads();
        let first = reader.read(&all[read_first..=read_first]).await?;
        bench.write(everywhere(&format!("y{read_first}"))).await?;
        bench.write(vec![Write::Delete(thing("d"))]).await?;
        let second = match reader.read(&all).await {
            Ok(answers) => answers,
            // A store may say that it cannot keep the snapshot.
            Err(StoreError::Conflict) => continue,
            Err(error) => return Err(error.into()),
        };
        ensure_eq!(second[read_first], first[0], "the same unit, read again");
        let again = reader.read(&all).await;
        ensure!(again.is_err() || again == Ok(second.clone()), "the snapshot moved");
        let later = bench.read(&all).await?;
        ensure!(later != second, "a new transaction sees the old state");
    }
    Ok(())
}

async fn what_was_committed_is_seen_by_whoever_begins_later(bench: &Bench<'_>) -> Checked {
    for n in 0..20 {
        let write = Write::Assign(at("n", NUMBER), Value::Int(n));
        bench.write(vec![write]).await?;
        let found = bench.data(Read::Register(at("n", NUMBER))).await?;
        ensure_eq!(found, Data::Register(Some(Value::Int(n))), "right after it");
    }
    Ok(())
}

/// Adds without reads, at all replicas, several at once; conflicts are tried again.
async fn concurrent_adds_are_all_kept(bench: &Bench<'_>) -> Checked {
    const TASKS: u64 = 6;
    const EACH: u64 = 10;
    let task = |n: u64| -> BoxFuture<'_, Result<(), Wrong>> {
        Box::pin(async move {
            let replica = n as usize % bench.replicas().len().max(1);
            for line in 0..EACH {
                let line = Value::from(format!("{n}.{line}"));
                let mut is_done = false;
                for _ in 0..TRIES_MAX {
                    let transaction = bench.begin_at(replica).await?;
                    yield_now().await;
                    let writes = vec![
                        Write::Add(at("sum", COUNT), 1),
                        Write::Append(at("sum", LINES), line.clone()),
                        Write::Insert(at("sum", TAGS), line.clone()),
                    ];
                    match transaction.commit(commit(writes)).await {
                        Ok(_) => is_done = true,
                        Err(StoreError::Conflict) => {}
                        Err(error) => return Err(error.into()),
                    }
                    if is_done {
                        break;
                    }
                    yield_now().await;
                }
                ensure!(is_done, "no progress in {TRIES_MAX} tries");
            }
            Ok(())
        })
    };
    for result in join_all((0..TASKS).map(task).collect()).await {
        result?;
    }
    bench.deliver().await;
    for replica in 0..bench.replicas().len().max(1) {
        let all = TASKS * EACH;
        let reads = [
            Read::Counter(at("sum", COUNT)),
            Read::LogSize(at("sum", LINES)),
            Read::SetSize(at("sum", TAGS)),
        ];
        let found = bench.read_at(replica, &reads).await?;
        let found: Vec<Data> = found.into_iter().map(|answer| answer.data).collect();
        let expected = [Data::Counter(all.into()), Data::Count(all), Data::Count(all)];
        ensure_eq!(found[..], expected[..], "at replica {replica}");
    }
    Ok(())
}
