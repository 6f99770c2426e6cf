//! Opening: new declarations are added, removed ones stay, changed ones are refused.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{self, at, data, schema, write};
use mingle_model::{FieldType, Level, StructType, Type, Value};
use mingle_store::{Data, DataStore, Once, Read, Session, StoreSchema, TestWorld, Write};
use mingle_store_embedded::{Embedded, EmbeddedConfig, OpenError};
use tempfile::TempDir;

fn open(folder: &TempDir, schema: StoreSchema) -> Result<Arc<dyn DataStore>, OpenError> {
    let config = EmbeddedConfig::in_folder(folder.path());
    Embedded::open(config, schema, TestWorld::new(1))
}

#[track_caller]
fn refused(folder: &TempDir, schema: StoreSchema, parts: &[&str]) {
    let error = match open(folder, schema) {
        Ok(_) => panic!("a changed schema was accepted"),
        Err(error) => error.to_string(),
    };
    for part in parts {
        assert!(error.contains(part), "{error:?} does not say {part:?}");
    }
}

fn number() -> (&'static str, FieldType) {
    ("number", FieldType::Register(Type::Int))
}

fn tags() -> (&'static str, FieldType) {
    ("tags", FieldType::Set(Type::Int))
}

#[test]
fn fields_may_come_and_go_and_keep_what_they_held() {
    let folder = TempDir::new().expect("a temporary folder");
    let world = TestWorld::new(1);
    let here = Session::default();
    let level = Level::Linearizable;
    let store = open(&folder, schema(level, &[number()])).expect("a new store");
    let writes = vec![Write::Assign(at("a", 0), Value::Int(7))];
    world.block_on(write(&store, &here, writes)).expect("a commit");
    drop(store);

    // Another field before it: the number is now the second one.
    let store = open(&folder, schema(level, &[tags(), number()])).expect("a field more");
    let reads = [Read::Register(at("a", 1)), Read::SetSize(at("a", 0))];
    let found = data(&world, &store, &here, &reads);
    let seven = Data::Register(Some(Value::Int(7)));
    assert_eq!(found, [seven.clone(), Data::Count(0)]);
    let writes = vec![Write::Insert(at("a", 0), Value::Int(1))];
    world.block_on(write(&store, &here, writes)).expect("a commit");
    drop(store);

    // The number is gone, and its rows are left alone; then it comes back.
    let store = open(&folder, schema(level, &[tags()])).expect("a field less");
    assert_eq!(data(&world, &store, &here, &[Read::SetSize(at("a", 0))]), [Data::Count(1)]);
    drop(store);
    let store = open(&folder, schema(level, &[number()])).expect("the field again");
    assert_eq!(data(&world, &store, &here, &[Read::Register(at("a", 0))]), [seven]);

    // A deletion also removes the content of fields that the program no longer has.
    let delete = vec![Write::Delete(at("a", 0).object)];
    world.block_on(write(&store, &here, delete)).expect("a commit");
    drop(store);
    let store = open(&folder, schema(level, &[tags()])).expect("the other field again");
    assert_eq!(data(&world, &store, &here, &[Read::SetSize(at("a", 0))]), [Data::Count(0)]);
}

#[test]
fn a_removed_field_is_deleted_with_its_object_at_every_replica() {
    let folder = TempDir::new().expect("a temporary folder");
    let world = TestWorld::new(1);
    let here = Session::default();
    let fields =
        [number(), tags(), ("count", FieldType::Counter), ("log", FieldType::Log(Type::Int))];
    let delay = Duration::from_millis(5);
    let open = |fields: &[(&str, FieldType)]| {
        let config = EmbeddedConfig::in_folder(folder.path())
            .with_replicas(2)
            .with_delay(delay, Duration::ZERO);
        Embedded::open(config, schema(Level::Causal, fields), world.clone()).expect("it opens")
    };
    let store = open(&fields);
    let fill = vec![
        Write::Insert(at("a", 1), Value::Int(1)),
        Write::Add(at("a", 2), 5),
        Write::Append(at("a", 3), Value::Int(1)),
    ];
    world.block_on(write(&store, &here, fill)).expect("a commit");
    drop(store);
    let store = open(&fields[..1]);
    let delete = vec![Write::Delete(at("a", 0).object)];
    world.block_on(write(&store, &here, delete)).expect("a commit");
    drop(store);
    let store = open(&fields);
    world.advance(delay * 2);
    for replica in ["r1", "r2"] {
        let reads = [
            Read::SetSize(at("a", 1)),
            Read::Counter(at("a", 2)),
            Read::LogSize(at("a", 3)),
            Read::Exists(at("a", 0).object),
        ];
        let found = data(&world, &store, &support::session(replica), &reads);
        let nothing = [Data::Count(0), Data::Counter(0), Data::Count(0), Data::Bool(false)];
        assert_eq!(found, nothing, "at {replica}");
    }
}

