//! Objects in keys of other applications.

use std::collections::BTreeMap;

use mingle_model::{FieldType, Ref, Type, Value};
use mingle_services::{Engine, Server};
use mingle_store::{
    Address, Commit, Data, DataStore, Read, Session, StoreError, StoreSchema, Write,
};
use mingle_store_redis::{FieldMapping, KeyType, ObjectMapping, OpenError, Redis, RedisConfig};
use redis::Value as Reply;

use crate::support::{
    Other, bulk, config, connect, data, fresh_prefix, object, read, refusal, schema, text, write,
};

const MAIL: u16 = 0;
const VISITS: u16 = 1;
const INBOX: u16 = 2;
const FRIENDS: u16 = 3;
const MARKS: u16 = 4;
const STATUS: u16 = 5;
const CLICKS: u16 = 6;

fn user() -> StoreSchema {
    let fields = [
        ("mail", FieldType::Register(Type::String)),
        ("visits", FieldType::Counter),
        ("inbox", FieldType::Log(Type::String)),
        ("friends", FieldType::Set(Type::String)),
        ("marks", FieldType::Map(Type::String, Type::Int)),
        ("status", FieldType::Register(Type::String)),
        ("clicks", FieldType::Counter),
    ];
    schema(vec![object("User", ("name", Type::String), &fields)])
}

/// Maps `User` to keys that begin with `app`.
fn mapping(app: &str) -> ObjectMapping {
    let mut mapping = ObjectMapping::at(format!("{app}user:{{name}}"));
    mapping.columns.insert("mail".into(), "email".into());
    for (field, key_type) in [
        ("inbox", KeyType::List),
        ("friends", KeyType::Set),
        ("marks", KeyType::Hash),
        ("status", KeyType::String),
        ("clicks", KeyType::String),
    ] {
        let key = format!("{app}{field}:{{name}}:all");
        mapping.fields.insert(field.into(), FieldMapping { key, key_type });
    }
    mapping
}

fn at(name: &str, field: u16) -> Address {
    Address { object: Ref::new("User", text(name)), field }
}

/// Returns a store with the mapping, a client of the other application, and its key prefix.
async fn mapped(
    server: &Server,
    change: impl FnOnce(&mut ObjectMapping),
) -> (std::sync::Arc<Redis>, Other, String) {
    let app = fresh_prefix().replace("test", "app");
    let mut mapping = mapping(&app);
    change(&mut mapping);
    let objects = BTreeMap::from([("User".to_owned(), mapping)]);
    let config = RedisConfig { objects, ..config(server.url()) };
    let store = connect(config, user()).await.expect("it opens");
    (store, Other::at(server.url()).await, app)
}

fn everything(name: &str) -> Vec<Write> {
    vec![
        Write::Assign(at(name, MAIL), text("a@b")),
        Write::Add(at(name, VISITS), 2),
        Write::Append(at(name, INBOX), text("hello")),
        Write::Insert(at(name, FRIENDS), text("bob")),
        Write::Put(at(name, MARKS), text("x"), Value::Int(3)),
        Write::Assign(at(name, STATUS), text("busy")),
        Write::Add(at(name, CLICKS), i128::from(i64::MAX) + 1),
    ]
}

fn reads(name: &str) -> Vec<Read> {
    vec![
        Read::Exists(at(name, 0).object),
        Read::Register(at(name, MAIL)),
        Read::Counter(at(name, VISITS)),
        Read::LogLast(at(name, INBOX), 9),
        Read::Elements(at(name, FRIENDS)),
        Read::Entries(at(name, MARKS)),
        Read::Register(at(name, STATUS)),
        Read::Counter(at(name, CLICKS)),
        Read::Contains(at(name, FRIENDS), text("bob")),
        Read::Entry(at(name, MARKS), text("x")),
        Read::LogSize(at(name, INBOX)),
        Read::SetSize(at(name, FRIENDS)),
        Read::MapSize(at(name, MARKS)),
    ]
}

fn full() -> Vec<Data> {
    vec![
        Data::Bool(true),
        Data::Register(Some(text("a@b"))),
        Data::Counter(2),
        Data::Values(vec![text("hello")]),
        Data::Values(vec![text("bob")]),
        Data::Entries(vec![(text("x"), Value::Int(3))]),
        Data::Register(Some(text("busy"))),
        Data::Counter(i128::from(i64::MAX) + 1),
        Data::Bool(true),
        Data::Register(Some(Value::Int(3))),
        Data::Count(1),
        Data::Count(1),
        Data::Count(1),
    ]
}

fn empty() -> Vec<Data> {
    vec![
        Data::Bool(false),
        Data::Register(None),
        Data::Counter(0),
        Data::Values(vec![]),
        Data::Values(vec![]),
        Data::Entries(vec![]),
        Data::Register(None),
        Data::Counter(0),
        Data::Bool(false),
        Data::Register(None),
        Data::Count(0),
        Data::Count(0),
        Data::Count(0),
    ]
}

