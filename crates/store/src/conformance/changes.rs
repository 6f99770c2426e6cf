//! Each read, then each write of the same field by another transaction. If the answer of the read is no
//! longer valid, the two have an order; if the other transaction has read data that the first then writes,
//! they also have the other order, so that must be a conflict.

use mingle_model::Value;

use super::schema::{COUNT, LINES, MARKS, NUMBER, TAGS, at, thing};
use super::{Bench, Checked, Wrong, commit, ensure, ensure_eq, get, tests};
use crate::operation::{Data, KeyRange, Read, Write};
use crate::store::{StoreError, Transaction};

tests![no_commit_over_what_has_changed, a_snapshot_stays_whatever_is_written];

fn text(text: &str) -> Value {
    Value::from(text)
}

/// The writes that prepare the object before each pair.
fn before() -> Vec<Write> {
    vec![
        Write::Delete(thing("x")),
        Write::Assign(at("x", NUMBER), Value::Int(1)),
        Write::Add(at("x", COUNT), 5),
        Write::Insert(at("x", TAGS), text("t1")),
        Write::Insert(at("x", TAGS), text("t2")),
        Write::Put(at("x", MARKS), text("k1"), Value::Int(1)),
        Write::Put(at("x", MARKS), text("k2"), Value::Int(2)),
        Write::Append(at("x", LINES), text("one")),
        Write::Append(at("x", LINES), text("two")),
    ]
}

fn reads() -> Vec<Read> {
    vec![
        Read::Exists(thing("x")),
        Read::Register(at("x", NUMBER)),
        Read::Counter(at("x", COUNT)),
        Read::Contains(at("x", TAGS), text("t1")),
        Read::Contains(at("x", TAGS), text("absent")),
        Read::SetSize(at("x", TAGS)),
        Read::Elements(at("x", TAGS)),
        Read::Entry(at("x", MARKS), text("k1")),
        Read::Entry(at("x", MARKS), text("absent")),
        Read::MapSize(at("x", MARKS)),
        Read::Entries(at("x", MARKS)),
        Read::MapSlice { address: at("x", MARKS), range: KeyRange::first(9) },
        Read::MapSlice { address: at("x", MARKS), range: KeyRange::last(1) },
        Read::LogSize(at("x", LINES)),
        Read::LogLast(at("x", LINES), 1),
        Read::LogSlice { address: at("x", LINES), from: 0, count: 5 },
    ]
}

fn writes() -> Vec<Write> {
    vec![
        Write::Delete(thing("x")),
        Write::Assign(at("x", NUMBER), Value::Int(2)),
        Write::Add(at("x", COUNT), 1),
        Write::Insert(at("x", TAGS), text("absent")),
        Write::Remove(at("x", TAGS), text("t1")),
        Write::Clear(at("x", TAGS)),
        Write::Put(at("x", MARKS), text("k1"), Value::Int(9)),
        Write::Put(at("x", MARKS), text("absent"), Value::Int(9)),
        Write::Erase(at("x", MARKS), text("k1")),
        Write::Clear(at("x", MARKS)),
        Write::Append(at("x", LINES), text("three")),
        Write::Clear(at("x", LINES)),
    ]
}

/// True if a write changes the part that is read, or the whole object.
fn may_change(write: &Write, read: &Read) -> bool {
    let (Write::Assign(written, _)
    | Write::Add(written, _)
    | Write::Insert(written, _)
    | Write::Remove(written, _)
    | Write::Clear(written)
    | Write::Put(written, ..)
    | Write::Erase(written, _)
    | Write::Append(written, _)) = write
    else {
        return true;
    };
    read.address() == Some(written)
}

async fn no_commit_over_what_has_changed(bench: &Bench<'_>) -> Checked {
    let elsewhere = at("elsewhere", NUMBER);
    for write in writes() {
        for read in reads().into_iter().filter(|read| may_change(&write, read)) {
            bench.write(before()).await?;
            let (mut open, mut other) = (bench.begin().await?, bench.begin().await?);
            let seen = get(&mut open, read.clone()).await?;
            get(&mut other, Read::Register(elsewhere.clone())).await?;
            other.commit(commit(vec![write.clone()])).await?;
            let is_changed = bench.data(read.clone()).await? != seen;
            let last = Write::Assign(elsewhere.clone(), Value::Int(1));
            match open.commit(commit(vec![last])).await {
                Ok(_) => ensure!(!is_changed, "{read:?}, then {write:?}: no conflict"),
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

async fn a_snapshot_stays_whatever_is_written(bench: &Bench<'_>) -> Checked {
    for write in writes() {
        bench.write(before()).await?;
        let mut open = bench.begin().await?;
        let first = read_all(&mut open).await?;
        bench.write(vec![write.clone()]).await?;
        match open.read(&reads()).await {
            Ok(answers) => {
                let again: Vec<_> = answers.into_iter().map(|answer| answer.data).collect();
                ensure_eq!(again, first, "a second look after {write:?}");
            }
            Err(StoreError::Conflict) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

async fn read_all(open: &mut Box<dyn Transaction>) -> Result<Vec<Data>, Wrong> {
    let answers = open.read(&reads()).await?;
    Ok(answers.into_iter().map(|answer| answer.data).collect())
}
