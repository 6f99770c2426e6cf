//! Records, and the conditions that a commit may set for them.

use mingle_model::{Origin, TransactionId, Value, Version};

use super::schema::{COUNT, LINES, NUMBER, TEXT, at, store_schema};
use super::{Bench, Checked, Wrong, commit, ensure, ensure_eq, get, one, tests};
use crate::operation::{Data, Read, Write};
use crate::record::{Bytes, Guard, RecordKey, RecordKind, floor};
use crate::store::{Commit, Once, Outcome, StoreError};

tests![
    a_record_reads_back_until_it_is_discarded,
    records_of_a_kind_are_read_in_order,
    a_record_and_the_data_beside_it_are_one,
    a_guard_that_does_not_hold_leaves_nothing,
    guards_are_judged_without_writes,
    of_racing_commits_with_one_guard_one_takes_effect,
    guards_hold_at_every_replica_of_a_serial_store,
    records_survive_a_restart,
];

/// Those that only serializable stores must pass.
pub(super) const SERIALIZABLE_TESTS: &[(&str, super::Test)] = &[
    ("a_record_that_was_read_must_not_change", |bench| {
        Box::pin(a_record_that_was_read_must_not_change(bench))
    }),
    ("what_was_read_must_not_change_before_guards_are_judged", |bench| {
        Box::pin(what_was_read_must_not_change_before_guards_are_judged(bench))
    }),
    ("guards_do_not_hide_that_a_record_has_changed", |bench| {
        Box::pin(guards_do_not_hide_that_a_record_has_changed(bench))
    }),
];

/// Those that only replicated stores must pass.
pub(super) const REPLICATED_TESTS: &[(&str, super::Test)] = &[
    ("a_record_comes_with_the_data_of_its_commit", |bench| {
        Box::pin(a_record_comes_with_the_data_of_its_commit(bench))
    }),
    ("concurrent_writes_of_a_record_end_up_alike", |bench| {
        Box::pin(concurrent_writes_of_a_record_end_up_alike(bench))
    }),
    ("a_discard_removes_what_its_replica_has_seen", |bench| {
        Box::pin(a_discard_removes_what_its_replica_has_seen(bench))
    }),
];

fn id(sequence: u64) -> TransactionId {
    TransactionId { origin: Origin(9), sequence }
}

fn witness(sequence: u64) -> RecordKey {
    RecordKey::of(RecordKind::Witness, id(sequence), 0)
}

fn bytes(text: &str) -> Bytes {
    text.as_bytes().into()
}

fn put(sequence: u64, text: &str) -> Write {
    Write::Record(witness(sequence), bytes(text))
}

fn guarded(guards: &[Guard], writes: Vec<Write>) -> Commit {
    Commit { writes, guards: guards.to_vec(), ..Commit::default() }
}

/// Returns the value of a record at replica `replica`.
async fn found(bench: &Bench<'_>, replica: usize, key: RecordKey) -> Result<Option<Bytes>, Wrong> {
    match bench.data_at(replica, Read::Record(key)).await? {
        Data::Record(found) => Ok(found),
        other => Err(Wrong(format!("a record reads as {other:?}"))),
    }
}

async fn a_record_reads_back_until_it_is_discarded(bench: &Bench<'_>) -> Checked {
    let read = [Read::Record(witness(1))];
    let mut versions = vec![Version(0)];
    for (write, expected) in [
        (None, None),
        (Some(put(1, "first")), Some("first")),
        (Some(put(1, "second")), Some("second")),
        (Some(put(2, "another")), Some("second")),
        (Some(put(1, "")), Some("")),
        (Some(Write::Discard(witness(1))), None),
        (Some(Write::Discard(witness(1))), None),
        (Some(put(1, "again")), Some("again")),
    ] {
        let is_own = !matches!(&write, Some(Write::Record(key, _)) if *key != witness(1));
        bench.write(write.into_iter().collect()).await?;
        let answer = one(bench.read(&read).await?)?;
        ensure_eq!(answer.data, Data::Record(expected.map(bytes)), "a record");
        ensure_eq!(answer.witnesses, Vec::new(), "witness rows with a record");
        let version = answer.version;
        if expected.is_none() {
            ensure_eq!(version, Version(0), "the version of no record");
        } else {
            ensure_eq!(!versions.contains(&version), is_own, "whether {version:?} is new");
            versions.push(version);
        }
    }
    let mut open = bench.begin().await?;
    open.flush(vec![put(1, "flushed"), Write::Discard(witness(2))]).await?;
    let own = get(&mut open, Read::Record(witness(1))).await?;
    ensure_eq!(own, Data::Record(Some(bytes("flushed"))), "a flushed record");
    let own = get(&mut open, Read::Record(witness(2))).await?;
    ensure_eq!(own, Data::Record(None), "a record whose discard was flushed");
    drop(open);
    ensure_eq!(found(bench, 0, witness(1)).await?, Some(bytes("again")), "after a drop");
    Ok(())
}