async fn all(store: &Redis, name: &str) -> Vec<Data> {
    let answers = read(store, &reads(name)).await.expect("it reads");
    answers.into_iter().map(|answer| answer.data).collect()
}

#[tokio::test]
async fn fields_are_where_the_other_application_has_them() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let (store, mut other, app) = mapped(server, |_| {}).await;
    assert_eq!(all(&store, "ana").await, empty());
    write(&store, everything("ana")).await.expect("it writes");
    assert_eq!(all(&store, "ana").await, full());
    for (command, expected) in [
        ("HGET P:user:ana email", "a@b"),
        ("HGET P:user:ana visits", "2"),
        ("LINDEX P:inbox:ana:all 0", "hello"),
        ("HGET P:marks:ana:all x", "3"),
        ("GET P:status:ana:all", "busy"),
        ("GET P:clicks:ana:all", "9223372036854775808"),
    ] {
        let command = command.replace("P:", &app);
        assert_eq!(other.run(&command).await, bulk(expected), "{command}");
    }
    let keys = other.words(&["KEYS", &format!("{app}*")]).await;
    assert!(matches!(&keys, Reply::Array(keys) if keys.len() == 6), "{keys:?}");
    other.words(&["LPOP", &format!("{app}inbox:ana:all")]).await;
    assert_eq!(data(&store, Read::LogSize(at("ana", INBOX))).await, Data::Count(0));
    write(&store, vec![Write::Delete(at("ana", 0).object)]).await.expect("it deletes");
    assert_eq!(all(&store, "ana").await, empty());
    assert_eq!(other.words(&["KEYS", &format!("{app}*")]).await, Reply::Array(vec![]));
}

#[tokio::test]
async fn flushed_writes_are_seen_over_what_others_keep() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let (store, _, _) = mapped(server, |_| {}).await;
    let mut open = store.begin(&Session::default()).await.expect("it begins");
    open.flush(everything("ana")).await.expect("it flushes");
    let answers = open.read(&reads("ana")).await.expect("it reads");
    let found: Vec<Data> = answers.into_iter().map(|answer| answer.data).collect();
    assert_eq!(found, full());
    assert_eq!(all(&store, "ana").await, empty());
    open.commit(Commit::default()).await.expect("it commits");
    assert_eq!(all(&store, "ana").await, full());
}

#[tokio::test]
async fn times_to_live_are_left_alone() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let (store, mut other, app) = mapped(server, |_| {}).await;
    write(&store, everything("ana")).await.expect("it writes");
    let names = [
        "user:ana",
        "inbox:ana:all",
        "friends:ana:all",
        "marks:ana:all",
        "status:ana:all",
        "clicks:ana:all",
    ];
    let far = "4000000000000";
    for name in names {
        other.words(&["PEXPIREAT", &format!("{app}{name}"), far]).await;
    }
    write(&store, everything("ana")).await.expect("it writes");
    let more = vec![
        Write::Remove(at("ana", FRIENDS), text("nobody")),
        Write::Erase(at("ana", MARKS), text("nothing")),
        Write::Add(at("ana", CLICKS), 1),
    ];
    write(&store, more).await.expect("it writes");
    for name in names {
        let at = other.words(&["PEXPIRETIME", &format!("{app}{name}")]).await;
        assert_eq!(at, Reply::Int(far.parse().expect("a number")), "{name}");
    }
    // An expired key counts as absent.
    other.words(&["PEXPIRE", &format!("{app}status:ana:all"), "0"]).await;
    assert_eq!(data(&store, Read::Register(at("ana", STATUS))).await, Data::Register(None));
}

#[tokio::test]
async fn what_others_write_in_between_is_a_conflict() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let (store, mut other, app) = mapped(server, |_| {}).await;
    let changes = [
        (Read::Register(at("ana", MAIL)), format!("HSET {app}user:ana email other")),
        (Read::Counter(at("ana", CLICKS)), format!("INCRBY {app}clicks:ana:all -5")),
        (Read::LogSize(at("ana", INBOX)), format!("RPUSH {app}inbox:ana:all line")),
        (Read::LogLast(at("ana", INBOX), 1), format!("LSET {app}inbox:ana:all -1 changed")),
        (Read::Elements(at("ana", FRIENDS)), format!("SADD {app}friends:ana:all eve")),
        (Read::Contains(at("ana", FRIENDS), text("dan")), format!("SADD {app}friends:ana:all dan")),
        (Read::Entries(at("ana", MARKS)), format!("HSET {app}marks:ana:all x 9")),
        (Read::Entry(at("ana", MARKS), text("y")), format!("HSET {app}marks:ana:all y 1")),
        (Read::Exists(at("eve", 0).object), format!("SET {app}status:eve:all here")),
        (Read::Register(at("ana", STATUS)), format!("DEL {app}status:ana:all")),
    ];
    let add = |name: &str| vec![Write::Add(at(name, VISITS), 1)];
    let everything = everything("ana")
        .into_iter()
        .filter(|write| !matches!(write, Write::Add(a, _) if a.field == CLICKS));
    write(&store, everything.collect()).await.expect("it writes");
    for (read, command) in changes {
        let mut reader = store.begin(&Session::default()).await.expect("it begins");
        let mut writer = store.begin(&Session::default()).await.expect("it begins");
        for open in [&mut reader, &mut writer] {
            open.read(std::slice::from_ref(&read)).await.expect("it reads");
        }
        other.run(&command).await;
        let again = reader.read(&[Read::Register(at("bob", MAIL))]).await;
        assert_eq!(again, Err(StoreError::Conflict), "a read after {command}");
        let commit = Commit { writes: add("bob"), ..Commit::default() };
        let result = writer.commit(commit).await;
        assert_eq!(result, Err(StoreError::Conflict), "a commit after {command}");
    }
    // A change of data that the transaction has not read does not matter.
    let mut open = store.begin(&Session::default()).await.expect("it begins");
    open.read(&[Read::Register(at("ana", MAIL))]).await.expect("it reads");
    other.run(&format!("HSET {app}user:ana another 1")).await;
    let commit = Commit { writes: add("ana"), ..Commit::default() };
    open.commit(commit).await.expect("it commits");
}

