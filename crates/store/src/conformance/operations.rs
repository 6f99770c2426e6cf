//! Every operation of every collection type, against the model.

use mingle_model::Value;

use super::model::Model;
use super::schema::{COUNT, LINES, MARKS, NUMBER, TAGS, TEXT, at, thing};
use super::{Bench, Checked, Wrong, commit, ensure, ensure_eq, tests};
use crate::operation::{Data, KeyRange, Read, Write};
use crate::random::next_random;
use crate::store::{Commit, Session, StoreError};

tests![
    absent_objects_read_as_nothing,
    writing_makes_an_object_exist,
    a_deleted_object_reads_as_absent,
    writes_of_a_commit_take_effect_in_order,
    a_deletion_takes_what_came_before_it_and_no_more,
    random_transactions_do_what_the_model_does,
    counters_are_exact_beyond_64_bits,
    many_elements_and_lines,
    what_does_not_fit_the_schema_is_refused,
    what_was_written_survives_a_restart,
];

/// All reads that a `Thing` has.
pub(super) fn all_reads(key: &str) -> Vec<Read> {
    let (tags, marks, lines) = (at(key, TAGS), at(key, MARKS), at(key, LINES));
    let slice = |from, count| Read::LogSlice { address: lines.clone(), from, count };
    let text = |text: &str| Some(Value::from(text));
    let range = |range| Read::MapSlice { address: at(key, MARKS), range };
    vec![
        Read::Exists(thing(key)),
        Read::Register(at(key, TEXT)),
        Read::Register(at(key, NUMBER)),
        Read::Counter(at(key, COUNT)),
        Read::Contains(tags.clone(), Value::from("t1")),
        Read::SetSize(tags.clone()),
        Read::Elements(tags),
        Read::Entry(marks.clone(), Value::from("t1")),
        Read::MapSize(marks.clone()),
        Read::Entries(marks),
        range(KeyRange::first(0)),
        range(KeyRange::first(2)),
        range(KeyRange::last(2)),
        range(KeyRange::last(u64::MAX)),
        range(KeyRange { from: text("t1"), ..KeyRange::first(1) }),
        range(KeyRange { from: text("t0~"), before: text("t3"), ..KeyRange::last(9) }),
        range(KeyRange::after("t1".into(), 1)),
        range(KeyRange { from: text("t2"), before: text("t1"), ..KeyRange::first(9) }),
        Read::LogSize(lines.clone()),
        Read::LogLast(lines.clone(), 0),
        Read::LogLast(lines.clone(), 2),
        Read::LogLast(lines.clone(), u64::MAX),
        slice(0, 2),
        slice(1, u64::MAX),
        slice(u64::MAX, 1),
    ]
}

/// A write to a `Thing`, drawn at random; `serial` makes lines distinct.
pub(super) fn random_write(random: &mut u64, key: &str, serial: u64) -> Write {
    let mut draw = |below: u64| next_random(random) % below;
    let text = Value::from(format!("t{}", draw(4)));
    let number = i64::try_from(draw(1000)).expect("below 1000");
    match draw(14) {
        0 => Write::Create(thing(key)),
        1 => Write::Delete(thing(key)),
        2 => Write::Assign(at(key, TEXT), text),
        3 => Write::Assign(at(key, NUMBER), Value::Int(number)),
        4 | 5 => Write::Add(at(key, COUNT), i128::from(number) - 500),
        6 | 7 => Write::Insert(at(key, TAGS), text),
        8 => Write::Remove(at(key, TAGS), text),
        9 => Write::Put(at(key, MARKS), text, Value::Int(number)),
        10 => Write::Erase(at(key, MARKS), text),
        11 | 12 => Write::Append(at(key, LINES), Value::from(format!("line {serial}"))),
        _ => Write::Clear(at(key, [TAGS, MARKS, LINES][draw(3) as usize])),
    }
}

async fn check_thing(bench: &Bench<'_>, model: &Model, key: &str, when: &str) -> Checked {
    let reads = all_reads(key);
    let answers = bench.read(&reads).await?;
    for (read, answer) in reads.iter().zip(answers) {
        ensure_eq!(answer.data, model.read(read), "{when}, {read:?}");
    }
    Ok(())
}

async fn absent_objects_read_as_nothing(bench: &Bench<'_>) -> Checked {
    check_thing(bench, &Model::default(), "nobody", "before any write").await
}

async fn writing_makes_an_object_exist(bench: &Bench<'_>) -> Checked {
    let text = Value::from("t1");
    let writes = [
        Write::Create(thing("w0")),
        Write::Assign(at("w1", TEXT), text.clone()),
        Write::Add(at("w2", COUNT), 0),
        Write::Insert(at("w3", TAGS), text.clone()),
        Write::Put(at("w4", MARKS), text.clone(), Value::Int(1)),
        Write::Append(at("w5", LINES), text),
    ];
    for (index, write) in writes.into_iter().enumerate() {
        let exists = Read::Exists(thing(&format!("w{index}")));
        ensure_eq!(bench.data(exists.clone()).await?, Data::Bool(false), "before {write:?}");
        bench.write(vec![write.clone()]).await?;
        ensure_eq!(bench.data(exists).await?, Data::Bool(true), "after {write:?}");
    }
    Ok(())
}

