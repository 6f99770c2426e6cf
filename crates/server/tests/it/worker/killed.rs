//! Workers before PostgreSQL that are killed amid transactions: the observations of many clients have
//! an order that explains them.
//!
//! The test starts itself again as a child, which is the worker.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use mingle::{Database, Error, Session};
use mingle_checker::history::{Interval, Kind, Operation, Transaction};
use mingle_checker::{History, Model, Outcome, check};
use mingle_model::Level;
use mingle_model::random::{Random, next_random};
use mingle_proxy::{Fault, Proxy};
use mingle_services::Engine;
use tokio::runtime::Runtime;

use crate::worker::site::{Working, beside, client, unique};

/// The environment variable with the worker's binding.
const TOLD: &str = "MINGLE_TEST_WORKER";
const SEED: u64 = 4_242;
const CLIENTS: u64 = 4;
const CELLS: usize = 6;
const KILLS: usize = 5;

/// `change` reads two cells and writes one of them. Each write is counted at another store, so that a
/// repeated one would show.
const TEXT: &str = "store bank: linearizable; store feed: causal;
    object Cell in bank { key k: int; v: int; }
    object Count in feed { key k: int; n: int; }
    transaction change(a: ref Cell, b: ref Cell, count: ref Count, v: int) -> list<int> {
        let first = a.v;
        let second = b.v;
        b.v = v;
        count.n += 1;
        return [first, second];
    }
    transaction see(a: ref Cell, b: ref Cell) -> list<int> { return [a.v, b.v]; }
    transaction counted(of: ref Count) -> int { return of.n; }
    ";

async fn work(binding: &str) {
    let working = Working::start(beside(TEXT, binding).await, |_| {}).await;
    println!("\nlistening {}", working.address);
    std::io::stdout().flush().expect("the parent reads");
    std::future::pending::<()>().await;
}

/// A worker in a process of its own, which is killed with the test, if not before.
struct Killed {
    child: Child,
    address: SocketAddr,
}

