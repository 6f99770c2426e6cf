//! Processes that die amid transactions whose second store is eventual: several helpers may run one
//! phase, at different data centers, and it counts once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mingle::{Binding, Database, Error, Session};
use mingle_model::random::next_random;
use mingle_services::Engine;
use serde_json::{Value as Json, json};

use crate::engines::site::{block_on, bound, space};

const SEED: u64 = 4_711;

/// The operations count, so that a repeated one would show. The phase reads the eventual store before
/// it writes there, so that its effect depends on the first process that runs it.
const TEXT: &str = "store bank: linearizable; store feed: eventual;
    object Account in bank { key owner: string; balance: int; }
    object Inbox in feed {
        key owner: string;
        unread: counter; lines: log<string>; open: set<string>; last: int;
    }
    transaction pay(to: ref Account, inbox: ref Inbox) -> int {
        to.balance += 10;
        let now = to.balance;
        inbox.unread.add(1);
        inbox.lines.append(string(now));
        if inbox.unread.value() % 2 == 0 {
            inbox.open.insert(string(now));
        } else {
            inbox.open.remove(string(now - 10));
        }
        inbox.last = now;
        return now;
    }
    transaction look(of: ref Account, inbox: ref Inbox) -> list<int> {
        return [of.balance, inbox.unread.value(), inbox.lines.size()];
    }
    transaction lines(inbox: ref Inbox) -> list<string> { return inbox.lines.to_list(); }
    transaction rest(inbox: ref Inbox) -> list<string> {
        return inbox.open.to_list() + [string(inbox.last)];
    }
    ";

const SETTINGS: &str = "[runtime]\ndeadline = \"10s\"\nhelp_after = \"100ms\"\n\
    lease = \"1s\"\nsweep_every = \"200ms\"\n";

const CENTERS: [&str; 3] = ["dc1", "dc2", "dc3"];

async fn process(binding: &str) -> Database {
    let program = mingle::compile(TEXT).expect("the program compiles");
    let binding = Binding::parse(binding).expect("the binding is one");
    Database::open(program, &binding, None).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn call(database: &Database, name: &str, center: &str) -> Result<Json, Error> {
    let arguments: &[(&str, &str)] = match name {
        "pay" => &[("to", "ana"), ("inbox", "ana")],
        "look" => &[("of", "ana"), ("inbox", "ana")],
        _ => &[("inbox", "ana")],
    };
    let arguments = database.arguments(name, arguments.iter().copied()).expect("they fit");
    let report = database.call(name, arguments, Session::at(center)).await?;
    Ok(database.result_json(name, &report))
}

/// Runs calls in a process with its own runtime, and drops the runtime after a pause.
fn die_after(binding: String, center: &'static str, pause: Duration, done: Arc<AtomicU64>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("threads can be started");
    let database = runtime.block_on(process(&binding));
    runtime.spawn(async move {
        loop {
            if call(&database, "pay", center).await.is_ok() {
                done.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    std::thread::sleep(pause);
    runtime.shutdown_background();
}

#[test]
fn a_phase_in_cassandra_takes_effect_once_whoever_dies() {
    println!("seed {SEED}");
    let space = space();
    let (bank, feed) = (
        block_on(bound("bank", Some(Engine::Redis), &space)),
        block_on(bound("feed", Some(Engine::Cassandra), &space)),
    );
    let (Some(bank), Some(feed)) = (bank, feed) else { return };
    let binding = format!("{SETTINGS}{bank}{feed}");
    let living = block_on(process(&binding));
    let done = Arc::new(AtomicU64::new(0));
    let mut random = SEED;
    let dying: Vec<_> = (0..5)
        .map(|number| {
            let (binding, done) = (binding.clone(), Arc::clone(&done));
            let pause = Duration::from_millis(400 + next_random(&mut random) % 600);
            let center = CENTERS[number % CENTERS.len()];
            std::thread::spawn(move || die_after(binding, center, pause, done))
        })
        .collect();
    let mut round = 0;
    while dying.iter().any(|one| !one.is_finished()) || round < 10 {
        match block_on(call(&living, "pay", CENTERS[round % CENTERS.len()])) {
            Ok(_) => _ = done.fetch_add(1, Ordering::Relaxed),
            Err(Error::Misuse(why)) => panic!("round {round}: {why}"),
            Err(_) => {}
        }
        round += 1;
    }
    for one in dying {
        one.join().expect("no panic");
    }
    block_on(check(&binding, &living, done.load(Ordering::Relaxed)));
}

/// Once all is finished, both stores show the same payments, each once, at every data center.
async fn check(binding: &str, living: &Database, done: u64) {
    let last = process(binding).await;
    last.recover().await.expect("it recovers");
    for database in [living, &last] {
        assert!(database.settle(Duration::from_mins(1)).await, "something is unfinished");
    }
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut rests = Vec::new();
    for center in CENTERS {
        let mut seen = call(&last, "look", center).await.expect("it looks");
        let count = seen[0].as_u64().expect("a number") / 10;
        assert!(count >= done, "{count} payments, {done} were acknowledged");
        let expected = json!([count * 10, count, count]);
        while seen != expected && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(50)).await;
            seen = call(&last, "look", center).await.expect("it looks");
        }
        assert_eq!(seen, expected, "at {center}");
        let lines = call(&last, "lines", center).await.expect("it looks");
        let lines = lines.as_array().expect("a list");
        let mut found: Vec<u64> =
            lines.iter().map(|line| line.as_str().unwrap().parse().unwrap()).collect();
        found.sort_unstable();
        let all: Vec<u64> = (1..=count).map(|number| number * 10).collect();
        assert_eq!(found, all, "at {center}");
        rests.push(call(&last, "rest", center).await.expect("it looks"));
    }
    assert!(rests.iter().all(|rest| *rest == rests[0]), "{rests:?}");
    println!("{done} payments were acknowledged");
}