async fn a_deleted_object_reads_as_absent(bench: &Bench<'_>) -> Checked {
    let fill = vec![
        Write::Assign(at("d", TEXT), Value::from("t1")),
        Write::Add(at("d", COUNT), 5),
        Write::Insert(at("d", TAGS), Value::from("t1")),
        Write::Put(at("d", MARKS), Value::from("t1"), Value::Int(1)),
        Write::Append(at("d", LINES), Value::from("t1")),
        Write::Assign(at("dd", TEXT), Value::from("stays")),
    ];
    let mut model = Model::default();
    for round in 0..2 {
        for writes in [fill.clone(), vec![Write::Delete(thing("d"))]] {
            model.write_all(&writes);
            bench.write(writes).await?;
            check_thing(bench, &model, "d", &format!("in round {round}")).await?;
            check_thing(bench, &model, "dd", "beside a deleted object").await?;
        }
    }
    Ok(())
}

async fn writes_of_a_commit_take_effect_in_order(bench: &Bench<'_>) -> Checked {
    let text = |text: &str| Value::from(text);
    let writes = vec![
        Write::Insert(at("o", TAGS), text("t0")),
        Write::Delete(thing("o")),
        Write::Insert(at("o", TAGS), text("t1")),
        Write::Remove(at("o", TAGS), text("t1")),
        Write::Insert(at("o", TAGS), text("t2")),
        Write::Append(at("o", LINES), text("gone")),
        Write::Clear(at("o", LINES)),
        Write::Append(at("o", LINES), text("first")),
        Write::Append(at("o", LINES), text("second")),
        Write::Add(at("o", COUNT), 7),
        Write::Add(at("o", COUNT), -2),
        Write::Assign(at("o", TEXT), text("old")),
        Write::Assign(at("o", TEXT), text("new")),
        Write::Put(at("o", MARKS), text("t1"), Value::Int(1)),
        Write::Erase(at("o", MARKS), text("t1")),
        Write::Put(at("o", MARKS), text("t1"), Value::Int(2)),
    ];
    let mut model = Model::default();
    model.write_all(&writes);
    bench.write(writes).await?;
    check_thing(bench, &model, "o", "after one commit").await
}

/// One write of each kind, of an object with this key.
fn one_of_each(key: &str, n: i64) -> Vec<Write> {
    let text = Value::from(format!("t{n}"));
    vec![
        Write::Create(thing(key)),
        Write::Assign(at(key, TEXT), text.clone()),
        Write::Assign(at(key, NUMBER), Value::Int(n)),
        Write::Add(at(key, COUNT), n.into()),
        Write::Insert(at(key, TAGS), text.clone()),
        Write::Put(at(key, MARKS), text.clone(), Value::Int(n)),
        Write::Append(at(key, LINES), text.clone()),
        Write::Remove(at(key, TAGS), text.clone()),
        Write::Erase(at(key, MARKS), text),
        Write::Clear(at(key, LINES)),
    ]
}

/// A write, a deletion and a write, in one commit and with a flush in between; of objects that are there
/// before and of others.
async fn a_deletion_takes_what_came_before_it_and_no_more(bench: &Bench<'_>) -> Checked {
    let kinds = one_of_each("", 0).len();
    let mut model = Model::default();
    for case in 0..kinds * kinds * 2 {
        let (first, second) = (case % kinds, case / kinds % kinds);
        let (key, is_flushed) = (format!("d{case}"), case % 3 == 0);
        if case >= kinds * kinds {
            let before = one_of_each(&key, 1);
            model.write_all(&before);
            bench.write(before).await?;
        }
        let (before, after) = (one_of_each(&key, 1), one_of_each(&key, 2));
        let deletion = Write::Delete(thing(&key));
        let mut writes = vec![before[first].clone(), deletion.clone(), after[second].clone()];
        if case % 5 == 0 {
            writes.extend([deletion, before[first].clone()]);
        }
        let what = format!("case {case}, flushed: {is_flushed}, {writes:?}");
        model.write_all(&writes);
        let mut open = bench.begin().await?;
        if is_flushed {
            open.flush(writes.drain(..2).collect()).await?;
        }
        open.commit(commit(writes)).await?;
        check_thing(bench, &model, &key, &what).await?;
    }
    Ok(())
}

