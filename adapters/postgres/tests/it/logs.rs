//! Logs in existing tables: lines commit in their order.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{self, client, data, open, server, unique, write};
use mingle_model::{FieldType, Level, Ref, Type, Value};
use mingle_store::{
    Address, Commit, Data, DataStore, Read, Session, StoreError, StoreSchema, Write,
};
use mingle_store_postgres::{CollectionMapping, ObjectMapping, Postgres, PostgresConfig};

fn program() -> StoreSchema {
    let fields = [("lines", FieldType::Log(Type::String))];
    support::schema(Level::Linearizable, &[], &[("Book", Type::Int, &fields)])
}

fn lines() -> Address {
    Address { object: Ref::new("Book", Value::Int(1)), field: 0 }
}

fn config(url: &str, name: &str) -> PostgresConfig {
    let lines = CollectionMapping {
        table: format!("{name}_lines"),
        key: vec!["book".into()],
        value: "line".into(),
        entry: None,
        order: Some("position".into()),
    };
    let mapping = ObjectMapping {
        table: name.into(),
        key: vec!["id".into()],
        fields: BTreeMap::from([("lines".into(), lines)]),
        ..ObjectMapping::default()
    };
    let mut config = PostgresConfig::at(url);
    config.schema = Some(unique("own"));
    config.objects = BTreeMap::from([("Book".into(), mapping)]);
    config
}

/// Opens a store whose log's order is in a column of this type.
async fn book(url: &str, position: &str) -> Arc<Postgres> {
    let name = unique("book");
    let sql = format!(
        "CREATE TABLE {name} (id bigint PRIMARY KEY); INSERT INTO {name} VALUES (1); \
         CREATE TABLE {name}_lines (book bigint NOT NULL, line text NOT NULL, position {position})"
    );
    client(url).await.batch_execute(&sql).await.expect("the tables are made");
    open(config(url, &name), program()).await
}

async fn found(store: &Postgres) -> Vec<Value> {
    match data(store, Read::LogLast(lines(), 1_000)).await {
        Data::Values(lines) => lines,
        other => panic!("{other:?}"),
    }
}

const POSITIONS: [&str; 5] = [
    "bigserial PRIMARY KEY",
    "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "bigint NOT NULL",
    "timestamptz NOT NULL DEFAULT now()",
    "timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP",
];

#[tokio::test]
async fn a_line_that_commits_later_never_stands_before_one_that_was_read() {
    let Some(url) = server().await else { return };
    for position in POSITIONS {
        let store = book(&url, position).await;
        let append = |line: String| vec![Write::Append(lines(), Value::from(line))];
        // The first transaction has its position, or its future time, while the second one runs, if
        // it can.
        let mut first = store.begin(&Session::default()).await.expect("a transaction");
        first.read(&[Read::LogSize(lines())]).await.expect("a read");
        first.flush(append("first".into())).await.expect("it is sent");
        let second = {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                loop {
                    match write(&*store, append("second".into())).await {
                        Err(StoreError::Conflict) => tokio::task::yield_now().await,
                        other => return other.expect("a commit"),
                    }
                }
            })
        };
        // Gives the second one time: it must not commit, however long that is.
        for _ in 0..20 {
            let before = found(&store).await;
            assert!(before.is_empty(), "{position}: {before:?}");
            tokio::task::yield_now().await;
        }
        let is_done = first.commit(Commit::default()).await.is_ok();
        second.await.expect("it ends");
        let expected: &[&str] = if is_done { &["first", "second"] } else { &["second"] };
        let expected: Vec<Value> = expected.iter().map(|line| Value::from(*line)).collect();
        assert_eq!(found(&store).await, expected, "{position}");
    }
}

#[tokio::test]
async fn a_log_that_many_append_to_only_grows_at_its_end() {
    let Some(url) = server().await else { return };
    for position in POSITIONS {
        let store = book(&url, position).await;
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let store = Arc::clone(&store);
                tokio::spawn(async move {
                    for number in 0..8 {
                        let line = Value::from(format!("{writer} {number}"));
                        let append = vec![Write::Append(lines(), line)];
                        while let Err(error) = write(&*store, append.clone()).await {
                            assert_eq!(error, StoreError::Conflict);
                        }
                    }
                })
            })
            .collect();
        let mut before: Vec<Value> = Vec::new();
        while before.len() < 32 {
            let now = found(&store).await;
            assert_eq!(now.get(..before.len()), Some(&before[..]), "{position}");
            before = now;
        }
        for writer in writers {
            writer.await.expect("it has written");
        }
    }
}

#[tokio::test]
async fn positions_that_need_not_be_in_the_order_of_commits_are_refused() {
    let Some(url) = server().await else { return };
    for (position, words) in [
        ("bigint NOT NULL DEFAULT 0", "a sequence as its default, or no default"),
        ("uuid NOT NULL DEFAULT gen_random_uuid()", "an integer, or a timestamp"),
        ("bigint GENERATED BY DEFAULT AS IDENTITY (CACHE 10)", "CACHE 1 would fit"),
        ("bigint GENERATED BY DEFAULT AS IDENTITY (INCREMENT -1)", "counts up"),
        ("integer GENERATED BY DEFAULT AS IDENTITY (CYCLE)", "does not begin anew"),
        ("timestamptz NOT NULL", "that the database fills"),
    ] {
        let name = unique("book");
        let sql = format!(
            "CREATE TABLE {name} (id bigint PRIMARY KEY); \
             CREATE TABLE {name}_lines (book bigint NOT NULL, line text NOT NULL, position {position})"
        );
        client(&url).await.batch_execute(&sql).await.expect("the tables are made");
        let opened =
            Postgres::connect(config(&url, &name), program(), support::RealWorld::make()).await;
        let Err(error) = opened else { panic!("{position} was taken") };
        assert!(error.to_string().contains(words), "{position}: {error}");
    }
}