async fn records_of_a_kind_are_read_in_order(bench: &Bench<'_>) -> Checked {
    let keys = ["", "\0", "a", "a\0", "a\0b", "ab", "b", "\u{ff}"];
    let key = |kind, key: &str| RecordKey { kind, key: bytes(key) };
    let mut writes = Vec::new();
    for kind in RecordKind::ALL {
        let of_kind = |name: &&str| Write::Record(key(kind, name), bytes(&format!("{kind:?}")));
        writes.extend(keys.iter().rev().map(of_kind));
    }
    bench.write(writes).await?;
    for kind in RecordKind::ALL {
        let value = bytes(&format!("{kind:?}"));
        let of = |keys: &[&str]| -> Vec<(Bytes, Bytes)> {
            keys.iter().map(|key| (bytes(key), value.clone())).collect()
        };
        for (from, limit, expected) in [
            ("", usize::MAX, &keys[..]),
            ("", 0, &[]),
            ("", 3, &keys[..3]),
            ("a", 2, &keys[2..4]),
            ("a\0a", 2, &keys[4..6]),
            ("c", 10, &keys[7..]),
            ("\u{ff}z", 10, &[]),
        ] {
            let read = Read::Records { kind, from: bytes(from), limit };
            let found = bench.data(read).await?;
            let expected = Data::Records(of(expected));
            ensure_eq!(found, expected, "{limit} records of {kind:?} from {from:?}");
        }
    }
    let kind = RecordKind::Intent;
    let mut open = bench.begin().await?;
    let changes = vec![
        Write::Discard(key(kind, "a\0")),
        Write::Record(key(kind, "aa"), bytes("new")),
        Write::Discard(key(RecordKind::Lease, "a\0")),
    ];
    open.flush(changes).await?;
    let read = Read::Records { kind, from: bytes("a"), limit: 3 };
    let value = bytes("Intent");
    let expected = Data::Records(vec![
        (bytes("a"), value.clone()),
        (bytes("a\0b"), value),
        (bytes("aa"), bytes("new")),
    ]);
    ensure_eq!(get(&mut open, read.clone()).await?, expected, "with flushed writes");
    open.commit(commit(Vec::new())).await?;
    ensure_eq!(bench.data(read).await?, expected, "after the commit");
    Ok(())
}

async fn a_record_and_the_data_beside_it_are_one(bench: &Bench<'_>) -> Checked {
    let writes = vec![put(1, "kept"), Write::Assign(at("o", TEXT), Value::from("kept"))];
    bench.write(writes).await?;
    let torn = vec![
        put(1, "lost"),
        Write::Discard(witness(1)),
        Write::Assign(at("o", TEXT), Value::from("lost")),
        Write::Insert(at("o", TEXT), Value::from("no set")),
    ];
    let result = bench.begin().await?.commit(commit(torn)).await;
    ensure!(matches!(result, Err(StoreError::Refused { .. })), "it gave {result:?}");
    let reads = [Read::Record(witness(1)), Read::Register(at("o", TEXT))];
    let answers = bench.read(&reads).await?;
    ensure_eq!(answers[0].data, Data::Record(Some(bytes("kept"))), "the record");
    ensure_eq!(answers[1].data, Data::Register(Some(Value::from("kept"))), "the data");
    Ok(())
}

