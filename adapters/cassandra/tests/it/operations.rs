//! Declared queries and commands.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_model::{Level, StructType, Type, Value};
use mingle_services::Engine;
use mingle_store::conformance::schema::{COUNT, at, store_schema};
use mingle_store::{
    Commit, Data, DataStore, OperationId, Read, Session, StoreError, StoreOperation, StoreSchema,
    Write,
};
use mingle_store_cassandra::OpenError;

use crate::support::{Other, config, connect, fresh_table, id};

fn operation(
    body: &str,
    is_command: bool,
    parameters: &[(&str, Type)],
    result: Option<Type>,
) -> StoreOperation {
    let parameters = parameters.iter().map(|(name, of)| ((*name).into(), of.clone())).collect();
    StoreOperation { is_command, parameters, result, body: Some(body.to_owned()), builtin: None }
}

fn with(operations: &[(&str, StoreOperation)]) -> StoreSchema {
    let mut schema = store_schema(Level::Eventual);
    let mut declared = (*schema.schema).clone();
    let fields = vec![("name".into(), Type::String), ("score".into(), Type::Int)];
    let row = StructType { name: "Score".into(), fields };
    declared.structs.insert("Score".into(), Arc::new(row));
    schema.schema = Arc::new(declared);
    let operations = operations.iter().map(|(name, of)| ((*name).into(), of.clone()));
    StoreSchema { operations: operations.collect::<BTreeMap<_, _>>(), ..schema }
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_read_and_commands_write_tables_of_others() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let other = Other::at(server.url()).await;
    let table =
        fresh_table(&other, "board text, name text, score int, PRIMARY KEY (board, name)").await;
    let list = |of: Type| Some(Type::List(Arc::new(of)));
    let named = [("board", Type::String), ("name", Type::String)];
    let scored = [&named[..], &[("score", Type::Int)]].concat();
    let schema = with(&[
        (
            "best",
            operation(
                &format!("SELECT name, score FROM {table} WHERE board = $1"),
                false,
                &named[..1],
                list(Type::Struct("Score".into())),
            ),
        ),
        (
            "score",
            operation(
                &format!("SELECT score FROM {table} WHERE board = $1 AND name = $2"),
                false,
                &named,
                Some(Type::Option(Arc::new(Type::Int))),
            ),
        ),
        (
            "set_score",
            operation(
                &format!("UPDATE {table} SET score = $3 WHERE board = $1 AND name = $2"),
                true,
                &scored,
                None,
            ),
        ),
    ]);
    let store = connect(config(server.url()), schema).await.expect("it opens");
    let set = |name: &str, score| Write::Command {
        operation: "set_score".into(),
        arguments: vec![Value::from("cup"), Value::from(name), Value::Int(score)],
    };
    let commit = |writes| Commit { writes, ..Commit::default() };
    let begin = async || store.begin(&Session::default()).await.expect("it begins");
    begin().await.commit(commit(vec![set("ana", 3), Write::Add(at("c", COUNT), 1)])).await.unwrap();
    begin().await.commit(commit(vec![set("bob", 5)])).await.unwrap();
    let query = |name: &str, arguments: &[&str]| Read::Query {
        operation: name.into(),
        arguments: arguments.iter().map(|text| Value::from(*text)).collect(),
    };
    let row = |name: &str, score| Value::Struct(vec![Value::from(name), Value::Int(score)].into());
    let reads =
        [query("best", &["cup"]), query("score", &["cup", "bob"]), query("score", &["cup", "eve"])];
    let answers = begin().await.read(&reads).await.expect("they are answered");
    let found: Vec<Data> = answers.into_iter().map(|answer| answer.data).collect();
    let expected = [
        Data::Result(Value::list([row("ana", 3), row("bob", 5)])),
        Data::Result(Value::some(Value::Int(5))),
        Data::Result(Value::NONE),
    ];
    assert_eq!(found[..], expected[..]);

    // A late write of an earlier phase does not undo the write of a later one.
    let late = |sequence, time, score| Commit {
        operation: Some(OperationId { id: id(sequence), phase: 1 }),
        time,
        ..commit(vec![set("ana", score)])
    };
    let now = store.time();
    begin().await.commit(late(2, now + 1_000, 20)).await.unwrap();
    begin().await.commit(late(1, now + 500, 10)).await.unwrap();
    begin().await.commit(late(2, now + 1_000, 20)).await.unwrap();
    let answers = begin().await.read(&[query("score", &["cup", "ana"])]).await.unwrap();
    assert_eq!(answers[0].data, Data::Result(Value::some(Value::Int(20))));

    // The column has a smaller range than an int of the language.
    let refused = begin().await.commit(commit(vec![set("ana", 1 << 40)])).await;
    let Err(StoreError::Violated { violation, .. }) = refused else { panic!("{refused:?}") };
    let reason = violation.to_string();
    assert!(reason.contains("set_score") && reason.contains("beyond"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_do_not_fit_are_refused_at_the_start() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let other = Other::at(server.url()).await;
    let table = fresh_table(&other, "k text PRIMARY KEY, v int, l list<int>").await;
    let counts = fresh_table(&other, "k text PRIMARY KEY, n counter").await;
    let key = [("k", Type::String)];
    let cases = [
        (format!("SELECT v FROM {table} WHERE k = $1"), false, Type::String, "parameter k"),
        (format!("SELECT nothing FROM {table} WHERE k = $1"), false, Type::Int, "nothing"),
        (format!("SELECT k, v FROM {table} WHERE k = $1"), false, Type::Int, "one column"),
        (format!("UPDATE {counts} SET n = n + 1 WHERE k = $1"), true, Type::Int, "counter"),
        (format!("UPDATE {table} SET l = l + [1] WHERE k = $1"), true, Type::Int, "list"),
        (
            format!("INSERT INTO {table} (k) VALUES ($1) IF NOT EXISTS"),
            true,
            Type::Int,
            "condition",
        ),
    ];
    for (number, (body, is_command, result, expected)) in cases.into_iter().enumerate() {
        let odd = [("k", Type::Bool)];
        let parameters = if number == 0 { &odd } else { &key };
        let result = Some(result).filter(|_| !is_command);
        let schema = with(&[("op", operation(&body, is_command, parameters, result))]);
        let refused = connect(config(server.url()), schema).await.map(|_| ());
        let Err(OpenError::Operation { operation, reason, .. }) = refused else {
            panic!("{body}: {refused:?}")
        };
        assert!(&*operation == "op" && reason.contains(expected), "{body}: {reason}");
    }
}
