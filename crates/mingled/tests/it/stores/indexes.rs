//! Indexes of programs: several programs with different ones, at several data centers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use mingle::{Database, Session as Client};
use mingle_geo::DcId;
use mingle_lang::explain::explain;
use mingle_model::{BuiltinQuery, Field, FieldType, IndexRead, Level, Name, Type, Value};
use mingle_store::conformance::schema::{NUMBER, TEXT, at, store_schema};
use mingle_store::{
    Commit, Data, DataStore, Read, Session, StoreError, StoreOperation, StoreSchema, Write,
};
use serde_json::json;

use super::block_on;
use super::conformance::Place;
use super::programs::{self, Center};
use super::several::{PATIENCE, Places, arrived};

/// Returns the suite's schema with indexes over fields of `Thing`.
pub fn indexed(level: Level, indexes: &[&[&str]]) -> StoreSchema {
    let mut schema = store_schema(level);
    let queries = indexes.iter().map(|fields| {
        let types = fields.iter().map(|field| match *field {
            "text" => Type::String,
            _ => Type::Int,
        });
        let read = IndexRead {
            object: "Thing".into(),
            index: fields.join("_").into(),
            fields: fields.iter().map(|field| Name::from(*field)).collect(),
            equal: 1,
            counts: false,
            is_unique: false,
        };
        let operation = StoreOperation {
            is_command: false,
            parameters: read.parameters(&types.collect::<Vec<_>>()),
            result: Some(read.result()),
            body: None,
            builtin: Some(BuiltinQuery::Index(read.clone())),
        };
        (read.index, operation)
    });
    schema.operations = queries.collect::<BTreeMap<_, _>>();
    schema
}

/// Returns the read of an index, of all objects with a value of its first field.
fn with(index: &str, value: impl Into<Value>) -> Read {
    // The end of the page before, or two bounds of the second field.
    let bounds = vec![Value::NONE; index.split('_').count()];
    let end = vec![Value::Bool(false), Value::Int(1_000)];
    Read::Query { operation: index.into(), arguments: [vec![value.into()], bounds, end].concat() }
}

fn text(key: &str, text: &str) -> Write {
    Write::Assign(at(key, TEXT), text.into())
}

fn number(key: &str, number: i64) -> Write {
    Write::Assign(at(key, NUMBER), Value::Int(number))
}

async fn write(store: &dyn DataStore, dc: &str, writes: Vec<Write>) -> Result<(), StoreError> {
    let begun = store.begin(&Session::at(dc)).await?;
    begun.commit(Commit { writes, ..Commit::default() }).await.map(|_| ())
}

/// Returns the keys that a query gives.
async fn keys(store: &dyn DataStore, dc: &str, read: Read) -> Result<Vec<String>, StoreError> {
    let mut begun = store.begin(&Session::at(dc)).await?;
    let answers = begun.read_last(&[read]).await?;
    begun.commit(Commit::default()).await?;
    let Data::Result(Value::List(found)) = &answers[0].data else { panic!("{answers:?}") };
    let key = |value: &Value| match value {
        Value::Ref(object) => match object.key() {
            Value::String(key) => key.to_string(),
            other => panic!("the key {other}"),
        },
        other => panic!("{other} is no ref"),
    };
    Ok(found.iter().map(key).collect())
}

/// A program without indexes writes at one data center, and another one reads by an index at another. A later write of the
/// first one is a conflict, although that one was opened before any program had an index.
#[test]
fn a_program_without_indexes_makes_no_phantoms_for_another() {
    block_on(async {
        let places = Places::found().await;
        let plain = places.open(indexed(Level::Linearizable, &[])).await;
        write(&*plain, "d0", vec![text("a", "red")]).await.expect("it commits");
        // An older index is among those that writers know.
        let other = places.open(indexed(Level::Linearizable, &[&["number"]])).await;
        write(&*plain, "d0", vec![number("b", 7)]).await.expect("it commits");
        let found = keys(&*other, "d2", with("number", Value::Int(7))).await;
        assert_eq!(found, Ok(vec!["b".to_owned()]));
        let reader = places.open(indexed(Level::Linearizable, &[&["text"]])).await;
        for (at, change) in [text("c", "red"), text("a", "blue"), Write::Delete(at("c", 0).object)]
            .into_iter()
            .enumerate()
        {
            let expected = [vec!["a"], vec!["a", "c"], vec!["c"]][at].clone();
            let mut begun = reader.begin(&Session::at("d1")).await.expect("it serves");
            let answers = begun.read(&[with("text", "red")]).await.expect("it answers");
            let Data::Result(Value::List(found)) = &answers[0].data else { panic!("{answers:?}") };
            assert_eq!(found.len(), expected.len(), "{found:?}, expected {expected:?}");
            write(&*plain, "d0", vec![change]).await.expect("it commits");
            let writes = vec![number("sum", at as i64)];
            let ended = begun.commit(Commit { writes, ..Commit::default() }).await;
            assert_eq!(ended.map(|_| ()), Err(StoreError::Conflict), "change {at}");
        }
        let found = keys(&*reader, "d1", with("text", "red")).await;
        assert_eq!(found, Ok(Vec::new()));
        // A change beside the part that was read is no conflict.
        let mut begun = reader.begin(&Session::at("d1")).await.expect("it serves");
        begun.read(&[with("text", "red")]).await.expect("it answers");
        write(&*plain, "d0", vec![text("d", "green")]).await.expect("it commits");
        let writes = vec![number("sum", 9)];
        begun.commit(Commit { writes, ..Commit::default() }).await.expect("it commits");
        places.stop();
    });
}