#[test]
fn what_is_kept_is_never_read_as_something_else() {
    let folder = TempDir::new().expect("a temporary folder");
    let level = Level::Linearizable;
    let first = schema(level, &[number(), tags()]);
    drop(open(&folder, first.clone()).expect("a new store"));

    let text = ("number", FieldType::Register(Type::String));
    let parts = ["notes", "field Note.number", "`int`", "`string`"];
    refused(&folder, schema(level, &[text]), &parts);
    let log = ("tags", FieldType::Log(Type::Int));
    let parts = ["field Note.tags", "`set<int>`", "`log<int>`"];
    refused(&folder, schema(level, &[log]), &parts);
    let parts = ["the level", "`linearizable`", "`causal`"];
    refused(&folder, schema(Level::Causal, &[number()]), &parts);

    let mut other_key = first.clone();
    let schema = Arc::make_mut(&mut other_key.schema);
    let object = schema.objects.get_mut("Note").expect("the only object");
    Arc::make_mut(object).key_type = Type::Int;
    refused(&folder, other_key, &["the key of object Note", "`string`", "`int`"]);
    drop(open(&folder, first).expect("a refusal changes nothing"));
}

#[test]
fn structs_that_rows_hold_keep_their_layout() {
    let folder = TempDir::new().expect("a temporary folder");
    let point = ("at", FieldType::Register(Type::Option(Arc::new(Type::Struct("Point".into())))));
    let with = |fields: &[(&str, Type)]| {
        let mut declared = schema(Level::Linearizable, std::slice::from_ref(&point));
        let fields = fields.iter().map(|(name, t)| ((*name).into(), t.clone()));
        let point = StructType { name: "Point".into(), fields: fields.collect() };
        let unused = StructType { name: "Unused".into(), fields: point.fields.clone() };
        let structs = &mut Arc::make_mut(&mut declared.schema).structs;
        structs.insert("Point".into(), Arc::new(point));
        structs.insert("Unused".into(), Arc::new(unused));
        declared
    };
    let (x, y) = (("x", Type::Int), ("y", Type::Int));
    drop(open(&folder, with(&[x.clone(), y.clone()])).expect("a new store"));
    let parts = ["struct Point", "{ x: int, y: int }", "{ y: int, x: int }"];
    refused(&folder, with(&[y.clone(), x.clone()]), &parts);
    refused(&folder, with(std::slice::from_ref(&x)), &["struct Point", "{ x: int }"]);
    // No row holds the other struct, so it may change, as it does here with the first one.
    drop(open(&folder, with(&[x, y])).expect("the first again"));
}

#[test]
fn a_configuration_that_makes_no_sense_is_refused() {
    let check = |config: EmbeddedConfig, level, part: &str| {
        let error = match Embedded::open(config, schema(level, &[number()]), TestWorld::new(1)) {
            Ok(_) => panic!("it was accepted, though {part}"),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(part), "{error:?} does not say {part:?}");
    };
    let memory = EmbeddedConfig::in_memory;
    check(memory().with_replicas(3), Level::Linearizable, "has one replica, not 3");
    check(memory().with_replicas(0), Level::Causal, "1 to 64 replicas, not 0");
    check(memory().with_replicas(65), Level::Causal, "1 to 64 replicas, not 65");
    let mut twice = memory();
    twice.replicas = vec!["a".into(), "a".into()];
    check(twice, Level::Eventual, "two replicas are called a");
    check(memory().with_once(Once::Home), Level::Snapshot, "has no replicas, and so no home");
    check(memory().with_once(Once::ById), Level::Causal, "but not `ById`");
    check(memory().with_once(Once::Never), Level::Eventual, "but not `Never`");
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").expect("a file");
    check(EmbeddedConfig::in_folder(&file), Level::Causal, "cannot open");
    std::fs::write(folder.path().join("notes.redb"), "no store").expect("a file");
    check(EmbeddedConfig::in_folder(folder.path()), Level::Causal, "cannot open");
}

#[test]
fn a_store_that_is_open_is_locked_and_one_folder_holds_several() {
    let folder = TempDir::new().expect("a temporary folder");
    let level = Level::Linearizable;
    let first = open(&folder, schema(level, &[number()])).expect("a new store");
    refused(&folder, schema(level, &[number()]), &["in use", &folder.path().display().to_string()]);
    let mut other = schema(Level::Causal, &[number()]);
    other.store = "others".into();
    let second = open(&folder, other).expect("another store in the same folder");
    drop((first, second));
    drop(open(&folder, schema(level, &[number()])).expect("the lock is gone"));
}

#[test]
fn an_object_that_moves_does_not_leave_its_rows_behind() {
    let world = TestWorld::new(1);
    for (level, writes) in
        [(Level::Linearizable, true), (Level::Causal, true), (Level::Causal, false)]
    {
        let folder = TempDir::new().expect("a temporary folder");
        let store = open(&folder, schema(level, &[number()])).expect("a new store");
        if writes {
            let writes = vec![Write::Assign(at("a", 0), Value::Int(7))];
            world.block_on(write(&store, &Session::default(), writes)).expect("a commit");
        }
        drop(store);
        let mut moved = schema(level, &[number()]);
        let mut declared = (*moved.schema).clone();
        let mut note = (*declared.objects["Note"]).clone();
        note.store = "others".into();
        declared.objects.insert("Note".into(), Arc::new(note));
        moved.schema = Arc::new(declared);
        if writes {
            refused(&folder, moved, &["object Note", "in notes", "in others"]);
        } else {
            open(&folder, moved).expect("nothing was kept of it");
        }
    }
}
