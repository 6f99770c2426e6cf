//! The stored keys, as an operator sees them.

use mingle_model::{FieldType, Float, Ref, Time, Type, Value};
use mingle_services::Engine;
use mingle_store::{Address, Commit, Data, DataStore, Read, Session, Write};

use crate::support::{Other, bulk, config, connect, data, object, refusal, schema, text, write};

fn user() -> mingle_store::StoreSchema {
    let fields = [
        ("mail", FieldType::Register(Type::String)),
        ("age", FieldType::Register(Type::Int)),
        ("score", FieldType::Register(Type::Float)),
        ("born", FieldType::Register(Type::Time)),
        ("boss", FieldType::Register(Type::Ref("User".into()))),
        ("nick", FieldType::Register(Type::Option(Type::String.into()))),
        ("visits", FieldType::Counter),
        ("tags", FieldType::Set(Type::String)),
        ("marks", FieldType::Map(Type::Int, Type::Bool)),
        ("lines", FieldType::Log(Type::String)),
    ];
    schema(vec![object("User", ("name", Type::String), &fields)])
}

fn at(field: u16) -> Address {
    Address { object: Ref::new("User", text("ana")), field }
}

#[tokio::test]
async fn a_person_can_read_what_is_kept() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let config = config(server.url());
    let prefix = config.prefix.clone().expect("it has one");
    let store = connect(config, user()).await.expect("it opens");
    let bob = Value::Ref(Ref::new("User", text("bob")));
    let writes = vec![
        Write::Assign(at(0), text("ana@example.com")),
        Write::Assign(at(1), Value::Int(-40)),
        Write::Assign(at(2), Value::Float(Float(-0.0))),
        Write::Assign(at(3), Value::Time(Time::default())),
        Write::Assign(at(4), bob),
        Write::Assign(at(5), Value::NONE),
        Write::Add(at(6), 12),
        Write::Insert(at(7), text("x y")),
        Write::Put(at(8), Value::Int(7), Value::Bool(true)),
        Write::Append(at(9), text("first")),
        Write::Append(at(9), text("second")),
    ];
    write(&store, writes).await.expect("it writes");
    let mut other = Other::at(server.url()).await;
    for (command, expected) in [
        ("HGET P:User:ana mail", "ana@example.com"),
        ("HGET P:User:ana age", "-40"),
        ("HGET P:User:ana score", "-0.0"),
        ("HGET P:User:ana born", "1970-01-01T00:00:00Z"),
        ("HGET P:User:ana boss", "bob"),
        ("HGET P:User:ana nick", "null"),
        ("HGET P:User:ana visits", "12"),
        ("HGET P:User.marks:ana 7", "true"),
        ("LINDEX P:User.lines:ana -1", "second"),
    ] {
        let command = command.replace("P:", &prefix);
        assert_eq!(other.run(&command).await, bulk(expected), "{command}");
    }
    let tags = other.words(&["SMEMBERS", &format!("{prefix}User.tags:ana")]).await;
    assert_eq!(tags, redis::Value::Array(vec![bulk("x y")]));
    assert_eq!(data(&store, Read::Register(at(5))).await, Data::Register(Some(Value::NONE)));
    // A deleted object leaves only the version of its deletion.
    write(&store, vec![Write::Delete(at(0).object)]).await.expect("it deletes");
    let left = other.words(&["KEYS", &format!("{prefix}User*")]).await;
    assert_eq!(left, redis::Value::Array(vec![bulk(&format!("{prefix}User!:ana"))]));
}

#[tokio::test]
async fn counters_are_exact_however_large() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let store = connect(config(server.url()), user()).await.expect("it opens");
    let mut random = 97;
    let mut sum = 0i128;
    for round in 0..200u32 {
        let bits = mingle_model::random::next_random(&mut random);
        let mut amount = i128::from(bits) << (bits % 26);
        if bits & 64 != 0 {
            amount = -amount;
        }
        // Sometimes back to a point where a sum changes its sign or its length.
        if round % 7 == 0 {
            amount = -sum + i128::from(bits % 3) - 1;
        }
        // Or to a point where every digit carries.
        if round % 11 == 0 {
            amount = 10i128.pow(20 + round % 6) - 1 - sum;
        } else if round % 11 == 1 {
            amount = 1;
        }
        let amount = amount.clamp(-(1 << 90), 1 << 90);
        sum += amount;
        write(&store, vec![Write::Add(at(6), amount)]).await.expect("it adds");
        let found = data(&store, Read::Counter(at(6))).await;
        assert_eq!(found, Data::Counter(sum), "round {round} of seed 97, after {amount}");
    }
    let beyond = write(&store, vec![Write::Add(at(6), (1 << 90) + 1)]).await;
    assert!(refusal(beyond).contains("2^90"));
}

#[tokio::test]
async fn what_a_stranger_has_put_there_is_refused_and_nothing_is_torn() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let config = config(server.url());
    let prefix = config.prefix.clone().expect("it has one");
    let store = connect(config, user()).await.expect("it opens");
    let mut other = Other::at(server.url()).await;
    other.words(&["SET", &format!("{prefix}User.tags:ana"), "no set"]).await;
    let writes = vec![Write::Add(at(6), 1), Write::Insert(at(7), text("x"))];
    let why = refusal(write(&store, writes).await);
    assert!(
        why.contains("User.tags:ana") && why.contains("string") && why.contains("set"),
        "{why}"
    );
    assert_eq!(data(&store, Read::Counter(at(6))).await, Data::Counter(0));
    other.words(&["HSET", &format!("{prefix}User:ana"), "age", "old"]).await;
    let why = refusal(crate::support::read(&store, &[Read::Register(at(1))]).await);
    assert!(why.contains("int") && why.contains("old"), "{why}");
}

#[tokio::test]
async fn a_stranger_among_our_own_rows_tears_nothing() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let mut other = Other::at(server.url()).await;
    let row = mingle_model::WitnessRow {
        object: Some(at(0).object),
        id: crate::support::id(3),
        kind: mingle_model::RowKind::Write,
        intent: "intents".into(),
        stores: vec!["a".into()],
        seen: Vec::new(),
    };
    let record = mingle_store::RecordKey::of(mingle_store::RecordKind::Intent, row.id, 0);
    for taken in [
        "!commits",
        "!kinds",
        "!witnesses:order",
        "!witnesses:User:ana",
        "!records:2",
        "!records:2:order",
        "!outcomes",
        "!outcomes:age",
        "User!:ana",
        "User.tags!:ana",
    ] {
        let config = config(server.url());
        let prefix = config.prefix.clone().expect("it has one");
        let store = connect(config, user()).await.expect("it opens");
        other.words(&["RPUSH", &format!("{prefix}{taken}"), "a list"]).await;
        let writes = vec![
            Write::Add(Address { object: Ref::new("User", text("bob")), field: 6 }, 1),
            Write::Insert(at(7), text("x")),
            Write::Record(record.clone(), b"intent".as_slice().into()),
            Write::Witness(row.clone()),
        ];
        let known = [row.id].into();
        let commit = Commit { id: Some(crate::support::id(1)), writes, known, ..Commit::default() };
        let open = store.begin(&Session::default()).await.expect("it begins");
        let why = refusal(open.commit(commit).await);
        assert!(why.contains("WRONGTYPE") || why.contains(taken), "{taken}: {why}");
        assert!(!why.contains("middle"), "{taken}: {why}");
        let left = other.words(&["KEYS", &format!("{prefix}User*bob")]).await;
        assert_eq!(left, redis::Value::Array(Vec::new()), "{taken}");
    }
}
