//! Programs on several stores, while connections break and processes crash.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mingle::{Binding, Database, Error, Session, TokioWorld};
use mingle_model::random::next_random;
use mingle_model::{Level, Schema};
use mingle_proxy::Proxy;
use mingle_proxy::fault::Rates;
use mingle_services::Engine;
use mingle_store::{DataStore, StoreSchema};
use mingle_store_redis::{Redis, RedisConfig};
use serde_json::{Value as Json, json};

use crate::support::{Other, fresh_prefix};

const SEED: u64 = 8_080;

/// The program counts each operation, so a repeated one would be visible.
const TEXT: &str = "store bank: linearizable; store feed: snapshot;
    object Account in bank { key owner: string; balance: int; }
    object Inbox in feed { key owner: string; unread: counter; lines: log<string>; }
    transaction pay(to: ref Account, inbox: ref Inbox) -> int {
        to.balance += 10;
        inbox.unread.add(1);
        inbox.lines.append(string(to.balance));
        return to.balance;
    }
    transaction look(of: ref Account, inbox: ref Inbox) -> list<int> {
        return [of.balance, inbox.unread.value(), inbox.lines.size()];
    }
    transaction lines(inbox: ref Inbox) -> list<string> { return inbox.lines.to_list(); }
    ";

const BINDING: &str = "[runtime]\ndeadline = \"5s\"\nhelp_after = \"100ms\"\n\
    lease = \"1s\"\nsweep_every = \"200ms\"";

/// The addresses of both stores.
#[derive(Clone)]
struct Place {
    url: String,
    prefix: String,
}

impl Place {
    async fn store(&self, declared: &Arc<Schema>, name: &str, level: Level) -> Arc<dyn DataStore> {
        let schema = StoreSchema {
            store: name.into(),
            level,
            schema: Arc::clone(declared),
            operations: [].into(),
        };
        let prefix = Some(format!("{}{name}:", self.prefix));
        let config = RedisConfig {
            prefix,
            answer_timeout: Duration::from_secs(2),
            ..RedisConfig::at(self.url.as_str())
        };
        loop {
            // Connections may break at the start, too.
            match Redis::connect(config.clone(), schema.clone(), Arc::new(TokioWorld::new())).await
            {
                Ok(store) => return store,
                Err(mingle_store_redis::OpenError::Unavailable { .. }) => {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// A process that calls the program.
    async fn process(&self) -> Database {
        let program = mingle::compile(TEXT).expect("the program compiles");
        let bank = self.store(program.schema(), "bank", Level::Linearizable).await;
        let feed = self.store(program.schema(), "feed", Level::Snapshot).await;
        let binding = Binding::parse(BINDING).expect("the binding is one");
        let wrap = |name: &str, _| Arc::clone(if name == "bank" { &bank } else { &feed });
        Database::open_wrapped(program, &binding, None, Arc::new(TokioWorld::new()), wrap)
            .await
            .expect("it opens")
    }
}

async fn call(database: &Database, name: &str, arguments: &[(&str, &str)]) -> Result<Json, Error> {
    let arguments = database.arguments(name, arguments.iter().copied()).expect("they fit");
    let report = database.call(name, arguments, Session::default()).await?;
    Ok(database.result_json(name, &report))
}

async fn pay(database: &Database) -> Result<Json, Error> {
    call(database, "pay", &[("to", "ana"), ("inbox", "ana")]).await
}

/// Runs a process with its own runtime, and drops it after a pause.
fn die_after(place: Place, pause: Duration, done: Arc<AtomicU64>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    runtime.spawn(async move {
        let database = place.process().await;
        loop {
            if pay(&database).await.is_ok() {
                done.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    std::thread::sleep(pause);
    runtime.shutdown_background();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn all_or_nothing_whatever_breaks_and_whoever_dies() {
    let Some(server) = mingle_services::shared(Engine::Redis).await else { return };
    println!("seed {SEED}");
    let direct = Place { url: server.url().to_owned(), prefix: fresh_prefix() };
    let upstream: SocketAddr =
        direct.url.trim_start_matches("redis://").parse().expect("an address");
    let proxy = Proxy::start(upstream, SEED).await.expect("a proxy");
    let broken = Place { url: format!("redis://{}", proxy.address()), ..direct.clone() };
    let living = [broken.process().await, broken.process().await];
    proxy.set_rates(Rates { cut_request: 0.03, lose_answer: 0.05, ..Rates::default() });
    let done = Arc::new(AtomicU64::new(0));
    let mut random = SEED;
    let dying = (0..6).map(|_| {
        let (place, done) = (broken.clone(), Arc::clone(&done));
        let pause = Duration::from_millis(60 + next_random(&mut random) % 150);
        tokio::task::spawn_blocking(move || die_after(place, pause, done))
    });
    let dying: Vec<_> = dying.collect();
    for round in 0..25 {
        let (first, second) = tokio::join!(pay(&living[0]), pay(&living[1]));
        for result in [first, second] {
            match result {
                Ok(_) => done.fetch_add(1, Ordering::Relaxed),
                Err(Error::Misuse(why)) => panic!("round {round}: {why}"),
                Err(_) => 0,
            };
        }
    }
    for one in dying {
        one.await.expect("no panic");
    }
    proxy.set_rates(Rates::default());
    assert!(proxy.counts().answers_lost > 3, "{:?}", proxy.counts());
    check(&direct, &living, done.load(Ordering::Relaxed)).await;
}

/// Checks that once all transactions are finished, both stores hold the same payments, each once.
async fn check(direct: &Place, living: &[Database], done: u64) {
    let last = direct.process().await;
    last.recover().await.expect("it recovers");
    for database in living.iter().chain([&last]) {
        assert!(database.settle(Duration::from_mins(1)).await, "something is unfinished");
    }
    let seen = call(&last, "look", &[("of", "ana"), ("inbox", "ana")]).await.expect("it looks");
    let count = seen[1].as_u64().expect("a number");
    assert_eq!(seen, json!([10 * count, count, count]));
    assert!(count >= done && done > 20, "{done} were acknowledged, {count} took effect");
    let lines = call(&last, "lines", &[("inbox", "ana")]).await.expect("it looks");
    let mut lines: Vec<u64> = lines
        .as_array()
        .expect("a list")
        .iter()
        .map(|line| line.as_str().and_then(|line| line.parse().ok()).expect("a number"))
        .collect();
    lines.sort_unstable();
    assert_eq!(lines, (1..=count).map(|n| 10 * n).collect::<Vec<_>>());
    assert!(last.settle(Duration::from_mins(1)).await, "something is unfinished");
    let mut other = Other::at(&direct.url).await;
    for store in ["bank", "feed"] {
        // Witness rows, intents and commit witnesses are gone.
        for rows in ["!witnesses:order", "!records:2", "!records:5"] {
            let key = format!("{}{store}:{rows}", direct.prefix);
            let kept = other.words(&["EXISTS", &key]).await;
            assert_eq!(kept, redis::Value::Int(0), "{key}");
        }
    }
}