async fn a_guard_that_does_not_hold_leaves_nothing(bench: &Bench<'_>) -> Checked {
    let floor_key = |origin| RecordKey::of_origin(RecordKind::Floor, Origin(origin));
    let (low, high, none) = (floor_key(1), floor_key(2), floor_key(3));
    let writes = vec![
        put(1, "there"),
        Write::Record(low.clone(), floor(5)),
        Write::Record(high.clone(), floor(u64::MAX)),
    ];
    bench.write(writes).await?;
    let cases = [
        (vec![Guard::Absent(witness(1))], false),
        (vec![Guard::Absent(witness(2))], true),
        (vec![Guard::Absent(RecordKey { kind: RecordKind::Intent, key: witness(1).key })], true),
        (vec![Guard::Below(low.clone(), 5)], false),
        (vec![Guard::Below(low.clone(), 6)], true),
        (vec![Guard::Below(high, u64::MAX)], false),
        (vec![Guard::Below(none.clone(), 1)], true),
        (vec![Guard::Absent(witness(2)), Guard::Below(low.clone(), 4)], false),
        (vec![Guard::Below(low, 6), Guard::Absent(witness(1))], false),
        (vec![Guard::Below(none, 1), Guard::Absent(witness(2))], true),
    ];
    let mut sum = 0;
    for (number, (guards, holds)) in (1..).zip(cases) {
        let mut open = bench.begin().await?;
        open.flush(vec![Write::Add(at("c", COUNT), 1)]).await?;
        let record = Write::Record(witness(100 + number), bytes("x"));
        let writes = vec![record, Write::Append(at("c", LINES), Value::from("line"))];
        let result = open.commit(guarded(&guards, writes)).await.map(|_| ());
        let expected = if holds { Ok(()) } else { Err(StoreError::Conflict) };
        ensure_eq!(result, expected, "a commit with {guards:?}");
        sum += u32::from(holds);
        let reads = [Read::Counter(at("c", COUNT)), Read::LogSize(at("c", LINES))];
        let answers = bench.read(&reads).await?;
        ensure_eq!(answers[0].data, Data::Counter(sum.into()), "flushed, with {guards:?}");
        ensure_eq!(answers[1].data, Data::Count(sum.into()), "written, with {guards:?}");
        let record = found(bench, 0, witness(100 + number)).await?;
        ensure_eq!(record.is_some(), holds, "the record, with {guards:?}");
    }
    Ok(())
}

async fn guards_are_judged_without_writes(bench: &Bench<'_>) -> Checked {
    let guard = [Guard::Absent(witness(1))];
    for (sequence, holds) in [(1, true), (2, false)] {
        let own = Commit { id: Some(id(sequence)), ..guarded(&guard, Vec::new()) };
        let result = bench.begin().await?.commit(own).await.map(|_| ());
        let expected = if holds { Ok(()) } else { Err(StoreError::Conflict) };
        ensure_eq!(result, expected, "guards without writes");
        let outcome = if holds { Outcome::Committed } else { Outcome::NotCommitted };
        ensure_eq!(bench.store.outcome(id(sequence)).await?, outcome, "its outcome");
        bench.write(vec![put(1, "there")]).await?;
    }
    Ok(())
}

async fn of_racing_commits_with_one_guard_one_takes_effect(bench: &Bench<'_>) -> Checked {
    for (number, reads) in [(1, false), (2, true)] {
        let guard = [Guard::Absent(witness(number))];
        let mut open = Vec::new();
        for _ in 0..3 {
            let mut transaction = bench.begin().await?;
            if reads {
                let seen = get(&mut transaction, Read::Record(witness(number))).await?;
                ensure_eq!(seen, Data::Record(None), "before the race");
            }
            open.push(transaction);
        }
        for (index, transaction) in open.into_iter().enumerate() {
            let writes = vec![put(number, "won"), Write::Add(at("c", COUNT), 1)];
            let result = transaction.commit(guarded(&guard, writes)).await.map(|_| ());
            let expected = if index == 0 { Ok(()) } else { Err(StoreError::Conflict) };
            ensure_eq!(result, expected, "racer {index}, that reads: {reads}");
        }
        let sum = bench.data(Read::Counter(at("c", COUNT))).await?;
        ensure_eq!(sum, Data::Counter(number.into()), "after the race");
    }
    Ok(())
}

