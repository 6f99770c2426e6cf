//! Tables with a trigger, a rule or a policy that prevents a row from being written: the commit is
//! refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{self, client, data, open, server, unique, write};
use mingle_model::{FieldType, Level, Ref, Type, Value};
use mingle_store::{Address, Data, Read, StoreError, StoreSchema, ViolationKind, Write};
use mingle_store_postgres::{CollectionMapping, ObjectMapping, Postgres, PostgresConfig};
use tokio_postgres::Client;

const BODY: u16 = 0;
const HITS: u16 = 1;
const TAGS: u16 = 2;
const MARKS: u16 = 3;
const LINES: u16 = 4;

fn program() -> StoreSchema {
    let fields = [
        ("body", FieldType::Register(Type::String)),
        ("hits", FieldType::Counter),
        ("tags", FieldType::Set(Type::String)),
        ("marks", FieldType::Map(Type::String, Type::Int)),
        ("lines", FieldType::Log(Type::String)),
    ];
    support::schema(Level::Linearizable, &[], &[("Page", Type::Int, &fields)])
}

fn page(id: i64) -> Ref {
    Ref::new("Page", Value::Int(id))
}

fn at(id: i64, field: u16) -> Address {
    Address { object: page(id), field }
}

fn text(text: &str) -> Value {
    Value::from(text)
}

/// Creates a page in each field's table, with two rows in each collection.
fn tables(name: &str) -> String {
    let rows = |what: &str, columns: &str| {
        format!("CREATE TABLE {name}_{what} (page bigint NOT NULL, {columns});")
    };
    let fill = |id: i64| {
        format!(
            "INSERT INTO {name} VALUES ({id}, 'old', 1); \
             INSERT INTO {name}_tags VALUES ({id}, 'a'), ({id}, 'b'); \
             INSERT INTO {name}_marks VALUES ({id}, 'a', 1), ({id}, 'b', 2); \
             INSERT INTO {name}_lines (page, line) VALUES ({id}, 'a'), ({id}, 'b');"
        )
    };
    [
        format!(
            "CREATE TABLE {name} (id bigint PRIMARY KEY, body text NOT NULL DEFAULT '', \
             hits bigint NOT NULL DEFAULT 0);"
        ),
        rows("tags", "tag text NOT NULL, PRIMARY KEY (page, tag)"),
        rows("marks", "mark text NOT NULL, value bigint NOT NULL, PRIMARY KEY (page, mark)"),
        rows("lines", "position bigserial PRIMARY KEY, line text NOT NULL"),
        fill(1),
        fill(2),
    ]
    .concat()
}

fn mapping(name: &str) -> ObjectMapping {
    let of = |what: &str, value: &str| CollectionMapping {
        table: format!("{name}_{what}"),
        key: vec!["page".into()],
        value: value.into(),
        ..CollectionMapping::default()
    };
    let marks = CollectionMapping { entry: Some("mark".into()), ..of("marks", "value") };
    let lines = CollectionMapping { order: Some("position".into()), ..of("lines", "line") };
    ObjectMapping {
        table: name.into(),
        key: vec!["id".into()],
        fields: BTreeMap::from([
            ("tags".into(), of("tags", "tag")),
            ("marks".into(), marks),
            ("lines".into(), lines),
        ]),
        ..ObjectMapping::default()
    }
}

async fn opened(url: &str, own: &str, name: &str) -> Arc<Postgres> {
    let mut config = PostgresConfig::at(url);
    config.schema = Some(own.into());
    config.objects = BTreeMap::from([("Page".into(), mapping(name))]);
    open(config, program()).await
}

/// Returns every kind of write of a mapped object, with the part of the tables' names that it
/// changes.
fn writes(id: i64) -> Vec<(&'static str, Write)> {
    vec![
        ("", Write::Assign(at(id, BODY), text("new"))),
        ("", Write::Add(at(id, HITS), 1)),
        ("", Write::Assign(at(id + 7, BODY), text("new"))),
        ("", Write::Create(page(id + 7))),
        ("_tags", Write::Insert(at(id, TAGS), text("c"))),
        ("_tags", Write::Remove(at(id, TAGS), text("a"))),
        ("_tags", Write::Clear(at(id, TAGS))),
        ("_marks", Write::Put(at(id, MARKS), text("a"), Value::Int(7))),
        ("_marks", Write::Put(at(id, MARKS), text("c"), Value::Int(7))),
        ("_marks", Write::Erase(at(id, MARKS), text("a"))),
        ("_marks", Write::Clear(at(id, MARKS))),
        ("_lines", Write::Append(at(id, LINES), text("c"))),
        ("_lines", Write::Clear(at(id, LINES))),
        ("_lines", Write::Delete(page(id))),
    ]
}

