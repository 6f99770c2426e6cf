//! Keys of which the database takes several spellings for one: one spelling is accepted, in every place, so that two refs
//! never name one row.

use std::collections::BTreeMap;

use crate::support::{self, RealWorld, client, data, open, read, server, unique, write};
use mingle_model::{FieldType, Level, Ref, Type, Value};
use mingle_store::{
    Address, Commit, Data, DataStore, Read, Session, StoreError, StoreSchema, ViolationKind, Write,
};
use mingle_store_postgres::{CollectionMapping, ObjectMapping, Postgres, PostgresConfig};

const TEXT: u16 = 0;
const FRIEND: u16 = 1;
const FRIENDS: u16 = 2;
const MARKS: u16 = 3;

fn program() -> StoreSchema {
    let friend = || Type::Ref("Member".into());
    let fields = [
        ("text", FieldType::Register(Type::String)),
        ("friend", FieldType::Register(Type::Option(friend().into()))),
        ("friends", FieldType::Set(friend())),
        ("marks", FieldType::Map(Type::String, Type::Int)),
    ];
    support::schema(Level::Linearizable, &[], &[("Member", Type::String, &fields)])
}

fn config(url: String, table: &str) -> PostgresConfig {
    let of = |kind: &str, value: &str, entry: Option<&str>| CollectionMapping {
        table: format!("{table}_{kind}"),
        key: vec!["member".into()],
        value: value.into(),
        entry: entry.map(str::to_owned),
        ..CollectionMapping::default()
    };
    let mapping = ObjectMapping {
        table: table.into(),
        key: vec!["id".into()],
        fields: BTreeMap::from([
            ("friends".into(), of("friends", "friend", None)),
            ("marks".into(), of("marks", "mark", Some("name"))),
        ]),
        ..ObjectMapping::default()
    };
    let mut config = PostgresConfig::at(url);
    config.schema = Some(unique("own"));
    config.objects = BTreeMap::from([("Member".into(), mapping)]);
    config
}

/// Returns the tables with keys of a type; `text` is of the same type. The lock keeps two tests from making the extension at
/// the same time.
fn tables(table: &str, sql_type: &str) -> String {
    format!(
        "SELECT pg_advisory_xact_lock(4711); CREATE EXTENSION IF NOT EXISTS citext; CREATE DOMAIN {table}_key AS {sql_type}; \
         CREATE TABLE {table} (id {table}_key PRIMARY KEY, text {sql_type} NOT NULL DEFAULT '', friend {sql_type} REFERENCES {table}); \
         CREATE TABLE {table}_friends (member {sql_type}, friend {table}_key, PRIMARY KEY (member, friend)); \
         CREATE TABLE {table}_marks (member {table}_key, name {sql_type}, mark int NOT NULL, PRIMARY KEY (member, name));"
    )
}

fn member(key: &str) -> Ref {
    Ref::new("Member", Value::from(key))
}

fn at(key: &str, field: u16) -> Address {
    Address { object: member(key), field }
}

/// A row of the table, as the program spells it and as SQL does.
struct Case {
    sql_type: &'static str,
    accepted: &'static str,
    stored: &'static str,
    refused: &'static [&'static str],
    words: &'static str,
}

const CASES: [Case; 2] = [
    Case {
        sql_type: "character(5)",
        accepted: "BO",
        stored: "BO",
        refused: &["BO ", "BO   ", " "],
        words: "fills its values up with blanks",
    },
    Case {
        sql_type: "citext",
        accepted: "ana@é.org",
        stored: "Ana@É.org",
        refused: &["Ana@É.org", "ana@É.org", "ANA@é.org"],
        words: "given in small letters",
    },
];

fn is_refused(result: Result<impl std::fmt::Debug, StoreError>, words: &str) {
    let error = result.expect_err("another spelling of a row");
    assert!(error.to_string().contains(words), "{error}");
    let StoreError::Violated { violation, .. } = error else { panic!("{error}") };
    assert_eq!(violation.kind, ViolationKind::Range, "{}", violation.message);
}

/// Opens a store with a row of the case's spelling, which refers to itself and is in its own collections.
async fn begun(
    url: &str,
    case: &Case,
) -> (std::sync::Arc<Postgres>, tokio_postgres::Client, String) {
    let table = unique("spelled");
    let legacy = client(url).await;
    let stored = case.stored;
    let rows = format!(
        "INSERT INTO {table} VALUES ('{stored}', '{stored}', '{stored}'); INSERT INTO {table}_friends VALUES \
         ('{stored}', '{stored}'); INSERT INTO {table}_marks VALUES ('{stored}', '{stored}', 7)"
    );
    let sql = tables(&table, case.sql_type) + &rows;
    legacy.batch_execute(&sql).await.expect("the tables are made");
    (open(config(url.to_owned(), &table), program()).await, legacy, table)
}

