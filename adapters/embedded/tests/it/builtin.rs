//! The bodies of declared operations that this engine provides.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::support::{at, data, open, read, session, usual, write};
use mingle_model::{Level, Type, Value};
use mingle_store::{
    Commit, Data, Read, Session, StoreError, StoreOperation, StoreSchema, TestWorld, Write,
};
use mingle_store_embedded::{Embedded, EmbeddedConfig};

fn operation(is_command: bool, parameters: &[Type], body: Option<&str>) -> StoreOperation {
    let named = parameters.iter().map(|t| ("p".into(), t.clone()));
    StoreOperation {
        is_command,
        parameters: named.collect(),
        result: (!is_command).then_some(Type::Int),
        body: body.map(str::to_owned),
        builtin: None,
    }
}

fn with_operations(level: Level, operations: &[(&str, StoreOperation)]) -> StoreSchema {
    let mut schema = usual(level);
    let operations = operations.iter().map(|(n, o)| ((*n).into(), o.clone()));
    schema.operations = operations.collect::<BTreeMap<_, _>>();
    schema
}

fn query(operation: &str, arguments: &[Value]) -> Read {
    Read::Query { operation: operation.into(), arguments: arguments.to_vec() }
}

fn builtins(level: Level) -> StoreSchema {
    let key = [Type::String];
    let query = |body| operation(false, &key, Some(body));
    with_operations(
        level,
        &[
            ("lines", query("builtin:size Note.lines")),
            ("total", query("builtin:size Note.count")),
            ("number", query("builtin:value Note.number")),
            ("tags", query("builtin:value Note.tags")),
            ("exists", operation(false, &[Type::Ref("Note".into())], Some("builtin:exists Note"))),
            ("all", operation(false, &[], Some("builtin:keys Note"))),
            ("say", operation(true, &[Type::String, Type::Int], Some("builtin:append Note.lines"))),
            ("pay", operation(true, &[Type::String, Type::Int], Some("builtin:add Note.count"))),
            ("bare", operation(false, &key, None)),
        ],
    )
}

fn check_builtins(level: Level, replicas: usize) {
    let world = TestWorld::new(1);
    let config = EmbeddedConfig::in_memory()
        .with_replicas(replicas)
        .with_delay(Duration::from_hours(1), Duration::ZERO);
    let store = open(&world, config, builtins(level));
    let names: Vec<Session> = match replicas {
        1 => vec![Session::default(); 3],
        _ => ["r1", "r2", "r3"].map(session).to_vec(),
    };
    let (a, int) = (Value::from("a"), Value::Int);
    for (index, place) in names.iter().enumerate() {
        let n = int(index as i64);
        let command = |name: &str, arguments: &[Value]| Write::Command {
            operation: name.into(),
            arguments: arguments.to_vec(),
        };
        let writes = vec![
            command("say", &[a.clone(), n.clone()]),
            command("pay", &[a.clone(), int(10)]),
            Write::Insert(at("a", 3), n.clone()),
            Write::Create(at(&format!("b{index}"), 0).object),
        ];
        world.block_on(write(&store, place, writes)).expect("a commit");
    }
    // Nothing is delivered, but a query at any replica sees all of it.
    for place in &names {
        let object = Value::Ref(at("b2", 0).object);
        let reads = [
            query("lines", std::slice::from_ref(&a)),
            query("total", std::slice::from_ref(&a)),
            query("number", std::slice::from_ref(&a)),
            query("tags", std::slice::from_ref(&a)),
            query("exists", &[object]),
            query("all", &[]),
        ];
        let expected = [
            int(3),
            int(30),
            int(0),
            Value::list([int(0), int(1), int(2)]),
            Value::Bool(true),
            Value::list(["a", "b0", "b1", "b2"].map(Value::from)),
        ];
        let found = data(&world, &store, place, &reads);
        assert_eq!(found, expected.map(Data::Result), "at {place:?}");
    }
    let bare = query("bare", std::slice::from_ref(&a));
    let error = world.block_on(read(&store, &names[0], &[bare])).unwrap_err();
    assert!(error.to_string().contains("operation bare has no body"), "{error}");
}

#[test]
fn builtin_operations_at_a_serializable_store() {
    check_builtins(Level::Linearizable, 1);
}

#[test]
fn builtin_operations_see_all_replicas() {
    check_builtins(Level::Causal, 3);
    check_builtins(Level::Eventual, 3);
}

