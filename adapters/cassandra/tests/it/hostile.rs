//! Any text works as a column's name or an argument.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_model::{Field, FieldType, Level, ObjectType, Ref, Schema, Type, Value};
use mingle_services::Engine;
use mingle_store::conformance::hostile::Random;
use mingle_store::{Address, Data, Read, StoreOperation, StoreSchema, Write};
use mingle_store_cassandra::{Cassandra, CassandraConfig, CollectionMapping, ObjectMapping};

use crate::support::{Other, config, connect, data, fresh_table, write};

const NAME: u16 = 0;
const TAGS: u16 = 1;
const MARKS: u16 = 2;
const POSTS: u16 = 3;

fn program() -> StoreSchema {
    let fields = [
        ("name", FieldType::Register(Type::String)),
        ("tags", FieldType::Set(Type::String)),
        ("marks", FieldType::Map(Type::String, Type::String)),
        ("posts", FieldType::Log(Type::String)),
    ];
    let mut schema = Schema::default();
    let field = |(name, field_type): (&str, FieldType)| Field {
        name: name.into(),
        default: match &field_type {
            FieldType::Register(of) => schema.default_of(of),
            _ => Value::list([]),
        },
        field_type,
    };
    let user = ObjectType {
        name: "User".into(),
        store: "suite".into(),
        key_name: "id".into(),
        key_type: Type::String,
        fields: fields.map(field).to_vec(),
    };
    schema.objects.insert("User".into(), Arc::new(user));
    StoreSchema {
        store: "suite".into(),
        level: Level::Eventual,
        schema: Arc::new(schema),
        operations: BTreeMap::new(),
    }
}

fn at(key: &str, field: u16) -> Address {
    Address { object: Ref::new("User", Value::from(key)), field }
}

/// Quotes a name for CQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Creates tables with the given columns, and the mapping of `User` to them.
async fn mapping(other: &Other, random: &mut Random) -> ObjectMapping {
    let [id, name, owner, tag, entry, value, order, line] =
        ["id", "name", "owner", "tag", "entry", "value", "order", "line"]
            .map(|first| random.name(first, 60));
    let columns = format!("{} text PRIMARY KEY, {} text", quoted(&id), quoted(&name));
    let users = fresh_table(other, &columns).await;
    let table = async |element: &str, kind: &str, rest: String| {
        let (owner, element) = (quoted(&owner), quoted(element));
        let key = format!("PRIMARY KEY ({owner}, {element})");
        fresh_table(other, &format!("{owner} text, {element} {kind}, {rest} {key}")).await
    };
    let tags = table(&tag, "text", String::new()).await;
    let marks = table(&entry, "text", format!("{} text,", quoted(&value))).await;
    let posts = table(&order, "timeuuid", format!("{} text,", quoted(&line))).await;
    let collection = |table: &str, value: &str| CollectionMapping {
        table: table.into(),
        key: owner.clone(),
        value: value.into(),
        ..CollectionMapping::default()
    };
    let marks = CollectionMapping { entry: Some(entry.clone()), ..collection(&marks, &value) };
    let posts = CollectionMapping { order: Some(order.clone()), ..collection(&posts, &line) };
    ObjectMapping {
        table: users,
        key: id,
        columns: [("name".into(), name)].into(),
        fields: [
            ("tags".into(), collection(&tags, &tag)),
            ("marks".into(), marks),
            ("posts".into(), posts),
        ]
        .into(),
    }
}

