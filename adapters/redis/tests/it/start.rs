//! Settings that are refused at the start, and settings that only cause a warning.

use mingle_model::Level;
use mingle_proxy::Proxy;
use mingle_services::{Engine, Options, Server};
use mingle_store::conformance::schema::{COUNT, TEXT, at, store_schema};
use mingle_store::{DataStore, Finding, Judgement, Read, Session, StoreError, Write};
use mingle_store_redis::{OpenError, RedisConfig};

use crate::support::{Other, config, connect, open, text};

async fn with(settings: &[(&str, &str)]) -> Option<Server> {
    let options = settings
        .iter()
        .fold(Options::default(), |options, (name, value)| options.setting(name, value));
    mingle_services::private_with(Engine::Redis, options).await
}

async fn refused(config: RedisConfig) -> String {
    match connect(config, store_schema(Level::Linearizable)).await {
        Ok(_) => "it was opened".into(),
        Err(error @ OpenError::Unfit { .. }) => error.to_string(),
        Err(error) => format!("another error: {error:?}"),
    }
}

/// Checks that opening is refused, unless the loss is accepted; then it warns.
async fn accepts(url: &str, said: &str) {
    let why = refused(config(url)).await;
    assert!(why.contains(said) && why.contains("accept_loss"), "{why}");
    let accepting = RedisConfig { accept_loss: true, ..config(url) };
    let store = connect(accepting, store_schema(Level::Linearizable)).await.expect("it opens");
    let warnings = store.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains(said), "{warnings:?}");
}

#[tokio::test]
async fn a_server_that_may_lose_writes_is_refused_unless_that_is_accepted() {
    let Some(server) = with(&[("appendfsync", "everysec")]).await else { return };
    accepts(server.url(), "appendfsync everysec").await;
    let mut other = Other::at(server.url()).await;
    other.run("CONFIG SET appendfsync always").await;
    let safe = connect(config(server.url()), store_schema(Level::Snapshot)).await;
    assert_eq!(safe.expect("it opens").warnings(), [""; 0]);
    other.run("CONFIG SET no-appendfsync-on-rewrite yes").await;
    accepts(server.url(), "no-appendfsync-on-rewrite yes").await;
    // A client without the right to read the settings cannot know them.
    other.run("CONFIG SET no-appendfsync-on-rewrite no").await;
    other.run("ACL SETUSER app on >word ~* &* +@all -config").await;
    let url = server.url().replace("redis://", "redis://app:word@");
    accepts(&url, "CONFIG GET is not allowed").await;
    let known = RedisConfig { known_durable: true, ..config(&url) };
    let store = connect(known, store_schema(Level::Linearizable)).await.expect("it opens");
    assert_eq!(store.warnings(), [""; 0]);
    other.run("CONFIG SET appendonly no").await;
    accepts(server.url(), "appendonly no").await;
}

#[tokio::test]
async fn a_server_that_evicts_is_refused() {
    let Some(server) = with(&[("maxmemory-policy", "allkeys-lru")]).await else { return };
    let why = refused(RedisConfig { accept_loss: true, ..config(server.url()) }).await;
    assert!(why.contains("allkeys-lru") && why.contains("noeviction"), "{why}");
}

#[tokio::test]
async fn a_cluster_is_refused() {
    let Some(server) = with(&[("cluster-enabled", "yes")]).await else { return };
    let why = refused(config(server.url())).await;
    assert!(why.contains("cluster"), "{why}");
}

#[tokio::test]
async fn a_replica_is_refused_and_one_that_becomes_one_serves_no_longer() {
    let (Some(first), Some(second)) = (with(&[]).await, with(&[]).await) else { return };
    let proxy = Proxy::start(second.addresses()[0], 3).await.expect("a proxy");
    let store = open(config(&format!("redis://{}", proxy.address()))).await;
    let write = || vec![Write::Assign(at("a", TEXT), text("x"))];
    crate::support::write(&store, write()).await.expect("it writes");
    let (host, port) = first.url().trim_start_matches("redis://").split_once(':').expect("both");
    let mut other = Other::at(second.url()).await;
    other.words(&["REPLICAOF", host, port.trim_end_matches('/')]).await;
    let why = refused(config(second.url())).await;
    assert!(why.contains("replica"), "{why}");
    let is_away = |error: &StoreError| matches!(error, StoreError::Unavailable { .. });
    let mut begun = store.begin(&Session::default()).await.expect("it begins");
    let read = begun.read(&[Read::Register(at("a", TEXT))]).await;
    assert!(read.as_ref().is_err_and(is_away), "a replica answers: {read:?}");
    let written = crate::support::write(&store, write()).await;
    assert!(written.as_ref().is_err_and(is_away), "a replica commits: {written:?}");
    // Once the address leads to the primary, the next request reaches it.
    proxy.set_upstream(first.addresses()[0]);
    crate::support::write(&store, write()).await.expect("the primary writes");
    // The primary warns of its replica, once it has noticed it.
    let mut primary = Other::at(first.url()).await;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while primary.info("connected_slaves").await == 0 {
        assert!(std::time::Instant::now() < deadline, "no replica comes");
    }
    let store = open(config(first.url())).await;
    let warnings = store.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("1 replicas"), "{warnings:?}");
}

