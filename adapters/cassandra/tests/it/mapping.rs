//! Objects in tables of other applications, which continue to use them.

use mingle_model::{
    Date, Decimal, Field, FieldType, Level, ObjectType, Ref, Schema, Time, Type, Value,
};
use mingle_services::Engine;
use mingle_store::{
    Address, Commit, Data, DataStore, OperationId, Read, Session, StoreSchema, Write,
};
use mingle_store_cassandra::{
    Cassandra, CassandraConfig, CollectionMapping, ObjectMapping, OpenError,
};
use scylla::value::CqlValue;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{Other, config, connect, data, fresh_table, id, write};

const NAME: u16 = 0;
const AGE: u16 = 1;
const MAIL: u16 = 2;
const TAGS: u16 = 3;
const MARKS: u16 = 4;
const POSTS: u16 = 5;
const VISITS: u16 = 6;
const SEEN: u16 = 7;
const BORN: u16 = 8;
const PAID: u16 = 9;

fn schema() -> StoreSchema {
    let mut schema = Schema::default();
    let fields = [
        ("name", FieldType::Register(Type::String)),
        ("age", FieldType::Register(Type::Int)),
        ("mail", FieldType::Register(Type::Option(Arc::new(Type::String)))),
        ("tags", FieldType::Set(Type::String)),
        ("marks", FieldType::Map(Type::Int, Type::Float)),
        ("posts", FieldType::Log(Type::String)),
        ("visits", FieldType::Counter),
        ("seen", FieldType::Register(Type::Time)),
        ("born", FieldType::Register(Type::Date)),
        ("paid", FieldType::Register(Type::Decimal)),
    ];
    let field = |(name, field_type): (&str, FieldType)| Field {
        name: name.into(),
        default: match &field_type {
            FieldType::Register(of) => schema.default_of(of),
            _ => Value::list([]),
        },
        field_type,
    };
    let fields = fields.map(field).to_vec();
    let user = ObjectType {
        name: "User".into(),
        store: "suite".into(),
        key_name: "id".into(),
        key_type: Type::String,
        fields,
    };
    schema.objects.insert("User".into(), Arc::new(user));
    StoreSchema {
        store: "suite".into(),
        level: Level::Eventual,
        schema: Arc::new(schema),
        operations: BTreeMap::new(),
    }
}

fn user(key: &str) -> Ref {
    Ref::new("User", Value::from(key))
}

fn at(key: &str, field: u16) -> Address {
    Address { object: user(key), field }
}

fn text(text: &str) -> Value {
    Value::from(text)
}

/// Tables of another application.
struct Legacy {
    other: Other,
    users: String,
    tags: String,
    marks: String,
    posts: String,
}

impl Legacy {
    async fn new(url: &str) -> Self {
        let other = Other::at(url).await;
        let users = "id text PRIMARY KEY, full_name text, age int, mail text, seen timestamp, born date, paid decimal, more text";
        let users = fresh_table(&other, users).await;
        let tags = fresh_table(&other, "id text, tag text, PRIMARY KEY (id, tag)").await;
        let marks =
            fresh_table(&other, "id text, mark bigint, score double, PRIMARY KEY (id, mark)").await;
        let posts =
            fresh_table(&other, "id text, at timeuuid, line text, PRIMARY KEY (id, at)").await;
        Self { other, users, tags, marks, posts }
    }

    fn mapping(&self) -> ObjectMapping {
        let collection = |table: &str, value: &str| CollectionMapping {
            table: table.into(),
            key: "id".into(),
            value: value.into(),
            ..CollectionMapping::default()
        };
        let marks =
            CollectionMapping { entry: Some("mark".into()), ..collection(&self.marks, "score") };
        let posts =
            CollectionMapping { order: Some("at".into()), ..collection(&self.posts, "line") };
        ObjectMapping {
            table: self.users.clone(),
            key: "id".into(),
            columns: [("name".into(), "full_name".into())].into(),
            fields: [
                ("tags".into(), collection(&self.tags, "tag")),
                ("marks".into(), marks),
                ("posts".into(), posts),
            ]
            .into(),
        }
    }

    fn config(&self, url: &str) -> CassandraConfig {
        CassandraConfig { objects: [("User".into(), self.mapping())].into(), ..config(url) }
    }

    async fn open(&self, url: &str) -> Arc<Cassandra> {
        connect(self.config(url), schema()).await.expect("it opens")
    }