/// Writes every shape of field with these texts, and reads it back in every way.
async fn writes_and_reads(store: &Cassandra, key: &str, texts: &[String; 5]) {
    let [name, tag, entry, value, line] = texts.each_ref().map(|text| Value::from(text.as_str()));
    let writes = vec![
        Write::Assign(at(key, NAME), name.clone()),
        Write::Insert(at(key, TAGS), tag.clone()),
        Write::Put(at(key, MARKS), entry.clone(), value.clone()),
        Write::Append(at(key, POSTS), line.clone()),
    ];
    write(store, "dc1", writes).await.expect("it writes");
    for (read, expected) in [
        (Read::Register(at(key, NAME)), Data::Register(Some(name))),
        (Read::Elements(at(key, TAGS)), Data::Values(vec![tag.clone()])),
        (Read::Contains(at(key, TAGS), tag.clone()), Data::Bool(true)),
        (Read::Entries(at(key, MARKS)), Data::Entries(vec![(entry.clone(), value.clone())])),
        (Read::Entry(at(key, MARKS), entry.clone()), Data::Register(Some(value))),
        (Read::LogLast(at(key, POSTS), 9), Data::Values(vec![line])),
    ] {
        assert_eq!(data(store, "dc1", read.clone()).await, expected, "{read:?}");
    }
    let removed = vec![Write::Remove(at(key, TAGS), tag), Write::Erase(at(key, MARKS), entry)];
    write(store, "dc1", removed).await.expect("it removes");
    for read in [Read::SetSize(at(key, TAGS)), Read::MapSize(at(key, MARKS))] {
        assert_eq!(data(store, "dc1", read.clone()).await, Data::Count(0), "{read:?}");
    }
}

#[tokio::test]
async fn hostile_names_of_columns() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let other = Other::at(server.url()).await;
    for seed in 0..4 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let objects = [("User".to_owned(), mapping(&other, &mut random).await)].into();
        let settings = CassandraConfig { objects, ..config(server.url()) };
        let store = connect(settings, program()).await.expect("it opens");
        let key = random.text("k", 6);
        let texts = [(); 5].map(|()| random.text("t", 6));
        writes_and_reads(&store, &key, &texts).await;
    }
}

/// Hostile texts as the store's name in its own tables, and as keys and texts.
#[tokio::test]
async fn hostile_texts_in_our_own_tables() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    for seed in 0..6 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let settings = config(server.url());
        let area = settings.area.clone().unwrap_or_default() + &random.name("", 100);
        let area = area.replace(char::is_control, " ");
        let settings = CassandraConfig { area: Some(area), ..settings };
        let store = connect(settings, program()).await.expect("it opens");
        let key = random.text("k", 6);
        let texts = [(); 5].map(|()| random.text("t", 6));
        writes_and_reads(&store, &key, &texts).await;
    }
}

/// An argument is a value, not a part of its statement.
#[tokio::test]
async fn hostile_arguments_of_commands() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let other = Other::at(server.url()).await;
    let table = fresh_table(&other, "k text PRIMARY KEY, v text").await;
    let mut declared = program();
    let parameters = vec![("k".into(), Type::String), ("v".into(), Type::String)];
    let command = StoreOperation {
        is_command: true,
        parameters: parameters.clone(),
        result: None,
        body: Some(format!("UPDATE {table} SET v = $2 WHERE k = $1")),
        builtin: None,
    };
    let query = StoreOperation {
        is_command: false,
        parameters: parameters[..1].to_vec(),
        result: Some(Type::Option(Arc::new(Type::String))),
        body: Some(format!("SELECT v FROM {table} WHERE k = $1")),
        builtin: None,
    };
    declared.operations = [("set".into(), command), ("get".into(), query)].into();
    let store = connect(config(server.url()), declared).await.expect("it opens");
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let [key, value] = ["k", "v"].map(|first| random.text(&format!("{first}{seed}"), 8));
        let arguments = vec![Value::from(key.as_str()), Value::from(value.as_str())];
        let set = Write::Command { operation: "set".into(), arguments: arguments.clone() };
        write(&store, "dc1", vec![set]).await.expect("it commits");
        let get = Read::Query { operation: "get".into(), arguments: arguments[..1].to_vec() };
        let expected = Value::some(Value::from(value.as_str()));
        assert_eq!(data(&store, "dc1", get).await, Data::Result(expected), "seed {seed}");
    }
    let rows = other.run(&format!("SELECT k FROM {table}")).await;
    assert_eq!(rows.len(), 20);
}
