//! Reasons why a store cannot be opened, and the state that a later start finds.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mingle_model::{FieldType, Level, Type, Value};
use mingle_services::Engine;
use mingle_store::conformance::schema::{TEXT, at, store_schema};
use mingle_store::{Data, Finding, Judgement, Read, StoreSchema, Write};
use mingle_store_cassandra::{CassandraConfig, OpenError};

use crate::support::{config, connect, data, write};

fn schema() -> StoreSchema {
    store_schema(Level::Eventual)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_refused_by_name() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let url = server.url();
    let with = |change: &dyn Fn(&mut CassandraConfig)| {
        let mut config = config(url);
        change(&mut config);
        config
    };
    let cases = [
        ("no data center \"atlantis\"", with(&|c| c.datacenters.push("atlantis".into()))),
        ("dc1, dc2, dc3", with(&|c| c.datacenters = vec!["DC1".into()])),
        ("named twice", with(&|c| c.datacenters.push("dc1".into()))),
        ("no data center is named", with(&|c| c.datacenters.clear())),
        ("2 replicas, but 3", with(&|c| c.replicas = Some(vec!["a".into(), "b".into()]))),
        (
            "`replication`",
            with(&|c| {
                c.keyspace = "not_there".into();
                c.replication.clear();
            }),
        ),
        ("not \"a b\"", with(&|c| c.keyspace = "a b".into())),
        ("cannot be called \"\"", with(&|c| c.area = Some(String::new()))),
    ];
    for (expected, config) in cases {
        let opened = connect(config, schema()).await.map(|_| ());
        let Err(OpenError::Config { reason, .. }) = &opened else { panic!("{opened:?}") };
        assert!(reason.contains(expected), "{expected}: {reason}");
    }
    let causal = connect(config(url), store_schema(Level::Causal)).await.map(|_| ());
    let Err(OpenError::Config { reason, .. }) = &causal else { panic!("{causal:?}") };
    assert!(reason.contains("causal") && reason.contains("eventual"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_not_there_is_said_soon() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let config = CassandraConfig {
        connect_timeout: Duration::from_secs(1),
        ..config(&free.expect("a port can be had").to_string())
    };
    let begin = Instant::now();
    let opened = connect(config, schema()).await.map(|_| ());
    assert!(matches!(opened, Err(OpenError::Unavailable { .. })), "{opened:?}");
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn data_is_never_read_as_what_it_is_not() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let config = config(server.url());
    let store = connect(config.clone(), schema()).await.expect("it opens");
    let text = Value::from("kept");
    write(&store, "dc1", vec![Write::Assign(at("o", TEXT), text.clone())]).await.unwrap();
    let changed = |change: &dyn Fn(&mut mingle_model::ObjectType)| {
        let mut schema = schema();
        let mut declared = (*schema.schema).clone();
        let mut thing = (*declared.objects["Thing"]).clone();
        change(&mut thing);
        declared.objects.insert("Thing".into(), Arc::new(thing));
        schema.schema = Arc::new(declared);
        schema
    };
    let other_type = changed(&|thing| {
        thing.fields[usize::from(TEXT)].field_type = FieldType::Register(Type::Int);
    });
    let refused = connect(config.clone(), other_type).await.map(|_| ());
    let Err(OpenError::Changed { what, kept, wanted, .. }) = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!((&**what, &**kept, &**wanted), ("field Thing.text", "string", "int"));

    // Fields can be added, removed and reordered: they are known by their names.
    let reordered = changed(&|thing| thing.fields.reverse());
    let place = reordered.schema.objects["Thing"].fields.iter().position(|f| &*f.name == "text");
    let place = u16::try_from(place.expect("it is there")).expect("a few");
    let store = connect(config, reordered).await.expect("it opens");
    let found = data(&store, "dc1", Read::Register(at("o", place))).await;
    assert_eq!(found, Data::Register(Some(text)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_examination_tells_nodes_copies_and_tables_and_changes_nothing() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let config = CassandraConfig { keyspace: "examined".into(), ..config(server.url()) };
    let examined = async |config: &CassandraConfig| {
        mingle_store_cassandra::examine(config.clone(), schema()).await
    };
    let of = |findings: &[Finding], subject: &str| {
        let found = findings.iter().find(|found| found.subject == subject);
        found.map(|found| (found.judgement, found.text.clone())).expect(subject)
    };
    let found = examined(&config).await;
    for subject in ["connection", "nodes", "version", "clock"] {
        assert_eq!(of(&found, subject).0, Judgement::Good, "{found:?}");
    }
    let text = of(&found, "keyspace").1;
    assert_eq!(text, "there is no keyspace examined; the first start creates it");
    // It is still not there.
    assert_eq!(of(&examined(&config).await, "keyspace").1, text);
    let without = CassandraConfig { replication: [].into(), ..config.clone() };
    assert_eq!(of(&examined(&without).await, "keyspace").0, Judgement::Wrong);
    let odd = CassandraConfig { datacenters: vec!["atlantis".into()], ..config.clone() };
    let (judgement, text) = of(&examined(&odd).await, "data centers");
    assert!(judgement == Judgement::Wrong && text.contains("atlantis"), "{text}");
}
