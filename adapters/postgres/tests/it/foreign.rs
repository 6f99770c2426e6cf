//! Foreign keys that must hold after each statement: a commit is sent in an order in which they do, and the program may
//! write in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::support::{self, client, data, open, server, unique, write};
use mingle_model::random::Random;
use mingle_model::{FieldType, Level, Ref, Type, Value};
use mingle_store::{Address, Data, Read, StoreError, StoreSchema, ViolationKind, Write};
use mingle_store_postgres::{CollectionMapping, ObjectMapping, Postgres, PostgresConfig};

const NAME: u16 = 0;
const MEMBERS: u16 = 1;
const POSTS: u16 = 2;
const TEAM: u16 = 1;
const BOSS: u16 = 2;

/// A team has persons as members and in posts; a person is of a team and has a boss; a badge has a person as its key. The
/// tables are named in the opposite order of their foreign keys.
fn program() -> StoreSchema {
    let to = |kind: &str| Type::Ref(kind.into());
    let name = || ("name", FieldType::Register(Type::String));
    let teams = [
        name(),
        ("members", FieldType::Set(to("Person"))),
        ("posts", FieldType::Map(Type::String, to("Person"))),
    ];
    let persons = [
        name(),
        ("team", FieldType::Register(Type::Option(to("Team").into()))),
        ("boss", FieldType::Register(Type::Option(to("Person").into()))),
    ];
    support::schema(
        Level::Linearizable,
        &[],
        &[
            ("Team", Type::String, &teams),
            ("Person", Type::String, &persons),
            ("Badge", to("Person"), &[name()]),
        ],
    )
}

fn tables(schema: &str, deferred: &str) -> String {
    format!(
        "CREATE SCHEMA {schema}; \
         CREATE TABLE {schema}.teams (id text PRIMARY KEY, name text UNIQUE); \
         CREATE TABLE {schema}.persons (id text PRIMARY KEY, name text UNIQUE, \
         team text REFERENCES {schema}.teams {deferred}, boss text REFERENCES {schema}.persons {deferred}); \
         CREATE TABLE {schema}.badges (person text PRIMARY KEY REFERENCES {schema}.persons {deferred}, name text NOT NULL); \
         CREATE TABLE {schema}.members (team text REFERENCES {schema}.teams {deferred}, \
         person text REFERENCES {schema}.persons {deferred}, PRIMARY KEY (team, person)); \
         CREATE TABLE {schema}.posts (team text REFERENCES {schema}.teams {deferred}, name text, \
         person text NOT NULL REFERENCES {schema}.persons {deferred}, PRIMARY KEY (team, name));"
    )
}

async fn opened(url: &str, deferred: &str) -> (Arc<Postgres>, tokio_postgres::Client, String) {
    let schema = unique("foreign");
    let legacy = client(url).await;
    legacy.batch_execute(&tables(&schema, deferred)).await.expect("the tables are made");
    let of = |table: &str, key: &str| ObjectMapping {
        table: format!("{schema}.{table}"),
        key: vec![key.into()],
        ..ObjectMapping::default()
    };
    let part = |table: &str, entry: Option<&str>| CollectionMapping {
        table: format!("{schema}.{table}"),
        key: vec!["team".into()],
        value: "person".into(),
        entry: entry.map(str::to_owned),
        ..CollectionMapping::default()
    };
    let mut teams = of("teams", "id");
    teams.fields = BTreeMap::from([
        ("members".into(), part("members", None)),
        ("posts".into(), part("posts", Some("name"))),
    ]);
    let mut config = PostgresConfig::at(url.to_owned());
    config.schema = Some(unique("own"));
    config.objects = BTreeMap::from([
        ("Team".into(), teams),
        ("Person".into(), of("persons", "id")),
        ("Badge".into(), of("badges", "person")),
    ]);
    (open(config, program()).await, legacy, schema)
}

fn team(number: usize) -> Ref {
    Ref::new("Team", Value::from(&*format!("t{number}")))
}

fn person(number: usize) -> Ref {
    Ref::new("Person", Value::from(&*format!("p{number}")))
}

fn badge(number: usize) -> Ref {
    Ref::new("Badge", Value::Ref(person(number)))
}

fn at(object: Ref, field: u16) -> Address {
    Address { object, field }
}

fn named(object: Ref, name: &str) -> Write {
    Write::Assign(at(object, NAME), name.into())
}

fn linked(object: Ref, field: u16, to: Ref) -> Write {
    Write::Assign(at(object, field), Value::some(Value::Ref(to)))
}

fn member(of: usize, one: usize) -> Write {
    Write::Insert(at(team(of), MEMBERS), Value::Ref(person(one)))
}

#[tokio::test]
async fn rows_come_after_those_to_which_they_refer() {
    let Some(url) = server().await else { return };
    let (store, legacy, schema) = opened(&url, "").await;
    let writes = vec![
        named(badge(1), "first"),
        member(0, 1),
        Write::Put(at(team(0), POSTS), "chair".into(), Value::Ref(person(2))),
        linked(person(1), BOSS, person(2)),
        linked(person(1), TEAM, team(0)),
        named(person(2), "Bo"),
        Write::Create(team(0)),
    ];
    write(&*store, writes).await.expect("each row is written after those that it names");
    let members = data(&*store, Read::Elements(at(team(0), MEMBERS))).await;
    assert_eq!(members, Data::Values(vec![Value::Ref(person(1))]));

    // Rows are removed after those that refer to them, and after the refs that are moved elsewhere.
    let writes = vec![
        Write::Delete(person(2)),
        Write::Delete(team(0)),
        linked(person(1), BOSS, person(3)),
        Write::Assign(at(person(1), TEAM), Value::NONE),
        named(person(3), "Cy"),
    ];
    write(&*store, writes).await.expect("each row is removed after those that name it");
    let writes = vec![Write::Delete(person(1)), Write::Delete(badge(1))];
    write(&*store, writes).await.expect("the badge is removed first");
    let count = format!(
        "SELECT (SELECT count(*) FROM {schema}.persons), (SELECT count(*) FROM {schema}.teams), \
         (SELECT count(*) FROM {schema}.badges) + (SELECT count(*) FROM {schema}.members) + \
         (SELECT count(*) FROM {schema}.posts)"
    );
    let row = legacy.query_one(&count, &[]).await.expect("the rows are counted");
    assert_eq!((row.get(0), row.get(1), row.get(2)), (1_i64, 0_i64, 0_i64));
}