/// A transaction begins before any program has an index, and commits after a program has read by one.
#[test]
fn a_transaction_from_before_an_index_makes_no_phantom() {
    block_on(async {
        let places = Places::found().await;
        let plain = places.open(indexed(Level::Linearizable, &[])).await;
        write(&*plain, "d0", vec![number("a", 3), text("a", "red")]).await.expect("it commits");
        let mut early = plain.begin(&Session::at("d0")).await.expect("it serves");
        early.read(&[Read::Register(at("a", TEXT))]).await.expect("it answers");
        let reader = places.open(indexed(Level::Linearizable, &[&["number", "text"]])).await;
        let mut begun = reader.begin(&Session::at("d1")).await.expect("it serves");
        let read = [with("number_text", Value::Int(3))];
        let answers = begun.read(&read).await.expect("it answers");
        let found = Value::list([Value::Ref(at("a", 0).object)]);
        assert_eq!(answers[0].data, Data::Result(found));
        let writes = vec![number("b", 3), text("b", "red")];
        early.commit(Commit { writes, ..Commit::default() }).await.expect("it commits");
        let writes = vec![number("sum", 1)];
        let ended = begun.commit(Commit { writes, ..Commit::default() }).await;
        assert_eq!(ended.map(|_| ()), Err(StoreError::Conflict));
        places.stop();
    });
}

