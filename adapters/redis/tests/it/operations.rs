//! Declared queries and commands.

use std::sync::Arc;

use mingle_model::{FieldType, Ref, Type, Value};
use mingle_services::{Engine, Server};
use mingle_store::{
    Address, Commit, Data, DataStore, Read, Session, StoreError, StoreOperation, StoreSchema, Write,
};
use mingle_store_redis::{OpenError, Redis};

use crate::support::{
    Other, bulk, config, connect, data, fresh_prefix, object, read, refusal, schema, text, write,
};

fn operation(
    is_command: bool,
    parameters: &[Type],
    result: Option<Type>,
    body: &str,
) -> StoreOperation {
    let named = parameters.iter().enumerate().map(|(n, of)| (format!("p{n}").into(), of.clone()));
    StoreOperation {
        is_command,
        parameters: named.collect(),
        result,
        body: Some(body.into()),
        builtin: None,
    }
}

fn query(parameters: &[Type], result: Type, body: &str) -> StoreOperation {
    operation(false, parameters, Some(result), body)
}

fn command(parameters: &[Type], body: &str) -> StoreOperation {
    operation(true, parameters, None, body)
}

fn with(operations: Vec<(&str, StoreOperation)>) -> StoreSchema {
    let counter = [("count", FieldType::Counter)];
    let mut schema = schema(vec![object("Thing", ("name", Type::String), &counter)]);
    schema.operations =
        operations.into_iter().map(|(name, operation)| (name.into(), operation)).collect();
    schema
}

fn count() -> Address {
    Address { object: Ref::new("Thing", text("t")), field: 0 }
}

/// Returns a store with a leaderboard, and its key prefix.
async fn board(server: &Server) -> (Arc<Redis>, Other, String) {
    let app = fresh_prefix().replace("test", "app");
    let fill = |body: &str| body.replace("P:", &app);
    let list = |of: Type| Type::List(of.into());
    let operations = vec![
        (
            "score",
            query(&[Type::String], Type::Option(Type::Float.into()), &fill("ZSCORE P:board $1")),
        ),
        ("top", query(&[Type::Int], list(Type::String), &fill("ZREVRANGE P:board 0 $1"))),
        ("size", query(&[], Type::Int, &fill("ZCARD P:board"))),
        ("flag", query(&[Type::String], Type::Bool, &fill("EXISTS \"P:flag of $1\""))),
        (
            "both",
            query(&[list(Type::String)], list(Type::Option(Type::String.into())), &fill("MGET $1")),
        ),
        ("win", command(&[Type::Float, Type::String], &fill("ZADD P:board $1 $2"))),
        ("push", command(&[Type::String, list(Type::String)], &fill("RPUSH P:$1 $2"))),
        ("bare", StoreOperation { body: None, ..query(&[], Type::Int, "x") }),
    ];
    let store = connect(config(server.url()), with(operations)).await.expect("it opens");
    (store, Other::at(server.url()).await, app)
}

fn ask(operation: &str, arguments: Vec<Value>) -> Read {
    Read::Query { operation: operation.into(), arguments }
}

fn run(operation: &str, arguments: Vec<Value>) -> Write {
    Write::Command { operation: operation.into(), arguments }
}

async fn result(store: &Redis, operation: &str, arguments: Vec<Value>) -> Value {
    match data(store, ask(operation, arguments)).await {
        Data::Result(value) => value,
        other => panic!("no result: {other:?}"),
    }
}