#[tokio::test]
async fn a_full_server_writes_nothing_and_reads_on() {
    let Some(server) = with(&[]).await else { return };
    let store = open(config(server.url())).await;
    let write = |n| vec![Write::Assign(at("a", TEXT), text(n)), Write::Add(at("a", COUNT), 1)];
    crate::support::write(&store, write("first")).await.expect("it writes");
    let mut other = Other::at(server.url()).await;
    other.run("CONFIG SET maxmemory 1").await;
    let full = crate::support::write(&store, write("second")).await;
    let is_away = |error: &StoreError| matches!(error, StoreError::Unavailable { reason, .. } if reason.contains("OOM"));
    assert!(full.as_ref().is_err_and(is_away), "{full:?}");
    let reads = [Read::Register(at("a", TEXT)), Read::Counter(at("a", COUNT))];
    let found = crate::support::read(&store, &reads).await.expect("it reads");
    assert_eq!(found[0].data, mingle_store::Data::Register(Some(text("first"))));
    assert_eq!(found[1].data, mingle_store::Data::Counter(1));
    other.run("CONFIG SET maxmemory 0").await;
    crate::support::write(&store, write("third")).await.expect("it writes again");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_before_the_server_is_asked() {
    let nowhere = "redis://127.0.0.1:1";
    let schema = || store_schema(Level::Linearizable);
    let config = || RedisConfig::at(nowhere);
    let cases = [
        (RedisConfig::at("redis//nowhere"), schema(), "store suite: ", "address"),
        (config(), store_schema(Level::Causal), "causal", "level"),
        (RedisConfig { prefix: Some(String::new()), ..config() }, schema(), "prefix", "prefix"),
        (
            RedisConfig { keep_outcomes: std::time::Duration::ZERO, ..config() },
            schema(),
            "keep_outcomes",
            "time",
        ),
        (config(), schema(), "cannot reach", "nobody there"),
    ];
    for (config, schema, said, what) in cases {
        let error = connect(config, schema).await.err().map(|error| error.to_string());
        let is_said = error.as_ref().is_some_and(|error| error.contains(said));
        assert!(is_said, "{what}: {error:?}");
    }
}

#[tokio::test]
async fn a_password_is_shown_to_nobody() {
    let config = RedisConfig::at("redis://app:secret@127.0.0.1:1");
    assert!(!format!("{config:?}").contains("secret"));
    let error = connect(config, store_schema(Level::Linearizable)).await.err();
    let shown = format!("{error:?} {}", error.as_ref().expect("nobody is there"));
    assert!(!shown.contains("secret"), "{shown}");
}

#[tokio::test]
async fn the_protocol_is_ours_whatever_the_address_says() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    let url = format!("{}/?protocol=resp3", server.url().trim_end_matches('/'));
    let store = open(config(&url)).await;
    crate::support::write(&store, vec![Write::Add(at("a", COUNT), 1)]).await.expect("it writes");
    let counter = crate::support::data(&store, Read::Counter(at("a", COUNT))).await;
    assert_eq!(counter, mingle_store::Data::Counter(1));
}

#[tokio::test]
async fn an_examination_names_each_setting_that_would_lose_writes_and_changes_nothing() {
    let Some(server) = with(&[("appendfsync", "everysec")]).await else { return };
    let examined = async |config: RedisConfig| {
        let world = std::sync::Arc::new(mingle_runtime::TokioWorld::new());
        mingle_store_redis::examine(config, store_schema(Level::Linearizable), world).await
    };
    let of = |findings: &[Finding], subject: &str| {
        let found = findings.iter().find(|found| found.subject == subject);
        found.map(|found| (found.judgement, found.text.clone())).expect(subject)
    };
    let found = examined(config(server.url())).await;
    let (judgement, text) = of(&found, "durability");
    assert!(judgement == Judgement::Wrong && text.contains("appendfsync everysec"), "{text}");
    for subject in ["connection", "version", "clock"] {
        assert_eq!(of(&found, subject).0, Judgement::Good, "{found:?}");
    }
    let accepting = RedisConfig { accept_loss: true, ..config(server.url()) };
    assert_eq!(of(&examined(accepting).await, "durability").0, Judgement::Warning);
    let mut other = Other::at(server.url()).await;
    other.run("CONFIG SET appendfsync always").await;
    let found = examined(config(server.url())).await;
    assert!(found.iter().all(|found| found.judgement == Judgement::Good), "{found:?}");
    assert_eq!(other.run("DBSIZE").await, redis::Value::Int(0), "it has written nothing");
}
