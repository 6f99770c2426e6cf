//! Properties that replicas may and must have: views of their own, merging, convergence, causality.
//!
//! "Apart" means that nothing is delivered in between, so writes at different replicas
//! are concurrent.

use mingle_model::Value;

use super::operations::{all_reads, random_write};
use super::schema::{COUNT, LINES, MARKS, NUMBER, TAGS, TEXT, at, thing};
use super::{Bench, Checked, Wrong, ensure, ensure_eq, tests};
use crate::operation::{Answer, Data, Read, Write};
use crate::random::next_random;

tests![
    a_session_sees_what_it_wrote_and_others_once_it_is_delivered,
    one_after_another_the_last_write_wins_everywhere,
    concurrent_writes_end_up_alike,
    an_insert_survives_a_concurrent_removal,
    a_put_survives_a_concurrent_removal,
    counters_and_logs_keep_what_all_replicas_add,
    clearing_removes_only_what_was_there,
    a_write_survives_a_concurrent_deletion,
    concurrent_deletions_take_each_add_once,
    witness_rows_reach_every_replica,
    random_writes_converge,
    what_is_on_its_way_survives_a_restart,
];

/// Those that only causal stores must pass.
pub(super) const CAUSAL_TESTS: &[(&str, super::Test)] = &[
    ("effects_come_after_their_causes", |bench| Box::pin(effects_come_after_their_causes(bench))),
    ("what_a_session_wrote_stays_in_order", |bench| {
        Box::pin(what_a_session_wrote_stays_in_order(bench))
    }),
];

fn text(text: &str) -> Value {
    Value::from(text)
}

fn data(answers: Vec<Answer>) -> Vec<Data> {
    answers.into_iter().map(|answer| answer.data).collect()
}

/// Returns the answers of all replicas, which must be the same.
async fn everywhere(bench: &Bench<'_>, reads: &[Read], what: &str) -> Result<Vec<Data>, Wrong> {
    let first = data(bench.read_at(0, reads).await?);
    for replica in 1..bench.replicas().len() {
        let other = data(bench.read_at(replica, reads).await?);
        for ((read, first), other) in reads.iter().zip(&first).zip(&other) {
            ensure_eq!(*other, *first, "{what}: {read:?} at replica {replica} and 0");
        }
    }
    Ok(first)
}

async fn a_session_sees_what_it_wrote_and_others_once_it_is_delivered(
    bench: &Bench<'_>,
) -> Checked {
    let read = Read::Register(at("x", TEXT));
    for replica in 0..bench.replicas().len() {
        let value = text(&format!("at {replica}"));
        let expected = Data::Register(Some(value.clone()));
        bench.write_at(replica, vec![Write::Assign(at("x", TEXT), value)]).await?;
        let own = bench.data_at(replica, read.clone()).await?;
        ensure_eq!(own, expected, "at the replica that wrote it");
        let other = (replica + 1) % bench.replicas().len();
        let apart = bench.data_at(other, read.clone()).await?;
        ensure!(apart != expected, "replicas are not apart");
        bench.deliver().await;
        let all = everywhere(bench, std::slice::from_ref(&read), "after delivery").await?;
        ensure_eq!(all, vec![expected], "after delivery");
    }
    Ok(())
}

async fn one_after_another_the_last_write_wins_everywhere(bench: &Bench<'_>) -> Checked {
    let count = bench.replicas().len();
    let reads = [Read::Register(at("x", NUMBER)), Read::Entry(at("x", MARKS), text("k"))];
    for n in 0..12i64 {
        let value = Value::Int(n);
        let writes = vec![
            Write::Assign(at("x", NUMBER), value.clone()),
            Write::Put(at("x", MARKS), text("k"), value.clone()),
        ];
        bench.write_at(n as usize % count, writes).await?;
        bench.deliver().await;
        let found = everywhere(bench, &reads, "after delivery").await?;
        let expected = Data::Register(Some(value));
        ensure_eq!(found, vec![expected.clone(), expected], "write {n}");
    }
    Ok(())
}