#[tokio::test]
async fn commands_run_with_the_commit_and_queries_give_values() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let (store, mut other, app) = board(server).await;
    assert_eq!(result(&store, "score", vec![text("ana")]).await, Value::NONE);
    let wins = vec![
        run("win", vec![Value::from(2.5), text("ana")]),
        Write::Add(count(), 1),
        run("win", vec![Value::from(1.0), text("bob")]),
        run("push", vec![text("a b"), Value::list([text("x"), text("y z")])]),
    ];
    write(&store, wins).await.expect("it commits");
    let score = result(&store, "score", vec![text("ana")]).await;
    assert_eq!(score, Value::some(Value::from(2.5)));
    let top = result(&store, "top", vec![Value::Int(9)]).await;
    assert_eq!(top, Value::list([text("ana"), text("bob")]));
    assert_eq!(result(&store, "size", vec![]).await, Value::Int(2));
    assert_eq!(result(&store, "flag", vec![text("x")]).await, Value::Bool(false));
    other.words(&["SET", &format!("{app}flag of x"), "v"]).await;
    assert_eq!(result(&store, "flag", vec![text("x")]).await, Value::Bool(true));
    let keys = [format!("{app}flag of x"), format!("{app}nothing")];
    let keys = Value::list(keys.iter().map(|key| text(key)));
    let both = result(&store, "both", vec![keys]).await;
    assert_eq!(both, Value::list([Value::some(text("v")), Value::NONE]));
    let pushed = other.words(&["LRANGE", &format!("{app}a b"), "0", "-1"]).await;
    assert_eq!(pushed, redis::Value::Array(vec![bulk("x"), bulk("y z")]));
    assert_eq!(data(&store, Read::Counter(count())).await, Data::Counter(1));
}

#[tokio::test]
async fn a_query_holds_until_the_commit() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let (store, mut other, app) = board(server).await;
    for (change, expected) in [
        (format!("ZADD {app}board 5 eve"), Err(StoreError::Conflict)),
        (format!("SET {app}other 5"), Ok(())),
    ] {
        let mut open = store.begin(&Session::default()).await.expect("it begins");
        open.read(&[ask("top", vec![Value::Int(0)])]).await.expect("it reads");
        other.run(&change).await;
        let writes = vec![Write::Add(count(), 1)];
        let done = open.commit(Commit { writes, ..Commit::default() }).await;
        assert_eq!(done.map(|_| ()), expected, "{change}");
    }
}

#[tokio::test]
async fn a_command_that_fails_leaves_nothing_of_its_commit() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let (store, mut other, app) = board(server).await;
    let board = format!("{app}board");
    write(&store, vec![run("win", vec![Value::from(1.0), text("bob")])]).await.expect("it commits");
    other.words(&["PEXPIREAT", &board, "4000000000000"]).await;
    other.words(&["SET", &format!("{app}list"), "no list"]).await;
    let writes = vec![
        Write::Add(count(), 1),
        run("win", vec![Value::from(7.0), text("bob")]),
        run("push", vec![text("new"), Value::list([text("x")])]),
        run("push", vec![text("list"), Value::list([text("x")])]),
    ];
    let commit = Commit { id: Some(crate::support::id(1)), writes, ..Commit::default() };
    let open = store.begin(&Session::default()).await.expect("it begins");
    let why = refusal(open.commit(commit).await);
    assert!(why.contains("RPUSH") && why.contains("WRONGTYPE"), "{why}");
    assert_eq!(data(&store, Read::Exists(count().object)).await, Data::Bool(false));
    assert_eq!(other.words(&["ZSCORE", &board, "bob"]).await, bulk("1"));
    let expires = other.words(&["PEXPIRETIME", &board]).await;
    assert_eq!(expires, redis::Value::Int(4_000_000_000_000));
    assert_eq!(other.words(&["EXISTS", &format!("{app}new")]).await, redis::Value::Int(0));
    let outcome = store.outcome(crate::support::id(1)).await;
    assert_eq!(outcome, Ok(mingle_store::Outcome::NotCommitted));
}

