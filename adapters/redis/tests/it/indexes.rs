//! Indexes: writers that meet, the transaction's own writes, and commands that fail beside them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_model::random::Random;
use mingle_model::{BuiltinQuery, FieldType, IndexRead, Ref, Type, Value};
use mingle_services::Engine;
use mingle_store::{
    Address, Commit, Data, DataStore, Read, Session, StoreError, StoreOperation, StoreSchema,
    Transaction, Write,
};
use mingle_store_redis::{ObjectMapping, OpenError, Redis};

use crate::support::{
    Other, config, connect, fresh_prefix, object, read, refusal, schema, text, write,
};

const SEED: u64 = 20_261_129;
const TASKS: usize = 6;
const ROUNDS: usize = 60;
const COLORS: [&str; 4] = ["red", "blue", "", "grey"];
pub const COLOR: u16 = 0;
pub const SHELF: u16 = 1;
const COUNT: u16 = 2;

/// Returns the queries of one index of `Item`.
fn queries(fields: &[&str], is_unique: bool) -> Vec<(String, StoreOperation)> {
    let types = fields.iter().map(|field| if *field == "color" { Type::String } else { Type::Int });
    let types: Vec<Type> = types.collect();
    let kinds = (0..=fields.len()).flat_map(|equal| [(equal, false), (equal, true)]);
    let query = |(equal, counts)| {
        let read = IndexRead {
            object: "Item".into(),
            index: format!("by_{}", fields.join("_")).into(),
            fields: fields.iter().map(|field| (*field).into()).collect(),
            equal,
            counts,
            is_unique,
        };
        let operation = StoreOperation {
            is_command: false,
            parameters: read.parameters(&types),
            result: Some(read.result()),
            body: None,
            builtin: Some(BuiltinQuery::Index(read)),
        };
        (format!("{}/{equal}/{counts}", fields.join(",")), operation)
    };
    kinds.map(query).collect()
}

/// Returns the schema of `Item` with these indexes; `true` makes one a `unique`.
pub fn items(indexes: &[(&[&str], bool)]) -> StoreSchema {
    let shelf = Type::Option(Arc::new(Type::Int));
    let fields = [
        ("color", FieldType::Register(Type::String)),
        ("shelf", FieldType::Register(shelf)),
        ("count", FieldType::Counter),
    ];
    let mut schema = schema(vec![object("Item", ("name", Type::String), &fields)]);
    let all = indexes.iter().flat_map(|(fields, is_unique)| queries(fields, *is_unique));
    schema.operations = all.map(|(name, operation)| (name.as_str().into(), operation)).collect();
    schema
}

/// The indexes of most tests.
pub const BOTH: &[(&[&str], bool)] = &[(&["color"], true), (&["shelf", "color"], false)];

pub fn item(name: &str) -> Ref {
    Ref::new("Item", text(name))
}

pub fn field(name: &str, field: u16) -> Address {
    Address { object: item(name), field }
}

pub fn paint(name: &str, color: &str) -> Write {
    Write::Assign(field(name, COLOR), text(color))
}

pub fn put(name: &str, shelf: i64) -> Write {
    Write::Assign(field(name, SHELF), Value::some(Value::Int(shelf)))
}

fn page(operation: &str, arguments: &[Value]) -> Read {
    let end = [Value::Bool(false), Value::Int(10_000)];
    let arguments = [arguments, &end].concat();
    Read::Query { operation: operation.into(), arguments }
}

/// The objects of a color.
pub fn of_color(color: &str) -> Read {
    page("color/1/false", &[text(color), Value::NONE])
}

/// All objects of the index on the color.
fn all() -> Read {
    page("color/0/false", &[Value::NONE, Value::NONE])
}

/// Returns the keys that a page has.
fn keys(data: &Data) -> Vec<String> {
    let Data::Result(Value::List(found)) = data else { panic!("no page: {data:?}") };
    let key = |found: &Value| match found {
        Value::Ref(object) => object.key().as_str().expect("a name").to_owned(),
        other => panic!("no ref: {other:?}"),
    };
    found.iter().map(key).collect()
}

async fn ask(open: &mut Box<dyn Transaction>, question: Read) -> Result<Vec<String>, StoreError> {
    Ok(keys(&open.read(&[question]).await?[0].data))
}

