//! Witness rows: the transactions that meet them, those that must know them, and their end.

use mingle_model::{RowKind, Stamp, TransactionId, Value, WitnessRow};

use super::schema::{COUNT, TEXT, at, thing};
use super::{Bench, Checked, Wrong, commit, ensure_eq, get, one, tests, witness_row};
use crate::operation::{Data, Read, Write};
use crate::record::{RecordKey, RecordKind};
use crate::store::{Commit, StoreError};

tests![
    rows_of_the_whole_store_come_with_every_read,
    whoever_writes_an_object_must_know_its_rows,
    whoever_has_read_an_object_must_know_its_rows_too,
    whoever_writes_anything_must_know_the_rows_of_the_store,
    what_is_no_data_needs_no_knowledge,
    a_transaction_knows_its_own_rows,
    all_rows_of_a_transaction_are_forgotten_together,
    rows_are_listed_in_order_of_their_transactions,
];

/// Those that only replicated stores must pass.
pub(super) const REPLICATED_TESTS: &[(&str, super::Test)] = &[
    ("a_row_concerns_the_replicas_that_have_it", |bench| {
        Box::pin(a_row_concerns_the_replicas_that_have_it(bench))
    }),
    ("rows_are_forgotten_at_every_replica", |bench| {
        Box::pin(rows_are_forgotten_at_every_replica(bench))
    }),
];

/// A row with all that a row can have.
fn full_row(key: Option<&str>, sequence: u64) -> WitnessRow {
    let seen = |count| Stamp::from_iter([("r1".into(), count), ("r2".into(), u64::MAX)]);
    WitnessRow {
        kind: RowKind::Read,
        stores: vec!["a".into(), "b".into()],
        seen: vec![("c".into(), seen(3)), ("d".into(), Stamp::default()), ("e".into(), seen(0))],
        ..witness_row(key, sequence)
    }
}

async fn add(bench: &Bench<'_>, rows: &[WitnessRow]) -> Checked {
    bench.write(rows.iter().cloned().map(Write::Witness).collect()).await?;
    Ok(())
}

fn increment(key: &str) -> Vec<Write> {
    vec![Write::Add(at(key, COUNT), 1)]
}

fn witnessed(rows: &[WitnessRow]) -> Result<(), StoreError> {
    Err(StoreError::Witnessed { rows: rows.to_vec() })
}

/// Returns the result of a commit; the rows in an error are sorted.
async fn outcome(bench: &Bench<'_>, commit: Commit) -> Result<Result<(), StoreError>, Wrong> {
    Ok(sorted(bench.begin().await?.commit(commit).await.map(|_| ())))
}

fn sorted<T>(result: Result<T, StoreError>) -> Result<T, StoreError> {
    result.map_err(|error| match error {
        StoreError::Witnessed { mut rows } => {
            rows.sort();
            StoreError::Witnessed { rows }
        }
        other => other,
    })
}

fn knowing(known: &[&WitnessRow], writes: Vec<Write>) -> Commit {
    Commit { writes, known: known.iter().map(|row| row.id).collect(), ..Commit::default() }
}

async fn rows(bench: &Bench<'_>, replica: usize, key: &str) -> Result<Vec<WitnessRow>, Wrong> {
    let mut rows = one(bench.read_at(replica, &[Read::Exists(thing(key))]).await?)?.witnesses;
    rows.sort();
    Ok(rows)
}

async fn listed(
    bench: &Bench<'_>,
    replica: usize,
    from: u64,
    limit: usize,
) -> Result<Vec<WitnessRow>, Wrong> {
    let from = TransactionId { sequence: from, ..witness_row(None, 0).id };
    match bench.data_at(replica, Read::Witnesses { from, limit }).await? {
        Data::Witnesses(rows) => Ok(rows),
        other => Err(Wrong(format!("witness rows read as {other:?}"))),
    }
}

async fn rows_of_the_whole_store_come_with_every_read(bench: &Bench<'_>) -> Checked {
    let (own, all, full) = (full_row(Some("o"), 1), witness_row(None, 2), full_row(None, 3));
    add(bench, &[own.clone(), all.clone(), full.clone(), all.clone()]).await?;
    for read in super::operations::all_reads("o") {
        let mut found = one(bench.read(std::slice::from_ref(&read)).await?)?.witnesses;
        found.sort();
        let mut expected = vec![own.clone(), all.clone(), full.clone()];
        expected.sort();
        ensure_eq!(found, expected, "with {read:?}");
    }
    let mut expected = vec![all, full];
    expected.sort();
    ensure_eq!(rows(bench, 0, "p").await?, expected, "with another object");
    Ok(())
}