async fn concurrent_writes_end_up_alike(bench: &Bench<'_>) -> Checked {
    for round in 0..4 {
        for replica in 0..bench.replicas().len() {
            let value = Value::Int(round * 10 + replica as i64);
            let writes = vec![
                Write::Assign(at("x", NUMBER), value.clone()),
                Write::Put(at("x", MARKS), text("k"), value),
            ];
            bench.write_at(replica, writes).await?;
        }
        bench.deliver().await;
        let reads = [Read::Register(at("x", NUMBER)), Read::Entry(at("x", MARKS), text("k"))];
        for found in everywhere(bench, &reads, "after delivery").await? {
            let Data::Register(Some(Value::Int(found))) = found else {
                return Err(Wrong(format!("round {round}: found {found:?}")));
            };
            ensure_eq!(found / 10, round, "the round of the last writer");
        }
    }
    Ok(())
}

async fn an_insert_survives_a_concurrent_removal(bench: &Bench<'_>) -> Checked {
    let tags = at("s", TAGS);
    let contains = [Read::Contains(tags.clone(), text("a")), Read::SetSize(tags.clone())];
    bench.write_at(0, vec![Write::Insert(tags.clone(), text("a"))]).await?;
    bench.deliver().await;
    bench.write_at(1, vec![Write::Remove(tags.clone(), text("a"))]).await?;
    bench.write_at(2, vec![Write::Insert(tags.clone(), text("a"))]).await?;
    bench.deliver().await;
    let found = everywhere(bench, &contains, "an insert and a removal").await?;
    ensure_eq!(found, vec![Data::Bool(true), Data::Count(1)], "add wins");
    bench.write_at(1, vec![Write::Remove(tags, text("a"))]).await?;
    bench.deliver().await;
    let found = everywhere(bench, &contains, "a removal after both").await?;
    ensure_eq!(found, vec![Data::Bool(false), Data::Count(0)], "all were seen");
    Ok(())
}

async fn a_put_survives_a_concurrent_removal(bench: &Bench<'_>) -> Checked {
    let marks = at("m", MARKS);
    let put = |n| Write::Put(marks.clone(), text("k"), Value::Int(n));
    bench.write_at(0, vec![put(1)]).await?;
    bench.deliver().await;
    bench.write_at(0, vec![Write::Erase(marks.clone(), text("k"))]).await?;
    bench.write_at(1, vec![put(2)]).await?;
    bench.deliver().await;
    let reads = [Read::Entry(marks.clone(), text("k")), Read::MapSize(marks)];
    let found = everywhere(bench, &reads, "a put and a removal").await?;
    let expected = vec![Data::Register(Some(Value::Int(2))), Data::Count(1)];
    ensure_eq!(found, expected, "the put was not seen by the removal");
    Ok(())
}

async fn counters_and_logs_keep_what_all_replicas_add(bench: &Bench<'_>) -> Checked {
    let count = bench.replicas().len();
    let mut sum = 0;
    for round in 0..5i128 {
        for replica in 0..count {
            let amount = i128::from(i64::MAX) * round - replica as i128;
            sum += amount;
            let line = text(&format!("{round} {replica}"));
            let writes =
                vec![Write::Add(at("c", COUNT), amount), Write::Append(at("c", LINES), line)];
            bench.write_at(replica, writes).await?;
        }
        if round % 2 == 0 {
            bench.deliver().await;
        }
    }
    bench.deliver().await;
    let reads = [Read::Counter(at("c", COUNT)), Read::LogLast(at("c", LINES), u64::MAX)];
    let found = everywhere(bench, &reads, "after delivery").await?;
    ensure_eq!(found[0], Data::Counter(sum), "the sum of all adds");
    let Data::Values(lines) = &found[1] else {
        return Err(Wrong(format!("lines are {:?}", found[1])));
    };
    ensure_eq!(lines.len(), 5 * count, "lines");
    for replica in 0..count {
        let own: Vec<&Value> = lines
            .iter()
            .filter(|line| line.as_str().is_some_and(|l| l.ends_with(&format!(" {replica}"))))
            .collect();
        ensure!(own.is_sorted(), "replica {replica} wrote otherwise than {own:?}");
    }
    Ok(())
}