#[test]
fn a_query_sees_what_its_transaction_flushed() {
    for level in [Level::Linearizable, Level::Causal] {
        let world = TestWorld::new(1);
        let store = open(&world, EmbeddedConfig::in_memory(), builtins(level));
        world.block_on(async {
            let mut transaction = store.begin(&Session::default()).await.expect("begins");
            let append = |n| Write::Append(at("a", 2), Value::Int(n));
            transaction.flush(vec![append(1), append(2)]).await.expect("flushes");
            let lines = [query("lines", &[Value::from("a")])];
            let answers = transaction.read(&lines).await.expect("reads");
            assert_eq!(answers[0].data, Data::Result(Value::Int(2)), "{level}");
        });
    }
}

#[test]
fn a_query_is_validated_like_the_read_that_it_is() {
    let world = TestWorld::new(1);
    let store = open(&world, EmbeddedConfig::in_memory(), builtins(Level::Linearizable));
    world.block_on(async {
        for (read, key) in [(query("all", &[]), "new"), (query("lines", &[Value::from("a")]), "a")]
        {
            let mut transaction = store.begin(&Session::default()).await.expect("begins");
            transaction.read(&[read]).await.expect("reads");
            let append = |key| vec![Write::Append(at(key, 2), Value::Int(1))];
            write(&store, &Session::default(), append(key)).await.expect("commits");
            let writes = append("other");
            let result = transaction.commit(Commit { writes, ..Commit::default() }).await;
            assert_eq!(result, Err(StoreError::Conflict), "a phantom {key}");
        }
    });
}

#[test]
fn a_body_that_does_not_fit_is_refused_at_open() {
    let check = |operation: StoreOperation, part: &str| {
        let schema = with_operations(Level::Causal, &[("op", operation)]);
        let world = TestWorld::new(1);
        let error = match Embedded::open(EmbeddedConfig::in_memory(), schema, world) {
            Ok(_) => panic!("it was accepted, though {part}"),
            Err(error) => error.to_string(),
        };
        assert!(error.contains("operation op") && error.contains(part), "{error}");
    };
    let key = [Type::String];
    let query = |body| operation(false, &key, Some(body));
    check(query("builtin:size"), "expected `builtin:size KIND.FIELD`");
    check(query("select 1"), "expected `builtin:size KIND.FIELD`");
    check(query("builtin:size Nothing.lines"), "no object Nothing lives in this store");
    check(query("builtin:size Note.nothing"), "object Note has no field nothing");
    check(query("builtin:size Note.number"), "cannot be used on Note.number, a int");
    check(query("builtin:size Note"), "needs a field");
    check(query("builtin:append Note.lines"), "is a command, but is declared as a query");
    let by_ref = [Type::Ref("Note".into())];
    check(operation(false, &by_ref, Some("builtin:size")), "would all fit");
    let wrong = operation(false, &[Type::Int], Some("builtin:size Note.lines"));
    check(wrong, "the body takes (string), but the declaration says (int)");
}

#[test]
fn the_object_and_its_only_field_need_not_be_named() {
    let by_ref = [Type::Ref("Note".into())];
    let schema = with_operations(
        Level::Causal,
        &[
            ("exists", operation(false, &by_ref, Some("builtin:exists"))),
            ("say", operation(true, &[by_ref[0].clone(), Type::Int], Some("builtin:append"))),
            ("lines", operation(false, &by_ref, Some("builtin:size Note.lines"))),
        ],
    );
    let world = TestWorld::new(1);
    let store = open(&world, EmbeddedConfig::in_memory(), schema);
    let note = Value::Ref(mingle_model::Ref::new("Note", Value::from("a")));
    world.block_on(async {
        let say = Write::Command {
            operation: "say".into(),
            arguments: vec![note.clone(), Value::Int(7)],
        };
        write(&store, &Session::default(), vec![say]).await.expect("commits");
        let reads = [
            query("exists", std::slice::from_ref(&note)),
            query("lines", std::slice::from_ref(&note)),
        ];
        let answers = read(&store, &Session::default(), &reads).await.expect("reads");
        let data: Vec<Data> = answers.into_iter().map(|answer| answer.data).collect();
        assert_eq!(data, [Data::Result(Value::Bool(true)), Data::Result(Value::Int(1))]);
    });
}
