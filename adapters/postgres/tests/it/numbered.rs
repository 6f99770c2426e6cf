//! Objects whose keys only the database can set.

use std::collections::BTreeMap;

use crate::support::{self, RealWorld, client, data, open, server, unique, write};
use mingle_model::{BuiltinQuery, FieldType, Level, Ref, Type, Value};
use mingle_store::{
    Address, Commit, Data, DataStore, Read, Session, StoreError, StoreOperation, StoreSchema, Write,
};
use mingle_store_postgres::{ObjectMapping, OpenError, Postgres, PostgresConfig};

fn program() -> StoreSchema {
    let fields = [("name", FieldType::Register(Type::String)), ("points", FieldType::Counter)];
    support::schema(Level::Linearizable, &[], &[("Customer", Type::Int, &fields)])
}

fn customer(id: i64, field: u16) -> Address {
    Address { object: Ref::new("Customer", Value::Int(id)), field }
}

#[tokio::test]
async fn rows_that_are_there_are_written_and_none_is_made() {
    let Some(url) = server().await else { return };
    let table = unique("numbered");
    let sql = format!(
        "CREATE TABLE {table} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
         name text NOT NULL, points integer NOT NULL DEFAULT 0); \
         INSERT INTO {table} (name) VALUES ('Ana'), ('Bob')"
    );
    let legacy = client(&url).await;
    legacy.batch_execute(&sql).await.expect("the table is made");
    let mut config = PostgresConfig::at(url);
    config.schema = Some(unique("own"));
    let mapping =
        ObjectMapping { table: table.clone(), key: vec!["id".into()], ..ObjectMapping::default() };
    config.objects = BTreeMap::from([("Customer".into(), mapping)]);
    let store = open(config, program()).await;
    let may_refuse = store.constraints_that_may_refuse();
    let says = |text: &String| text.starts_with("GENERATED ALWAYS id of");
    assert!(may_refuse["Customer"].writes.iter().any(says), "{may_refuse:?}");

    let name = |id, name: &str| Write::Assign(customer(id, 0), Value::from(name));
    write(&*store, vec![name(1, "Anna"), Write::Add(customer(1, 1), 7)]).await.expect("a row");
    write(&*store, vec![Write::Create(customer(2, 0).object)]).await.expect("it is there");
    write(&*store, vec![Write::Delete(customer(2, 0).object)]).await.expect("a row");
    let anna = Data::Register(Some(Value::from("Anna")));
    assert_eq!(data(&*store, Read::Register(customer(1, 0))).await, anna);
    assert_eq!(data(&*store, Read::Counter(customer(1, 1))).await, Data::Counter(7));
    assert_eq!(data(&*store, Read::Exists(customer(2, 0).object)).await, Data::Bool(false));

    for missing in [vec![name(9, "New")], vec![Write::Create(customer(9, 0).object)]] {
        let writes = [vec![Write::Add(customer(1, 1), 1)], missing].concat();
        let Err(StoreError::Refused { reason, .. }) = write(&*store, writes).await else {
            panic!("a row was made");
        };
        assert!(reason.contains("the database alone gives its id (GENERATED ALWAYS)"), "{reason}");
    }
    assert_eq!(data(&*store, Read::Counter(customer(1, 1))).await, Data::Counter(7));
    legacy.batch_execute(&format!("INSERT INTO {table} (name) VALUES ('Cem')")).await.expect("3");
    assert_eq!(data(&*store, Read::Exists(customer(3, 0).object)).await, Data::Bool(true));
}

/// The same program, with a `new` that draws keys.
fn drawing() -> StoreSchema {
    let mut schema = program();
    let operation = StoreOperation {
        is_command: false,
        parameters: vec![("draw".into(), Type::String)],
        result: Some(Type::Int),
        body: None,
        builtin: Some(BuiltinQuery::Draw("Customer".into())),
    };
    schema.operations.insert("Customer.id.next".into(), operation);
    schema
}

/// Returns the binding of `Customer` to a table.
fn bound(url: &str, table: &str) -> PostgresConfig {
    let mut config = PostgresConfig::at(url.to_owned());
    config.schema = Some(unique("own"));
    let mapping = ObjectMapping {
        table: table.to_owned(),
        key: vec!["id".into()],
        ..ObjectMapping::default()
    };
    config.objects = BTreeMap::from([("Customer".into(), mapping)]);
    config
}

/// Draws numbers until it creates a customer with one; a number that a row has is a conflict.
async fn created(store: &dyn DataStore, name: &str) -> Result<i64, StoreError> {
    for _ in 0..200 {
        let mut transaction = store.begin(&Session::default()).await.expect("it begins");
        let arguments = vec![Value::from(name)];
        let read = Read::Query { operation: "Customer.id.next".into(), arguments };
        let answers = transaction.read(&[read]).await?;
        let Data::Result(Value::Int(id)) = answers[0].data else { panic!("a number: {answers:?}") };
        let create = vec![Write::Create(customer(id, 0).object)];
        let assign = Write::Assign(customer(id, 0), Value::from(name));
        // The row may be made before the commit, and written once more.
        let commit = match id % 2 {
            0 => Commit { writes: [create, vec![assign]].concat(), ..Commit::default() },
            _ => match transaction.flush(create).await {
                Err(StoreError::Conflict) => continue,
                flushed => {
                    flushed.map(|()| Commit { writes: vec![assign], ..Commit::default() })?
                }
            },
        };
        match transaction.commit(commit).await {
            Err(StoreError::Conflict) => {}
            done => return done.map(|_| id),
        }
    }
    Err(StoreError::Conflict)
}