#[tokio::test]
async fn values_that_change_places_are_a_conflict() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let app = fresh_prefix().replace("test", "app");
    let list = Type::List(Type::String.into());
    let all = query(&[], list, &format!("HGETALL {app}hash"));
    let store = connect(config(server.url()), with(vec![("all", all)])).await.expect("it opens");
    let mut other = Other::at(server.url()).await;
    for (command, expected) in [
        ("HSET P:hash a 1 b 2", Err(StoreError::Conflict)),
        ("HSET P:hash a 2 b 1", Err(StoreError::Conflict)),
        ("HSET P:hash b 1 a 2", Ok(())),
    ] {
        let mut open = store.begin(&Session::default()).await.expect("it begins");
        open.read(&[ask("all", vec![])]).await.expect("it reads");
        other.run(&command.replace("P:", &app)).await;
        let writes = vec![Write::Add(count(), 1)];
        let done = open.commit(Commit { writes, ..Commit::default() }).await;
        assert_eq!(done.map(|_| ()), expected, "{command}");
    }
}

#[tokio::test]
async fn what_fails_after_a_command_takes_the_command_back() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let app = fresh_prefix().replace("test", "app");
    let lines = [("lines", FieldType::Log(Type::String))];
    let mut schema = schema(vec![object("Thing", ("name", Type::String), &lines)]);
    let set = command(&[Type::String], &format!("SET {app}$1 x"));
    schema.operations = [("set".into(), set)].into();
    let mut mapping = mingle_store_redis::ObjectMapping::default();
    let list = mingle_store_redis::FieldMapping {
        key: format!("{app}{{name}}"),
        key_type: mingle_store_redis::KeyType::List,
    };
    mapping.fields.insert("lines".into(), list);
    let mut config = config(server.url());
    config.objects.insert("Thing".into(), mapping);
    let store = connect(config, schema).await.expect("it opens");
    // The key is a list when types are checked, and a string when a line is appended.
    let append = || Write::Append(count(), text("line"));
    write(&store, vec![append()]).await.expect("it writes");
    let writes = vec![run("set", vec![text("new")]), run("set", vec![text("t")]), append()];
    let why = refusal(write(&store, writes).await);
    assert!(why.contains("WRONGTYPE"), "{why}");
    let lines = data(&store, Read::LogLast(count(), 9)).await;
    assert_eq!(lines, Data::Values(vec![text("line")]));
    let mut other = Other::at(server.url()).await;
    assert_eq!(other.words(&["EXISTS", &format!("{app}new")]).await, redis::Value::Int(0));
}

#[tokio::test]
async fn what_cannot_be_done_is_said() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let (store, mut other, app) = board(server).await;
    let why = refusal(read(&store, &[ask("bare", vec![])]).await);
    assert!(why.contains("has no body"), "{why}");
    let why = refusal(read(&store, &[ask("top", vec![])]).await);
    assert!(why.contains("takes 1 arguments, not 0"), "{why}");
    let why = refusal(read(&store, &[ask("win", vec![])]).await);
    assert!(why.contains("is a command"), "{why}");
    let why = refusal(write(&store, vec![run("size", vec![])]).await);
    assert!(why.contains("is a query"), "{why}");
    other.words(&["SET", &format!("{app}board"), "no board"]).await;
    let why = refusal(read(&store, &[ask("size", vec![])]).await);
    assert!(why.contains("ZCARD") && why.contains("WRONGTYPE"), "{why}");
    let mut open = store.begin(&Session::default()).await.expect("it begins");
    open.flush(vec![Write::Add(count(), 1)]).await.expect("it flushes");
    let why = refusal(open.read(&[ask("size", vec![])]).await);
    assert!(why.contains("cannot see what it wrote"), "{why}");
}