/// Returns the keys of a page that a transaction of its own reads.
pub async fn found(store: &Redis, question: Read) -> Vec<String> {
    keys(&read(store, &[question]).await.expect("it reads")[0].data)
}

/// Compares the index on the color with the registers of these objects, and returns the first difference, or two objects
/// of one color.
pub async fn differs(store: &Redis, names: &[String]) -> Option<String> {
    let mut reads = vec![all()];
    for name in names {
        reads.extend([Read::Exists(item(name)), Read::Register(field(name, COLOR))]);
    }
    let answers = read(store, &reads).await.expect("it reads");
    let mut expected = Vec::new();
    for (name, pair) in names.iter().zip(answers[1..].chunks(2)) {
        if let (Data::Bool(true), Data::Register(Some(color))) = (&pair[0].data, &pair[1].data) {
            expected.push((color.as_str().expect("a color").to_owned(), name.clone()));
        }
    }
    expected.sort();
    let shared = expected.windows(2).find(|pair| pair[0].0 == pair[1].0);
    if let Some(pair) = shared {
        return Some(format!("two of one color: {pair:?}"));
    }
    let indexed = keys(&answers[0].data);
    let names: Vec<String> = expected.iter().map(|(_, name)| name.clone()).collect();
    (indexed != names).then(|| format!("the index has {indexed:?}, the registers {expected:?}"))
}

/// What a task does with an object whose color no other object may have: it paints it, paints it amid other changes of
/// its own, deletes it and makes it again, or swaps the colors of two.
async fn act(store: &Redis, names: &[String], random: &mut Random) -> Result<(), StoreError> {
    let (name, other) = (random.pick(names), random.pick(names));
    let color = format!("{}{}", random.pick(&COLORS), random.below(3));
    let mut open = store.begin(&Session::default()).await?;
    let writes = match random.below(5) {
        0 => {
            open.flush(vec![Write::Delete(item(name)), put(name, 4)]).await?;
            let holders = ask(&mut open, of_color(&color)).await?;
            assert!(!holders.contains(name), "{name} was deleted");
            if holders.is_empty() { vec![paint(name, &color)] } else { Vec::new() }
        }
        1 => {
            let registers = [name, other].map(|name| Read::Register(field(name, COLOR)));
            let exists = [name, other].map(|name| Read::Exists(item(name)));
            let answers = open.read(&[registers, exists].concat()).await?;
            let color = |at: usize| match &answers[at].data {
                Data::Register(Some(color)) => color.as_str().map(str::to_owned),
                _ => None,
            };
            match (color(0), color(1)) {
                (Some(one), Some(two)) if name != other => {
                    vec![paint(name, "between"), paint(other, &one), paint(name, &two)]
                }
                _ => Vec::new(),
            }
        }
        2 => vec![Write::Delete(item(name)), Write::Add(field(name, COUNT), 1)],
        _ => {
            let holders = ask(&mut open, of_color(&color)).await?;
            if holders.is_empty() || holders == [name.as_str()] {
                open.flush(vec![paint(name, &color)]).await?;
                assert_eq!(ask(&mut open, of_color(&color)).await?, [name.as_str()]);
            }
            vec![put(name, 7)]
        }
    };
    open.commit(Commit { writes, ..Commit::default() }).await.map(|_| ())
}