/// Returns all rows of the four tables, as text.
async fn all(client: &Client, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for table in
        [name.to_owned(), format!("{name}_tags"), format!("{name}_marks"), format!("{name}_lines")]
    {
        let rows = client.query(&format!("SELECT t::text FROM {table} AS t ORDER BY 1"), &[]).await;
        found.extend(rows.expect("rows").iter().map(|row| row.get::<_, String>(0)));
    }
    found
}

async fn refused(store: &Postgres, one: &Write) -> String {
    // The other half must not be written either.
    let both = vec![Write::Add(at(2, HITS), 1), one.clone()];
    match write(store, both).await {
        Err(StoreError::Violated { violation, .. }) => violation.message,
        Err(StoreError::Refused { reason, .. }) => reason,
        other => panic!("{one:?} was to be refused: {other:?}"),
    }
}

#[tokio::test]
async fn a_trigger_that_keeps_rows_from_being_written_is_a_refusal_that_names_it() {
    let Some(url) = server().await else { return };
    let (name, own) = (unique("kept"), unique("own"));
    let legacy = client(&url).await;
    legacy.batch_execute(&tables(&name)).await.expect("the tables are made");
    let keep = format!(
        "CREATE FUNCTION {name}_keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
    );
    legacy.batch_execute(&keep).await.expect("a function");
    for (table, one) in writes(1) {
        let trigger = format!(
            "CREATE TRIGGER keeper BEFORE INSERT OR UPDATE OR DELETE ON {name}{table} FOR EACH ROW \
             WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION {name}_keep()"
        );
        // The other half's row is not kept.
        let trigger = match table {
            "" => trigger.replace("WHEN (pg_trigger_depth() = 0)", ""),
            _ => trigger,
        };
        legacy.batch_execute(&trigger).await.expect("a trigger");
        let store = opened(&url, &own, &name).await;
        let before = all(&legacy, &name).await;
        let reason = refused(&store, &one).await;
        assert!(reason.contains("trigger keeper"), "{one:?}: {reason}");
        assert!(reason.contains(&name), "{one:?}: {reason}");
        assert_eq!(all(&legacy, &name).await, before, "{one:?}");
        let drop = format!("DROP TRIGGER keeper ON {name}{table}");
        legacy.batch_execute(&drop).await.expect("it is gone");
    }
    let moved = format!(
        "CREATE FUNCTION {name}_move() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN NEW.id = NEW.id + 100; RETURN NEW; END'; \
         CREATE TRIGGER mover BEFORE INSERT OR UPDATE ON {name} FOR EACH ROW EXECUTE FUNCTION {name}_move()"
    );
    legacy.batch_execute(&moved).await.expect("a trigger");
    let store = opened(&url, &own, &name).await;
    for one in [Write::Create(page(50)), Write::Assign(at(1, BODY), text("new"))] {
        let reason = refused(&store, &one).await;
        assert!(reason.contains("trigger mover"), "{one:?} has another key: {reason}");
    }
    legacy.batch_execute(&format!("DROP TRIGGER mover ON {name}")).await.expect("it is gone");
    // Without the trigger everything is written.
    let store = opened(&url, &own, &name).await;
    for (_, one) in writes(1) {
        write(&*store, vec![one.clone()]).await.unwrap_or_else(|error| panic!("{one:?}: {error}"));
    }
}

#[tokio::test]
async fn a_rule_that_writes_something_else_is_a_refusal() {
    let Some(url) = server().await else { return };
    let (name, own) = (unique("ruled"), unique("own"));
    let legacy = client(&url).await;
    legacy.batch_execute(&tables(&name)).await.expect("the tables are made");
    for (table, one) in writes(1) {
        for event in ["INSERT", "UPDATE", "DELETE"] {
            let rule =
                format!("CREATE RULE r_{event} AS ON {event} TO {name}{table} DO INSTEAD NOTHING");
            legacy.batch_execute(&rule).await.expect("a rule");
        }
        let store = opened(&url, &own, &name).await;
        let before = all(&legacy, &name).await;
        refused(&store, &one).await;
        assert_eq!(all(&legacy, &name).await, before, "{one:?}");
        for event in ["INSERT", "UPDATE", "DELETE"] {
            let drop = format!("DROP RULE r_{event} ON {name}{table}");
            legacy.batch_execute(&drop).await.expect("it is gone");
        }
    }
}

