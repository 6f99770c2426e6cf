//! What a transaction costs, here and now: `cargo run --release --example speed [FOLDER]`.
//!
//! A measure to look at, not a test. With a folder it prints what appending a line to a file and
//! syncing it costs, beside what a durable commit costs.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mingle_model::{Field, FieldType, Level, ObjectType, Ref, Schema, Type, Value};
use mingle_store::{Address, Commit, DataStore, Read, Session, StoreSchema, TestWorld, Write};
use mingle_store_embedded::{Embedded, EmbeddedConfig};

fn schema(level: Level) -> StoreSchema {
    let field = Field {
        name: "number".into(),
        field_type: FieldType::Register(Type::Int),
        default: Value::Int(0),
    };
    let object = ObjectType {
        name: "Note".into(),
        store: "speed".into(),
        key_name: "key".into(),
        key_type: Type::Int,
        fields: vec![field],
    };
    let mut schema = Schema::default();
    schema.objects.insert("Note".into(), Arc::new(object));
    StoreSchema {
        store: "speed".into(),
        level,
        schema: Arc::new(schema),
        operations: BTreeMap::new(),
    }
}

fn at(key: i64) -> Address {
    Address { object: Ref::new("Note", Value::Int(key)), field: 0 }
}

fn print(what: &str, count: u32, passed: Duration) {
    println!("{what:<44} {:>10.2?}", passed / count);
}

async fn transact(store: &dyn DataStore, key: i64, is_writing: bool) {
    let session = Session::default();
    let mut transaction = store.begin(&session).await.expect("begins");
    let reads = [Read::Register(at(key))];
    transaction.read(&reads).await.expect("reads");
    let mut commit = Commit::default();
    if is_writing {
        commit.writes.push(Write::Assign(at(key), Value::Int(key)));
    }
    transaction.commit(commit).await.expect("commits");
}

fn measure(what: &str, config: EmbeddedConfig, level: Level, count: u32) {
    let world = TestWorld::new(1);
    let store = Embedded::open(config, schema(level), world.clone()).expect("opens");
    world.block_on(async {
        for (verb, is_writing) in [("read and write", true), ("read", false)] {
            let start = Instant::now();
            for n in 0..i64::from(count) {
                transact(&*store, n * 7919 % 10_000, is_writing).await;
            }
            print(&format!("{what}, {level}: {verb}"), count, start.elapsed());
        }
    });
}

fn raw(folder: &Path) {
    let path = folder.join("raw");
    let mut file = std::fs::File::create(path).expect("a file");
    let start = Instant::now();
    let count = 200;
    for n in 0..count {
        writeln!(file, "line {n}").expect("a write");
        file.sync_data().expect("a sync");
    }
    print("a line appended and synced", count, start.elapsed());
}

fn main() {
    for level in [Level::Linearizable, Level::Causal] {
        measure("memory", EmbeddedConfig::in_memory(), level, 200_000);
    }
    let three = EmbeddedConfig::in_memory().with_replicas(3);
    measure("memory, 3 replicas", three, Level::Causal, 50_000);
    if let Some(folder) = std::env::args().nth(1) {
        let folder = Path::new(&folder);
        for level in [Level::Linearizable, Level::Causal] {
            let config = EmbeddedConfig::in_folder(folder.join(level.name()));
            measure("disk", config, level, 500);
        }
        raw(folder);
    }
}
