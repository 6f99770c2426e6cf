//! Indexes, at stores that keep them: what they give is what the registers show.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_model::index::{indexed, indexed_type};
use mingle_model::random::Random;
use mingle_model::{
    BuiltinQuery, Date, Decimal, FieldType, IndexRead, Level, Name, Ref, Time, Type, Value,
};

use super::schema::{add_object, store_schema};
use super::{Bench, Checked, Wrong, commit, ensure, ensure_eq, get, tests};
use crate::declared::{StoreOperation, StoreSchema};
use crate::operation::{Address, Data, Read, Write};
use crate::store::{StoreError, Transaction};

tests![indexes_give_what_the_registers_show, an_index_that_is_added_later_has_all_objects,];

pub(super) const SERIALIZABLE_TESTS: &[(&str, super::Test)] =
    &[("objects_that_come_and_go_after_the_read_are_conflicts", |bench| {
        Box::pin(objects_that_come_and_go_after_the_read_are_conflicts(bench))
    })];

const KIND: &str = "Entry";

/// The fields of `Entry`, each with values that a test draws from.
fn fields() -> Vec<(&'static str, Type, Vec<Value>)> {
    let option = |inner: Type| Type::Option(Arc::new(inner));
    let to = |key: &str| Value::Ref(Ref::new("Thing", Value::from(key)));
    let texts = ["", "a", "b", "ab", "ä", "Z", "a\u{0}"].map(Value::from);
    let decimal = |text: &str| Value::Decimal(text.parse::<Decimal>().expect("a decimal"));
    vec![
        ("text", Type::String, texts[..6].to_vec()),
        ("number", Type::Int, [i64::MIN, -1, 0, 1, 2, i64::MAX].map(Value::Int).to_vec()),
        (
            "maybe",
            option(Type::String),
            vec![Value::NONE, Value::some("a".into()), Value::some("".into())],
        ),
        ("to", Type::Ref("Thing".into()), vec![to("a"), to("b"), to("")]),
        (
            "at",
            Type::Time,
            [-1, 0, 1_000_000].map(|at| Value::Time(Time::from_micros(at))).to_vec(),
        ),
        ("day", Type::Date, [-5, 0, 20_000].map(|day| Value::Date(Date::from_days(day))).to_vec()),
        ("price", Type::Decimal, ["-1.5", "0", "0.10", "10"].map(decimal).to_vec()),
        ("flag", Type::Bool, vec![Value::Bool(false), Value::Bool(true)]),
        (
            "raw",
            Type::Bytes,
            [&b""[..], b"\0", b"a", b"a\0"].map(|b| Value::Bytes(b.into())).to_vec(),
        ),
    ]
}

/// The fields of each index.
const INDEXES: [&[&str]; 7] = [
    &["text"],
    &["text", "number"],
    &["maybe"],
    &["to", "at"],
    &["price", "text"],
    &["flag", "raw", "day"],
    &["number"],
];

fn field(name: &str) -> u16 {
    let at = fields().iter().position(|(known, ..)| *known == name);
    u16::try_from(at.expect("a field of this name")).expect("a handful of fields")
}

/// Returns the queries of these indexes, by name.
fn queries(indexes: &[&[&str]]) -> BTreeMap<Name, StoreOperation> {
    let all = fields();
    let mut found = BTreeMap::new();
    for index in indexes {
        let names: Vec<Name> = index.iter().map(|name| Name::from(*name)).collect();
        let types: Vec<Type> = index
            .iter()
            .map(|name| indexed_type(&all[usize::from(field(name))].1).clone())
            .collect();
        for (equal, counts) in (0..=index.len()).flat_map(|equal| [(equal, false), (equal, true)]) {
            let read = IndexRead {
                object: KIND.into(),
                index: format!("by_{}", index.join("_")).into(),
                fields: names.clone(),
                equal,
                counts,
                is_unique: false,
            };
            let name = format!("{}/{equal}/{counts}", read.index);
            let operation = StoreOperation {
                is_command: false,
                parameters: read.parameters(&types),
                result: Some(read.result()),
                body: None,
                builtin: Some(BuiltinQuery::Index(read)),
            };
            found.insert(name.into(), operation);
        }
    }
    found
}