#[tokio::test]
async fn a_row_that_is_hidden_is_refused_at_once() {
    let Some(url) = server().await else { return };
    let name = unique("hidden");
    let legacy = client(&url).await;
    legacy.batch_execute(&tables(&name)).await.expect("the tables are made");
    let policies = ["", "_tags", "_marks"].map(|table| {
        let id = if table.is_empty() { "id" } else { "page" };
        format!(
            "ALTER TABLE {name}{table} ENABLE ROW LEVEL SECURITY; \
             CREATE POLICY seen ON {name}{table} FOR SELECT USING ({id} <> 1); \
             CREATE POLICY made ON {name}{table} FOR INSERT WITH CHECK (true); \
             CREATE POLICY changed ON {name}{table} FOR UPDATE USING ({id} <> 2);"
        )
    });
    let own = unique("own");
    let sql = format!(
        "{} CREATE ROLE {name}_user LOGIN; GRANT CREATE ON DATABASE postgres TO {name}_user; \
         GRANT ALL ON {name}, {name}_tags, {name}_marks, {name}_lines, {name}_lines_position_seq TO {name}_user",
        policies.concat()
    );
    legacy.batch_execute(&sql).await.expect("the policies are made");
    let at_host = url.split_once('@').expect("it names a user").1;
    let mut config = PostgresConfig::at(format!("postgres://{name}_user@{at_host}"));
    config.schema = Some(own);
    config.objects = BTreeMap::from([("Page".into(), mapping(&name))]);
    let store = open(config, program()).await;

    assert_eq!(data(&*store, Read::Exists(page(1))).await, Data::Bool(false), "it is hidden");
    let before = all(&legacy, &name).await;
    for one in [
        Write::Create(page(1)),
        Write::Assign(at(1, BODY), text("stolen")),
        Write::Insert(at(1, TAGS), text("a")),
        Write::Put(at(1, MARKS), text("a"), Value::Int(9)),
    ] {
        let refused = write(&*store, vec![one.clone()]).await;
        let Err(StoreError::Violated { violation, .. }) = refused else {
            panic!("{one:?}: {refused:?}")
        };
        let reason = violation.message;
        assert!(reason.contains("exists already, but is not visible"), "{one:?}: {reason}");
        assert!(violation.constraint.is_some() && violation.kind.is_conflict(), "{reason}");
    }
    for one in [
        Write::Assign(at(2, BODY), text("stolen")),
        Write::Put(at(2, MARKS), text("a"), Value::Int(9)),
        Write::Remove(at(2, TAGS), text("a")),
        Write::Delete(page(2)),
    ] {
        let refused = write(&*store, vec![one.clone()]).await;
        let Err(StoreError::Violated { violation, .. }) = refused else {
            panic!("{one:?}: {refused:?}")
        };
        assert_eq!(violation.kind, ViolationKind::Unwritten, "{one:?}: {violation:?}");
        assert!(violation.message.contains("policy of the table"), "{one:?}: {violation:?}");
    }
    assert_eq!(all(&legacy, &name).await, before);
}

#[tokio::test]
async fn a_table_with_rows_in_others_is_no_place_for_objects() {
    let Some(url) = server().await else { return };
    let name = unique("parent");
    let sql = format!(
        "{} CREATE TABLE {name}_child () INHERITS ({name}); INSERT INTO {name}_child VALUES (1, 'other', 0)",
        tables(&name)
    );
    client(&url).await.batch_execute(&sql).await.expect("the tables are made");
    let mut config = PostgresConfig::at(url);
    config.schema = Some(unique("own"));
    config.objects = BTreeMap::from([("Page".into(), mapping(&name))]);
    let opened = Postgres::connect(config, program(), support::RealWorld::make()).await;
    let Err(error) = opened else { panic!("it has opened") };
    let told = error.to_string();
    assert!(told.contains(&format!("{name}_child")) && told.contains("inherit"), "{told}");
}
