//! Conflicts between reads and concurrent writes, for each pair, in Mingle's own keys and in those
//! of other applications.

use std::collections::BTreeMap;

use mingle_model::{FieldType, Ref, Type, Value};
use mingle_services::Engine;
use mingle_store::{
    Address, Commit, Data, DataStore, KeyRange, Read, Session, StoreError, StoreSchema, Write,
};
use mingle_store_redis::{FieldMapping, KeyType, ObjectMapping, Redis, RedisConfig};

use crate::support::{Other, config, connect, fresh_prefix, object, schema, text, write};

fn user() -> StoreSchema {
    let fields = [
        ("mail", FieldType::Register(Type::String)),
        ("count", FieldType::Counter),
        ("tags", FieldType::Set(Type::String)),
        ("marks", FieldType::Map(Type::String, Type::Int)),
        ("lines", FieldType::Log(Type::String)),
    ];
    schema(vec![object("User", ("name", Type::String), &fields)])
}

fn at(field: u16) -> Address {
    Address { object: Ref::new("User", text("ana")), field }
}

fn start() -> Vec<Write> {
    vec![
        Write::Delete(at(0).object),
        Write::Assign(at(0), text("a@b")),
        Write::Add(at(1), 5),
        Write::Insert(at(2), text("t1")),
        Write::Insert(at(2), text("t2")),
        Write::Put(at(3), text("k1"), Value::Int(1)),
        Write::Put(at(3), text("k2"), Value::Int(2)),
        Write::Append(at(4), text("line")),
    ]
}

fn reads() -> Vec<Read> {
    vec![
        Read::Exists(at(0).object),
        Read::Register(at(0)),
        Read::Counter(at(1)),
        Read::Contains(at(2), text("t1")),
        Read::Contains(at(2), text("absent")),
        Read::SetSize(at(2)),
        Read::Elements(at(2)),
        Read::Entry(at(3), text("k1")),
        Read::Entry(at(3), text("absent")),
        Read::MapSize(at(3)),
        Read::Entries(at(3)),
        Read::MapSlice { address: at(3), range: KeyRange::first(2) },
        Read::LogSize(at(4)),
        Read::LogLast(at(4), 1),
        Read::LogSlice { address: at(4), from: 0, count: 5 },
    ]
}

fn writes() -> Vec<Write> {
    vec![
        Write::Create(at(0).object),
        Write::Delete(at(0).object),
        Write::Assign(at(0), text("other")),
        Write::Add(at(1), 1),
        Write::Insert(at(2), text("absent")),
        Write::Insert(at(2), text("t9")),
        Write::Remove(at(2), text("t1")),
        Write::Remove(at(2), text("t2")),
        Write::Remove(at(2), text("t9")),
        Write::Clear(at(2)),
        Write::Put(at(3), text("k1"), Value::Int(9)),
        Write::Put(at(3), text("absent"), Value::Int(9)),
        Write::Erase(at(3), text("k1")),
        Write::Erase(at(3), text("k2")),
        Write::Clear(at(3)),
        Write::Append(at(4), text("more")),
        Write::Clear(at(4)),
    ]
}

/// Runs each read, then each write by another client, then a commit. If the read's result has
/// changed, the commit must be a conflict; if no write touched its field, it must succeed.
async fn check(store: &Redis) {
    for write_ in writes() {
        for read in reads() {
            write(store, start()).await.expect("it writes");
            let mut open = store.begin(&Session::default()).await.expect("it begins");
            let before = open.read(std::slice::from_ref(&read)).await.expect("it reads");
            write(store, vec![write_.clone()]).await.expect("it writes");
            let after = crate::support::data(store, read.clone()).await;
            let commit = Commit { writes: vec![Write::Add(other(), 1)], ..Commit::default() };
            let result = open.commit(commit).await.map(|_| ());
            let is_field = |read: &Read, write: &Write| field(read) == field_of(write);
            if before[0].data != after {
                assert_eq!(result, Err(StoreError::Conflict), "{read:?}, then {write_:?}");
            } else if field_of(&write_).is_some() && !is_field(&read, &write_) {
                assert_eq!(result, Ok(()), "{read:?}, then {write_:?}");
            }
        }
    }
}

fn other() -> Address {
    Address { object: Ref::new("User", text("somebody else")), field: 1 }
}

fn field(read: &Read) -> Option<u16> {
    read.address().map(|address| address.field)
}

fn field_of(write: &Write) -> Option<u16> {
    match write {
        Write::Assign(a, _)
        | Write::Add(a, _)
        | Write::Insert(a, _)
        | Write::Remove(a, _)
        | Write::Put(a, ..)
        | Write::Erase(a, _)
        | Write::Append(a, _)
        | Write::Clear(a) => Some(a.field),
        _ => None,
    }
}

#[tokio::test]
async fn in_keys_of_our_own() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    check(&connect(config(server.url()), user()).await.expect("it opens")).await;
}

fn mapped(url: &str, app: &str) -> RedisConfig {
    let mut mapping = ObjectMapping::at(format!("{app}user:{{name}}"));
    let places = [("tags", KeyType::Set), ("marks", KeyType::Hash), ("lines", KeyType::List)];
    for (field, key_type) in places {
        let key = format!("{app}{field}:{{name}}");
        mapping.fields.insert(field.into(), FieldMapping { key, key_type });
    }
    let objects = BTreeMap::from([("User".to_owned(), mapping)]);
    RedisConfig { objects, ..config(url) }
}

#[tokio::test]
async fn in_keys_of_others() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let app = fresh_prefix().replace("test", "app");
    check(&connect(mapped(server.url(), &app), user()).await.expect("it opens")).await;
}

#[tokio::test]
async fn the_same_elements_in_another_order_are_no_conflict() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let app = fresh_prefix().replace("test", "app");
    let store = connect(mapped(server.url(), &app), user()).await.expect("it opens");
    let mut other_ = Other::at(server.url()).await;
    write(&store, start()).await.expect("it writes");
    let mut open = store.begin(&Session::default()).await.expect("it begins");
    let reads = [Read::Elements(at(2)), Read::Entries(at(3))];
    let found = open.read(&reads).await.expect("it reads");
    for command in
        ["DEL P:tags:ana", "SADD P:tags:ana t2 t1", "DEL P:marks:ana", "HSET P:marks:ana k2 2 k1 1"]
    {
        other_.run(&command.replace("P:", &app)).await;
    }
    let again = open.read(&reads).await.expect("nothing has changed");
    assert_eq!(again, found);
    assert_eq!(again[0].data, Data::Values(vec![text("t1"), text("t2")]));
    // But two values that have changed places are a change.
    other_.run(&"HSET P:marks:ana k2 1 k1 2".replace("P:", &app)).await;
    assert_eq!(open.read(&reads).await, Err(StoreError::Conflict));
}

#[tokio::test]
async fn lines_that_only_read_alike_together_are_a_conflict() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let app = fresh_prefix().replace("test", "app");
    let store = connect(mapped(server.url(), &app), user()).await.expect("it opens");
    let mut other_ = Other::at(server.url()).await;
    other_.run(&format!("RPUSH {app}lines:ana ab c")).await;
    let mut open = store.begin(&Session::default()).await.expect("it begins");
    let read = [Read::LogLast(at(4), 9)];
    open.read(&read).await.expect("it reads");
    other_.run(&format!("DEL {app}lines:ana")).await;
    other_.run(&format!("RPUSH {app}lines:ana a bc")).await;
    assert_eq!(open.read(&read).await, Err(StoreError::Conflict));
}
