//! The suite that every store must pass, through a worker.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use mingle::{Binding, Database, TokioWorld};
use mingle_model::{FieldType, Level, Schema};
use mingle_services::Engine;
use mingle_store::conformance::schema::store_schema;
use mingle_store::conformance::{self, Factory};
use mingle_store::wrap::count::CountingStore;
use mingle_store::{BoxFuture, DataStore, StoreSchema};
use mingle_store_worker::{WorkerConfig, WorkerStore};
use sha2::{Digest as _, Sha256};

use crate::worker::site::{Working, unique};

/// A program that declares the objects and structs of the suite.
fn program(schema: &StoreSchema) -> String {
    let mut text = format!("store suite: {};\n", schema.level.name());
    for declared in schema.schema.structs.values() {
        let fields: Vec<String> =
            declared.fields.iter().map(|(name, of)| format!("{name}: {of}")).collect();
        let _ = writeln!(text, "struct {} {{ {} }}", declared.name, fields.join(", "));
    }
    for object in schema.schema.objects.values() {
        let (name, key_type) = (&object.name, &object.key_type);
        let _ = write!(text, "object {name} in suite {{ key {}: {key_type};", object.key_name);
        for field in &object.fields {
            let of = match &field.field_type {
                FieldType::Register(inner) => inner.to_string(),
                FieldType::Counter => "counter".to_owned(),
                FieldType::Set(inner) => format!("set<{inner}>"),
                FieldType::Map(key, value) => format!("map<{key}, {value}>"),
                FieldType::Log(inner) => format!("log<{inner}>"),
            };
            let _ = write!(text, " {}: {of};", field.name);
        }
        text.push_str(" }\n");
    }
    text + "transaction touch(of: ref Thing) { of.number += 1; }\n"
}

/// The declarations without defaults: collections have none.
fn declared(schema: &Schema) -> Vec<String> {
    let objects = schema.objects.values().map(|object| {
        let fields: Vec<_> =
            object.fields.iter().map(|field| (&field.name, &field.field_type)).collect();
        let (name, store) = (&object.name, &object.store);
        format!("{name} in {store}: {} {:?} {fields:?}", object.key_name, object.key_type)
    });
    let structs = schema.structs.values().map(|declared| format!("{declared:?}"));
    objects.chain(structs).collect()
}

/// Behind which stores the workers stand.
struct Behind {
    level: Level,
    /// The URL of a server; none for a store in memory.
    postgres: Option<String>,
    /// With their clients.
    workers: Mutex<Vec<(Weak<dyn DataStore>, Working)>>,
}

impl Behind {
    async fn connect(&self, working: Working, text: &str) -> Arc<dyn DataStore> {
        let config = WorkerConfig::at(format!("http://{}", working.address));
        let program = (Sha256::digest(text).into(), text);
        let world = Arc::new(TokioWorld::new());
        let store = WorkerStore::connect(config, "suite".into(), program, world).await;
        let store: Arc<dyn DataStore> = store.unwrap_or_else(|error| panic!("{error}"));
        self.lock().push((Arc::downgrade(&store), working));
        store
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Weak<dyn DataStore>, Working)>> {
        self.workers.lock().expect("no panic with the lock")
    }

    /// Stops the workers whose clients are gone: a server has only so many connections.
    async fn stop_unused(&self) {
        let is_unused =
            |(client, _): &mut (Weak<dyn DataStore>, Working)| client.strong_count() == 0;
        let unused: Vec<_> = self.lock().extract_if(.., is_unused).collect();
        for (_, working) in unused {
            working.stop().await;
        }
    }

    async fn open_new(&self, schema: StoreSchema) -> Arc<dyn DataStore> {
        self.stop_unused().await;
        let text = program(&schema);
        let compiled = mingle::compile(&text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        assert_eq!(declared(compiled.schema()), declared(&schema.schema), "{text}");
        let binding = self.postgres.as_ref().map_or_else(String::new, |url| {
            let own = unique("worker_suite");
            format!("[stores.suite]\nengine = \"postgres\"\nurl = \"{url}\"\nschema = \"{own}\"")
        });
        let binding = Binding::parse(&binding).expect("the test's binding is right");
        let mut counters = None;
        let wrap = |_: &str, store: Arc<dyn DataStore>| -> Arc<dyn DataStore> {
            let (counted, found) = CountingStore::new(store);
            counters = Some(found);
            counted
        };
        let world = Arc::new(TokioWorld::new());
        let opened = Database::open_wrapped(compiled, &binding, None, world, wrap).await;
        let database = Arc::new(opened.unwrap_or_else(|error| panic!("{error}")));
        let counters = counters.expect("the program has a store");
        let working = Working::start((database, counters), |_| {}).await;
        self.connect(working, &text).await
    }
}

impl Factory for Behind {
    fn level(&self) -> Level {
        self.level
    }

    fn open(&self, schema: StoreSchema) -> BoxFuture<'_, Arc<dyn DataStore>> {
        Box::pin(self.open_new(schema))
    }

    /// Another worker over the same store.
    fn reopen(
        &self,
        store: Arc<dyn DataStore>,
        schema: StoreSchema,
    ) -> BoxFuture<'_, Option<Arc<dyn DataStore>>> {
        let is_it = |(client, _): &mut (Weak<dyn DataStore>, Working)| {
            Weak::as_ptr(client).addr() == Arc::as_ptr(&store).addr()
        };
        let working = self.lock().extract_if(.., is_it).next().map(|(_, working)| working);
        drop(store);
        Box::pin(async move {
            let stores = working?.stop().await;
            let working = Working::start(stores, |_| {}).await;
            Some(self.connect(working, &program(&schema)).await)
        })
    }
}

async fn check(level: Level, postgres: Option<String>) {
    let factory = Behind { level, postgres, workers: Mutex::default() };
    conformance::run(&factory).await.assert_passed();
    assert!(!factory.lock().is_empty());
    factory.stop_unused().await;
}

#[test]
fn the_suite_can_be_written_as_a_program() {
    for level in Level::ALL {
        let text = program(&store_schema(level));
        let compiled = mingle::compile(&text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        assert_eq!(declared(compiled.schema()), declared(&store_schema(level).schema), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_memory_linearizable() {
    check(Level::Linearizable, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_memory_snapshot() {
    check(Level::Snapshot, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres() {
    let Some(server) = mingle_services::shared(Engine::Postgres).await else { return };
    check(Level::Linearizable, Some(server.url().to_owned())).await;
}
