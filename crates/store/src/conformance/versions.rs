//! Versions and witness rows.

use mingle_model::{Value, Version, WitnessRow};

use super::schema::{COUNT, LINES, MARKS, NUMBER, TAGS, TEXT, at, thing};
use super::{Bench, Checked, ensure, ensure_eq, one, tests, witness_row};
use crate::operation::{Read, Write};

tests![
    what_was_never_written_has_version_0,
    versions_change_if_the_unit_was_written_and_only_then,
    a_deletion_changes_the_version,
    a_flushed_write_has_a_version_of_its_own,
    witness_rows_come_with_reads_of_their_object,
    witness_rows_are_added_one_by_one_and_forgotten_by_transaction,
];

fn units() -> Vec<(Read, Write)> {
    let text = |text: &str| Value::from(text);
    vec![
        (Read::Register(at("v", TEXT)), Write::Assign(at("v", TEXT), text("x"))),
        (Read::Register(at("v", NUMBER)), Write::Assign(at("v", NUMBER), Value::Int(1))),
        (Read::Counter(at("v", COUNT)), Write::Add(at("v", COUNT), 1)),
        (Read::Contains(at("v", TAGS), text("a")), Write::Insert(at("v", TAGS), text("a"))),
        (Read::Contains(at("v", TAGS), text("b")), Write::Insert(at("v", TAGS), text("b"))),
        (
            Read::Entry(at("v", MARKS), text("a")),
            Write::Put(at("v", MARKS), text("a"), Value::Int(1)),
        ),
        (
            Read::Entry(at("v", MARKS), text("b")),
            Write::Put(at("v", MARKS), text("b"), Value::Int(1)),
        ),
        (Read::LogSize(at("v", LINES)), Write::Append(at("v", LINES), text("line"))),
        (Read::Register(at("w", TEXT)), Write::Assign(at("w", TEXT), text("x"))),
    ]
}

async fn what_was_never_written_has_version_0(bench: &Bench<'_>) -> Checked {
    let reads: Vec<Read> = units().into_iter().map(|(read, _)| read).collect();
    for answer in bench.read(&reads).await? {
        ensure_eq!(answer.version, Version(0), "before any write");
    }
    Ok(())
}

async fn versions_change_if_the_unit_was_written_and_only_then(bench: &Bench<'_>) -> Checked {
    let units = units();
    let reads: Vec<Read> = units.iter().map(|(read, _)| read.clone()).collect();
    for round in 0..2 {
        for (written, (_, write)) in units.iter().enumerate() {
            let before = bench.read(&reads).await?;
            bench.write(vec![write.clone()]).await?;
            let after = bench.read(&reads).await?;
            for (index, (before, after)) in before.iter().zip(&after).enumerate() {
                let changed = before.version != after.version;
                let read = &reads[index];
                ensure_eq!(
                    changed,
                    index == written,
                    "round {round}: whether {write:?} changed the version of {read:?}"
                );
            }
            let again = bench.read(&reads).await?;
            ensure_eq!(again, after, "reading again");
        }
    }
    Ok(())
}

async fn a_deletion_changes_the_version(bench: &Bench<'_>) -> Checked {
    let mut seen = Vec::new();
    let exists = Read::Exists(thing("d"));
    let text = Read::Register(at("d", TEXT));
    for _ in 0..2 {
        bench.write(vec![Write::Assign(at("d", TEXT), Value::from("x"))]).await?;
        seen.push(bench.read(&[text.clone(), exists.clone()]).await?);
        bench.write(vec![Write::Delete(thing("d"))]).await?;
        seen.push(bench.read(&[text.clone(), exists.clone()]).await?);
    }
    for unit in 0..2 {
        let mut versions: Vec<Version> = seen.iter().map(|answers| answers[unit].version).collect();
        versions.sort_unstable();
        versions.dedup();
        ensure_eq!(versions.len(), 4, "versions of a unit written and deleted twice");
    }
    Ok(())
}

async fn a_flushed_write_has_a_version_of_its_own(bench: &Bench<'_>) -> Checked {
    let read = Read::Register(at("f", TEXT));
    let write = |text: &str| Write::Assign(at("f", TEXT), Value::from(text));
    bench.write(vec![write("committed")]).await?;
    let committed = one(bench.read(std::slice::from_ref(&read)).await?)?;
    let mut open = bench.begin().await?;
    open.flush(vec![write("flushed")]).await?;
    let flushed = one(open.read(std::slice::from_ref(&read)).await?)?;
    ensure!(flushed.version != committed.version, "a flush keeps the version");
    drop(open);
    for n in 0..5 {
        bench.write(vec![write(&format!("later {n}"))]).await?;
        let later = one(bench.read(std::slice::from_ref(&read)).await?)?;
        ensure!(later.version != flushed.version, "a dropped version is used again");
    }
    Ok(())
}

fn witness(key: &str, sequence: u64, stores: &[&str]) -> WitnessRow {
    let stores = stores.iter().map(|name| (*name).into()).collect();
    WitnessRow { stores, ..witness_row(Some(key), sequence) }
}

async fn witness_rows_come_with_reads_of_their_object(bench: &Bench<'_>) -> Checked {
    let row = witness("o", 1, &["a", "b"]);
    let mut open = bench.begin().await?;
    open.flush(vec![Write::Witness(row.clone())]).await?;
    drop(open);
    let read = [Read::Register(at("o", TEXT)), Read::Register(at("p", TEXT))];
    for answer in bench.read(&read).await? {
        ensure_eq!(answer.witnesses, Vec::new(), "after a drop");
    }
    bench
        .write(vec![Write::Assign(at("o", TEXT), Value::from("x")), Write::Witness(row.clone())])
        .await?;
    let mut reads = super::operations::all_reads("o");
    reads.push(read[1].clone());
    let answers = bench.read(&reads).await?;
    for (read, answer) in reads.iter().zip(&answers).take(reads.len() - 1) {
        ensure_eq!(answer.witnesses, vec![row.clone()], "with {read:?}");
    }
    let other = &answers[reads.len() - 1].witnesses;
    ensure_eq!(*other, Vec::new(), "with another object");
    bench.write_knowing(&[row.id], vec![Write::Delete(thing("o"))]).await?;
    let deleted = bench.read(&[Read::Exists(thing("o"))]).await?;
    ensure_eq!(one(deleted)?.witnesses, vec![row], "with a deleted object");
    Ok(())
}

async fn witness_rows_are_added_one_by_one_and_forgotten_by_transaction(
    bench: &Bench<'_>,
) -> Checked {
    let rows = [
        witness("o", 1, &["a"]),
        witness("o", 2, &["a"]),
        witness("o", 2, &["a", "b"]),
        witness("o", 3, &[]),
    ];
    let mut expected = Vec::new();
    let read = [Read::Exists(thing("o"))];
    for row in rows.iter().chain(&rows) {
        bench.write(vec![Write::Witness(row.clone())]).await?;
        expected.push(row.clone());
        expected.sort();
        expected.dedup();
        let mut found = one(bench.read(&read).await?)?.witnesses;
        found.sort();
        ensure_eq!(found, expected, "witness rows");
    }
    for row in &rows {
        bench.write(vec![Write::Forget(row.id)]).await?;
        expected.retain(|kept| kept.id != row.id);
        let mut found = one(bench.read(&read).await?)?.witnesses;
        found.sort();
        ensure_eq!(found, expected, "witness rows, after a transaction's were forgotten");
    }
    let exists = one(bench.read(&read).await?)?;
    ensure_eq!(exists.data, crate::operation::Data::Bool(false), "witnessed, not written");
    Ok(())
}
