//! Declared queries and commands with bodies in SQL.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{self, data, open, read, server, unique, write};
use mingle_model::{
    FieldType, Level, Name, Origin, Ref, RowKind, Time, TransactionId, Type, Value, WitnessRow,
};
use mingle_store::{
    Commit, Data, DataStore, Read, Session, StoreError, StoreOperation, StoreSchema, Write,
};
use mingle_store_postgres::{OpenError, Postgres, PostgresConfig};

fn operation(
    is_command: bool,
    parameters: &[Type],
    result: Option<Type>,
    body: &str,
) -> StoreOperation {
    let name = |index: usize| -> Name { format!("p{index}").into() };
    StoreOperation {
        is_command,
        parameters: parameters.iter().enumerate().map(|(i, t)| (name(i), t.clone())).collect(),
        result,
        body: Some(body.to_owned()),
        builtin: None,
    }
}

fn program(operations: Vec<(&str, StoreOperation)>) -> StoreSchema {
    let fields = [("count", FieldType::Counter)];
    let point: &[(&str, Type)] =
        &[("name", Type::String), ("amount", Type::Option(Arc::new(Type::Int)))];
    let mut schema = support::schema(
        Level::Linearizable,
        &[("Line", point)],
        &[("Note", Type::String, &fields)],
    );
    schema.operations =
        operations.into_iter().map(|(n, o)| (n.into(), o)).collect::<BTreeMap<_, _>>();
    schema
}

async fn table() -> Option<(PostgresConfig, String)> {
    let url = server().await?;
    let table = format!("public.{}", unique("lines"));
    let sql = format!(
        "CREATE TABLE {table} (name text PRIMARY KEY, amount integer, at timestamptz); \
         INSERT INTO {table} VALUES ('a', 1, '2020-01-01T00:00:00.5Z'), ('b', NULL, NULL)"
    );
    support::client(&url).await.batch_execute(&sql).await.expect("a table");
    Some((PostgresConfig::at(url), table))
}

fn ask(operation: &str, arguments: &[Value]) -> Read {
    Read::Query { operation: operation.into(), arguments: arguments.to_vec() }
}

#[tokio::test]
async fn queries_give_what_is_declared() {
    let Some((config, table)) = table().await else { return };
    let query = |parameters: &[Type], result: Type, body: &str| {
        operation(false, parameters, Some(result), &body.replace("TABLE", &table))
    };
    let line = || Type::Struct("Line".into());
    let list = |inner| Type::List(Arc::new(inner));
    let option = |inner| Type::Option(Arc::new(inner));
    let note = Type::Ref("Note".into());
    let operations = vec![
        ("total", query(&[], Type::Int, "SELECT count(*) FROM TABLE")),
        ("names", query(&[], list(Type::String), "SELECT name FROM TABLE ORDER BY name")),
        (
            "amount",
            query(&[Type::String], option(Type::Int), "SELECT amount FROM TABLE WHERE name = $1"),
        ),
        ("line", query(&[Type::String], line(), "SELECT amount, name FROM TABLE WHERE name = $1")),
        ("lines", query(&[], list(line()), "SELECT name, amount FROM TABLE ORDER BY name")),
        ("at", query(&[Type::String], Type::Time, "SELECT at FROM TABLE WHERE name = $1")),
        ("after", query(&[Type::Time], list(note.clone()), "SELECT name FROM TABLE WHERE at > $1")),
        ("key", query(&[note], Type::String, "SELECT upper($1)")),
        (
            "ints",
            query(
                &[list(Type::Int)],
                list(Type::Int),
                "SELECT value::text::bigint FROM json_array_elements($1) AS value",
            ),
        ),
    ];
    let store = open(config, program(operations)).await;
    let text = |text: &str| Value::from(text);
    let row = |name: &str, amount: Option<i64>| {
        let amount = amount.map_or(Value::NONE, |amount| Value::some(Value::Int(amount)));
        Value::Struct(Arc::from([text(name), amount]))
    };
    let a = Value::Ref(Ref::new("Note", text("a")));
    let moment = Time::parse("2020-01-01T00:00:00.5Z").expect("a time");
    let before = Value::Time(Time::from_micros(moment.micros() - 1));
    let cases = [
        (ask("total", &[]), Value::Int(2)),
        (ask("names", &[]), Value::list([text("a"), text("b")])),
        (ask("amount", &[text("a")]), Value::some(Value::Int(1))),
        (ask("amount", &[text("b")]), Value::NONE),
        (ask("amount", &[text("c")]), Value::NONE),
        (ask("line", &[text("b")]), row("b", None)),
        (ask("lines", &[]), Value::list([row("a", Some(1)), row("b", None)])),
        (ask("at", &[text("a")]), Value::Time(moment)),
        (ask("after", std::slice::from_ref(&before)), Value::list([a.clone()])),
        (ask("key", &[a]), text("A")),
        (ask("ints", &[Value::list([3.into(), 4.into()])]), Value::list([3.into(), 4.into()])),
    ];
    for (query, expected) in cases {
        assert_eq!(data(&*store, query.clone()).await, Data::Result(expected), "{query:?}");
    }
    for (query, words) in [
        (ask("line", &[text("c")]), "gives 0 rows"),
        (ask("at", &[text("b")]), "is null"),
        (ask("total", &[text("x")]), "takes 0 arguments"),
        (ask("amount", &[Value::Int(1)]), "is of type string"),
        (ask("after", &[Value::Time(Time::MIN)]), "beyond what timestamptz holds"),
        (ask("nothing", &[]), "no operation nothing"),
    ] {
        let error = read(&*store, std::slice::from_ref(&query)).await.expect_err("a refusal");
        assert!(matches!(error, StoreError::Refused { .. }), "{error}");
        assert!(error.to_string().contains(words), "{query:?} gave {error}");
    }
}