async fn whoever_writes_an_object_must_know_its_rows(bench: &Bench<'_>) -> Checked {
    let (first, second) = (witness_row(Some("o"), 1), full_row(Some("o"), 2));
    let elsewhere = witness_row(Some("p"), 3);
    add(bench, &[first.clone(), second.clone(), elsewhere.clone()]).await?;
    let writes = [
        Write::Add(at("o", COUNT), 1),
        Write::Create(thing("o")),
        Write::Delete(thing("o")),
        Write::Assign(at("o", TEXT), Value::from("x")),
    ];
    for write in writes {
        for known in [&[][..], &[&first], &[&second, &elsewhere]] {
            let writes = vec![Write::Add(at("q", COUNT), 1), write.clone()];
            let found = outcome(bench, knowing(known, writes)).await?;
            let all = [first.clone(), second.clone()];
            ensure_eq!(found, witnessed(&all), "{write:?}, knowing {known:?}");
        }
    }
    ensure_eq!(bench.data(Read::Counter(at("q", COUNT))).await?, Data::Counter(0), "nothing");
    let both = knowing(&[&first, &second], increment("o"));
    ensure_eq!(outcome(bench, both).await?, Ok(()), "knowing both");
    ensure_eq!(outcome(bench, commit(increment("q"))).await?, Ok(()), "an object without rows");
    let all = [first.clone(), second.clone(), elsewhere.clone()];
    let writes = [increment("p"), increment("o")].concat();
    let found = outcome(bench, knowing(&[&first, &second], writes)).await?;
    ensure_eq!(found, witnessed(&all), "two objects, and the rows of one known");
    let mut open = bench.begin().await?;
    open.flush(increment("p")).await?;
    let found = sorted(open.commit(commit(increment("q"))).await.map(|_| ()));
    ensure_eq!(found, witnessed(&[elsewhere]), "a flushed write");
    Ok(())
}

async fn whoever_has_read_an_object_must_know_its_rows_too(bench: &Bench<'_>) -> Checked {
    let row = witness_row(Some("o"), 1);
    let mut early = bench.begin().await?;
    get(&mut early, Read::Exists(thing("o"))).await?;
    add(bench, std::slice::from_ref(&row)).await?;
    let mut late = bench.begin().await?;
    let answer = one(late.read(&[Read::Exists(thing("o"))]).await?)?;
    ensure_eq!(answer.witnesses, vec![row.clone()], "with the read");
    let mut told = bench.begin().await?;
    get(&mut told, Read::Exists(thing("o"))).await?;
    let expected = witnessed(std::slice::from_ref(&row));
    for (open, what) in [(early, "before"), (late, "after")] {
        let found = open.commit(commit(increment("o"))).await.map(|_| ());
        ensure_eq!(found, expected, "one that has read {what} the row was there");
    }
    told.commit(knowing(&[&row], increment("o"))).await?;
    Ok(())
}

async fn whoever_writes_anything_must_know_the_rows_of_the_store(bench: &Bench<'_>) -> Checked {
    let (all, own) = (witness_row(None, 1), witness_row(Some("o"), 2));
    add(bench, &[all.clone(), own.clone()]).await?;
    let one = witnessed(std::slice::from_ref(&all));
    ensure_eq!(outcome(bench, commit(increment("p"))).await?, one, "another object");
    let both = [all.clone(), own.clone()];
    let mut both = both.to_vec();
    both.sort();
    let found = outcome(bench, knowing(&[&own], increment("o"))).await?;
    ensure_eq!(found, witnessed(&both), "knowing the object's");
    let found = outcome(bench, knowing(&[&all], increment("o"))).await?;
    ensure_eq!(found, witnessed(&both), "knowing the store's");
    let found = outcome(bench, knowing(&[&all, &own], increment("o"))).await?;
    ensure_eq!(found, Ok(()), "knowing both");
    Ok(())
}

async fn what_is_no_data_needs_no_knowledge(bench: &Bench<'_>) -> Checked {
    let (all, own) = (witness_row(None, 1), witness_row(Some("o"), 2));
    add(bench, &[all, own.clone()]).await?;
    let key = RecordKey::of(RecordKind::Parked, own.id, 0);
    let writes = vec![
        Write::Record(key.clone(), own.id.sequence.to_be_bytes().as_slice().into()),
        Write::Discard(key),
        Write::Witness(witness_row(Some("o"), 3)),
        Write::Forget(witness_row(None, 4).id),
    ];
    for write in writes {
        let found = outcome(bench, commit(vec![write.clone()])).await?;
        ensure_eq!(found, Ok(()), "{write:?}");
    }
    ensure_eq!(outcome(bench, Commit::default()).await?, Ok(()), "nothing");
    Ok(())
}

async fn a_transaction_knows_its_own_rows(bench: &Bench<'_>) -> Checked {
    let (own, other) = (witness_row(Some("o"), 1), witness_row(Some("o"), 2));
    add(bench, std::slice::from_ref(&own)).await?;
    let by_row = [increment("o"), vec![Write::Witness(full_row(Some("p"), 1))]].concat();
    ensure_eq!(outcome(bench, commit(by_row.clone())).await?, Ok(()), "by a row of its own");
    let by_id = |writes| Commit { id: Some(own.id), ..commit(writes) };
    add(bench, std::slice::from_ref(&other)).await?;
    let both = [own.clone(), other.clone()];
    let expected = witnessed(&both);
    ensure_eq!(outcome(bench, commit(by_row)).await?, expected, "and another's, by a row");
    ensure_eq!(outcome(bench, by_id(increment("o"))).await?, expected, "and another's, by id");
    bench.write(vec![Write::Forget(other.id)]).await?;
    ensure_eq!(outcome(bench, by_id(increment("o"))).await?, Ok(()), "by its id");
    Ok(())
}

