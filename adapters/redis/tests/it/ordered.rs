//! Writes of one commit take effect in their order, including commands and keys of other
//! applications.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_model::{FieldType, Ref, Type, Value};
use mingle_services::Engine;
use mingle_store::{Address, Commit, Data, DataStore, Read, Session, StoreOperation, Write};
use mingle_store_redis::{FieldMapping, KeyType, ObjectMapping, Redis, RedisConfig};

use crate::support::{config, connect, data, fresh_prefix, object, schema, text};

const NAME: u16 = 0;
const POINTS: u16 = 1;
const TAGS: u16 = 2;
const MARKS: u16 = 3;
const LINES: u16 = 4;

async fn store() -> Option<Arc<Redis>> {
    let server = mingle_services::shared(Engine::Redis).await?;
    let app = fresh_prefix().replace("test", "app");
    let fields = [
        ("name", FieldType::Register(Type::String)),
        ("points", FieldType::Counter),
        ("tags", FieldType::Set(Type::String)),
        ("marks", FieldType::Map(Type::String, Type::Int)),
        ("lines", FieldType::Log(Type::String)),
    ];
    let mut declared = schema(vec![object("Note", ("id", Type::String), &fields)]);
    let command = |body: &str| StoreOperation {
        is_command: true,
        parameters: vec![("id".into(), Type::String)],
        result: None,
        body: Some(body.replace("APP", &app)),
        builtin: None,
    };
    declared.operations = BTreeMap::from([
        ("rename".into(), command("HSET APPnote:$1 name commanded")),
        ("reset".into(), command("HSET APPnote:$1 points 100")),
        ("strip".into(), command("DEL APPtags:$1")),
        ("raise".into(), command("HINCRBY APPmarks:$1 m 10")),
        ("close".into(), command("RPUSH APPlines:$1 closed")),
    ]);
    let mut mapping = ObjectMapping::at(format!("{app}note:{{id}}"));
    for (field, key_type) in
        [("tags", KeyType::Set), ("marks", KeyType::Hash), ("lines", KeyType::List)]
    {
        let key = format!("{app}{field}:{{id}}");
        mapping.fields.insert(field.into(), FieldMapping { key, key_type });
    }
    let objects = BTreeMap::from([("Note".to_owned(), mapping)]);
    let config = RedisConfig { objects, ..config(server.url()) };
    Some(connect(config, declared).await.expect("it opens"))
}

fn at(key: &str, field: u16) -> Address {
    Address { object: Ref::new("Note", text(key)), field }
}

fn run(operation: &str, key: &str) -> Write {
    Write::Command { operation: operation.into(), arguments: vec![text(key)] }
}

/// Commits writes, of which the first `flushed` are flushed before.
async fn commit(store: &Redis, mut writes: Vec<Write>, flushed: usize) {
    let mut open = store.begin(&Session::default()).await.expect("it begins");
    let rest = writes.split_off(flushed);
    open.flush(writes).await.expect("it is flushed");
    open.commit(Commit { writes: rest, ..Commit::default() }).await.expect("it commits");
}

async fn check(store: &Redis, key: &str, expected: Vec<(Read, Data)>) {
    for (read, expected) in expected {
        assert_eq!(data(store, read.clone()).await, expected, "{key}: {read:?}");
    }
}

#[tokio::test]
async fn mapped_writes_stand_before_and_after_a_command() {
    let Some(store) = store().await else { return };
    let writes = |key: &str| {
        vec![
            Write::Assign(at(key, NAME), text("first")),
            Write::Add(at(key, POINTS), 2),
            Write::Insert(at(key, TAGS), text("gone")),
            Write::Put(at(key, MARKS), text("m"), Value::Int(3)),
            Write::Append(at(key, LINES), text("opened")),
            run("rename", key),
            run("reset", key),
            run("strip", key),
            run("raise", key),
            run("close", key),
            Write::Add(at(key, POINTS), 3),
            Write::Insert(at(key, TAGS), text("kept")),
            Write::Put(at(key, MARKS), text("n"), Value::Int(4)),
            Write::Append(at(key, LINES), text("over")),
        ]
    };
    for flushed in 0..15 {
        let key = format!("k{flushed}");
        commit(&store, writes(&key), flushed).await;
        let marks = vec![(text("m"), Value::Int(13)), (text("n"), Value::Int(4))];
        let expected = vec![
            (Read::Register(at(&key, NAME)), Data::Register(Some(text("commanded")))),
            (Read::Counter(at(&key, POINTS)), Data::Counter(103)),
            (Read::Elements(at(&key, TAGS)), Data::Values(vec![text("kept")])),
            (Read::Entries(at(&key, MARKS)), Data::Entries(marks)),
            (
                Read::LogLast(at(&key, LINES), 9),
                Data::Values(vec![text("opened"), text("closed"), text("over")]),
            ),
        ];
        check(&store, &key, expected).await;
        let again = vec![run("rename", &key), Write::Assign(at(&key, NAME), text("last"))];
        commit(&store, again, 0).await;
        let last = Data::Register(Some(text("last")));
        check(&store, &key, vec![(Read::Register(at(&key, NAME)), last)]).await;
    }
}

#[tokio::test]
async fn mapped_writes_stand_before_and_after_a_deletion() {
    let Some(store) = store().await else { return };
    for (case, flushed) in (0..2).flat_map(|case| (0..10).map(move |flushed| (case, flushed))) {
        let key = format!("d{case}_{flushed}");
        let fill = |n: i64| {
            let name = Value::from(format!("n{n}"));
            vec![
                Write::Assign(at(&key, NAME), name.clone()),
                Write::Add(at(&key, POINTS), n.into()),
                Write::Insert(at(&key, TAGS), name.clone()),
                Write::Put(at(&key, MARKS), name.clone(), Value::Int(n)),
                Write::Append(at(&key, LINES), name),
            ]
        };
        if case == 1 {
            commit(&store, fill(1), 0).await;
        }
        let deletion = vec![Write::Delete(at(&key, 0).object)];
        commit(&store, [fill(2), deletion, fill(3)].concat(), flushed).await;
        let name = text("n3");
        let expected = vec![
            (Read::Register(at(&key, NAME)), Data::Register(Some(name.clone()))),
            (Read::Counter(at(&key, POINTS)), Data::Counter(3)),
            (Read::Elements(at(&key, TAGS)), Data::Values(vec![name.clone()])),
            (Read::Entries(at(&key, MARKS)), Data::Entries(vec![(name.clone(), Value::Int(3))])),
            (Read::LogLast(at(&key, LINES), 9), Data::Values(vec![name])),
        ];
        check(&store, &key, expected).await;
    }
}

/// A value that the server cannot hold is an error of the request, and no write of the commit takes
/// effect.
#[tokio::test]
async fn a_value_out_of_range_is_a_refusal() {
    let Some(store) = store().await else { return };
    let fill = vec![Write::Put(at("r", MARKS), text("m"), Value::Int(i64::MAX - 3))];
    commit(&store, fill, 0).await;
    let open = store.begin(&Session::default()).await.expect("it begins");
    let writes = vec![Write::Assign(at("r", NAME), text("lost")), run("raise", "r")];
    let result = open.commit(Commit { writes, ..Commit::default() }).await;
    let Err(mingle_store::StoreError::Violated { violation, .. }) = result else {
        panic!("{result:?}");
    };
    assert_eq!(violation.kind, mingle_store::ViolationKind::Range, "{violation}");
    let name = data(&store, Read::Register(at("r", NAME))).await;
    assert_eq!(name, Data::Register(None));
}