/// True if a commit at a replica with this guard takes effect.
async fn holds(bench: &Bench<'_>, replica: usize, guard: &Guard) -> Result<bool, Wrong> {
    let transaction = bench.begin_at(replica).await?;
    match transaction.commit(guarded(std::slice::from_ref(guard), Vec::new())).await {
        Ok(_) => Ok(true),
        Err(StoreError::Conflict) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

async fn guards_hold_at_every_replica_of_a_serial_store(bench: &Bench<'_>) -> Checked {
    if bench.store.capabilities().once != Once::Serial {
        return Ok(());
    }
    let replicas = bench.replicas().len().max(1);
    let floor_key = RecordKey::of_origin(RecordKind::Floor, Origin(1));
    let (absent, below) = (Guard::Absent(witness(1)), Guard::Below(floor_key.clone(), 5));
    for round in 0..replicas {
        // Nothing is delivered in between.
        let raised = vec![put(1, "there"), Write::Record(floor_key.clone(), floor(5))];
        bench.begin_at(round).await?.commit(guarded(std::slice::from_ref(&absent), raised)).await?;
        for replica in 0..replicas {
            for guard in [&absent, &below] {
                let holds = holds(bench, replica, guard).await?;
                ensure!(!holds, "{guard:?} holds at {replica} after a write at {round}");
            }
        }
        let gone = vec![Write::Discard(witness(1)), Write::Record(floor_key.clone(), floor(4))];
        bench.write_at(round, gone).await?;
        for replica in 0..replicas {
            for guard in [&absent, &below] {
                let holds = holds(bench, replica, guard).await?;
                ensure!(holds, "{guard:?} does not hold at {replica} after a write at {round}");
            }
        }
    }
    Ok(())
}

async fn records_survive_a_restart(bench: &Bench<'_>) -> Checked {
    let schema = store_schema(bench.factory.level());
    let store = bench.factory.open(schema.clone()).await;
    let before = Bench { factory: bench.factory, store };
    before.write(vec![put(1, "kept"), put(2, "discarded"), put(3, "kept")]).await?;
    before
        .write(vec![Write::Discard(witness(2)), Write::Witness(super::witness_row(None, 1))])
        .await?;
    let all = Read::Records { kind: RecordKind::Witness, from: bytes(""), limit: 10 };
    let rows = Read::Witnesses { from: id(0), limit: 10 };
    let reads = [Read::Record(witness(1)), all, rows];
    let expected = before.read(&reads).await?;
    let Some(store) = bench.factory.reopen(before.store, schema).await else {
        return Ok(());
    };
    let after = Bench { factory: bench.factory, store };
    ensure_eq!(after.read(&reads).await?, expected, "after a restart");
    for (sequence, is_absent) in [(1, false), (2, true)] {
        let holds = holds(&after, 0, &Guard::Absent(witness(sequence))).await?;
        ensure_eq!(holds, is_absent, "a guard after a restart");
    }
    Ok(())
}

async fn a_record_that_was_read_must_not_change(bench: &Bench<'_>) -> Checked {
    for (write, what) in [
        (put(1, "new"), "a record that was not there"),
        (put(1, "other"), "a record that was written again"),
        (Write::Discard(witness(1)), "a record that was discarded"),
    ] {
        let mut reader = bench.begin().await?;
        let mut other = bench.begin().await?;
        get(&mut reader, Read::Record(witness(1))).await?;
        get(&mut other, Read::Record(witness(2))).await?;
        bench.write(vec![write]).await?;
        let add = vec![Write::Add(at("c", COUNT), 1)];
        let result = reader.commit(commit(add.clone())).await;
        ensure_eq!(result, Err(StoreError::Conflict), "{what}");
        other.commit(commit(add)).await?;
    }
    Ok(())
}

async fn what_was_read_must_not_change_before_guards_are_judged(bench: &Bench<'_>) -> Checked {
    let guard = [Guard::Absent(witness(1))];
    for (written, expected) in [("o", Err(StoreError::Conflict)), ("p", Ok(()))] {
        let mut open = bench.begin().await?;
        get(&mut open, Read::Register(at("o", NUMBER))).await?;
        bench.write(vec![Write::Assign(at(written, NUMBER), Value::Int(1))]).await?;
        let result = open.commit(guarded(&guard, Vec::new())).await.map(|_| ());
        ensure_eq!(result, expected, "guards and a read of o after a write of {written}");
    }
    Ok(())
}

/// A commit with guards, of a transaction that has read a record which another one then changed, is a conflict:
/// whether its guards hold or not, on the same record or on another. Nothing is written.
async fn guards_do_not_hide_that_a_record_has_changed(bench: &Bench<'_>) -> Checked {
    let floor_key = RecordKey::of_origin(RecordKind::Floor, Origin(1));
    bench.write(vec![Write::Record(floor_key.clone(), floor(5)), put(50, "there")]).await?;
    let guards = [
        vec![Guard::Absent(witness(51))],
        vec![Guard::Absent(witness(50))],
        vec![Guard::Below(floor_key.clone(), 9)],
        vec![Guard::Below(floor_key, 5)],
        vec![Guard::Absent(witness(1))],
        vec![Guard::Absent(witness(51)), Guard::Absent(witness(1))],
    ];
    for (number, guards) in guards.into_iter().enumerate() {
        for (change, is_there) in
            [(put(1, "new"), false), (put(1, "new"), true), (Write::Discard(witness(1)), true)]
        {
            let before = if is_there { put(1, "old") } else { Write::Discard(witness(1)) };
            bench.write(vec![before]).await?;
            let what = format!("guards {guards:?}, then {change:?}");
            let mut open = bench.begin().await?;
            get(&mut open, Read::Record(witness(1))).await?;
            bench.begin().await?.commit(commit(vec![change])).await?;
            let writes = vec![Write::Add(at("g", COUNT), 1), put(60, "written")];
            let result = open.commit(guarded(&guards, writes)).await.map(|_| ());
            ensure_eq!(result, Err(StoreError::Conflict), "case {number}: {what}");
            ensure_eq!(found(bench, 0, witness(60)).await?, None, "{what}");
            let count = bench.data(Read::Counter(at("g", COUNT))).await?;
            ensure_eq!(count, Data::Counter(0), "{what}");
        }
    }
    Ok(())
}

async fn a_record_comes_with_the_data_of_its_commit(bench: &Bench<'_>) -> Checked {
    let reads = [Read::Record(witness(1)), Read::Register(at("x", TEXT))];
    for round in 0..10 {
        let text = format!("{round}");
        let writes = vec![put(1, &text), Write::Assign(at("x", TEXT), Value::from(text.as_str()))];
        bench.write(writes).await?;
        for replica in 0..bench.replicas().len() {
            let answers = bench.read_at(replica, &reads).await?;
            let record = match &answers[0].data {
                Data::Record(Some(found)) => Some(String::from_utf8_lossy(found).into_owned()),
                _ => None,
            };
            let expected = Data::Register(record.map(Value::from));
            ensure_eq!(answers[1].data, expected, "what stands beside a record");
        }
        bench.factory.step(&*bench.store).await;
    }
    bench.deliver().await;
    for replica in 0..bench.replicas().len() {
        let found = found(bench, replica, witness(1)).await?;
        ensure_eq!(found, Some(bytes("9")), "at replica {replica}, after delivery");
    }
    Ok(())
}

async fn concurrent_writes_of_a_record_end_up_alike(bench: &Bench<'_>) -> Checked {
    for round in 0..4 {
        let mut written = Vec::new();
        for replica in 0..bench.replicas().len() {
            let text = format!("{round} {replica}");
            bench.write_at(replica, vec![put(1, &text)]).await?;
            written.push(Some(bytes(&text)));
        }
        bench.deliver().await;
        let first = found(bench, 0, witness(1)).await?;
        ensure!(written.contains(&first), "round {round}: found {first:?}");
        for replica in 1..bench.replicas().len() {
            let other = found(bench, replica, witness(1)).await?;
            ensure_eq!(other, first, "round {round}, at replica {replica} and 0");
        }
    }
    Ok(())
}

async fn a_discard_removes_what_its_replica_has_seen(bench: &Bench<'_>) -> Checked {
    bench.write_at(0, vec![put(1, "old")]).await?;
    bench.deliver().await;
    bench.write_at(1, vec![Write::Discard(witness(1))]).await?;
    bench.write_at(2, vec![put(1, "new")]).await?;
    bench.deliver().await;
    for replica in 0..bench.replicas().len() {
        let found = found(bench, replica, witness(1)).await?;
        ensure_eq!(found, Some(bytes("new")), "what the discard had not seen, at {replica}");
    }
    bench.write_at(1, vec![Write::Discard(witness(1))]).await?;
    bench.deliver().await;
    for replica in 0..bench.replicas().len() {
        ensure_eq!(found(bench, replica, witness(1)).await?, None, "all was seen, at {replica}");
    }
    Ok(())
}