impl Killed {
    fn start(binding: &str) -> Self {
        let this = std::env::current_exe().expect("the test's own path");
        let thread = std::thread::current();
        let mut child = Command::new(this)
            .args([thread.name().expect("tests have names"), "--exact", "--nocapture"])
            .arg("--test-threads=1")
            .env(TOLD, binding)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the child starts");
        let out = child.stdout.take().expect("the output is piped");
        let mut lines = BufReader::new(out).lines().map_while(Result::ok);
        let address =
            lines.find_map(|line| line.strip_prefix("listening ").and_then(|at| at.parse().ok()));
        Self { child, address: address.expect("the worker listens") }
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // SIGKILL, by its id.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One of those that call.
struct Caller {
    database: Arc<Database>,
    number: u64,
    random: Random,
    start: Instant,
    next: Arc<AtomicI64>,
    is_over: Arc<AtomicBool>,
}

/// The results of the callers' calls.
#[derive(Default)]
struct Done {
    transactions: Vec<Transaction>,
    /// The number of changes that have taken effect; `unknown` counts those without a known outcome.
    changed: i64,
    unknown: i64,
    errors: usize,
}

impl Caller {
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn operation(kind: Kind, key: usize, value: i64) -> Operation {
        let (store, level) = ("bank".into(), Level::Linearizable);
        Operation { kind, key: key as i64, value, store, level, version: None }
    }

    async fn call(&mut self, done: &mut Done) {
        let a = self.random.below(CELLS);
        let b = (a + 1 + self.random.below(CELLS - 1)) % CELLS;
        let changes = self.random.below(3) > 0;
        let value = self.next.fetch_add(1, Ordering::Relaxed);
        let (a_text, b_text) = (a.to_string(), b.to_string());
        let (count, v) = (self.number.to_string(), value.to_string());
        let mut arguments = vec![("a", a_text.as_str()), ("b", b_text.as_str())];
        if changes {
            arguments.extend([("count", count.as_str()), ("v", v.as_str())]);
        }
        let name = if changes { "change" } else { "see" };
        let arguments = self.database.arguments(name, arguments).expect("they fit");
        let begin = self.now();
        let called = self.database.call(name, arguments, Session::default()).await;
        let end = self.now();
        let mut operations = Vec::new();
        let outcome = match called {
            Ok(report) => {
                let seen = self.database.result_json(name, &report);
                for (at, key) in [a, b].into_iter().enumerate() {
                    let value = seen[at].as_i64().expect("it is an int");
                    operations.push(Self::operation(Kind::Read, key, value));
                }
                Outcome::Committed
            }
            // It took effect; its result is lost.
            Err(Error::ResultGone { .. } | Error::Incomplete { .. }) if changes => {
                Outcome::Committed
            }
            Err(Error::Unknown { .. }) if changes => Outcome::Unknown,
            Err(Error::Store(_) | Error::Conflict { .. } | Error::Waiting { .. }) => {
                done.errors += 1;
                return;
            }
            Err(error) => panic!("{name}: {error}"),
        };
        if changes {
            operations.push(Self::operation(Kind::Write, b, value));
            let counted =
                if outcome == Outcome::Committed { &mut done.changed } else { &mut done.unknown };
            *counted += 1;
        }
        done.transactions.push(Transaction {
            id: value,
            session: self.number.cast_signed(),
            outcome,
            interval: Some(Interval { begin, end }),
            commit: None,
            is_final: false,
            operations,
        });
    }

    async fn run(mut self) -> (u64, Done) {
        let mut done = Done::default();
        while !self.is_over.load(Ordering::Relaxed) {
            self.call(&mut done).await;
        }
        (self.number, done)
    }
}

/// Waits until so many more calls have begun; panics after one minute.
fn await_calls(next: &AtomicI64, more: i64) {
    let until = next.load(Ordering::Relaxed) + more;
    let deadline = Instant::now() + Duration::from_mins(1);
    while next.load(Ordering::Relaxed) < until {
        assert!(Instant::now() < deadline, "the calls hang");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_clients_see_of_workers_that_are_killed_has_an_order() {
    let runtime = Runtime::new().expect("a runtime starts");
    if let Ok(binding) = std::env::var(TOLD) {
        return runtime.block_on(work(&binding));
    }
    println!("seed {SEED}");
    let Some(server) = runtime.block_on(mingle_services::shared(Engine::Postgres)) else { return };
    let binding = format!(
        "[stores.feed]\n[stores.bank]\nengine = \"postgres\"\nurl = \"{}\"\nschema = \"{}\"\n",
        server.url(),
        unique("worker_killed")
    );
    let mut worker = Killed::start(&binding);
    let (proxy, database) = runtime.block_on(async {
        let proxy = Proxy::start(worker.address, SEED).await.expect("loopback listens");
        let database = client(TEXT, &proxy, "").await.unwrap_or_else(|error| panic!("{error}"));
        (proxy, database)
    });
    let is_over = Arc::new(AtomicBool::new(false));
    let (start, next) = (Instant::now(), Arc::new(AtomicI64::new(1)));
    let callers: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (database, next) = (database.clone(), next.clone());
            let (random, is_over) = (Random::new(SEED + number), is_over.clone());
            let caller = Caller { database, number, random, start, next, is_over };
            runtime.spawn(caller.run())
        })
        .collect();
    let mut random = SEED;
    for _ in 0..KILLS {
        // While they call.
        await_calls(&next, 25 + (next_random(&mut random) % 20) as i64);
        proxy.once_containing(b"PUT /v1/worker/stores/bank/attempts/", Fault::LoseAnswer);
        drop(worker);
        worker = Killed::start(&binding);
        proxy.set_upstream(worker.address);
    }
    await_calls(&next, 40);
    is_over.store(true, Ordering::Relaxed);
    let mut transactions = Vec::new();
    for caller in callers {
        let (number, done) = runtime.block_on(caller).expect("no caller panics");
        assert!(runtime.block_on(database.settle(Duration::from_mins(1))), "it comes to rest");
        let of = number.to_string();
        let counted = database.arguments("counted", [("of", of.as_str())]).expect("they fit");
        let counted = runtime.block_on(database.call("counted", counted, Session::default()));
        let counted = database.result_json("counted", &counted.expect("it is near"));
        let counted = counted.as_i64().expect("it is an int");
        let (least, most) = (done.changed, done.changed + done.unknown);
        assert!((least..=most).contains(&counted), "{counted} of {least} to {most} changes");
        println!("caller {number}: {} changes, {} errors", done.changed, done.errors);
        transactions.extend(done.transactions);
    }
    assert!(transactions.len() > 100, "only {} calls", transactions.len());
    let history = History::new(transactions).unwrap_or_else(|error| panic!("{error}"));
    let verdict = check(&history, Model::StrictSerializability);
    assert!(verdict.is_satisfied(), "{verdict}");
}
