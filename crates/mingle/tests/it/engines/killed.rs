//! Processes that call a transaction inside one of the application, and are killed right after the
//! application has committed: another process finishes the call at its second store.
//!
//! The test starts itself again as a child, which prints each commit on its standard output.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use mingle::{Binding, Call, Database, Session};
use mingle_model::random::next_random;
use mingle_services::Engine;
use serde_json::{Value as Json, json};
use tokio_postgres::{Client, IsolationLevel, NoTls};

use crate::engines::site::{block_on, bound, space};

/// The environment variable that carries a child's parameters.
const TOLD: &str = "MINGLE_TEST_KILLED";
const SEED: u64 = 1_917;
const STOCK: i64 = 1_000;

/// The operations count, so that a repeated one would show.
const TEXT: &str = "store stock: linearizable; store pages: eventual;
    object Item in stock { key name: string; left: int; }
    object Page in pages { key item: string; sold: counter; orders: log<string>; }
    transaction fill(item: ref Item, count: int) { item.left = count; }
    transaction buy(item: ref Item, order: string) {
        item.left -= 1;
        Page[item.name].sold.add(1);
        Page[item.name].orders.append(order);
    }
    transaction left(item: ref Item) -> int { return item.left; }
    transaction sold(item: string) -> int { return Page[item].sold.value(); }
    transaction orders(item: string) -> list<string> { return Page[item].orders.to_list(); }
    ";

/// A process that is silent for its lease is taken for dead; even a busy machine is not silent so long.
const SETTINGS: &str = "[runtime]\ndeadline = \"10s\"\nhelp_after = \"100ms\"\n\
    lease = \"4s\"\nsweep_every = \"200ms\"\n";