/// Returns the suite's schema with `Entry` and these indexes.
pub(super) fn schema(level: Level, indexes: &[&[&str]]) -> StoreSchema {
    let mut schema = store_schema(level);
    let declared = Arc::make_mut(&mut schema.schema);
    let registers = fields();
    let registers = registers
        .into_iter()
        .map(|(name, value_type, _)| (name.to_owned(), FieldType::Register(value_type)));
    add_object(declared, KIND, Type::String, registers);
    schema.operations = queries(indexes);
    schema
}

const KEYS: [&str; 6] = ["", "a", "aa", "b", "ä", "c"];

fn entry(key: &str) -> Ref {
    Ref::new(KIND, Value::from(key))
}

fn address(key: &str, field: u16) -> Address {
    Address { object: entry(key), field }
}

/// Draws a write of an entry.
fn draw(random: &mut Random) -> Write {
    let key = KEYS[random.below(KEYS.len())];
    match random.below(12) {
        0 => Write::Create(entry(key)),
        1 => Write::Delete(entry(key)),
        _ => {
            let all = fields();
            let field = random.below(all.len());
            let values = &all[field].2;
            let value = values[random.below(values.len())].clone();
            Write::Assign(address(key, field as u16), value)
        }
    }
}

/// Draws a question of one of the queries.
fn ask(random: &mut Random, indexes: &[&[&str]]) -> (IndexRead, Read) {
    let all = fields();
    let queries = queries(indexes);
    let at = random.below(queries.len());
    let (name, query) = queries.iter().nth(at).expect("it is drawn below the number");
    let read = query.index().cloned().expect("a query of an index");
    let of_field = |random: &mut Random, field_name: &Name| {
        let values: Vec<Value> =
            all[usize::from(field(field_name))].2.iter().filter_map(indexed).cloned().collect();
        values[random.below(values.len())].clone()
    };
    let mut arguments: Vec<Value> =
        read.fields[..read.equal].iter().map(|name| of_field(random, name)).collect();
    if read.has_range() {
        for _ in 0..2 {
            let bound = of_field(random, &read.fields[read.equal]);
            arguments.push(if random.below(2) == 0 { Value::NONE } else { Value::some(bound) });
        }
    } else {
        let key = KEYS[random.below(KEYS.len())];
        let after = Value::some(Value::Ref(entry(key)));
        arguments.push(if random.below(2) == 0 { Value::NONE } else { after });
    }
    if !read.counts {
        arguments.push(Value::Bool(random.below(2) == 0));
    }
    arguments.push(Value::Int([0, 1, 2, 100, -1][random.below(5)]));
    (read, Read::Query { operation: name.clone(), arguments })
}

/// Checks answers of all kinds in an open transaction against the registers that it shows.
async fn compare(
    transaction: &mut Box<dyn Transaction>,
    random: &mut Random,
    indexes: &[&[&str]],
) -> Checked {
    let fields = fields();
    let mut shown: Vec<(Ref, Vec<Option<Value>>)> = Vec::new();
    for key in KEYS {
        let mut reads = vec![Read::Exists(entry(key))];
        reads.extend((0..fields.len()).map(|field| Read::Register(address(key, field as u16))));
        let mut answers = transaction.read(&reads).await?.into_iter().map(|answer| answer.data);
        if answers.next() == Some(Data::Bool(true)) {
            let values = answers.map(|data| match data {
                Data::Register(value) => value,
                _ => None,
            });
            shown.push((entry(key), values.collect()));
        }
    }
    for _ in 0..6 {
        let (read, question) = ask(random, indexes);
        let Read::Query { arguments, .. } = &question else { continue };
        let asked = read.question(arguments).map_err(Wrong)?;
        let rows = shown.iter().filter_map(|(object, values)| {
            let of = |name: &Name| values[usize::from(field(name))].as_ref().and_then(indexed);
            Some((object, read.fields.iter().map(of).collect::<Option<Vec<&Value>>>()?))
        });
        let expected = Data::Result(read.answer(asked.over(rows)));
        let found = get(transaction, question.clone()).await?;
        ensure_eq!(found, expected, "{question:?} over {shown:?}");
    }
    Ok(())
}

