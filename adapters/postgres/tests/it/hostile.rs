//! Names and texts with hostile content: each ends where it should.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mingle_model::{FieldType, Level, Ref, Type, Value};
use mingle_store::conformance::hostile::Random;
use mingle_store::{Address, Data, DataStore, Read, StoreSchema, Write};
use mingle_store_postgres::{CollectionMapping, ObjectMapping, PostgresConfig};
use tokio_postgres::Client;

use crate::support::{self, open, read, server, unique, write};

/// Longer names are cut by the server.
const NAME_BYTES_MAX: usize = 63;

/// Returns a name in SQL, quoted by the server itself.
async fn quoted(client: &Client, name: &str) -> String {
    let row = client.query_one("SELECT quote_ident($1::text)", &[&name]).await.expect("a name");
    row.get(0)
}

/// Returns the names of all schemas with their tables, except the server's own.
async fn everything(client: &Client) -> BTreeSet<(String, String)> {
    let sql = "SELECT n.nspname::text, c.relname::text FROM pg_namespace AS n \
               LEFT JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'v') \
               WHERE c.relname IS NOT NULL AND n.nspname NOT LIKE 'pg\\_%'";
    let rows = client.query(sql, &[]).await.expect("the catalog answers");
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Creates a database for this test alone, so that its contents can be counted.
async fn database() -> Option<(String, Client)> {
    let url = server().await?;
    let (name, client) = (unique("hostile"), support::client(&url).await);
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a database");
    let parsed = url.rsplit_once('/').expect("the address names a database");
    let rest = parsed.1.split_once('?').map_or(String::new(), |(_, rest)| format!("?{rest}"));
    let url = format!("{}/{name}{rest}", parsed.0);
    let client = support::client(&url).await;
    let canary = "CREATE SCHEMA canary; CREATE TABLE canary.bird (sings boolean)";
    client.batch_execute(canary).await.expect("a canary");
    Some((url, client))
}

const COUNT: u16 = 1;
const TAGS: u16 = 2;
const MARKS: u16 = 3;
const LINES: u16 = 4;

fn program(names: [&str; 5], level: Level) -> StoreSchema {
    let fields = [
        (names[0], FieldType::Register(Type::String)),
        (names[1], FieldType::Counter),
        (names[2], FieldType::Set(Type::String)),
        (names[3], FieldType::Map(Type::String, Type::String)),
        (names[4], FieldType::Log(Type::String)),
    ];
    support::schema(level, &[], &[("Note", Type::String, &fields)])
}

const PLAIN: [&str; 5] = ["name", "count", "tags", "marks", "lines"];

fn at(key: &str, field: u16) -> Address {
    Address { object: Ref::new("Note", Value::from(key)), field }
}

/// Writes every shape of field with these texts, and reads it back in every way.
async fn writes_and_reads(store: &dyn DataStore, key: &str, texts: [&str; 5]) {
    let [name, element, entry, value, line] = texts.map(Value::from);
    let writes = vec![
        Write::Create(at(key, 0).object),
        Write::Assign(at(key, 0), name.clone()),
        Write::Add(at(key, COUNT), 2),
        Write::Insert(at(key, TAGS), element.clone()),
        Write::Put(at(key, MARKS), entry.clone(), value.clone()),
        Write::Append(at(key, LINES), line.clone()),
    ];
    write(store, writes).await.expect("the writes are taken");
    let cases = [
        (Read::Exists(at(key, 0).object), Data::Bool(true)),
        (Read::Register(at(key, 0)), Data::Register(Some(name))),
        (Read::Counter(at(key, COUNT)), Data::Counter(2)),
        (Read::Elements(at(key, TAGS)), Data::Values(vec![element.clone()])),
        (Read::Contains(at(key, TAGS), element.clone()), Data::Bool(true)),
        (Read::SetSize(at(key, TAGS)), Data::Count(1)),
        (Read::Entry(at(key, MARKS), entry.clone()), Data::Register(Some(value.clone()))),
        (Read::Entries(at(key, MARKS)), Data::Entries(vec![(entry.clone(), value)])),
        (Read::LogLast(at(key, LINES), 5), Data::Values(vec![line])),
        (Read::LogSize(at(key, LINES)), Data::Count(1)),
    ];
    let reads: Vec<Read> = cases.iter().map(|(read, _)| read.clone()).collect();
    let answers = read(store, &reads).await.expect("the reads succeed");
    for ((read, expected), answer) in cases.iter().zip(answers) {
        assert_eq!(answer.data, *expected, "{read:?}");
    }
    let removed = vec![
        Write::Remove(at(key, TAGS), element),
        Write::Erase(at(key, MARKS), entry),
        Write::Add(at(key, COUNT), 1),
    ];
    write(store, removed).await.expect("the removals are taken");
    let left = read(store, &[Read::SetSize(at(key, TAGS)), Read::MapSize(at(key, MARKS))]).await;
    let left: Vec<Data> = left.expect("they are read").into_iter().map(|one| one.data).collect();
    assert_eq!(left, [Data::Count(0), Data::Count(0)]);
}

/// Names of a schema, its tables and their columns.
struct Names {
    schema: String,
    notes: String,
    tags: String,
    marks: String,
    lines: String,
    id: String,
    name: String,
    count: String,
    owner: String,
    tag: String,
    entry: String,
    value: String,
    line: String,
    order: String,
}

impl Names {
    fn draw(random: &mut Random) -> Self {
        let mut name = |first: &str| random.name(first, NAME_BYTES_MAX);
        let mut table = |first: &str| name(first).replace('.', "_");
        let [schema, notes, tags, marks, lines] =
            ["s", "notes", "tags", "marks", "lines"].map(&mut table);
        let [id, name, count, owner, tag, entry, value, line, order] =
            ["id", "name", "count", "owner", "tag", "entry", "value", "line", "order"]
                .map(&mut name);
        Self {
            schema,
            notes,
            tags,
            marks,
            lines,
            id,
            name,
            count,
            owner,
            tag,
            entry,
            value,
            line,
            order,
        }
    }

    /// Returns the statements that create the tables, with names in SQL as the server itself writes
    /// them.
    async fn sql(&self, client: &Client) -> String {
        const TABLES: &str = "
            CREATE SCHEMA <schema>;
            CREATE TABLE <schema>.<notes> (<id> text PRIMARY KEY, <name> text NOT NULL,
                <count> bigint NOT NULL DEFAULT 0);
            CREATE TABLE <schema>.<tags> (<owner> text, <tag> text, PRIMARY KEY (<owner>, <tag>));
            CREATE TABLE <schema>.<marks> (<owner> text, <entry> text, <value> text NOT NULL,
                PRIMARY KEY (<owner>, <entry>));
            CREATE TABLE <schema>.<lines> (<order> bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
                <owner> text NOT NULL, <line> text NOT NULL);";
        let mut sql = String::new();
        let mut rest = TABLES;
        while let Some((before, after)) = rest.split_once('<') {
            let (place, after) = after.split_once('>').expect("it is closed");
            sql += before;
            sql += &quoted(client, self.at(place)).await;
            rest = after;
        }
        sql + rest
    }

    fn at(&self, place: &str) -> &str {
        match place {
            "schema" => &self.schema,
            "notes" => &self.notes,
            "tags" => &self.tags,
            "marks" => &self.marks,
            "lines" => &self.lines,
            "id" => &self.id,
            "name" => &self.name,
            "count" => &self.count,
            "owner" => &self.owner,
            "tag" => &self.tag,
            "entry" => &self.entry,
            "value" => &self.value,
            "line" => &self.line,
            "order" => &self.order,
            other => panic!("nothing is called by {other}"),
        }
    }
}

/// Tables of another application with hostile names, and the mapping of `Note` to them.
async fn mapped(client: &Client, random: &mut Random) -> ObjectMapping {
    let names = Names::draw(random);
    let sql = names.sql(client).await;
    client.batch_execute(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let collection = |table: &str, value: &str| CollectionMapping {
        table: format!("{}.{table}", names.schema),
        key: vec![names.owner.clone()],
        value: value.into(),
        ..CollectionMapping::default()
    };
    let (tags, marks) =
        (collection(&names.tags, &names.tag), collection(&names.marks, &names.value));
    let marks = CollectionMapping { entry: Some(names.entry.clone()), ..marks };
    let lines = collection(&names.lines, &names.line);
    let lines = CollectionMapping { order: Some(names.order.clone()), ..lines };
    ObjectMapping {
        table: format!("{}.{}", names.schema, names.notes),
        key: vec![names.id.clone()],
        columns: [
            ("name".into(), vec![names.name.clone()]),
            ("count".into(), vec![names.count.clone()]),
        ]
        .into(),
        fields: [("tags".into(), tags), ("marks".into(), marks), ("lines".into(), lines)].into(),
    }
}

/// Tables, columns and schemas of other applications may have any name.
#[tokio::test]
async fn hostile_names_of_tables_and_columns() {
    let Some((url, client)) = database().await else { return };
    for seed in 0..12 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let mapping = mapped(&client, &mut random).await;
        let mut config = PostgresConfig::at(url.clone());
        config.schema = Some(random.name("own", NAME_BYTES_MAX));
        config.objects = BTreeMap::from([("Note".to_owned(), mapping)]);
        let store = open(config, program(PLAIN, Level::Linearizable)).await;
        let before = everything(&client).await;
        let key = random.text("k", 6);
        let texts = [(); 5].map(|()| random.text("t", 6));
        writes_and_reads(&*store, &key, texts.each_ref().map(String::as_str)).await;
        let after = everything(&client).await;
        assert_eq!(before, after, "seed {seed}");
        assert!(after.contains(&("canary".into(), "bird".into())), "seed {seed}");
    }
}

/// Mingle's own tables: in a schema with a hostile name, of objects and fields whose names have a
/// meaning for the server.
#[tokio::test]
async fn hostile_names_of_our_own() {
    let Some((url, client)) = database().await else { return };
    let long = ["long_".repeat(40), "ß".repeat(80), format!("mingle_{}", "x".repeat(100))];
    let names = [
        ["ctid", "xmin", "xmax", "cmin", "cmax"],
        ["tableoid", "oid", "select", "user", "table"],
        ["mingle_id", "mingle_object", "mingle_version", "mingle_exists", "mingle_element"],
        [&long[0], "Name", "name", "NAME", &long[1]],
        ["é", "null", "default", &long[2], "current_user"],
    ];
    for (seed, fields) in (0..).zip(names) {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let mut config = PostgresConfig::at(url.clone());
        // One of the names is the end mark that quotes PostgreSQL functions.
        let own =
            if seed == 0 { "o$mingle$; --".to_owned() } else { random.name("own", NAME_BYTES_MAX) };
        config.schema = Some(own.clone());
        for round in 0..2 {
            let store = open(config.clone(), program(fields, Level::Linearizable)).await;
            let key = random.text(&format!("k{round}"), 6);
            let texts = [(); 5].map(|()| random.text("t", 6));
            writes_and_reads(&*store, &key, texts.each_ref().map(String::as_str)).await;
        }
        let after = everything(&client).await;
        assert!(after.contains(&("canary".into(), "bird".into())), "seed {seed}");
        let schemas: BTreeSet<&String> = after.iter().map(|(schema, _)| schema).collect();
        assert!(schemas.contains(&own), "seed {seed}: {schemas:?}");
        assert_eq!(schemas.len(), usize::try_from(seed).expect("small") + 3, "{schemas:?}");
    }
}

/// Keys of objects may have the name of a system column.
#[tokio::test]
async fn a_key_called_like_a_column_of_the_servers() {
    let Some(url) = server().await else { return };
    for name in ["ctid", "xmin", "tableoid", "mingle_id"] {
        let mut schema = program(PLAIN, Level::Linearizable);
        let mut changed = (*schema.schema).clone();
        let object = changed.objects.get_mut("Note").expect("it is declared");
        let renamed = mingle_model::ObjectType { key_name: name.into(), ..(**object).clone() };
        *object = Arc::new(renamed);
        schema.schema = Arc::new(changed);
        let store = open(PostgresConfig::at(url.clone()), schema).await;
        writes_and_reads(&*store, "k", ["a", "b", "c", "d", "e"]).await;
    }
}
