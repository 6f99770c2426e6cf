//! Repeated setup, and setups that are refused.

use std::sync::Arc;

use mingle_model::{FieldType, Level, Type};
use mingle_services::{Engine, Options};
use mingle_store::{Commit, Data, DataStore, Read, Session, StoreSchema, Write};
use mingle_store_postgres::{
    Migrate, ObjectMapping, OpenError, PostgresConfig, ReplicatedPostgres, migrate, plan_migration,
};

use crate::replicated::cluster::{Cluster, NAMES};
use crate::support::{RealWorld, at, notes, schema, unique};

async fn connect(
    config: &PostgresConfig,
    schema: StoreSchema,
) -> Result<Arc<ReplicatedPostgres>, OpenError> {
    ReplicatedPostgres::connect(config.clone(), schema, RealWorld::make()).await
}

async fn open(config: &PostgresConfig) -> Arc<ReplicatedPostgres> {
    let opened = connect(config, notes(Level::Causal)).await;
    opened.unwrap_or_else(|error| panic!("{error}"))
}

async fn refusal(config: &PostgresConfig, schema: StoreSchema) -> String {
    match connect(config, schema).await {
        Ok(_) => panic!("it was opened"),
        Err(error) => error.to_string(),
    }
}

async fn add(store: &dyn DataStore, server: usize, amount: i128) {
    let open = store.begin(&Session::at(NAMES[server])).await.expect("a transaction");
    let writes = vec![Write::Add(at("o", 1), amount)];
    open.commit(Commit { writes, ..Commit::default() }).await.expect("a commit");
}