#[tokio::test]
async fn commands_run_in_the_commit() {
    let Some((config, table)) = table().await else { return };
    let add = format!("UPDATE {table} SET amount = coalesce(amount, 0) + $2 WHERE name = $1");
    let operations = vec![
        ("add", operation(true, &[Type::String, Type::Int], None, &add)),
        (
            "take",
            operation(
                true,
                &[Type::String],
                Some(Type::Int),
                &format!("UPDATE {table} SET amount = amount - 1 WHERE name = $1 RETURNING amount"),
            ),
        ),
        (
            "sum",
            operation(
                false,
                &[],
                Some(Type::Int),
                &format!("SELECT sum(amount)::bigint FROM {table}"),
            ),
        ),
    ];
    let store = open(config, program(operations)).await;
    let command = |name: &str, amount: i64| Write::Command {
        operation: "add".into(),
        arguments: vec![name.into(), amount.into()],
    };
    let sum = async || data(&*store, ask("sum", &[])).await;
    write(&*store, vec![command("a", 4), command("b", 10)]).await.expect("a commit");
    assert_eq!(sum().await, Data::Result(Value::Int(15)));
    let mut open = store.begin(&Session::default()).await.expect("a transaction");
    let taken = open.read(&[ask("take", &["a".into()])]).await.expect("a command with a result");
    assert_eq!(taken[0].data, Data::Result(Value::Int(4)));
    open.flush(vec![command("a", 100)]).await.expect("a flush");
    let within = open.read(&[ask("sum", &[])]).await.expect("a query");
    assert_eq!(within[0].data, Data::Result(Value::Int(114)), "it sees what was flushed");
    drop(open);
    assert_eq!(sum().await, Data::Result(Value::Int(15)), "after a drop");
    let wrong = Write::Command { operation: "sum".into(), arguments: Vec::new() };
    let error = write(&*store, vec![command("a", 1), wrong]).await.expect_err("a query");
    assert!(error.to_string().contains("is a query"), "{error}");
    let huge = write(&*store, vec![command("b", 1), command("a", i64::MAX)]).await;
    let error = huge.expect_err("an overflow");
    assert!(error.to_string().contains("out of range"), "{error}");
    assert_eq!(sum().await, Data::Result(Value::Int(15)), "no half write");
}

