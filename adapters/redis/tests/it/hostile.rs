//! Keys, names and arguments with hostile content reach the server unchanged.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_model::{FieldType, Ref, Type, Value};
use mingle_services::Engine;
use mingle_store::conformance::hostile::Random;
use mingle_store::{Address, Data, Read, StoreOperation, StoreSchema, Write};
use mingle_store_redis::{FieldMapping, KeyType, ObjectMapping, Redis, RedisConfig};
use redis::Value as Reply;

use crate::support::{
    Other, bulk, config, connect, data, fresh_prefix, object, read, schema, text, write,
};

const MAIL: u16 = 0;
const VISITS: u16 = 1;
const INBOX: u16 = 2;
const FRIENDS: u16 = 3;
const MARKS: u16 = 4;
const STATUS: u16 = 5;

/// Returns a key for this test alone. Braces mark the object's key, and no key contains them.
fn name(random: &mut Random, first: &str) -> String {
    random.name(first, 300).replace(['{', '}'], "(")
}

fn program() -> StoreSchema {
    let fields = [
        ("mail", FieldType::Register(Type::String)),
        ("visits", FieldType::Counter),
        ("inbox", FieldType::Log(Type::String)),
        ("friends", FieldType::Set(Type::String)),
        ("marks", FieldType::Map(Type::String, Type::String)),
        ("status", FieldType::Register(Type::String)),
    ];
    schema(vec![object("User", ("name", Type::String), &fields)])
}

/// The names of a mapping's keys and columns.
struct Names {
    hash: (String, String),
    columns: [String; 2],
    /// The keys of the inbox, the friends, the marks and the status.
    keys: [(String, String); 4],
}

impl Names {
    fn draw(random: &mut Random, app: &str) -> Self {
        let mut pair = |first: &str| {
            (name(random, &format!("{app}{first}")), name(random, &format!(":{first}")))
        };
        let keys = ["inbox", "friends", "marks", "status"].map(&mut pair);
        let hash = pair("hash");
        Self { hash, columns: [name(random, "mail"), name(random, "visits")], keys }
    }

    fn mapping(&self) -> ObjectMapping {
        let pattern = |(before, after): &(String, String)| format!("{before}{{name}}{after}");
        let mut mapping = ObjectMapping::at(pattern(&self.hash));
        for (field, column) in ["mail", "visits"].into_iter().zip(&self.columns) {
            mapping.columns.insert(field.into(), column.clone());
        }
        let types = [KeyType::List, KeyType::Set, KeyType::Hash, KeyType::String];
        for ((field, names), key_type) in
            ["inbox", "friends", "marks", "status"].into_iter().zip(&self.keys).zip(types)
        {
            mapping.fields.insert(field.into(), FieldMapping { key: pattern(names), key_type });
        }
        mapping
    }

    fn key((before, after): &(String, String), key: &str) -> String {
        format!("{before}{key}{after}")
    }
}

fn at(name: &str, field: u16) -> Address {
    Address { object: Ref::new("User", text(name)), field }
}

/// Writes every shape of field with these texts, and reads it back in every way.
async fn writes_and_reads(store: &Redis, key: &str, texts: &[String; 5]) {
    let [mail, line, friend, entry, value] = texts.each_ref().map(|it| text(it));
    let writes = vec![
        Write::Assign(at(key, MAIL), mail.clone()),
        Write::Add(at(key, VISITS), 2),
        Write::Append(at(key, INBOX), line.clone()),
        Write::Insert(at(key, FRIENDS), friend.clone()),
        Write::Put(at(key, MARKS), entry.clone(), value.clone()),
        Write::Assign(at(key, STATUS), mail.clone()),
    ];
    write(store, writes).await.expect("it writes");
    let cases = [
        (Read::Exists(at(key, 0).object), Data::Bool(true)),
        (Read::Register(at(key, MAIL)), Data::Register(Some(mail.clone()))),
        (Read::Counter(at(key, VISITS)), Data::Counter(2)),
        (Read::LogLast(at(key, INBOX), 9), Data::Values(vec![line])),
        (Read::Elements(at(key, FRIENDS)), Data::Values(vec![friend.clone()])),
        (Read::Contains(at(key, FRIENDS), friend), Data::Bool(true)),
        (Read::Entries(at(key, MARKS)), Data::Entries(vec![(entry.clone(), value.clone())])),
        (Read::Entry(at(key, MARKS), entry), Data::Register(Some(value))),
        (Read::Register(at(key, STATUS)), Data::Register(Some(mail))),
    ];
    let reads: Vec<Read> = cases.iter().map(|(read, _)| read.clone()).collect();
    let answers = read(store, &reads).await.expect("it reads");
    for ((read, expected), answer) in cases.iter().zip(answers) {
        assert_eq!(answer.data, *expected, "{read:?}");
    }
}