async fn sum(store: &dyn DataStore, server: usize) -> Data {
    let mut open = store.begin(&Session::at(NAMES[server])).await.expect("a transaction");
    open.read(&[Read::Counter(at("o", 1))]).await.expect("a read").remove(0).data
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_begun_is_finished_and_what_is_lost_is_made_again() {
    let Some(cluster) = Cluster::start().await else { return };
    let name = unique("opening");
    let config = cluster.config(&name);
    let world = RealWorld::make;
    let planned = plan_migration(config.clone(), notes(Level::Causal), world()).await;
    let planned = planned.expect("a plan");
    let text = planned.sql();
    assert!(text.contains("-- at r1") && text.contains("CREATE SUBSCRIPTION"), "{text}");
    let refusing = PostgresConfig { migrate: Migrate::Refuse, ..config.clone() };
    let missing = refusal(&refusing, notes(Level::Causal)).await;
    assert!(missing.contains("CREATE PUBLICATION"), "{missing}");
    // Several at once, each of which finds a part done.
    let all = [open(&config), open(&config), open(&config)];
    let stores = futures_util::future::join_all(all).await;
    add(&*stores[0], 0, 1).await;
    cluster.applied(&name).await;
    let again = migrate(config.clone(), notes(Level::Causal), world()).await.expect("nothing");
    assert!(again.statements.is_empty(), "{:?}", again.statements);
    connect(&refusing, notes(Level::Causal)).await.expect("nothing is missing");

    // A subscription is gone, and so is the slot of another.
    let find = "SELECT subname::text FROM pg_subscription ORDER BY subname";
    let rows = cluster.clients[1].query(find, &[]).await.expect("subscriptions");
    let (first, second): (String, String) = (rows[0].get(0), rows[1].get(0));
    for name in [&first, &second] {
        let sql = format!(
            "ALTER SUBSCRIPTION {name} DISABLE; ALTER SUBSCRIPTION {name} SET (slot_name = NONE)"
        );
        cluster.clients[1].batch_execute(&sql).await.expect("it is off");
    }
    cluster.clients[1].batch_execute(&format!("DROP SUBSCRIPTION {first}")).await.expect("gone");
    for client in [&cluster.clients[0], &cluster.clients[2]] {
        let sql = format!(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots \
             WHERE slot_name IN ('{first}', '{second}')"
        );
        let deadline = std::time::Instant::now() + crate::replicated::cluster::PATIENCE;
        while client.batch_execute(&sql).await.is_err() {
            assert!(std::time::Instant::now() < deadline, "a slot is still used");
            tokio::task::yield_now().await;
        }
    }
    add(&*stores[0], 0, 10).await;
    add(&*stores[0], 2, 100).await;
    let store = open(&config).await;
    add(&*store, 0, 1000).await;
    cluster.applied(&name).await;
    for server in 0..3 {
        assert_eq!(sum(&*store, server).await, Data::Counter(1111), "at server {server}");
    }
    cluster.emptied(&name).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_fit_is_refused() {
    let Some(cluster) = Cluster::start().await else { return };
    let name = unique("opening");
    let config = cluster.config(&name);
    drop(open(&config).await);
    let mut fewer = config.clone();
    fewer.servers.remove("r3");
    let message = refusal(&fewer, notes(Level::Causal)).await;
    assert!(message.contains("`r1, r2, r3`") && message.contains("`r1, r2`"), "{message}");
    let mut swapped = config.clone();
    swapped.servers.insert("r1".into(), config.servers["r2"].clone());
    swapped.servers.insert("r2".into(), config.servers["r1"].clone());
    let message = refusal(&swapped, notes(Level::Causal)).await;
    assert!(message.contains("servers.r1: the server there is r2"), "{message}");
    let message = refusal(&config, notes(Level::Linearizable)).await;
    assert!(message.contains("causal and eventual, not linearizable"), "{message}");
    let mut mapped = config.clone();
    mapped.objects.insert("Note".into(), ObjectMapping::default());
    let message = refusal(&mapped, notes(Level::Causal)).await;
    assert!(message.contains("object Note") && message.contains("overwrite"), "{message}");
    let fields = [("number", FieldType::Register(Type::String))];
    let other = schema(Level::Causal, &[], &[("Note", Type::String, &fields)]);
    let message = refusal(&config, other).await;
    assert!(message.contains("field Note.number as `int`"), "{message}");
    let one = PostgresConfig { url: config.servers["r1"].clone(), ..PostgresConfig::at("") };
    let one = PostgresConfig { schema: config.schema.clone(), ..one };
    let opened = mingle_store_postgres::Postgres::connect(
        one,
        notes(Level::Linearizable),
        RealWorld::make(),
    );
    let message = opened.await.map(|_| ()).expect_err("it is over several servers").to_string();
    assert!(message.contains("the format of the tables"), "{message}");
    // As if it had been restored from a copy.
    let store = open(&config).await;
    add(&*store, 0, 1).await;
    cluster.applied(&name).await;
    let back = format!("UPDATE \"{name}\".mingle_state SET vector[1] = 0");
    cluster.clients[0].batch_execute(&back).await.expect("the state is there");
    add(&*store, 1, 1).await;
    cluster.wait(&name, "SELECT own <> 1 OR is_old FROM @.mingle_state").await;
    let late = store.begin(&Session::at(NAMES[0])).await.expect("a transaction");
    let writes = vec![Write::Add(at("o", 1), 1)];
    let error = late.commit(Commit { writes, ..Commit::default() }).await.expect_err("it is old");
    assert!(error.to_string().contains("older state"), "{error}");
    let message = refusal(&config, notes(Level::Causal)).await;
    assert!(message.contains("servers.r1") && message.contains("older state"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_must_be_able_to_replicate() {
    let Some(plain) = mingle_services::private_with(Engine::Postgres, Options::default()).await
    else {
        return;
    };
    let mut config = PostgresConfig::at("");
    config.servers.insert("a".into(), plain.url().to_owned());
    let message = refusal(&config, notes(Level::Causal)).await;
    assert!(message.contains("servers: expected 2 to 16, found 1"), "{message}");
    config.servers.insert("b".into(), plain.url().to_owned());
    let message = refusal(&config, notes(Level::Causal)).await;
    assert!(message.contains("expected wal_level = logical, found replica"), "{message}");
    config.links.insert("c".into(), String::new());
    let message = refusal(&config, notes(Level::Causal)).await;
    assert!(message.contains("links.c"), "{message}");
}

/// Roles with the rights that the book requires, and passwords.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_that_are_no_superusers_are_enough() {
    let Some(cluster) = Cluster::start().await else { return };
    let name = unique("opening");
    let mut config = cluster.config(&name);
    for (client, (server, key)) in cluster.clients.iter().zip(cluster.servers.iter().zip(NAMES)) {
        let sql = "CREATE ROLE app LOGIN REPLICATION PASSWORD 'one' IN ROLE pg_create_subscription; \
                   CREATE ROLE link LOGIN REPLICATION PASSWORD 'two'; \
                   GRANT CREATE ON DATABASE postgres TO app";
        client.batch_execute(sql).await.expect("roles");
        let rules = "COPY (SELECT unnest(ARRAY['host all postgres all trust', \
                     'host all all all scram-sha-256'])) TO ";
        let file = "SELECT quote_literal(current_setting('hba_file'))";
        let file: String = client.query_one(file, &[]).await.expect("a setting").get(0);
        client.batch_execute(&format!("{rules}{file}")).await.expect("rules are written");
        client.batch_execute("SELECT pg_reload_conf()").await.expect("they are read");
        let port = server.addresses()[0].port();
        let url = format!("postgres://app:one@127.0.0.1:{port}/postgres");
        config.servers.insert(key.to_owned(), url);
        let link = format!("host=127.0.0.1 port={port} user=link password=two dbname=postgres");
        config.links.insert(key.to_owned(), link);
    }
    let store = open(&config).await;
    add(&*store, 0, 1).await;
    add(&*store, 1, 10).await;
    cluster.applied(&name).await;
    for server in 0..3 {
        assert_eq!(sum(&*store, server).await, Data::Counter(11), "at server {server}");
    }
    let other = PostgresConfig { schema: Some(unique("other")), ..config.clone() };
    let planned = plan_migration(other, notes(Level::Causal), RealWorld::make()).await;
    let text = planned.expect("a plan").sql();
    assert!(text.contains("CREATE SUBSCRIPTION"), "{text}");
    assert!(!text.contains("two") && !text.contains("one@"), "a password is shown: {text}");
    let shown = format!("{config:?}");
    assert!(!shown.contains("two") && !shown.contains("one@"), "a password is shown: {shown}");
}