#[tokio::test]
async fn nothing_else_moves() {
    let Some(url) = server().await else { return };
    let (store, _legacy, _) = opened(&url, "").await;
    write(&*store, vec![named(team(0), "red"), named(person(0), "Ana")]).await.expect("rows");
    // A row can take a unique value of one that is deleted before it, and a deleted row comes again.
    let writes = vec![
        Write::Delete(person(0)),
        named(person(1), "Ana"),
        Write::Delete(team(0)),
        Write::Create(team(0)),
        named(team(0), "blue"),
        member(0, 1),
        named(team(1), "red"),
    ];
    write(&*store, writes).await.expect("the names are free by then");
    let name = data(&*store, Read::Register(at(team(0), NAME))).await;
    assert_eq!(name, Data::Register(Some("blue".into())));

    // What no order can mend is refused, with the name of the constraint.
    let refused = write(&*store, vec![Write::Delete(person(1))]).await;
    let error = refused.expect_err("a member is not deleted");
    let StoreError::Violated { violation, .. } = error else { panic!("{error}") };
    assert_eq!(violation.kind, ViolationKind::ForeignKey);
    assert!(violation.message.contains("members_person_fkey"), "{}", violation.message);
}

/// The writes of a random commit, in a random order. Persons have bosses of greater numbers, so those with
/// smaller numbers are deleted first: nothing tells the adapter which of two deleted rows refers to the other.
fn commit(random: &mut Random, tag: usize) -> Vec<Write> {
    let mut below = |bound| random.below(bound);
    let mut writes = Vec::new();
    for _ in 0..=below(8) {
        let (one, other) = (below(4), below(4));
        let address = at(team(one), if below(2) == 0 { MEMBERS } else { POSTS });
        let (post, to) = (Value::from(&*format!("post{other}")), Value::Ref(person(other)));
        let name = format!("{tag}-{}", writes.len());
        writes.push(match (below(9), address.field) {
            (0, _) => named(team(one), &name),
            (1, _) => named(person(one), &name),
            (2, _) => linked(person(one), TEAM, team(other)),
            (3, _) if one < other => linked(person(one), BOSS, person(other)),
            (3, _) => Write::Assign(at(person(one), TEAM), Value::NONE),
            (4, _) => Write::Assign(at(person(one), BOSS), Value::NONE),
            (5, MEMBERS) => Write::Insert(address, to),
            (5, _) => Write::Put(address, post, to),
            (6, MEMBERS) => Write::Remove(address, to),
            (6, _) => Write::Erase(address, post),
            (7, _) => Write::Clear(address),
            _ => named(badge(one), &name),
        });
    }
    let mut deleted = Vec::new();
    for (kind, of_ten) in [(person as fn(usize) -> Ref, 3), (team, 2), (badge, 3)] {
        deleted.extend((0..4).filter(|_| below(10) < of_ten).map(kind));
    }
    // As the runtime sends them: nothing is written to what is deleted, and each element once.
    let mut parts = BTreeSet::new();
    writes.retain(|write| {
        let is_kept = write.object().is_none_or(|object| !deleted.contains(object));
        is_kept
            && match write {
                Write::Insert(at, element) | Write::Remove(at, element) => {
                    parts.insert((at.clone(), Some(element.clone())))
                }
                Write::Put(at, entry, _) | Write::Erase(at, entry) => {
                    parts.insert((at.clone(), Some(entry.clone())))
                }
                Write::Clear(at) => !parts.iter().any(|(other, _)| other == at),
                _ => true,
            }
    });
    let mut places: Vec<usize> = deleted.iter().map(|_| below(9).min(writes.len())).collect();
    places.sort_unstable();
    for (object, place) in deleted.into_iter().zip(places).rev() {
        writes.insert(place, Write::Delete(object));
    }
    writes
}

#[tokio::test]
async fn a_commit_that_deferred_keys_allow_is_allowed() {
    let Some(url) = server().await else { return };
    let (now, _, _) = opened(&url, "").await;
    let (later, _, _) = opened(&url, "DEFERRABLE INITIALLY DEFERRED").await;
    let seed = 20_261_128;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut counts = [0_u32; 2];
    for tag in 0..300 {
        let writes = commit(&mut random, tag);
        let at_once = write(&*now, writes.clone()).await;
        let at_end = write(&*later, writes.clone()).await;
        counts[usize::from(at_end.is_ok())] += 1;
        let same = at_once.is_ok() == at_end.is_ok();
        assert!(
            same,
            "seed {seed}, commit {tag}: {writes:?}\nat once: {at_once:?}\nat the end: {at_end:?}"
        );
    }
    assert!(counts.iter().all(|count| *count > 20), "refused and allowed: {counts:?}");
}