#[tokio::test]
async fn a_key_of_another_type_is_refused_and_nothing_is_torn() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let (store, mut other, app) = mapped(server, |_| {}).await;
    other.words(&["SET", &format!("{app}inbox:ana:all"), "no list"]).await;
    other.words(&["SET", &format!("{app}clicks:ana:all"), "many"]).await;
    let inbox = Write::Append(at("ana", INBOX), text("x"));
    let clicks = Write::Add(at("ana", CLICKS), 1);
    for (write_, names) in
        [(inbox, ["inbox:ana", "string", "list"]), (clicks, ["clicks:ana", "many", "counter"])]
    {
        let why = refusal(write(&store, vec![Write::Add(at("ana", VISITS), 1), write_]).await);
        assert!(names.iter().all(|name| why.contains(name)), "{why}");
    }
    assert_eq!(data(&store, Read::Counter(at("ana", VISITS))).await, Data::Counter(0));
    let why = refusal(read(&store, &[Read::LogSize(at("ana", INBOX))]).await);
    assert!(["inbox:ana", "string", "list"].iter().all(|name| why.contains(name)), "{why}");
    let why = refusal(read(&store, &[Read::Counter(at("ana", CLICKS))]).await);
    assert!(why.contains("many") && why.contains("counter"), "{why}");
}

#[tokio::test]
async fn an_object_without_fields_needs_a_marker() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let (store, _, _) = mapped(server, |_| {}).await;
    let ana = || at("ana", 0).object;
    let why = refusal(write(&store, vec![Write::Create(ana())]).await);
    assert!(why.contains("marker") && why.contains("user:ana"), "{why}");
    let with_field = vec![Write::Create(ana()), Write::Assign(at("ana", MAIL), text("x"))];
    write(&store, with_field).await.expect("a field makes it exist");
    write(&store, vec![Write::Create(ana())]).await.expect("it exists");
    let (store, mut other, app) =
        mapped(server, |mapping| mapping.marker = Some("id".into())).await;
    write(&store, vec![Write::Create(ana())]).await.expect("it is marked");
    assert_eq!(data(&store, Read::Exists(ana())).await, Data::Bool(true));
    assert_eq!(other.run(&format!("HGET {app}user:ana id")).await, bulk("ana"));
}

#[tokio::test]
async fn a_mapping_that_does_not_fit_is_refused() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let app = fresh_prefix();
    type Change = fn(&mut ObjectMapping);
    let cases: [(Change, &str); 9] = [
        (|m| m.key = Some("user".into()), "{name}"),
        (|m| m.key = Some("user:{nick}".into()), "{name}"),
        (|m| m.key = Some("{name}".into()), "prefix"),
        (|m| m.key = Some("mine:user:{name}".into()), "our own keys"),
        (|m| m.key = None, "mail is not mapped"),
        (|m| drop(m.columns.insert("none".into(), "x".into())), "no field none"),
        (|m| drop(m.columns.insert("mail".into(), "visits".into())), "kept as visits"),
        (
            |m| m.fields.get_mut("inbox").expect("it is there").key_type = KeyType::Set,
            "log<string>",
        ),
        (
            |m| {
                m.fields.get_mut("inbox").expect("it is there").key =
                    m.key.clone().expect("it has one");
            },
            "could be the same",
        ),
    ];
    for (change, said) in cases {
        let mut mapping = mapping(&app);
        change(&mut mapping);
        let objects = BTreeMap::from([("User".to_owned(), mapping)]);
        let config = RedisConfig { objects, prefix: Some("mine:".into()), ..config(server.url()) };
        match connect(config, user()).await.err() {
            Some(OpenError::Mapping { reason, .. }) => assert!(reason.contains(said), "{reason}"),
            other => panic!("{said}: {other:?}"),
        }
    }
}