/// The server receives writes only with the commit. A query before any write is answered; a query
/// that would have to see flushed writes is refused. A transaction refused in this way writes
/// nothing.
/// them is refused. Nothing of a transaction that was refused so is written.
#[tokio::test]
async fn a_query_after_own_writes_is_refused_and_one_before_them_is_not() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let (store, mut other, app) = board(server).await;
    for own in [Write::Add(count(), 1), run("win", vec![Value::from(1.0), text("eve")])] {
        let is_command = matches!(own, Write::Command { .. });
        let mut open = store.begin(&Session::default()).await.expect("it begins");
        let first = open.read(&[ask("size", vec![])]).await.expect("nothing is written yet");
        assert_eq!(first[0].data, Data::Result(Value::Int(0)));
        open.flush(vec![own.clone()]).await.expect("it flushes");
        for query in [ask("size", vec![]), ask("score", vec![text("eve")])] {
            let why = refusal(open.read(&[query]).await);
            assert!(why.contains("cannot see what it wrote"), "{why}");
        }
        // The content of an object is known, unless a command may have changed it.
        let read = open.read(&[Read::Counter(count())]).await;
        if is_command {
            assert!(refusal(read).contains("after a command"));
        } else {
            assert_eq!(read.expect("its own write is known")[0].data, Data::Counter(1));
        }
        drop(open);
        assert_eq!(other.words(&["EXISTS", &format!("{app}board")]).await, redis::Value::Int(0));
        assert_eq!(data(&store, Read::Counter(count())).await, Data::Counter(0));
    }
}

#[tokio::test]
async fn our_own_keys_are_written_by_transactions_alone() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let config = config(server.url());
    let prefix = config.prefix.clone().expect("it has one");
    let own = command(&[Type::String], "SET $1 x");
    let store = connect(config, with(vec![("own", own)])).await.expect("it opens");
    let why =
        refusal(write(&store, vec![run("own", vec![text(&format!("{prefix}Thing:t"))])]).await);
    assert!(why.contains(&prefix), "{why}");
}

#[tokio::test]
async fn a_command_must_know_all_witness_rows() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let (store, _, _) = board(server).await;
    let row = mingle_model::WitnessRow {
        object: Some(count().object),
        id: crate::support::id(3),
        kind: mingle_model::RowKind::Write,
        intent: "intents".into(),
        stores: vec!["a".into()],
        seen: Vec::new(),
    };
    write(&store, vec![Write::Witness(row.clone())]).await.expect("it writes");
    let win = || vec![run("win", vec![Value::from(1.0), text("bob")])];
    let blind = write(&store, win()).await;
    assert_eq!(blind, Err(StoreError::Witnessed { rows: vec![row.clone()] }));
    let open = store.begin(&Session::default()).await.expect("it begins");
    let known = [row.id].into();
    open.commit(Commit { writes: win(), known, ..Commit::default() }).await.expect("it knows");
}

#[tokio::test]
async fn a_body_that_does_not_fit_is_refused_at_the_start() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let int = || Some(Type::Int);
    let cases = [
        (query(&[], Type::Int, ""), "expected a command"),
        (query(&[], Type::Int, "$1 x"), "$1"),
        (query(&[], Type::Int, "NOSUCHCOMMAND x"), "no command NOSUCHCOMMAND"),
        (query(&[], Type::Int, "ZCARD"), "takes 2 words"),
        (query(&[], Type::Int, "ZCARD a b"), "takes 2 words"),
        (query(&[], Type::Int, "ZADD a 1 b"), "not read-only"),
        (query(&[], Type::String, "SRANDMEMBER a"), "otherwise each time"),
        (query(&[], Type::Int, "GET \"a"), "quotation mark"),
        (query(&[Type::Int], Type::Int, "GET $2"), "$2"),
        (command(&[], "GET a"), "does not write"),
        (command(&[], "BLPOP a 0"), "within a transaction"),
        (command(&[], "FLUSHALL"), "which keys"),
        (operation(true, &[], int(), "INCR a"), "no result"),
    ];
    for (operation, said) in cases {
        let body = operation.body.clone();
        let opened = connect(config(server.url()), with(vec![("it", operation)])).await;
        match opened.err() {
            Some(OpenError::Operation { reason, .. }) => {
                assert!(reason.contains(said), "{body:?}: {reason}");
            }
            other => panic!("{body:?}: {other:?}"),
        }
    }
}
