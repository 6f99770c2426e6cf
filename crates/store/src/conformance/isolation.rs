//! Anomalies that serializable stores must not allow. Each test lets two transactions overlap in the way
//! that the anomaly needs; at most one may succeed, or their reads must fit an order.

use mingle_model::Value;

use super::schema::{COUNT, LINES, MARKS, NUMBER, TAGS, at, thing};
use super::{Bench, Checked, Wrong, commit, ensure, ensure_eq, get, one, tests, witness_row};
use crate::limits::TRIES_MAX;
use crate::operation::{Data, Read, Write};
use crate::random::next_random;
use crate::store::{Commit, StoreError, Transaction};
use crate::test_world::{join_all, yield_now};
use crate::world::BoxFuture;

tests![
    no_lost_update,
    no_write_skew,
    no_phantoms,
    no_lost_creation,
    no_write_skew_over_existence,
    no_fractured_read,
    last_reads_end_their_transaction,
    disjoint_units_do_not_conflict,
    no_overwriting_past_a_witness_row,
    concurrent_increments_are_all_kept,
    random_transfers_keep_the_total,
];

/// True if a commit took effect; any error but a conflict is passed on.
async fn try_commit(transaction: Box<dyn Transaction>, writes: Vec<Write>) -> Result<bool, Wrong> {
    match transaction.commit(commit(writes)).await {
        Ok(_) => Ok(true),
        Err(StoreError::Conflict) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Two transactions each read, then each write; at most one may succeed.
async fn overlap(bench: &Bench<'_>, reads: [Read; 2], writes: [Write; 2], what: &str) -> Checked {
    let mut open = Vec::new();
    for read in reads {
        let mut transaction = bench.begin().await?;
        transaction.read(&[read]).await?;
        open.push(transaction);
    }
    let mut successes = 0;
    for (transaction, write) in open.into_iter().zip(writes) {
        successes += u32::from(try_commit(transaction, vec![write]).await?);
    }
    ensure!(successes <= 1, "{what}: both transactions succeeded");
    ensure!(successes == 1, "{what}: neither transaction succeeded");
    Ok(())
}

/// The earlier reads are validated with the last ones, and none of them blocks a later transaction.
async fn last_reads_end_their_transaction(bench: &Bench<'_>) -> Checked {
    let (x, y) = (at("x", NUMBER), at("y", NUMBER));
    let write = |address: &_, n| Write::Assign(Clone::clone(address), Value::Int(n));
    bench.write(vec![write(&x, 0), write(&y, 0)]).await?;
    for n in 1..6 {
        let mut reader = bench.begin().await?;
        let before = get(&mut reader, Read::Register(x.clone())).await?;
        bench.write(vec![write(&x, n), write(&y, n)]).await?;
        let after = match reader.read_last(&[Read::Register(y.clone())]).await {
            Ok(answers) => one(answers)?.data,
            Err(StoreError::Conflict) => continue,
            Err(error) => return Err(error.into()),
        };
        let was = after == Data::Register(Some(Value::Int(n - 1)));
        bench.write(vec![write(&x, n), write(&y, n)]).await?;
        let is_valid = try_commit(reader, Vec::new()).await?;
        ensure!(!is_valid || was, "x was {before:?}, and then y {after:?}");
    }
    let mut reader = bench.begin().await?;
    reader.read_last(&[Read::Register(x.clone()), Read::Register(y.clone())]).await?;
    ensure!(try_commit(reader, Vec::new()).await?, "a transaction alone was not valid");
    Ok(())
}

async fn no_lost_update(bench: &Bench<'_>) -> Checked {
    let x = at("x", NUMBER);
    let write = |n| Write::Assign(x.clone(), Value::Int(n));
    bench.write(vec![write(0)]).await?;
    let reads = [Read::Register(x.clone()), Read::Register(x.clone())];
    overlap(bench, reads, [write(1), write(2)], "a lost update of a register").await?;
    let (map, key) = (at("x", MARKS), Value::from("k"));
    let reads = [Read::Entry(map.clone(), key.clone()), Read::Entry(map.clone(), key.clone())];
    let put = |n| Write::Put(map.clone(), key.clone(), Value::Int(n));
    overlap(bench, reads, [put(1), put(2)], "a lost update of an entry").await?;
    let count = at("x", COUNT);
    let reads = [Read::Counter(count.clone()), Read::Counter(count.clone())];
    let adds = [Write::Add(count.clone(), 1), Write::Add(count, 1)];
    overlap(bench, reads, adds, "an add that depends on the counter's value").await
}

async fn no_write_skew(bench: &Bench<'_>) -> Checked {
    let (x, y) = (at("x", NUMBER), at("y", NUMBER));
    let write = |address: &_, n| Write::Assign(Clone::clone(address), Value::Int(n));
    bench.write(vec![write(&x, 1), write(&y, 1)]).await?;
    let reads = [Read::Register(x.clone()), Read::Register(y.clone())];
    overlap(bench, reads, [write(&y, 0), write(&x, 0)], "a write skew").await?;
    let tags = at("t", TAGS);
    let (a, b) = (Value::from("a"), Value::from("b"));
    let reads = [Read::Contains(tags.clone(), a.clone()), Read::Contains(tags.clone(), b.clone())];
    let writes = [Write::Insert(tags.clone(), b), Write::Insert(tags, a)];
    overlap(bench, reads, writes, "a write skew over elements").await
}

async fn no_phantoms(bench: &Bench<'_>) -> Checked {
    let (tags, marks, lines) = (at("p", TAGS), at("p", MARKS), at("p", LINES));
    let text = |n: u32| Value::from(format!("{n}"));
    let insert = |n| Write::Insert(tags.clone(), text(n));
    let put = |n| Write::Put(marks.clone(), text(n), Value::Int(0));
    let append = |n| Write::Append(lines.clone(), text(n));
    let slice = Read::LogSlice { address: lines.clone(), from: 0, count: 100 };
    let cases = [
        (Read::SetSize(tags.clone()), insert(0), insert(1), "the size of a set"),
        (Read::Elements(tags.clone()), insert(2), insert(3), "the elements of a set"),
        (Read::MapSize(marks.clone()), put(0), put(1), "the size of a map"),
        (Read::Entries(marks.clone()), put(2), put(3), "the entries of a map"),
        (Read::LogSize(lines.clone()), append(0), append(1), "the size of a log"),
        (Read::LogLast(lines.clone(), 5), append(2), append(3), "the end of a log"),
        (slice, append(4), append(5), "a slice of a log"),
        (
            Read::Elements(tags.clone()),
            Write::Remove(tags.clone(), text(0)),
            Write::Remove(tags.clone(), text(1)),
            "the elements of a set, by removal",
        ),
    ];
    for (read, first, second, what) in cases {
        let what = format!("a phantom through {what}");
        overlap(bench, [read.clone(), read], [first, second], &what).await?;
    }
    Ok(())
}

async fn no_lost_creation(bench: &Bench<'_>) -> Checked {
    let exists = Read::Exists(thing("new"));
    let create = Write::Create(thing("new"));
    let (reads, writes) = ([exists.clone(), exists], [create.clone(), create]);
    overlap(bench, reads, writes, "an object created twice").await
}

async fn no_write_skew_over_existence(bench: &Bench<'_>) -> Checked {
    let (a, b) = (thing("a"), thing("b"));
    bench.write(vec![Write::Create(a.clone()), Write::Create(b.clone())]).await?;
    let reads = [Read::Exists(a.clone()), Read::Exists(b.clone())];
    let writes = [Write::Delete(b), Write::Delete(a)];
    overlap(bench, reads, writes, "a write skew over deletions").await?;
    bench.write(vec![Write::Add(at("c", COUNT), 1)]).await?;
    let reads = [Read::Counter(at("c", COUNT)), Read::Exists(thing("d"))];
    let writes = [Write::Create(thing("d")), Write::Delete(thing("c"))];
    overlap(bench, reads, writes, "a field of a deleted object").await
}

/// A read-only transaction sees either nothing or all of another.
async fn no_fractured_read(bench: &Bench<'_>) -> Checked {
    let set = |n| ["x", "y"].map(|key| Write::Assign(at(key, NUMBER), Value::Int(n))).to_vec();
    bench.write(set(0)).await?;
    let mut reader = bench.begin().await?;
    let x = get(&mut reader, Read::Register(at("x", NUMBER))).await?;
    bench.write(set(1)).await?;
    let Ok(y) = get(&mut reader, Read::Register(at("y", NUMBER))).await else {
        return Ok(());
    };
    match reader.commit(Commit::default()).await {
        Ok(_) => ensure_eq!(y, x, "half of another transaction is seen"),
        Err(StoreError::Conflict) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// The unit of conflict is the register or the element, not the object.
async fn disjoint_units_do_not_conflict(bench: &Bench<'_>) -> Checked {
    bench.write(vec![Write::Create(thing("u"))]).await?;
    let (tags, a, b) = (at("u", TAGS), Value::from("a"), Value::from("b"));
    let mut first = bench.begin().await?;
    let mut second = bench.begin().await?;
    get(&mut first, Read::Contains(tags.clone(), a.clone())).await?;
    get(&mut second, Read::Contains(tags.clone(), b.clone())).await?;
    let both = [
        try_commit(first, vec![Write::Insert(tags.clone(), a)]).await?,
        try_commit(second, vec![Write::Insert(tags, b)]).await?,
    ];
    ensure_eq!(both, [true, true], "transactions on two elements of a set");
    Ok(())
}

/// A transaction that overwrites a write must have seen its witness rows.
async fn no_overwriting_past_a_witness_row(bench: &Bench<'_>) -> Checked {
    let row = witness_row(Some("o"), 1);
    let write = |n| Write::Assign(at("o", NUMBER), Value::Int(n));
    for key in ["o", "p"] {
        let mut open = bench.begin().await?;
        get(&mut open, Read::Exists(thing("o"))).await?;
        get(&mut open, Read::Exists(thing("p"))).await?;
        bench.write(vec![Write::Witness(row.clone())]).await?;
        let found = open.commit(commit(vec![Write::Add(at(key, COUNT), 1)])).await;
        let expected = match key {
            "o" => Err(StoreError::Witnessed { rows: vec![row.clone()] }),
            _ => Ok(()),
        };
        ensure_eq!(found.map(|_| ()), expected, "a write of {key} after a witness row of o");
        bench.write(vec![Write::Forget(row.id)]).await?;
        bench.write(vec![write(1), Write::Delete(thing("o"))]).await?;
    }
    Ok(())
}

async fn concurrent_increments_are_all_kept(bench: &Bench<'_>) -> Checked {
    const TASKS: i64 = 8;
    const EACH: i64 = 10;
    let n = at("n", NUMBER);
    let task = || -> BoxFuture<'_, Result<(), Wrong>> {
        let n = n.clone();
        Box::pin(async move {
            for _ in 0..EACH {
                let mut is_done = false;
                for _ in 0..TRIES_MAX {
                    let mut transaction = bench.begin().await?;
                    let now = number(get(&mut transaction, Read::Register(n.clone())).await?);
                    yield_now().await;
                    let write = Write::Assign(n.clone(), Value::Int(now + 1));
                    is_done = try_commit(transaction, vec![write]).await?;
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
    for result in join_all((0..TASKS).map(|_| task()).collect()).await {
        result?;
    }
    let found = bench.data(Read::Register(n.clone())).await?;
    ensure_eq!(number(found), TASKS * EACH, "increments");
    Ok(())
}

fn number(data: Data) -> i64 {
    match data {
        Data::Register(Some(value)) => value.as_int().unwrap_or(0),
        _ => 0,
    }
}

async fn random_transfers_keep_the_total(bench: &Bench<'_>) -> Checked {
    const SEED: u64 = 41;
    let account = |n: u64| at(&format!("account {}", n % 4), NUMBER);
    let balance = |n, amount| Write::Assign(account(n), Value::Int(amount));
    bench.write((0..4).map(|n| balance(n, 100)).collect()).await?;
    let all: Vec<Read> = (0..4).map(|n| Read::Register(account(n))).collect();
    let all = &all;
    let task = |task: u64| -> BoxFuture<'_, Result<(), Wrong>> {
        let mut random = SEED + task;
        Box::pin(async move {
            for _ in 0..20 {
                let (from, to) = (next_random(&mut random), next_random(&mut random));
                let mut transaction = bench.begin().await?;
                if from % 4 == to % 4 {
                    let answers = transaction.read(all).await?;
                    let total: i64 = answers.into_iter().map(|a| number(a.data)).sum();
                    yield_now().await;
                    if try_commit(transaction, Vec::new()).await? {
                        ensure_eq!(total, 400, "the total, seed {SEED}, task {task}");
                    }
                    continue;
                }
                let source = number(get(&mut transaction, Read::Register(account(from))).await?);
                yield_now().await;
                let target = get(&mut transaction, Read::Register(account(to))).await;
                let Ok(target) = target.map(number) else {
                    continue;
                };
                yield_now().await;
                let writes = vec![balance(from, source - 7), balance(to, target + 7)];
                try_commit(transaction, writes).await?;
            }
            Ok(())
        })
    };
    for result in join_all((0..6).map(task).collect()).await {
        result?;
    }
    let answers = bench.read(all).await?;
    let total: i64 = answers.into_iter().map(|a| number(a.data)).sum();
    ensure_eq!(total, 400, "the total in the end, seed {SEED}");
    Ok(())
}