#[tokio::test]
async fn a_row_has_one_spelling_in_every_place() {
    let Some(url) = server().await else { return };
    for case in CASES {
        let (store, legacy, table) = begun(&url, &case).await;
        let key = case.accepted;
        // Refs, elements and entries come in the accepted spelling; a register keeps its own.
        let text = data(&*store, Read::Register(at(key, TEXT))).await;
        assert_eq!(text, Data::Register(Some(case.stored.into())));
        let own = Value::Ref(member(key));
        let friend = data(&*store, Read::Register(at(key, FRIEND))).await;
        assert_eq!(friend, Data::Register(Some(Value::some(own.clone()))));
        let friends = data(&*store, Read::Elements(at(key, FRIENDS))).await;
        assert_eq!(friends, Data::Values(vec![own.clone()]));
        let marks = data(&*store, Read::Entries(at(key, MARKS))).await;
        assert_eq!(marks, Data::Entries(vec![(key.into(), Value::Int(7))]));

        for other in case.refused {
            let (words, other_ref) = (case.words, Value::Ref(member(other)));
            for one in [
                Read::Register(at(other, TEXT)),
                Read::Exists(member(other)),
                Read::Elements(at(other, FRIENDS)),
                Read::Contains(at(key, FRIENDS), other_ref.clone()),
                Read::Entry(at(key, MARKS), (*other).into()),
            ] {
                is_refused(read(&*store, &[one]).await, words);
            }
            for one in [
                Write::Assign(at(other, TEXT), "x".into()),
                Write::Assign(at(key, FRIEND), Value::some(other_ref.clone())),
                Write::Insert(at(key, FRIENDS), other_ref.clone()),
                Write::Remove(at(key, FRIENDS), other_ref.clone()),
                Write::Put(at(key, MARKS), (*other).into(), Value::Int(8)),
                Write::Delete(member(other)),
            ] {
                is_refused(write(&*store, vec![one]).await, words);
            }
        }
        // Writes in the accepted spelling change the row that is there.
        let writes = vec![
            Write::Assign(at(key, TEXT), "x".into()),
            Write::Insert(at(key, FRIENDS), own),
            Write::Put(at(key, MARKS), key.into(), Value::Int(9)),
        ];
        write(&*store, writes).await.expect("a commit");
        let sql = format!(
            "SELECT (SELECT string_agg(id::text || ':' || text::text, ',') FROM {table}), (SELECT count(*) FROM {table}_friends), \
             (SELECT string_agg(mark::text, ',') FROM {table}_marks)"
        );
        let found = legacy.query_one(&sql, &[]).await.expect("a row");
        let found: (String, i64, String) = (found.get(0), found.get(1), found.get(2));
        assert_eq!(found, (format!("{}:x", case.stored), 1, "9".into()));
    }
}

/// A transaction that reads and writes a row by two spellings would not see its own write; two transactions with a
/// spelling each would not conflict. The second spelling fails, and with one spelling they conflict.
#[tokio::test]
async fn two_spellings_never_meet_in_a_transaction() {
    let Some(url) = server().await else { return };
    for case in CASES {
        let (store, _, _) = begun(&url, &case).await;
        let (key, other) = (case.accepted, case.refused[0]);
        let mut both = store.begin(&Session::default()).await.expect("a transaction");
        both.read(&[Read::Register(at(key, TEXT))]).await.expect("it reads");
        let writes = vec![Write::Assign(at(other, TEXT), "lost".into())];
        is_refused(both.commit(Commit { writes, ..Commit::default() }).await, case.words);

        let mut first = store.begin(&Session::default()).await.expect("a transaction");
        let mut second = store.begin(&Session::default()).await.expect("a transaction");
        for one in [&mut first, &mut second] {
            one.read(&[Read::Register(at(key, TEXT))]).await.expect("it reads");
        }
        let writes = |text: &str| vec![Write::Assign(at(key, TEXT), text.into())];
        let commit = |text: &str| Commit { writes: writes(text), ..Commit::default() };
        first.commit(commit("a")).await.expect("the first commits");
        let conflict = second.commit(commit("b")).await.expect_err("they conflict");
        assert!(matches!(conflict, StoreError::Conflict), "{conflict}");
    }
}

/// A cast to a type with a length would cut the key off, and name another row.
#[tokio::test]
async fn a_key_that_is_too_long_names_no_other_row() {
    let Some(url) = server().await else { return };
    for sql_type in ["character(5)", "character varying(5)"] {
        let table = unique("spelled");
        let legacy = client(&url).await;
        let rows = format!("INSERT INTO {table} VALUES ('abcde', 'there')");
        let sql = tables(&table, sql_type) + &rows;
        legacy.batch_execute(&sql).await.expect("the tables are made");
        let store = open(config(url.clone(), &table), program()).await;
        let there = data(&*store, Read::Exists(member("abcdef"))).await;
        assert_eq!(there, Data::Bool(false), "{sql_type}");
        let long = vec![Write::Assign(at("abcdef", TEXT), "x".into())];
        let error = write(&*store, long).await.expect_err("it is too long");
        assert!(error.to_string().contains("too long"), "{error}");
        let text = data(&*store, Read::Register(at("abcde", TEXT))).await;
        assert_eq!(text, Data::Register(Some("there".into())));
    }
}

#[tokio::test]
async fn keys_that_cannot_be_compared_as_the_database_does_are_refused() {
    let Some(url) = server().await else { return };
    let table = unique("spelled");
    let legacy = client(&url).await;
    let plain = tables(&table, "text");
    let alter = format!("ALTER TABLE {table} ALTER friend TYPE citext");
    legacy.batch_execute(&(plain + &alter)).await.expect("the tables are made");
    let opened = Postgres::connect(config(url.clone(), &table), program(), RealWorld::make()).await;
    let error = opened.map(|_| ()).expect_err("a citext that refers to text").to_string();
    assert!(error.contains("the key of Member is not"), "{error}");

    let table = unique("spelled");
    let collation = format!(
        "CREATE COLLATION {table} (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
    );
    let sql = collation + &tables(&table, &format!("text COLLATE {table}"));
    legacy.batch_execute(&sql).await.expect("the tables are made");
    let opened = Postgres::connect(config(url, &table), program(), RealWorld::make()).await;
    let error = opened.map(|_| ()).expect_err("a collation that is not deterministic").to_string();
    assert!(error.contains("column id") && error.contains("deterministic"), "{error}");
}
