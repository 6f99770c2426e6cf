//! Columns of other applications that cannot hold a field, and nulls in those that can.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_model::{Field, FieldType, Level, ObjectType, Ref, Schema, Type, Value};
use mingle_services::Engine;
use mingle_store::{Address, Data, DataStore, Read, Session, StoreError, StoreSchema, Write};
use mingle_store_cassandra::{
    Cassandra, CassandraConfig, CollectionMapping, ObjectMapping, OpenError,
};

use crate::support::{Other, config, connect, data, fresh_table, write};

/// An object `Person` with these fields.
fn schema(fields: &[(&str, FieldType)]) -> StoreSchema {
    let mut schema = Schema::default();
    let fields = fields.iter().map(|(name, field_type)| Field {
        name: (*name).into(),
        default: match field_type {
            FieldType::Register(of) => schema.default_of(of),
            _ => Value::list([]),
        },
        field_type: field_type.clone(),
    });
    let person = ObjectType {
        name: "Person".into(),
        store: "suite".into(),
        key_name: "id".into(),
        key_type: Type::String,
        fields: fields.collect(),
    };
    schema.objects.insert("Person".into(), Arc::new(person));
    StoreSchema {
        store: "suite".into(),
        level: Level::Eventual,
        schema: Arc::new(schema),
        operations: BTreeMap::new(),
    }
}

fn mapping(table: &str) -> ObjectMapping {
    ObjectMapping { table: table.into(), key: "id".into(), ..ObjectMapping::default() }
}

fn mapped(url: &str, mapping: ObjectMapping) -> CassandraConfig {
    CassandraConfig { objects: [("Person".into(), mapping)].into(), ..config(url) }
}

fn at(field: u16) -> Address {
    Address { object: Ref::new("Person", Value::from("ana")), field }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_of_the_fields_name_that_it_cannot_be_in_is_refused() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let other = Other::at(server.url()).await;
    let columns = "id text PRIMARY KEY, a set<text>, b frozen<set<int>>, c list<text>, d map<text, int>, \
                   e frozen<map<text, frozen<list<int>>>>, f int, g tuple<int, text>, h date, \
                   \"Tags\" set<text>";
    let table = fresh_table(&other, columns).await;
    let (text, int) = (Type::String, Type::Int);
    let map = FieldType::Map(text.clone(), int.clone());
    for (name, field_type, expected) in [
        ("a", FieldType::Set(text.clone()), "set<text>"),
        ("a", FieldType::Log(text.clone()), "set<text>"),
        ("a", FieldType::Register(Type::List(Arc::new(text.clone()))), "set<text>"),
        ("b", FieldType::Set(int.clone()), "frozen<set<int>>"),
        ("c", FieldType::Log(text.clone()), "list<text>"),
        ("d", map.clone(), "map<text, int>"),
        ("e", map.clone(), "frozen<map<text, frozen<list<int>>>>"),
        ("f", FieldType::Counter, "int"),
        ("f", map.clone(), "int"),
        ("g", FieldType::Register(text.clone()), "frozen<tuple<int, text>>"),
        ("h", FieldType::Register(text.clone()), "date"),
        ("Tags", FieldType::Set(text.clone()), "set<text>"),
    ] {
        let refused = connect(mapped(server.url(), mapping(&table)), schema(&[(name, field_type)]));
        let Err(OpenError::Mapping { object, reason, .. }) = refused.await.map(|_| ()) else {
            panic!("{name} {expected} is not refused")
        };
        let is_named = reason.contains(name) && reason.contains(&table);
        assert!(&*object == "Person" && is_named && reason.contains(expected), "{reason}");
        assert!(!reason.contains("Native") && !reason.contains("Collection"), "{reason}");
    }
    // A field that `columns` names is refused as well.
    let columns = [("tags".to_owned(), "a".to_owned())].into();
    let mapping = ObjectMapping { columns, ..mapping(&table) };
    let fields = [("tags", FieldType::Set(text.clone()))];
    let refused = connect(mapped(server.url(), mapping), schema(&fields)).await.map(|_| ());
    let Err(OpenError::Mapping { reason, .. }) = refused else { panic!("{refused:?}") };
    assert!(reason.contains("a (set<text>)") && reason.contains("fields.tags"), "{reason}");
}