/// A program with a new index opens while others write as fast as they can, without it.
#[test]
fn an_index_is_added_under_load() {
    block_on(async {
        let places = Places::found().await;
        let plain = places.open(indexed(Level::Linearizable, &[])).await;
        let (is_over, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let writers: Vec<_> = (0..6)
            .map(|writer| {
                let (store, is_over, count) = (plain.clone(), is_over.clone(), count.clone());
                tokio::spawn(async move {
                    let dc = format!("d{}", writer % 3);
                    for round in 0.. {
                        if is_over.load(Ordering::Acquire) {
                            break;
                        }
                        let key = format!("{writer}.{round}");
                        match write(&*store, &dc, vec![text(&key, "red")]).await {
                            Ok(()) => _ = count.fetch_add(1, Ordering::AcqRel),
                            Err(StoreError::Conflict) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                })
            })
            .collect();
        let written = async |least: usize| {
            let begin = Instant::now();
            while count.load(Ordering::Acquire) < least {
                assert!(begin.elapsed() < PATIENCE, "no {least} commits");
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        };
        written(30).await;
        let reader = places.open(indexed(Level::Linearizable, &[&["text"]])).await;
        let sorted = places.open(indexed(Level::Linearizable, &[&["text", "number"]])).await;
        written(count.load(Ordering::Acquire) + 30).await;
        is_over.store(true, Ordering::Release);
        for writer in writers {
            writer.await.expect("no writer panics");
        }
        let all = count.load(Ordering::Acquire);
        for dc in ["d0", "d1", "d2"] {
            let found = keys(&*reader, dc, with("text", "red")).await.expect("it answers");
            assert_eq!(found.len(), all.min(1_000), "{dc}");
            // None of these has a number.
            let found = keys(&*sorted, dc, with("text_number", "red")).await;
            assert_eq!(found, Ok(Vec::new()), "{dc}");
        }
        places.stop();
    });
}

/// An index at a causal store, while data centers start again, and while one is given up and admitted again.
#[test]
fn an_index_outlasts_its_data_centers() {
    for level in [Level::Causal, Level::Linearizable] {
        block_on(async {
            let mut places = Places::found().await;
            let store = places.open(indexed(level, &[&["text"], &["number"]])).await;
            for (dc, key) in [("d0", "a"), ("d1", "b"), ("d2", "c")] {
                let writes = vec![text(key, "red"), number(key, 1)];
                write(&*store, dc, writes).await.expect("it commits");
            }
            arrived(&*store).await;
            let all = ["a", "b", "c"].map(str::to_owned);
            let address = places.address(2);
            places.running.remove(&2).expect("it runs").stop();
            places.running[&0].process.fence(DcId(2), true).expect("the others agree");
            write(&*store, "d0", vec![text("c", "blue")]).await.expect("it commits");
            let incarnation = places.running[&0].process.admit(DcId(2)).expect("the others agree");
            places.start_one(2, true, incarnation, Some(address)).await;
            places.connected().await;
            let begin = Instant::now();
            loop {
                let found = keys(&*store, "d2", with("text", "red")).await;
                if found == Ok(all[..2].to_vec()) {
                    break;
                }
                assert!(begin.elapsed() < PATIENCE, "{level}: {found:?}");
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            for dc in ["d0", "d1", "d2"] {
                let found = keys(&*store, dc, with("number", Value::Int(1))).await;
                assert_eq!(found, Ok(all.to_vec()), "{level}, {dc}");
            }
            places.stop();
        });
    }
}

/// Programs of one store declare different indexes, as many as it has, and one more.
#[test]
fn the_indexes_of_a_store_have_a_bound() {
    let names: Vec<String> = (0..24).map(|number| format!("f{number}")).collect();
    let pairs = names.iter().flat_map(|one| names.iter().map(move |other| (one, other)));
    let pairs: Vec<[&str; 2]> =
        pairs.filter(|(one, other)| one != other).map(|(one, other)| [&**one, &**other]).collect();
    let schema = |pairs: &[[&str; 2]]| {
        let indexes: Vec<&[&str]> = pairs.iter().map(<[&str; 2]>::as_slice).collect();
        let mut schema = indexed(Level::Linearizable, &indexes);
        let objects = &mut Arc::make_mut(&mut schema.schema).objects;
        let thing = Arc::make_mut(objects.get_mut("Thing").expect("it is declared"));
        thing.fields.extend(names.iter().map(|name| Field {
            name: name.as_str().into(),
            field_type: FieldType::Register(Type::Int),
            default: Value::Int(0),
        }));
        schema
    };
    let place = Place::found(&[]);
    block_on(async {
        for half in [&pairs[..250], &pairs[250..500]] {
            place.open(schema(half)).await;
        }
        let error = place.try_open(schema(&pairs[499..501]), None).await;
        let error = error.map(|_| ()).expect_err("it is one too many").to_string();
        let expected = "its programs have declared 501 indexes, and at most 500 are kept";
        assert!(error.contains(expected), "{error}");
        let store = place.open(schema(&pairs[490..500])).await;
        let begun = store.begin(&Session::default()).await.expect("it serves");
        let writes = (6..9).map(|field| Write::Assign(at("a", field), Value::Int(1))).collect();
        begun.commit(Commit { writes, ..Commit::default() }).await.expect("it commits");
    });
    place.stop();
}

#[test]
fn values_of_an_index_have_a_bound() {
    block_on(async {
        let places = Places::found().await;
        for level in [Level::Causal, Level::Linearizable] {
            let name = if level == Level::Causal { "weak" } else { "strong" };
            let renamed = |mut schema: StoreSchema| {
                let things = Arc::make_mut(&mut schema.schema);
                for object in things.objects.values_mut() {
                    Arc::make_mut(object).store = name.into();
                }
                StoreSchema { store: name.into(), ..schema }
            };
            let store = places.open(renamed(indexed(level, &[&["text"]]))).await;
            let plain = places.open(renamed(indexed(level, &[]))).await;
            let large = "x".repeat(70_000);
            let refused = write(&*store, "d0", vec![text("a", &large)]).await;
            let Err(StoreError::Refused { reason, .. }) = refused else { panic!("{refused:?}") };
            let expected =
                "Thing.text is a field of an index, whose values have at most 65536 bytes";
            assert!(reason.starts_with(expected), "{reason}");
            // A program without the index may write it, and the index has it.
            write(&*plain, "d0", vec![text("a", &large)]).await.expect("it commits");
            assert_eq!(keys(&*store, "d0", with("text", &*large)).await, Ok(vec!["a".to_owned()]));
        }
        places.stop();
    });
}

const SHOP: &str = "store shop: linearizable; store wall: causal;
    object Order in shop { key number: int; customer: string; total: int; INDEX }
    object Note in wall { key name: string; author: string; index by author; }
    transaction place(order: ref Order, customer: string, total: int) {
        order.customer = customer; order.total = total;
    }
    transaction note(name: string, author: string) { Note[name].author = author; }
    transaction notes(author: string) -> list<ref Note> { return Note.by_author(author).first(10); }
    READ";

const FIRST: (&str, &str) = (
    "index by customer;",
    "transaction spent(customer: string) -> int {
        var sum = 0;
        for order in Order.by_customer(customer).first(100) { sum += order.total; }
        return sum;
    }
    transaction orders(customer: string) -> int { return Order.by_customer(customer).count(100); }",
);

const SECOND: (&str, &str) = (
    "index by total as amounts;",
    "transaction large(total: int) -> list<ref Order> {
        return Order.amounts().from(total).reversed().first(10);
    }",
);

fn shop((index, read): (&str, &str)) -> String {
    SHOP.replace("INDEX", index).replace("READ", read)
}

async fn open(text: &str, address: &str) -> Result<Database, String> {
    let store = |name| format!("[stores.{name}]\nengine = \"mingled\"\naddress = \"{address}\"\n");
    let program = mingle::compile(text).expect("the program compiles");
    let binding = [programs::RUNTIME.to_owned(), store("shop"), store("wall")].concat();
    let binding = mingle::Binding::parse(&binding).expect("the binding is one");
    Database::open(program, &binding, None).await.map_err(|error| error.to_string())
}

/// Calls a transaction whose loops run so many rounds, and compares the round trips with those of `explain`.
async fn explained(
    database: &Database,
    text: &str,
    (name, arguments): (&str, &[(&str, &str)]),
    rounds: u64,
) -> serde_json::Value {
    let arguments = database.arguments(name, arguments.iter().copied()).expect("they fit");
    let report = database.call(name, arguments, Client::default()).await.expect("it commits");
    let checked = mingle_lang::check(text);
    let program = checked.program.as_ref().expect("the program is right");
    let plan = program.plan(name).expect("the transaction is there");
    let explained = explain(&checked.source, program, plan);
    for (phase, reported) in explained.phases.iter().zip(&report.phases) {
        let loops = phase.round_trips.per_iteration.iter();
        let loops =
            loops.map(|cost| u64::from(cost.count) * rounds.div_ceil(cost.iterations.into()));
        let predicted = u64::from(phase.round_trips.fixed) + loops.sum::<u64>();
        assert_eq!(u64::from(reported.round_trips), predicted, "{name}");
    }
    database.result_json(name, &report)
}

/// Two programs with different indexes of one object, at a real process that is killed.
#[test]
fn programs_with_different_indexes_share_their_stores() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut center = Center::start(folder.path(), "127.0.0.1:0");
    let (first, second) = (shop(FIRST), shop(SECOND));
    block_on(async {
        let one = open(&first, &center.address).await.expect("it opens");
        let place = [("order", "1"), ("customer", "ana"), ("total", "5")];
        explained(&one, &first, ("place", &place), 0).await;
        let other = open(&second, &center.address).await.expect("it opens");
        let place = [("order", "2"), ("customer", "ana"), ("total", "7")];
        explained(&other, &second, ("place", &place), 0).await;
        let ana = [("customer", "ana")];
        assert_eq!(explained(&one, &first, ("spent", &ana), 2).await, json!(12));
        assert_eq!(explained(&one, &first, ("orders", &ana), 0).await, json!(2));
        let large = explained(&other, &second, ("large", &[("total", "5")]), 0).await;
        assert_eq!(large, json!([2, 1]));
        explained(&one, &first, ("note", &[("name", "tea"), ("author", "ana")]), 0).await;
        let notes = explained(&other, &second, ("notes", &[("author", "ana")]), 0).await;
        assert_eq!(notes, json!(["tea"]));
    });
    center.kill();
    center = Center::start(folder.path(), "127.0.0.1:0");
    block_on(async {
        let one = open(&first, &center.address).await.expect("it opens");
        let none = open(&shop(("", "")), &center.address).await.expect("it opens");
        let place = [("order", "3"), ("customer", "ana"), ("total", "1")];
        programs::call(&none, "place", &place).await.expect("it commits");
        assert_eq!(programs::call(&one, "orders", &[("customer", "ana")]).await, Ok(json!(3)));
        let other = open(&second, &center.address).await.expect("it opens");
        let large = programs::call(&other, "large", &[("total", "1")]).await;
        assert_eq!(large, Ok(json!([2, 1, 3])));
        for (text, expected) in [
            (shop(("unique customer;", "")), "a store of mingled keeps none"),
            (
                shop((
                    "",
                    "transaction draw() { let _ = new Order { customer: \"x\", total: 1 }; }",
                )),
                "a store of mingled draws no numbers",
            ),
        ] {
            let refused = open(&text, &center.address).await.map(|_| ()).expect_err(expected);
            assert!(refused.contains(expected), "{refused}");
        }
    });
}