    async fn texts(&self, query: &str) -> Vec<String> {
        let rows = self.other.run(query).await;
        let shown = rows.into_iter().map(|row| match row.columns.into_iter().next().flatten() {
            Some(CqlValue::Text(text)) => text,
            other => format!("{other:?}"),
        });
        shown.collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_see_what_the_other_writes() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let legacy = Legacy::new(server.url()).await;
    let store = legacy.open(server.url()).await;
    let Legacy { other, users, tags, marks, posts } = &legacy;
    for statement in [
        format!("INSERT INTO {users} (id, full_name, age) VALUES ('ana', 'Ana', 7)"),
        format!("INSERT INTO {tags} (id, tag) VALUES ('ana', 'old')"),
        format!("INSERT INTO {marks} (id, mark, score) VALUES ('ana', 1, 0.5)"),
        format!("INSERT INTO {posts} (id, at, line) VALUES ('ana', now(), 'first')"),
    ] {
        other.run(&statement).await;
    }
    let read = async |read| data(&store, "dc1", read).await;
    assert_eq!(read(Read::Exists(user("ana"))).await, Data::Bool(true));
    assert_eq!(read(Read::Exists(user("eve"))).await, Data::Bool(false));
    assert_eq!(read(Read::Register(at("ana", NAME))).await, Data::Register(Some(text("Ana"))));
    assert_eq!(read(Read::Register(at("ana", AGE))).await, Data::Register(Some(Value::Int(7))));
    assert_eq!(read(Read::Register(at("ana", MAIL))).await, Data::Register(None));
    assert_eq!(read(Read::Contains(at("ana", TAGS), text("old"))).await, Data::Bool(true));

    let writes = vec![
        Write::Assign(at("ana", AGE), Value::Int(8)),
        Write::Assign(at("ana", MAIL), Value::some(text("ana@example.com"))),
        Write::Assign(at("ana", SEEN), Value::Time(Time::from_millis(86_400_000))),
        Write::Assign(at("ana", BORN), Value::Date(Date::from_days(-1))),
        Write::Assign(
            at("ana", PAID),
            Value::Decimal(Decimal::new(-1_990, 2).expect("few digits")),
        ),
        Write::Insert(at("ana", TAGS), text("new")),
        Write::Put(at("ana", MARKS), Value::Int(1), Value::from(1.5)),
        Write::Put(at("ana", MARKS), Value::Int(2), Value::from(2.5)),
        Write::Append(at("ana", POSTS), text("second")),
        Write::Append(at("ana", POSTS), text("third")),
        Write::Add(at("ana", VISITS), 3),
    ];
    write(&store, "dc1", writes).await.expect("it is written");
    let age = other.run(&format!("SELECT age FROM {users} WHERE id = 'ana'")).await;
    assert_eq!(age[0].columns, [Some(CqlValue::Int(8))]);
    let born = other
        .run(&format!("SELECT born FROM {users} WHERE born = '1969-12-31' ALLOW FILTERING"))
        .await;
    assert_eq!(born.len(), 1, "the day before 1970");
    let born = Data::Register(Some(Value::Date(Date::from_days(-1))));
    assert_eq!(read(Read::Register(at("ana", BORN))).await, born);
    let paid =
        other.run(&format!("SELECT paid FROM {users} WHERE paid = -19.9 ALLOW FILTERING")).await;
    assert_eq!(paid.len(), 1, "equal numbers of other scales are equal");
    let Data::Register(Some(paid)) = read(Read::Register(at("ana", PAID))).await else {
        panic!("none")
    };
    assert_eq!(paid.to_string(), "-19.90");
    let found = legacy.texts(&format!("SELECT line FROM {posts} WHERE id = 'ana'")).await;
    assert_eq!(found, ["first", "second", "third"]);
    let found = legacy.texts(&format!("SELECT tag FROM {tags} WHERE id = 'ana'")).await;
    assert_eq!(found, ["new", "old"]);
    let slice = Read::LogSlice { address: at("ana", POSTS), from: 1, count: 1 };
    assert_eq!(read(slice).await, Data::Values(vec![text("second")]));
    let last = Read::LogLast(at("ana", POSTS), 2);
    assert_eq!(read(last).await, Data::Values(vec![text("second"), text("third")]));
    assert_eq!(read(Read::LogSize(at("ana", POSTS))).await, Data::Count(3));
    assert_eq!(read(Read::Counter(at("ana", VISITS))).await, Data::Counter(3));
    let entries =
        Data::Entries(vec![(Value::Int(1), Value::from(1.5)), (Value::Int(2), Value::from(2.5))]);
    assert_eq!(read(Read::Entries(at("ana", MARKS))).await, entries);
    assert_eq!(read(Read::MapSize(at("ana", MARKS))).await, Data::Count(2));

    let writes = vec![
        Write::Remove(at("ana", TAGS), text("old")),
        Write::Erase(at("ana", MARKS), Value::Int(1)),
        Write::Clear(at("ana", POSTS)),
        Write::Append(at("ana", POSTS), text("fourth")),
    ];
    write(&store, "dc2", writes).await.expect("it is written");
    assert_eq!(read(Read::Elements(at("ana", TAGS))).await, Data::Values(vec![text("new")]));
    assert_eq!(read(Read::MapSize(at("ana", MARKS))).await, Data::Count(1));
    assert_eq!(read(Read::LogLast(at("ana", POSTS), 9)).await, Data::Values(vec![text("fourth")]));
    let again = vec![
        Write::Delete(user("ana")),
        Write::Insert(at("ana", TAGS), text("new")),
        Write::Assign(at("ana", NAME), text("Anna")),
    ];
    write(&store, "dc1", again).await.expect("it is written");
    assert_eq!(read(Read::Register(at("ana", NAME))).await, Data::Register(Some(text("Anna"))));
    assert_eq!(read(Read::Register(at("ana", AGE))).await, Data::Register(None));
    assert_eq!(read(Read::Elements(at("ana", TAGS))).await, Data::Values(vec![text("new")]));
    assert_eq!(read(Read::LogSize(at("ana", POSTS))).await, Data::Count(0));
    assert_eq!(read(Read::Counter(at("ana", VISITS))).await, Data::Counter(0));
    write(&store, "dc1", vec![Write::Delete(user("ana"))]).await.expect("it is deleted");
    assert_eq!(read(Read::Exists(user("ana"))).await, Data::Bool(false));
    assert!(legacy.texts(&format!("SELECT id FROM {users}")).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_of_a_phase_change_tables_once() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let legacy = Legacy::new(server.url()).await;
    let store = legacy.open(server.url()).await;
    let time = store.time();
    for center in ["dc1", "dc3", "dc2"] {
        let writes = vec![
            Write::Append(at("bob", POSTS), text("once")),
            Write::Append(at("bob", POSTS), text("twice")),
            Write::Assign(at("bob", NAME), text("Bob")),
        ];
        let operation = Some(OperationId { id: id(1), phase: 1 });
        let open = store.begin(&Session::at(center)).await.expect("it begins");
        let commit = Commit { writes, operation, time, ..Commit::default() };
        open.commit(commit).await.expect("it is written");
        write(&store, "dc1", vec![Write::Assign(at("bob", NAME), text("Robert"))]).await.unwrap();
    }
    let lines = data(&store, "dc2", Read::LogLast(at("bob", POSTS), 9)).await;
    assert_eq!(lines, Data::Values(vec![text("once"), text("twice")]));
    let name = data(&store, "dc2", Read::Register(at("bob", NAME))).await;
    assert_eq!(name, Data::Register(Some(text("Robert"))), "a late copy writes over nothing newer");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_the_tables_is_refused_at_the_start() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let legacy = Legacy::new(server.url()).await;
    let counts = fresh_table(&legacy.other, "id text PRIMARY KEY, visits counter").await;
    let wide =
        fresh_table(&legacy.other, "id text, n int, full_name text static, PRIMARY KEY (id, n)");
    let wide = wide.await;
    type Spoil = Box<dyn Fn(&mut ObjectMapping)>;
    let cases: [(&str, Spoil); 8] = [
        ("column nothing", Box::new(|m| _ = m.columns.insert("age".into(), "nothing".into()))),
        ("column seen", Box::new(|m| _ = m.columns.insert("age".into(), "seen".into()))),
        ("counter", Box::new(|m| _ = m.columns.insert("visits".into(), "age".into()))),
        ("no field what", Box::new(|m| _ = m.columns.insert("what".into(), "age".into()))),
        ("no table legacy.nothing", Box::new(|m| m.table = "legacy.nothing".into())),
        ("needs `order`", Box::new(|m| m.fields.get_mut("posts").unwrap().order = None)),
        ("primary key", Box::new(move |m| m.table = wide.clone())),
        ("no column full_name", Box::new(move |m| m.table = counts.clone())),
    ];
    for (expected, change) in cases {
        let mut config = legacy.config(server.url());
        change(config.objects.get_mut("User").expect("it is there"));
        let refused = connect(config, schema()).await.map(|_| ());
        let Err(OpenError::Mapping { object, reason, .. }) = refused else {
            panic!("{expected}: {refused:?}")
        };
        assert!(&*object == "User" && reason.contains(expected), "{expected}: {reason}");
    }
    let short = legacy.open(server.url()).await;
    let refused = write(&short, "dc1", vec![Write::Assign(at("ana", AGE), Value::Int(1 << 40))]);
    let refused = refused.await.expect_err("the column holds less").to_string();
    assert!(refused.contains("User.age") && refused.contains("beyond"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_vanish_are_warned_of() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let legacy = Legacy::new(server.url()).await;
    legacy.other.run(&format!("ALTER TABLE {} WITH default_time_to_live = 600", legacy.tags)).await;
    let store = legacy.open(server.url()).await;
    let [warning] = store.warnings() else { panic!("{:?}", store.warnings()) };
    assert!(warning.contains(&legacy.tags) && warning.contains("600 s"), "{warning}");
}