fn names() -> Vec<String> {
    (0..7).map(|number| format!("item {number}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_that_meet_leave_each_color_to_one_object_and_the_index_right() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    println!("seed {SEED}");
    let config = config(server.url());
    let stores = [
        connect(config.clone(), items(BOTH)).await.expect("it opens"),
        connect(config, items(BOTH)).await.expect("it opens"),
    ];
    let (conflicts, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let tasks = (0..TASKS).map(|task| {
        let store = Arc::clone(&stores[task % 2]);
        let (conflicts, done) = (Arc::clone(&conflicts), Arc::clone(&done));
        tokio::spawn(async move {
            let mut random = Random::new(SEED + task as u64);
            for round in 0..ROUNDS {
                match act(&store, &names(), &mut random).await {
                    Ok(()) => done.fetch_add(1, Ordering::Relaxed),
                    Err(StoreError::Conflict) => conflicts.fetch_add(1, Ordering::Relaxed),
                    Err(error) => panic!("task {task}, round {round}: {error}"),
                };
                if round % 10 == task {
                    assert_eq!(differs(&store, &names()).await, None, "task {task}, round {round}");
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("no task fails");
    }
    assert_eq!(differs(&stores[0], &names()).await, None);
    assert!(done.load(Ordering::Relaxed) > 0 && conflicts.load(Ordering::Relaxed) > 0);
}

/// The comparison of the test above notices an entry that is lost, one too many, and a reader whose range is not
/// validated.
#[tokio::test]
async fn a_mistake_in_an_index_is_noticed() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let config = config(server.url());
    let prefix = config.prefix_of("suite");
    let key = format!("{prefix}!index:Item:color");
    let store = connect(config, items(BOTH)).await.expect("it opens");
    let mut other = Other::at(server.url()).await;
    let names = ["a", "b"].map(str::to_owned);
    write(&store, vec![paint("a", "red")]).await.expect("it writes");
    assert_eq!(differs(&store, &names).await, None);
    let redis::Value::Array(entries) = other.words(&["ZRANGE", &key, "0", "-1"]).await else {
        panic!("no index")
    };
    let [redis::Value::BulkString(entry)] = &*entries else { panic!("one entry: {entries:?}") };
    let entry = String::from_utf8(entry.clone()).expect("letters and zeros");
    other.words(&["ZREM", &key, &entry]).await;
    assert!(differs(&store, &names).await.expect("an entry is lost").contains("the index has []"));
    for entry in [&entry, &entry.replace('a', "b")] {
        other.words(&["ZADD", &key, "0", entry]).await;
    }
    assert!(differs(&store, &names).await.expect("an entry too many").contains("\"b\"]"));
    other.words(&["ZREM", &key, &entry.replace('a', "b")]).await;
    assert_eq!(differs(&store, &names).await, None);
    // Two that both find no blue object: with the read in the writing transaction, and without.
    for is_validated in [true, false] {
        let mut open = Vec::new();
        for _ in 0..2 {
            let mut one = store.begin(&Session::default()).await.expect("it begins");
            assert!(ask(&mut one, of_color("blue")).await.expect("it reads").is_empty());
            if !is_validated {
                one = store.begin(&Session::default()).await.expect("it begins");
            }
            open.push(one);
        }
        let mut ended = Vec::new();
        for (one, name) in open.into_iter().zip(&names) {
            let writes = vec![paint(name, "blue")];
            ended.push(one.commit(Commit { writes, ..Commit::default() }).await.map(|_| ()));
        }
        let wrong = differs(&store, &names).await;
        if is_validated {
            assert_eq!((ended, wrong), (vec![Ok(()), Err(StoreError::Conflict)], None));
            write(&store, vec![paint("a", "red")]).await.expect("it writes");
        } else {
            assert!(wrong.expect("two are blue").starts_with("two of one color"));
        }
    }
}

#[tokio::test]
async fn large_pages_follow_one_another() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let store = connect(config(server.url()), items(BOTH)).await.expect("it opens");
    let name = |number: usize| format!("{number:05}");
    let all: Vec<String> = (0..12_500).map(name).collect();
    for part in all.chunks(2_500) {
        let writes = part.iter().flat_map(|name| [paint(name, name), put(name, 1)]);
        write(&store, writes.collect()).await.expect("it writes");
    }
    let shelf = |after: Option<&String>, is_reversed, most| {
        let bound = after.map_or(Value::NONE, |after| Value::some(text(after)));
        let (from, before) = if is_reversed { (Value::NONE, bound) } else { (bound, Value::NONE) };
        let end = [Value::Bool(is_reversed), Value::Int(most)];
        let arguments = [vec![Value::Int(1), from, before], end.to_vec()].concat();
        Read::Query { operation: "shelf,color/1/false".into(), arguments }
    };
    let first = found(&store, shelf(None, false, 20_000)).await;
    assert_eq!(first, all[..10_000], "at most so many");
    assert_eq!(found(&store, shelf(all.get(10_000), false, 10_000)).await, all[10_000..]);
    let last: Vec<String> = all[5_000..10_000].iter().rev().cloned().collect();
    assert_eq!(found(&store, shelf(all.get(10_000), true, 5_000)).await, last);
    let count = |most| Read::Query {
        operation: "shelf,color/1/true".into(),
        arguments: vec![Value::Int(1), Value::NONE, Value::NONE, Value::Int(most)],
    };
    let counted = read(&store, &[count(100_000), count(12)]).await.expect("it reads");
    assert_eq!(counted[0].data, Data::Result(Value::Int(12_500)));
    assert_eq!(counted[1].data, Data::Result(Value::Int(12)));
    // A transaction that has written 4,000 of them, and deleted some.
    let mut open = store.begin(&Session::default()).await.expect("it begins");
    let moved = all[..4_000].iter().map(|name| put(name, 2));
    let gone = all[4_000..4_010].iter().map(|name| Write::Delete(item(name)));
    open.flush(moved.chain(gone).collect()).await.expect("it flushes");
    let rest = ask(&mut open, shelf(None, false, 10)).await.expect("it reads");
    assert_eq!(rest, all[4_010..4_020]);
    let counted = open.read(&[count(100_000)]).await.expect("it reads");
    assert_eq!(counted[0].data, Data::Result(Value::Int(8_490)));
    open.commit(Commit::default()).await.expect("it commits");
    assert_eq!(found(&store, shelf(None, false, 10)).await, all[4_010..4_020]);
}

#[tokio::test]
async fn a_command_that_fails_takes_the_entries_back() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let (config, app) = (config(server.url()), fresh_prefix());
    let mut schema = items(BOTH);
    let fail = StoreOperation {
        is_command: true,
        parameters: Vec::new(),
        result: None,
        body: Some(format!("INCR {app}text")),
        builtin: None,
    };
    schema.operations.insert("fail".into(), fail);
    let store = connect(config, schema).await.expect("it opens");
    let mut other = Other::at(server.url()).await;
    other.words(&["SET", &format!("{app}text"), "no number"]).await;
    write(&store, vec![paint("a", "red"), paint("b", "blue"), put("b", 1)])
        .await
        .expect("it writes");
    let command = Write::Command { operation: "fail".into(), arguments: Vec::new() };
    let writes = vec![
        paint("a", "green"),
        Write::Delete(item("b")),
        paint("c", "blue"),
        command,
        paint("d", "grey"),
    ];
    let reason = refusal(write(&store, writes).await);
    assert!(reason.contains("INCR"), "{reason}");
    let names = ["a", "b", "c", "d"].map(str::to_owned);
    assert_eq!(differs(&store, &names).await, None);
    assert_eq!(found(&store, all()).await, ["b", "a"]);
    write(&store, vec![paint("a", "yellow"), put("a", 1)]).await.expect("it writes");
    assert_eq!(found(&store, of_color("red")).await, [] as [&str; 0]);
    assert_eq!(differs(&store, &names).await, None);
}

#[tokio::test]
async fn other_content_of_an_index_is_refused_and_nothing_is_torn() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let config = config(server.url());
    let key = format!("{}!index:Item:color", config.prefix_of("suite"));
    let values = format!("{}Item!index:a", config.prefix_of("suite"));
    let store = connect(config, items(BOTH)).await.expect("it opens");
    let mut other = Other::at(server.url()).await;
    write(&store, vec![paint("a", "red")]).await.expect("it writes");
    other.words(&["ZADD", &key, "0", "\u{3}stranger"]).await;
    let why = refusal(read(&store, &[all()]).await);
    assert!(why.contains("stranger of an index cannot be read"), "{why}");
    for (key, expected) in [(&key, "zset"), (&values, "hash")] {
        other.words(&["SET", key, "a string"]).await;
        let why = refusal(write(&store, vec![paint("a", "blue")]).await);
        assert!(why.contains(&format!("is a string, expected a {expected}")), "{why}");
        let color = crate::support::data(&store, Read::Register(field("a", COLOR))).await;
        assert_eq!(color, Data::Register(Some(text("red"))));
        other.words(&["DEL", key]).await;
    }
}

#[tokio::test]
async fn indexes_of_keys_of_another_application_are_refused() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let mut config = config(server.url());
    let mut schema = items(&[(&["color"], false)]);
    let fields = [("color", FieldType::Register(Type::String))];
    let mapped = object("Item", ("name", Type::String), &fields);
    Arc::make_mut(&mut schema.schema).objects.insert("Item".into(), Arc::new(mapped));
    let mapping = ObjectMapping::at("item:{name}");
    config.objects.insert("Item".into(), mapping);
    match connect(config, schema).await {
        Err(OpenError::Config { reason, .. }) => {
            assert!(reason.contains("object Item has the index by_color"), "{reason}");
        }
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("it was opened"),
    }
}