/// The sequence behind each kind of column numbers new objects, and rows of other writers are passed over.
#[tokio::test]
async fn the_database_numbers_new_objects() {
    let Some(url) = server().await else { return };
    let legacy = client(&url).await;
    let sequence = unique("apart");
    let columns = [
        "bigint GENERATED ALWAYS AS IDENTITY".to_owned(),
        "bigint GENERATED BY DEFAULT AS IDENTITY".to_owned(),
        "serial".to_owned(),
        "smallserial".to_owned(),
        format!("numeric(12) DEFAULT nextval('{sequence}')"),
    ];
    legacy.batch_execute(&format!("CREATE SEQUENCE {sequence}")).await.expect("a sequence");
    for column in columns {
        let table = unique("Drawn its");
        let sql = format!(
            "CREATE TABLE \"{table}\" (id {column} PRIMARY KEY, name text NOT NULL, \
             points integer NOT NULL DEFAULT 0); INSERT INTO \"{table}\" (name) VALUES ('Ana'); \
             INSERT INTO \"{table}\" (id, name) OVERRIDING SYSTEM VALUE VALUES (3, 'Bob')"
        );
        legacy.batch_execute(&sql).await.expect("the table is made");
        let store = open(bound(&url, &table), drawing()).await;
        let mut ids = Vec::new();
        for name in ["Cem", "Dora", "Eve"] {
            ids.push(created(&*store, name).await.expect("a customer"));
        }
        assert_eq!(ids, [2, 4, 5], "{column}");
        let dora = Data::Register(Some(Value::from("Dora")));
        assert_eq!(data(&*store, Read::Register(customer(4, 0))).await, dora, "{column}");
        // The other programs go on with the same sequence.
        let insert = format!("INSERT INTO \"{table}\" (name) VALUES ('Fay') RETURNING id::bigint");
        let row = legacy.query_one(&insert, &[]).await.expect("a row");
        assert_eq!(row.get::<_, i64>(0), 6, "{column}");
    }
}

/// Numbers of rows ahead of the sequence are passed over one by one; those rows stay as they are.
#[tokio::test]
async fn rows_ahead_of_their_sequence_stay() {
    let Some(url) = server().await else { return };
    let legacy = client(&url).await;
    let table = unique("behind");
    let sql = format!(
        "CREATE TABLE {table} (id serial PRIMARY KEY, name text NOT NULL, points integer NOT NULL \
         DEFAULT 0); INSERT INTO {table} (id, name) SELECT n, 'x' FROM generate_series(1, 60) AS n"
    );
    legacy.batch_execute(&sql).await.expect("the table is made");
    let store = open(bound(&url, &table), drawing()).await;
    assert_eq!(created(&*store, "Ana").await, Ok(61));
    let count = format!("SELECT count(*) FROM {table} WHERE name = 'x' AND id <= 60");
    let row = legacy.query_one(&count, &[]).await.expect("a number");
    assert_eq!(row.get::<_, i64>(0), 60);
}

/// Keys that nothing numbers, and sequences that this user may not use, are refused at the start.
#[tokio::test]
async fn a_key_that_cannot_be_drawn_is_refused_at_the_start() {
    let Some(url) = server().await else { return };
    let legacy = client(&url).await;
    let refused = async |column: &str, sql: &str, url: &str| {
        let table = unique("undrawn");
        let made = format!(
            "CREATE TABLE {table} (id {column} PRIMARY KEY, name text NOT NULL, points integer NOT \
             NULL DEFAULT 0); {}",
            sql.replace("TABLE", &format!("TABLE {table}"))
        );
        legacy.batch_execute(&made).await.expect("the table is made");
        let opened = Postgres::connect(bound(url, &table), drawing(), RealWorld::make()).await;
        match opened {
            Err(OpenError::Operation { reason, .. }) => (table, reason),
            Err(other) => panic!("another error: {other}"),
            Ok(_) => panic!("{column} is taken"),
        }
    };
    for column in ["bigint", "integer DEFAULT 7"] {
        let (table, reason) = refused(column, "", &url).await;
        let says = format!("nothing numbers \"public\".\"{table}\"");
        assert!(reason.contains(&says) && reason.contains("AS IDENTITY (START"), "{reason}");
    }
    let role = unique("role");
    let sql = format!(
        "CREATE ROLE {role} LOGIN; GRANT CREATE ON DATABASE postgres TO {role}; GRANT ALL ON TABLE TO {role}"
    );
    let at_host = url.split_once('@').expect("it names a user").1;
    let as_role = format!("postgres://{role}@{at_host}");
    let (_, reason) = refused("serial", &sql, &as_role).await;
    assert!(reason.contains("GRANT USAGE ON SEQUENCE"), "{reason}");
}
