//! The changes of stored declarations that a program may make, and those that it may not.

use mingle_model::{FieldType, Level, Ref, Type, Value};
use mingle_services::Engine;
use mingle_store::{Address, Data, Read, StoreSchema, Write};
use mingle_store_redis::{ObjectMapping, OpenError, RedisConfig};

use crate::support::{config, connect, data, object, schema, text, write};

fn user(fields: &[(&str, FieldType)]) -> StoreSchema {
    schema(vec![object("User", ("name", Type::String), fields)])
}

fn mail() -> (&'static str, FieldType) {
    ("mail", FieldType::Register(Type::String))
}

async fn refused(config: &RedisConfig, schema: StoreSchema) -> (String, String, String) {
    match connect(config.clone(), schema).await {
        Err(OpenError::Changed { what, kept, wanted, .. }) => (what, kept, wanted),
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("it was opened"),
    }
}

fn at(name: &str, field: u16) -> Address {
    Address { object: Ref::new("User", text(name)), field }
}

#[tokio::test]
async fn what_would_reinterpret_data_is_refused() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let config = config(server.url());
    let point = Type::Struct("Point".into());
    let with_point = |label: Type| {
        let mut schema = user(&[mail(), ("home", FieldType::Register(Type::Int))]);
        let all = std::sync::Arc::make_mut(&mut schema.schema);
        let declared = mingle_model::StructType {
            name: "Point".into(),
            fields: vec![("x".into(), Type::Int), ("label".into(), label)],
        };
        all.structs.insert("Point".into(), std::sync::Arc::new(declared));
        let places = [("all", FieldType::Set(point.clone()))];
        let mut place = object("Place", ("id", Type::Int), &places);
        place.fields[0].default = Value::list([]);
        all.objects.insert("Place".into(), std::sync::Arc::new(place));
        schema
    };
    let store = connect(config.clone(), with_point(Type::String)).await.expect("it opens");
    write(&store, vec![Write::Assign(at("ana", 0), text("a@b"))]).await.expect("it writes");
    let changed = |what: &str, kept: &str, wanted: &str| {
        (what.to_owned(), kept.to_owned(), wanted.to_owned())
    };
    let found = refused(&config, user(&[("mail", FieldType::Register(Type::Int))])).await;
    assert_eq!(found, changed("field User.mail", "string", "int"));
    let by_int = schema(vec![object("User", ("name", Type::Int), &[mail()])]);
    let found = refused(&config, by_int).await;
    assert_eq!(found, changed("the key of object User", "string", "int"));
    let found = refused(&config, with_point(Type::Int)).await;
    let (kept, wanted) = ("{ x: int, label: string }", "{ x: int, label: int }");
    assert_eq!(found, changed("struct Point", kept, wanted));
    let found = refused(&config, StoreSchema { level: Level::Snapshot, ..user(&[mail()]) }).await;
    assert_eq!(found, changed("the level", "linearizable", "snapshot"));
    let mut moved = user(&[mail()]);
    let all = std::sync::Arc::make_mut(&mut moved.schema);
    let mut elsewhere = object("User", ("name", Type::String), &[mail()]);
    elsewhere.store = "other".into();
    all.objects.insert("User".into(), std::sync::Arc::new(elsewhere));
    let found = refused(&config, moved.clone()).await;
    assert_eq!(found, changed("object User", "in suite", "in other"));
    let mut mapping = config.clone();
    mapping.objects.insert("User".into(), ObjectMapping::at("user:{name}"));
    let (what, kept, _) = refused(&mapping, user(&[mail()])).await;
    assert_eq!((what.as_str(), kept.as_str()), ("object User", "in keys of our own"));
    // Once no object is left, the kind may be removed.
    write(&store, vec![Write::Delete(Ref::new("User", text("ana")))]).await.expect("it deletes");
    connect(config.clone(), moved).await.expect("it opens");
    connect(mapping, user(&[mail()])).await.expect("it opens");
}

#[tokio::test]
async fn what_is_added_is_added_and_what_is_gone_stays() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let config = config(server.url());
    let tags = ("tags", FieldType::Set(Type::String));
    let both = connect(config.clone(), user(&[mail(), tags.clone()])).await.expect("it opens");
    let fill = vec![
        Write::Assign(at("ana", 0), text("a@b")),
        Write::Insert(at("ana", 1), text("x")),
        Write::Insert(at("bob", 1), text("y")),
    ];
    write(&both, fill).await.expect("it writes");
    // Another order, one field removed, one added.
    let age = ("age", FieldType::Counter);
    let later = connect(config.clone(), user(&[age, mail()])).await.expect("it opens");
    assert_eq!(data(&later, Read::Register(at("ana", 1))).await, Data::Register(Some(text("a@b"))));
    assert_eq!(data(&later, Read::Counter(at("ana", 0))).await, Data::Counter(0));
    let bob = Ref::new("User", text("bob"));
    assert_eq!(data(&later, Read::Exists(bob.clone())).await, Data::Bool(true));
    // A deletion also removes fields that the program no longer declares.
    write(&later, vec![Write::Delete(bob.clone()), Write::Create(bob)]).await.expect("it writes");
    assert_eq!(data(&both, Read::SetSize(at("bob", 1))).await, Data::Count(0));
    assert_eq!(data(&both, Read::SetSize(at("ana", 1))).await, Data::Count(1));
}