async fn random_transactions_do_what_the_model_does(bench: &Bench<'_>) -> Checked {
    const KEYS: [&str; 3] = ["a", "b", "ab"];
    let mut random = 11;
    let mut model = Model::default();
    for round in 0..150 {
        let mut transaction = bench.begin().await?;
        let mut draft = model.clone();
        let mut serial = 0;
        let mut draw = |random: &mut u64| {
            let mut writes = Vec::new();
            for _ in 0..next_random(random) % 4 {
                serial += 1;
                let key = KEYS[(next_random(random) % 3) as usize];
                writes.push(random_write(random, key, round * 100 + serial));
            }
            writes
        };
        for _ in 0..next_random(&mut random) % 3 {
            let writes = draw(&mut random);
            draft.write_all(&writes);
            transaction.flush(writes).await?;
            let key = KEYS[(next_random(&mut random) % 3) as usize];
            let reads = all_reads(key);
            for (read, answer) in reads.iter().zip(transaction.read(&reads).await?) {
                let expected = draft.read(read);
                ensure_eq!(answer.data, expected, "round {round}, after a flush, {read:?}");
            }
        }
        let writes = draw(&mut random);
        draft.write_all(&writes);
        if next_random(&mut random).is_multiple_of(5) {
            drop(transaction);
        } else {
            transaction.commit(commit(writes)).await?;
            model = draft;
        }
        for key in KEYS {
            check_thing(bench, &model, key, &format!("round {round} of seed 11")).await?;
        }
    }
    Ok(())
}

async fn counters_are_exact_beyond_64_bits(bench: &Bench<'_>) -> Checked {
    let (most, least) = (i128::from(i64::MAX), i128::from(i64::MIN));
    let mut sum = 0;
    for amount in [most, most, most, 1, least, most, -3 * most, least, least, least] {
        sum += amount;
        bench.write(vec![Write::Add(at("c", COUNT), amount)]).await?;
        let found = bench.data(Read::Counter(at("c", COUNT))).await?;
        ensure_eq!(found, Data::Counter(sum), "after adding {amount}");
    }
    Ok(())
}

async fn many_elements_and_lines(bench: &Bench<'_>) -> Checked {
    let count = 1000;
    let name = |n: u64| Value::from(format!("{}", (n * 7919) % count));
    let mut model = Model::default();
    for chunk in 0..10 {
        let mut writes = Vec::new();
        for n in chunk * 100..(chunk + 1) * 100 {
            writes.push(Write::Insert(at("m", TAGS), name(n)));
            writes.push(Write::Put(at("m", MARKS), name(n), Value::Int(1)));
            writes.push(Write::Append(at("m", LINES), name(n)));
        }
        model.write_all(&writes);
        bench.write(writes).await?;
    }
    let size = bench.data(Read::LogSize(at("m", LINES))).await?;
    ensure_eq!(size, Data::Count(count), "the size of a log");
    check_thing(bench, &model, "m", "with 1000 elements").await
}

async fn what_does_not_fit_the_schema_is_refused(bench: &Bench<'_>) -> Checked {
    let writes = [
        Write::Insert(at("s", TEXT), Value::from("x")),
        Write::Add(at("s", LINES), 1),
        Write::Assign(at("s", 99), Value::from("x")),
        Write::Command { operation: "nothing".into(), arguments: Vec::new() },
    ];
    for write in writes {
        let transaction = bench.begin().await?;
        let result = transaction.commit(commit(vec![write.clone()])).await;
        let is_refused = matches!(result, Err(StoreError::Refused { .. }));
        ensure!(is_refused, "{write:?} gave {result:?}");
    }
    ensure_eq!(
        bench.data(Read::Exists(thing("s"))).await?,
        Data::Bool(false),
        "after refused writes"
    );
    if !bench.replicas().is_empty() {
        let session = Session::at("nowhere");
        let error = match bench.store.begin(&session).await {
            Ok(_) => return Err(Wrong("a session at no replica was let in".into())),
            Err(error) => error.to_string(),
        };
        let names_them = bench.replicas().iter().all(|name| error.contains(&**name));
        ensure!(names_them, "{error:?} does not name the replicas");
    }
    Ok(())
}

async fn what_was_written_survives_a_restart(bench: &Bench<'_>) -> Checked {
    let mut random = 23;
    let mut model = Model::default();
    for serial in 0..200 {
        let write = random_write(&mut random, "r", serial);
        model.write(&write);
        bench.write(vec![write]).await?;
    }
    let level = bench.factory.level();
    let schema = super::schema::store_schema(level);
    let store = bench.factory.open(schema.clone()).await;
    let other = Bench { factory: bench.factory, store };
    for write in [Write::Append(at("r", LINES), Value::from("kept")), Write::Add(at("r", COUNT), 3)]
    {
        other.write(vec![write]).await?;
    }
    let reads = all_reads("r");
    let before = other.read(&reads).await?;
    let Some(store) = bench.factory.reopen(other.store, schema).await else {
        return check_thing(bench, &model, "r", "after 200 writes").await;
    };
    let other = Bench { factory: bench.factory, store };
    ensure_eq!(other.read(&reads).await?, before, "after a restart");
    let transaction = other.begin().await?;
    transaction.commit(Commit::default()).await?;
    check_thing(bench, &model, "r", "after 200 writes").await
}