#[tokio::test]
async fn hostile_keys_of_other_applications() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let mut other = Other::at(server.url()).await;
    for seed in 0..12 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let app = fresh_prefix().replace("test", "app");
        let names = Names::draw(&mut random, &app);
        let objects = BTreeMap::from([("User".to_owned(), names.mapping())]);
        let store = connect(RedisConfig { objects, ..config(server.url()) }, program()).await;
        let store = store.expect("it opens");
        let key = random.text("k", 6);
        let texts = [(); 5].map(|()| random.text("t", 6));
        writes_and_reads(&store, &key, &texts).await;
        // The server has them under exactly these names.
        let hash = Names::key(&names.hash, &key);
        let [mail, line, friend, entry, value] = &texts;
        for (words, expected) in [
            (vec!["HGET", &hash, &names.columns[0]], bulk(mail)),
            (vec!["HGET", &hash, &names.columns[1]], bulk("2")),
            (vec!["LINDEX", &Names::key(&names.keys[0], &key), "0"], bulk(line)),
            (vec!["SISMEMBER", &Names::key(&names.keys[1], &key), friend], Reply::Int(1)),
            (vec!["HGET", &Names::key(&names.keys[2], &key), entry], bulk(value)),
            (vec!["GET", &Names::key(&names.keys[3], &key)], bulk(mail)),
        ] {
            assert_eq!(other.words(&words).await, expected, "seed {seed}: {words:?}");
        }
        write(&store, vec![Write::Delete(at(&key, 0).object)]).await.expect("it is deleted");
        assert_eq!(data(&store, Read::Exists(at(&key, 0).object)).await, Data::Bool(false));
        assert_eq!(other.words(&["EXISTS", &hash]).await, Reply::Int(0), "seed {seed}");
    }
}

#[tokio::test]
async fn hostile_prefixes_of_our_own() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    for seed in 0..12 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let prefix = name(&mut random, &fresh_prefix());
        for round in 0..2 {
            let settings = RedisConfig { prefix: Some(prefix.clone()), ..config(server.url()) };
            let store = connect(settings, program()).await.expect("it opens");
            let key = random.text(&format!("k{round}"), 6);
            let texts = [(); 5].map(|()| random.text("t", 6));
            writes_and_reads(&store, &key, &texts).await;
        }
    }
}

/// An argument of a command is exactly one word.
#[tokio::test]
async fn hostile_arguments_of_commands() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let app = fresh_prefix().replace("test", "app");
    let mut declared = program();
    let parameters = vec![("p".into(), Type::String), ("q".into(), Type::String)];
    let command = StoreOperation {
        is_command: true,
        parameters: parameters.clone(),
        result: None,
        body: Some(format!("HSET {app}hash $1 $2")),
        builtin: None,
    };
    let query = StoreOperation {
        is_command: false,
        parameters: parameters[..1].to_vec(),
        result: Some(Type::Option(Arc::new(Type::String))),
        body: Some(format!("HGET {app}hash $1")),
        builtin: None,
    };
    declared.operations = [("set".into(), command), ("get".into(), query)].into();
    let store = connect(config(server.url()), declared).await.expect("it opens");
    let mut other = Other::at(server.url()).await;
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let [field, value] = ["f", "v"].map(|first| random.text(&format!("{first}{seed}"), 8));
        let arguments = vec![text(&field), text(&value)];
        let set = Write::Command { operation: "set".into(), arguments };
        write(&store, vec![set]).await.expect("it commits");
        let get = Read::Query { operation: "get".into(), arguments: vec![text(&field)] };
        let found = data(&store, get).await;
        let expected = Value::some(text(&value));
        assert_eq!(found, Data::Result(expected), "seed {seed}: {field:?}, {value:?}");
        let count = i64::try_from(seed).expect("small") + 1;
        let length = other.words(&["HLEN", &format!("{app}hash")]).await;
        assert_eq!(length, Reply::Int(count), "seed {seed}");
    }
}