async fn clearing_removes_only_what_was_there(bench: &Bench<'_>) -> Checked {
    let fill = |n: i64| {
        vec![
            Write::Insert(at("x", TAGS), text(&format!("t{n}"))),
            Write::Put(at("x", MARKS), text(&format!("t{n}")), Value::Int(n)),
            Write::Append(at("x", LINES), text(&format!("t{n}"))),
        ]
    };
    bench.write_at(0, fill(0)).await?;
    bench.deliver().await;
    bench.write_at(1, fill(1)).await?;
    let clear = [TAGS, MARKS, LINES].map(|field| Write::Clear(at("x", field)));
    bench.write_at(2, clear.to_vec()).await?;
    bench.deliver().await;
    let reads = [
        Read::Elements(at("x", TAGS)),
        Read::Entries(at("x", MARKS)),
        Read::LogLast(at("x", LINES), 10),
        Read::SetSize(at("x", TAGS)),
        Read::LogSize(at("x", LINES)),
    ];
    let found = everywhere(bench, &reads, "clearing and filling").await?;
    let kept = text("t1");
    let expected = vec![
        Data::Values(vec![kept.clone()]),
        Data::Entries(vec![(kept.clone(), Value::Int(1))]),
        Data::Values(vec![kept]),
        Data::Count(1),
        Data::Count(1),
    ];
    ensure_eq!(found, expected, "what was added apart");
    Ok(())
}

async fn a_write_survives_a_concurrent_deletion(bench: &Bench<'_>) -> Checked {
    let fill = vec![
        Write::Assign(at("x", TEXT), text("old")),
        Write::Assign(at("x", NUMBER), Value::Int(1)),
        Write::Add(at("x", COUNT), 5),
        Write::Insert(at("x", TAGS), text("old")),
    ];
    bench.write_at(0, fill).await?;
    bench.deliver().await;
    bench.write_at(0, vec![Write::Delete(thing("x"))]).await?;
    let writes = vec![Write::Assign(at("x", TEXT), text("new")), Write::Add(at("x", COUNT), 7)];
    bench.write_at(1, writes).await?;
    bench.deliver().await;
    let reads = [
        Read::Exists(thing("x")),
        Read::Register(at("x", TEXT)),
        Read::Register(at("x", NUMBER)),
        Read::Counter(at("x", COUNT)),
        Read::SetSize(at("x", TAGS)),
    ];
    let found = everywhere(bench, &reads, "a deletion and a write").await?;
    let expected = vec![
        Data::Bool(true),
        Data::Register(Some(text("new"))),
        Data::Register(None),
        Data::Counter(7),
        Data::Count(0),
    ];
    ensure_eq!(found, expected, "what was written apart survives, and nothing else");
    Ok(())
}

async fn concurrent_deletions_take_each_add_once(bench: &Bench<'_>) -> Checked {
    let add = |amount| vec![Write::Add(at("x", COUNT), amount)];
    bench.write_at(0, add(100)).await?;
    bench.deliver().await;
    bench.write_at(0, add(30)).await?;
    for replica in [0, 1] {
        bench.write_at(replica, vec![Write::Delete(thing("x"))]).await?;
    }
    bench.write_at(2, add(4)).await?;
    bench.write_at(0, add(1)).await?;
    bench.deliver().await;
    let reads = [Read::Counter(at("x", COUNT))];
    let found = everywhere(bench, &reads, "two deletions").await?;
    ensure_eq!(found, vec![Data::Counter(5)], "what neither deletion had seen");
    Ok(())
}

async fn witness_rows_reach_every_replica(bench: &Bench<'_>) -> Checked {
    let row = super::witness_row(Some("x"), 1);
    let writes = vec![Write::Assign(at("x", TEXT), text("witnessed")), Write::Witness(row.clone())];
    bench.write_at(0, writes).await?;
    let reads = [Read::Register(at("x", TEXT))];
    for _ in 0..20 {
        for replica in 0..bench.replicas().len() {
            let answer = super::one(bench.read_at(replica, &reads).await?)?;
            let is_written = answer.data != Data::Register(None);
            let is_witnessed = answer.witnesses == [row.clone()];
            ensure!(is_written <= is_witnessed, "a write without its witness row");
        }
        bench.factory.step(&*bench.store).await;
    }
    bench.deliver().await;
    let found = super::one(bench.read_at(2, &reads).await?)?;
    ensure_eq!(found.witnesses, vec![row], "after delivery");
    Ok(())
}