#[tokio::test]
async fn a_command_meets_the_rows_of_the_whole_store() {
    let Some((config, table)) = table().await else { return };
    let body = format!("UPDATE {table} SET amount = $1");
    let store =
        open(config, program(vec![("set", operation(true, &[Type::Int], None, &body))])).await;
    let row = WitnessRow {
        object: None,
        id: TransactionId { origin: Origin(5), sequence: 1 },
        kind: RowKind::Write,
        intent: "shop".into(),
        stores: vec!["other".into()],
        seen: Vec::new(),
    };
    let set = |n: i64| vec![Write::Command { operation: "set".into(), arguments: vec![n.into()] }];
    // The row is inserted after the snapshot.
    let mut open = store.begin(&Session::default()).await.expect("a transaction");
    open.read(&[Read::Exists(Ref::new("Note", "x".into()))]).await.expect("a read");
    write(&*store, vec![Write::Witness(row.clone())]).await.expect("a row");
    let met = open.commit(Commit { writes: set(1), ..Commit::default() }).await;
    assert_eq!(met.map(|_| ()), Err(StoreError::Witnessed { rows: vec![row.clone()] }));
    // A row that was never committed does not exist.
    let mut other = store.begin(&Session::default()).await.expect("a transaction");
    let never = WitnessRow { id: TransactionId { sequence: 2, ..row.id }, ..row.clone() };
    other.flush(vec![Write::Witness(never)]).await.expect("a flush");
    drop(other);
    let known = [row.id].into();
    let mut open = store.begin(&Session::default()).await.expect("a transaction");
    open.read(&[Read::Exists(Ref::new("Note", "x".into()))]).await.expect("a read");
    let commit = Commit { writes: set(2), known, ..Commit::default() };
    open.commit(commit).await.expect("a commit that knows the row");
}

#[tokio::test]
async fn a_body_that_does_not_fit_is_refused_at_the_start() {
    let Some((config, table)) = table().await else { return };
    let result = Some(Type::Int);
    let cases = [
        (operation(false, &[], result.clone(), "SELEC 1"), "syntax error"),
        (
            operation(false, &[], result.clone(), "SELECT 1 FROM nowhere"),
            "\"nowhere\" does not exist",
        ),
        (operation(false, &[], result.clone(), "SELECT 'x'::text"), "is text, but int needs"),
        (operation(false, &[Type::Int], result.clone(), "SELECT $2::bigint"), "takes 2 parameters"),
        (
            operation(
                false,
                &[Type::String],
                result.clone(),
                &format!("SELECT amount FROM {table} WHERE amount = $1"),
            ),
            "integer = text",
        ),
        (operation(true, &[], result, &format!("DELETE FROM {table}")), "it gives nothing"),
        (
            operation(false, &[], Some(Type::Struct("Line".into())), "SELECT 'x' AS name"),
            "no column amount",
        ),
    ];
    for (declared, words) in cases {
        let body = declared.body.clone();
        let mut config = config.clone();
        config.schema = Some(unique("refused"));
        let schema = program(vec![("op", declared)]);
        match Postgres::connect(config, schema, support::RealWorld::make()).await {
            Err(error @ OpenError::Operation { .. }) => {
                assert!(error.to_string().contains(words), "{body:?} gave {error}");
            }
            Err(other) => panic!("{body:?} gave {other}"),
            Ok(_) => panic!("{body:?} was taken"),
        }
    }
}

#[tokio::test]
async fn a_table_that_was_changed_is_asked_anew() {
    let Some((config, table)) = table().await else { return };
    let client = support::client(&config.url).await;
    let body = format!("SELECT amount FROM {table} WHERE name = 'a'");
    let query = operation(false, &[], Some(Type::Int), &body);
    let store = open(config, program(vec![("amount", query)])).await;
    assert_eq!(data(&*store, ask("amount", &[])).await, Data::Result(Value::Int(1)));
    let change = format!("ALTER TABLE {table} ALTER amount TYPE bigint");
    client.batch_execute(&change).await.expect("a change");
    let stale = read(&*store, &[ask("amount", &[])]).await;
    assert!(
        matches!(stale, Err(StoreError::Conflict)),
        "the next attempt prepares it anew; it gave {stale:?}"
    );
    assert_eq!(data(&*store, ask("amount", &[])).await, Data::Result(Value::Int(1)));
}