/// An index gives what a scan of the registers gives, at each replica and at each moment: also amid the writes of a
/// transaction, for objects that are deleted and come again, for values that a register has never had, and for
/// `none`.
async fn indexes_give_what_the_registers_show(bench: &Bench<'_>) -> Checked {
    let store = bench.factory.open(schema(bench.factory.level(), &INDEXES)).await;
    let bench = &Bench { factory: bench.factory, store };
    let replicas = bench.replicas().len().max(1);
    let mut random = Random::new(44);
    for round in 0..60 {
        let at = random.below(replicas);
        let mut transaction = bench.begin_at(at).await?;
        let writes = (0..=random.below(4)).map(|_| draw(&mut random)).collect();
        if random.below(3) == 0 {
            transaction.flush(writes).await?;
            let checked = compare(&mut transaction, &mut random, &INDEXES).await;
            checked.map_err(|Wrong(why)| Wrong(format!("amid round {round}: {why}")))?;
            let ended = transaction.commit(commit(Vec::new())).await;
            // At a replica that lags, what the transaction has read may not hold any more.
            if replicas == 1 || !matches!(ended, Err(StoreError::Conflict)) {
                ended?;
            }
        } else {
            transaction.commit(commit(writes)).await?;
        }
        bench.factory.step(&*bench.store).await;
        for at in 0..replicas {
            let mut transaction = bench.begin_at(at).await?;
            let checked = compare(&mut transaction, &mut random, &INDEXES).await;
            checked.map_err(|Wrong(why)| Wrong(format!("round {round}, replica {at}: {why}")))?;
        }
    }
    Ok(())
}

/// An index that a later version of the program declares has the objects that were there before; one that it no
/// longer declares goes, and comes back complete.
async fn an_index_that_is_added_later_has_all_objects(bench: &Bench<'_>) -> Checked {
    let level = bench.factory.level();
    let mut store = bench.factory.open(schema(level, &INDEXES[..1])).await;
    let mut random = Random::new(45);
    for indexes in [&INDEXES[..], &INDEXES[2..4], &[], &INDEXES[..]] {
        let opened = Bench { factory: bench.factory, store: Arc::clone(&store) };
        for _ in 0..12 {
            opened.write(vec![draw(&mut random)]).await?;
        }
        opened.deliver().await;
        drop(opened);
        let Some(reopened) = bench.factory.reopen(store, schema(level, indexes)).await else {
            return Ok(());
        };
        store = reopened;
        if !indexes.is_empty() {
            let opened = Bench { factory: bench.factory, store: Arc::clone(&store) };
            for at in 0..opened.replicas().len().max(1) {
                let mut transaction = opened.begin_at(at).await?;
                compare(&mut transaction, &mut random, indexes).await?;
            }
        }
    }
    Ok(())
}

/// Of two transactions that each change what the other has read from an index, at most one commits: an object that
/// enters the index or leaves it after the read (a phantom) is a conflict.
async fn objects_that_come_and_go_after_the_read_are_conflicts(bench: &Bench<'_>) -> Checked {
    let text =
        |key: &str, value: &str| Write::Assign(address(key, field("text")), Value::from(value));
    let page = Read::Query {
        operation: "by_text/1/false".into(),
        arguments: vec![Value::from("x"), Value::NONE, Value::Bool(false), Value::Int(10)],
    };
    let count = Read::Query {
        operation: "by_text/0/true".into(),
        arguments: vec![Value::NONE, Value::NONE, Value::Int(10)],
    };
    let changes = [
        [text("b", "x"), text("c", "x")],
        [Write::Delete(entry("a")), Write::Delete(entry("aa"))],
        [text("a", "y"), text("c", "x")],
    ];
    for (at, [left, right]) in changes.into_iter().enumerate() {
        for read in [&page, &count] {
            if *read == count && at == 2 {
                // The first change keeps the number of objects.
                continue;
            }
            let store = bench.factory.open(schema(bench.factory.level(), &INDEXES)).await;
            let bench = &Bench { factory: bench.factory, store };
            bench.write(vec![text("a", "x"), text("aa", "x")]).await?;
            let (mut first, mut second) = (bench.begin().await?, bench.begin().await?);
            for reader in [&mut first, &mut second] {
                let found = get(reader, read.clone()).await?;
                let is_two = match &found {
                    Data::Result(Value::Int(2)) => true,
                    Data::Result(Value::List(found)) => found.len() == 2,
                    _ => false,
                };
                ensure!(is_two, "{read:?}: {found:?}");
            }
            first.commit(commit(vec![left.clone()])).await?;
            let result = second.commit(commit(vec![right.clone()])).await;
            let is_conflict = matches!(result, Err(StoreError::Conflict));
            ensure!(is_conflict, "changes {at} after {read:?}: {result:?}");
        }
    }
    Ok(())
}