async fn all_rows_of_a_transaction_are_forgotten_together(bench: &Bench<'_>) -> Checked {
    let gone = [full_row(Some("o"), 1), witness_row(Some("p"), 1), witness_row(None, 1)];
    let kept = [witness_row(Some("o"), 2), witness_row(None, 3)];
    add(bench, &gone).await?;
    add(bench, &kept).await?;
    let forget = |row: &WitnessRow| Write::Forget(row.id);
    let mut open = bench.begin().await?;
    open.flush(vec![forget(&gone[0])]).await?;
    let found = one(open.read(&[Read::Exists(thing("p"))]).await?)?.witnesses;
    ensure_eq!(found, vec![kept[1].clone()], "after a flush");
    drop(open);
    ensure_eq!(listed(bench, 0, 0, 10).await?.len(), 5, "rows after a drop");
    bench.write(vec![forget(&gone[0]), forget(&witness_row(None, 9))]).await?;
    ensure_eq!(listed(bench, 0, 0, 10).await?, kept.to_vec(), "what is left");
    let mut of_o = kept.to_vec();
    of_o.sort();
    ensure_eq!(rows(bench, 0, "o").await?, of_o, "what is left of an object");
    ensure_eq!(rows(bench, 0, "p").await?, vec![kept[1].clone()], "what is left of another");
    let there_and_back = vec![
        Write::Witness(gone[0].clone()),
        forget(&gone[0]),
        Write::Witness(gone[1].clone()),
        forget(&kept[0]),
        forget(&kept[1]),
    ];
    bench.write(there_and_back).await?;
    ensure_eq!(listed(bench, 0, 0, 10).await?, vec![gone[1].clone()], "in order of the writes");
    ensure_eq!(rows(bench, 0, "p").await?, vec![gone[1].clone()], "with the object");
    Ok(())
}

async fn rows_are_listed_in_order_of_their_transactions(bench: &Bench<'_>) -> Checked {
    for sequence in [300, 2, 1, 40] {
        let keys = ["z", "a", "m"].map(Some).into_iter().chain([None]);
        let rows: Vec<WitnessRow> = keys.map(|key| witness_row(key, sequence)).collect();
        add(bench, &rows).await?;
    }
    bench.write_knowing(&[1, 2, 40, 300].map(|n| witness_row(None, n).id), increment("a")).await?;
    for (from, limit, expected) in [
        (0, 100, &[1, 2, 40, 300][..]),
        (0, 0, &[]),
        (0, 1, &[1]),
        (0, 4, &[1]),
        (0, 5, &[1, 2]),
        (2, 4, &[2]),
        (3, 8, &[40, 300]),
        (41, 1, &[300]),
        (301, 9, &[]),
    ] {
        let found = listed(bench, 0, from, limit).await?;
        let sequences: Vec<u64> = found.chunks(4).map(|rows| rows[0].id.sequence).collect();
        ensure_eq!(sequences, expected, "the transactions of {limit} rows from {from}");
        for rows in found.chunks(4) {
            let mut objects: Vec<_> = rows.iter().map(|row| row.object.clone()).collect();
            objects.sort();
            let expected = [None, Some("a"), Some("m"), Some("z")].map(|key| key.map(thing));
            ensure_eq!(objects[..], expected[..], "the rows of one transaction");
        }
    }
    Ok(())
}

async fn a_row_concerns_the_replicas_that_have_it(bench: &Bench<'_>) -> Checked {
    let row = witness_row(Some("o"), 1);
    let writes = [increment("o"), vec![Write::Witness(row.clone())]].concat();
    bench.write_at(0, writes).await?;
    bench.write_at(1, increment("o")).await?;
    bench.deliver().await;
    for replica in 0..bench.replicas().len() {
        let open = bench.begin_at(replica).await?;
        let found = open.commit(commit(increment("o"))).await.map(|_| ());
        ensure_eq!(found, witnessed(std::slice::from_ref(&row)), "at replica {replica}");
    }
    Ok(())
}

async fn rows_are_forgotten_at_every_replica(bench: &Bench<'_>) -> Checked {
    let (gone, kept) = (full_row(Some("o"), 1), full_row(None, 2));
    add(bench, &[gone.clone(), kept.clone(), witness_row(None, 1)]).await?;
    bench.deliver().await;
    for replica in 0..bench.replicas().len() {
        ensure_eq!(listed(bench, replica, 0, 9).await?.len(), 3, "rows at replica {replica}");
    }
    bench.write_at(1, vec![Write::Forget(gone.id)]).await?;
    bench.write_at(2, vec![Write::Forget(gone.id)]).await?;
    bench.deliver().await;
    for replica in 0..bench.replicas().len() {
        ensure_eq!(listed(bench, replica, 0, 9).await?, vec![kept.clone()], "at {replica}");
        ensure_eq!(rows(bench, replica, "o").await?, vec![kept.clone()], "at {replica}, of o");
    }
    Ok(())
}