async fn random_writes_converge(bench: &Bench<'_>) -> Checked {
    for seed in 1..=6u64 {
        let mut random = seed;
        let key = format!("object of seed {seed}");
        let other = format!("counter of seed {seed}");
        let mut sum = 0;
        for serial in 0..60 {
            let replica = next_random(&mut random) as usize % bench.replicas().len();
            let mut writes = Vec::new();
            for _ in 0..=next_random(&mut random) % 3 {
                writes.push(random_write(&mut random, &key, serial));
            }
            writes.push(Write::Add(at(&other, COUNT), serial.into()));
            writes.push(Write::Append(at(&other, LINES), text("line")));
            sum += i128::from(serial);
            bench.write_at(replica, writes).await?;
            if next_random(&mut random).is_multiple_of(2) {
                bench.factory.step(&*bench.store).await;
            }
        }
        bench.deliver().await;
        let what = format!("seed {seed}");
        everywhere(bench, &all_reads(&key), &what).await?;
        let reads = [Read::Counter(at(&other, COUNT)), Read::LogSize(at(&other, LINES))];
        let found = everywhere(bench, &reads, &what).await?;
        let expected = vec![Data::Counter(sum), Data::Count(60)];
        ensure_eq!(found, expected, "{what}: nothing is lost");
    }
    Ok(())
}

async fn what_is_on_its_way_survives_a_restart(bench: &Bench<'_>) -> Checked {
    let schema = super::schema::store_schema(bench.factory.level());
    let store = bench.factory.open(schema.clone()).await;
    let before = Bench { factory: bench.factory, store };
    for replica in 0..3 {
        let write = Write::Add(at("x", COUNT), 1 << replica);
        before.write_at(replica, vec![write]).await?;
    }
    let Some(store) = bench.factory.reopen(before.store, schema).await else {
        return Ok(());
    };
    let after = Bench { factory: bench.factory, store };
    after.deliver().await;
    let found = everywhere(&after, &[Read::Counter(at("x", COUNT))], "after a restart").await?;
    ensure_eq!(found, vec![Data::Counter(7)], "after a restart");
    Ok(())
}

/// One replica counts up; a second copies the value that it sees; each replica that sees the copy sees the original.
async fn effects_come_after_their_causes(bench: &Bench<'_>) -> Checked {
    let (original, copy) = (at("original", NUMBER), at("copy", NUMBER));
    let number = |data: Data| match data {
        Data::Register(Some(Value::Int(n))) => n,
        _ => 0,
    };
    let mut random = 5;
    let mut copied = 0;
    for n in 1..=200 {
        let value = Value::Int(n);
        bench.write_at(0, vec![Write::Assign(original.clone(), value)]).await?;
        let seen = number(bench.data_at(1, Read::Register(original.clone())).await?);
        copied = copied.max(seen);
        bench.write_at(1, vec![Write::Assign(copy.clone(), Value::Int(seen))]).await?;
        let reads = [Read::Register(copy.clone()), Read::Register(original.clone())];
        let found = data(bench.read_at(2, &reads).await?).into_iter().map(number);
        let found: Vec<i64> = found.collect();
        ensure!(
            found[0] <= found[1],
            "replica 2 sees the copy {} but the original {}, in round {n} of seed 5",
            found[0],
            found[1]
        );
        if !next_random(&mut random).is_multiple_of(3) {
            bench.factory.step(&*bench.store).await;
        }
    }
    ensure!(copied > 0, "nothing was ever delivered, so nothing was tested");
    Ok(())
}

async fn what_a_session_wrote_stays_in_order(bench: &Bench<'_>) -> Checked {
    let mut last = [0; 3];
    for n in 1..=100 {
        for key in ["first", "second"] {
            let write = Write::Assign(at(key, NUMBER), Value::Int(n));
            bench.write_at(0, vec![write]).await?;
            bench.factory.step(&*bench.store).await;
        }
        for (replica, last) in last.iter_mut().enumerate() {
            let reads = ["second", "first"].map(|key| Read::Register(at(key, NUMBER)));
            let found = data(bench.read_at(replica, &reads).await?);
            let found: Vec<i64> = found
                .into_iter()
                .map(|data| match data {
                    Data::Register(Some(Value::Int(n))) => n,
                    _ => 0,
                })
                .collect();
            ensure!(found[0] <= found[1], "replica {replica} sees {found:?}");
            ensure!(*last <= found[1], "replica {replica} went back to {found:?}");
            *last = found[1];
        }
    }
    Ok(())
}