/// The store over a table of entries and one of lines, both with a row that has no value.
async fn with_nulls(url: &str, of: Type) -> (Arc<Cassandra>, String, String) {
    let other = Other::at(url).await;
    let person = fresh_table(&other, "id text PRIMARY KEY, age int").await;
    let props = fresh_table(&other, "person text, k text, v text, PRIMARY KEY (person, k)").await;
    let posts =
        fresh_table(&other, "person text, at timeuuid, line text, PRIMARY KEY (person, at)").await;
    for statement in [
        format!("INSERT INTO {props} (person, k, v) VALUES ('ana', 'full', 'x')"),
        format!("INSERT INTO {props} (person, k) VALUES ('ana', 'nothing')"),
        format!("INSERT INTO {posts} (person, at, line) VALUES ('ana', now(), 'first')"),
        format!("INSERT INTO {posts} (person, at) VALUES ('ana', now())"),
    ] {
        other.run(&statement).await;
    }
    let table = |table: &str, value: &str| CollectionMapping {
        table: table.into(),
        key: "person".into(),
        value: value.into(),
        ..CollectionMapping::default()
    };
    let fields = [
        ("props".into(), CollectionMapping { entry: Some("k".into()), ..table(&props, "v") }),
        ("posts".into(), CollectionMapping { order: Some("at".into()), ..table(&posts, "line") }),
    ];
    let mapping = ObjectMapping { fields: fields.into(), ..mapping(&person) };
    let fields =
        [("props", FieldType::Map(Type::String, of.clone())), ("posts", FieldType::Log(of))];
    let store = connect(mapped(url, mapping), schema(&fields)).await.expect("it opens");
    (store, props, posts)
}

async fn failure(store: &Cassandra, read: Read) -> String {
    let mut open = store.begin(&Session::default()).await.expect("it begins");
    match open.read(&[read]).await {
        Err(StoreError::Refused { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_null_among_values_is_an_error_that_says_where() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let (store, props, posts) = with_nulls(server.url(), Type::String).await;
    for (read, table, column, key) in [
        (Read::Entries(at(0)), &props, "\"v\"", "'nothing'"),
        (Read::Entry(at(0), Value::from("nothing")), &props, "\"v\"", "'nothing'"),
        (Read::LogLast(at(1), 9), &posts, "\"line\"", "\"at\""),
    ] {
        let reason = failure(&store, read).await;
        let table = table.replace('.', "\".\"");
        for part in [table.as_str(), column, key, "ana", "null", "option<string>"] {
            assert!(reason.contains(part), "{reason} lacks {part}");
        }
    }
    // Reads that need no values succeed.
    assert_eq!(data(&store, "dc1", Read::MapSize(at(0))).await, Data::Count(2));
    assert_eq!(data(&store, "dc1", Read::LogSize(at(1))).await, Data::Count(2));
    let full = data(&store, "dc1", Read::Entry(at(0), Value::from("full"))).await;
    assert_eq!(full, Data::Register(Some(Value::from("x"))));
    write(&store, "dc1", vec![Write::Delete(at(0).object)]).await.expect("it is deleted");
    assert_eq!(data(&store, "dc1", Read::Entries(at(0))).await, Data::Entries(Vec::new()));
    assert_eq!(data(&store, "dc1", Read::LogLast(at(1), 9)).await, Data::Values(Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_null_among_options_is_none() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let (store, ..) = with_nulls(server.url(), Type::Option(Arc::new(Type::String))).await;
    let some = |text: &str| Value::some(Value::from(text));
    let entries = vec![(Value::from("full"), some("x")), (Value::from("nothing"), Value::NONE)];
    assert_eq!(data(&store, "dc1", Read::Entries(at(0))).await, Data::Entries(entries));
    let lines = vec![some("first"), Value::NONE];
    assert_eq!(data(&store, "dc1", Read::LogLast(at(1), 9)).await, Data::Values(lines));
}