async fn process(binding: &str) -> Database {
    let program = mingle::compile(TEXT).expect("the program compiles");
    let binding = Binding::parse(binding).expect("the binding is one");
    Database::open(program, &binding, None).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn call(database: &Database, name: &str, arguments: &[(&str, &str)]) -> Json {
    let arguments = database.arguments(name, arguments.iter().copied()).expect("they fit");
    let report = database.call(name, arguments, Session::default()).await;
    database.result_json(name, &report.unwrap_or_else(|error| panic!("{name}: {error}")))
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
    tokio::spawn(connection);
    client
}

/// Orders until it is killed; or orders once, and then does nothing more.
async fn order(told: &Json) {
    let text = |name: &str| told[name].as_str().expect("the parent says so").to_owned();
    let database = process(&text("binding")).await;
    let (mut client, table) = (connect(&text("url")).await, text("table"));
    let insert = format!("INSERT INTO {table} VALUES ($1)");
    let mut number = told["first"].as_i64().expect("the parent says so");
    loop {
        let level = IsolationLevel::Serializable;
        let begun = client.build_transaction().isolation_level(level).start().await;
        let mut tx = begun.expect("a transaction");
        tx.execute(&insert, &[&number]).await.expect("an order");
        let order = number.to_string();
        let arguments = [("item", "tea"), ("order", order.as_str())];
        let arguments = database.arguments("buy", arguments).expect("they fit");
        // A conflict with the order before it, which is being cleaned up, is no failure.
        let Ok(inside) = database.call_inside(Call::new("buy", arguments), &mut tx).await else {
            continue;
        };
        if tx.commit().await.is_err() {
            continue;
        }
        // On a line of its own, after any output that the test harness has begun.
        println!("\ncommitted {number}");
        std::io::stdout().flush().expect("the parent reads");
        if told["follows"] != true {
            // Neither followed nor dropped, so that this process does not go on with it.
            let _inside = inside;
            return std::future::pending().await;
        }
        drop(inside);
        number += 1;
    }
}

/// A process that is killed with the test, if not before.
struct Killed {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Killed {
    fn start(told: &Json) -> Self {
        let this = std::env::current_exe().expect("the test's own path");
        let thread = std::thread::current();
        let mut child = Command::new(this)
            .args([thread.name().expect("tests have names"), "--exact", "--nocapture"])
            .arg("--test-threads=1")
            .env(TOLD, told.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the child starts");
        let out = child.stdout.take().expect("the output is piped");
        Self { child, lines: BufReader::new(out).lines() }
    }

    /// Waits until the process reports one more commit.
    fn commits(&mut self) {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        assert!(lines.any(|line| line.starts_with("committed ")), "the child has ended");
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // SIGKILL, by its id.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn numbers(client: &Client, table: &str) -> Vec<i64> {
    let rows = client.query(&format!("SELECT number FROM {table} ORDER BY number"), &[]).await;
    rows.expect("the orders").iter().map(|row| row.get(0)).collect()
}

/// Waits until the second store has the effect of each order once, and compares.
async fn all_follows(living: &Database, orders: &[i64], what: &str) {
    let deadline = Instant::now() + Duration::from_mins(1);
    let mut found = Vec::new();
    while found.len() < orders.len() {
        assert!(Instant::now() < deadline, "{what}: of {orders:?} only {found:?} came");
        tokio::time::sleep(Duration::from_millis(50)).await;
        let lines = call(living, "orders", &[("item", "tea")]).await;
        let lines = lines.as_array().expect("a list").iter();
        found = lines.map(|line| line.as_str().unwrap().parse::<i64>().unwrap()).collect();
    }
    found.sort_unstable();
    assert_eq!(found, orders, "{what}");
    assert_eq!(call(living, "sold", &[("item", "tea")]).await, json!(orders.len()), "{what}");
    let left = STOCK - i64::try_from(orders.len()).expect("they are few");
    assert_eq!(call(living, "left", &[("item", "tea")]).await, json!(left), "{what}");
}

fn another_process_finishes_it(engine: Engine) {
    if let Ok(told) = std::env::var(TOLD) {
        let told = serde_json::from_str(&told).expect("the parent writes JSON");
        return block_on(order(&told));
    }
    println!("seed {SEED}");
    let space = space();
    let (stock, pages) = (
        block_on(bound("stock", Some(Engine::Postgres), &space)),
        block_on(bound("pages", Some(engine), &space)),
    );
    let (Some(stock), Some(pages)) = (stock, pages) else { return };
    let server = block_on(mingle_services::shared(Engine::Postgres)).expect("it is there");
    let (binding, table) = (format!("{SETTINGS}{stock}{pages}"), format!("{space}_orders"));
    let client = block_on(connect(server.url()));
    let make = format!("CREATE TABLE {table} (number bigint PRIMARY KEY)");
    block_on(client.batch_execute(&make)).expect("a table");
    let living = block_on(process(&binding));
    block_on(call(&living, "fill", &[("item", "tea"), ("count", &STOCK.to_string())]));
    let mut random = SEED;
    for round in 0..4_i64 {
        // In some rounds the child has begun to follow when it is killed, in others not.
        let follows = round % 2 == 1;
        let told = json!({
            "binding": binding, "url": server.url(), "table": table,
            "first": round * 100, "follows": follows,
        });
        let mut child = Killed::start(&told);
        let commits = if follows { 1 + next_random(&mut random) % 4 } else { 1 };
        for _ in 0..commits {
            child.commits();
        }
        drop(child);
        let orders = block_on(settled_orders(&client, &table));
        assert!(orders.last() >= Some(&(round * 100)), "round {round}: {orders:?}");
        block_on(all_follows(&living, &orders, &format!("round {round}, follows: {follows}")));
    }
    assert!(block_on(living.settle(Duration::from_mins(1))), "something is unfinished");
}

/// The orders, once the server has noticed that the killed process is gone: its last commit may have
/// been on its way.
async fn settled_orders(client: &Client, table: &str) -> Vec<i64> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let sql = "SELECT count(*) FROM pg_locks WHERE relation = $1::text::regclass \
            AND mode = 'RowExclusiveLock'";
        let open: i64 = client.query_one(sql, &[&table]).await.expect("a count").get(0);
        if open == 0 {
            return numbers(client, table).await;
        }
        assert!(Instant::now() < deadline, "a transaction of a killed process stays open");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn what_follows_in_cassandra_follows_a_kill() {
    another_process_finishes_it(Engine::Cassandra);
}

#[test]
fn what_follows_in_redis_follows_a_kill() {
    another_process_finishes_it(Engine::Redis);
}
