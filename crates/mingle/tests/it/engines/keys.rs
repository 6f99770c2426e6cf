//! Calls with a key over PostgreSQL: their answers are lost, they run at the same moment, and their
//! process ends between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mingle::{Binding, Call, CallKey, CallReport, Database, Error};
use mingle_proxy::{Fault, Proxy};
use mingle_services::Engine;
use serde_json::{Value as Json, json};

use crate::engines::site::{block_on, bound, space};

/// The operations count, so that a repeated one would show. The result of `pay` is known when it first
/// writes, the result of `late` is computed by a later phase, and `quick` writes one store alone.
const TEXT: &str = "store bank: linearizable; store feed: causal;
    object Account in bank { key owner: string; balance: int; }
    object Inbox in feed { key owner: string; unread: counter; }
    transaction pay(to: ref Account, inbox: ref Inbox) -> int {
        to.balance += 10;
        inbox.unread.add(1);
        return to.balance;
    }
    transaction late(to: ref Account, inbox: ref Inbox) -> int {
        to.balance += 10;
        inbox.unread.add(1);
        return inbox.unread.value() * 10;
    }
    transaction quick(to: ref Account, inbox: ref Inbox) -> int {
        to.balance += 10;
        return to.balance;
    }
    transaction look(of: ref Account, inbox: ref Inbox) -> list<int> {
        return [of.balance, inbox.unread.value()];
    }
    ";

const SETTINGS: &str = "[runtime]\ndeadline = \"10s\"\nhelp_after = \"100ms\"\n\
    lease = \"2s\"\nsweep_every = \"200ms\"\n";

/// Both stores in one server, with a proxy before it.
struct Place {
    proxy: Proxy,
    binding: String,
}

impl Place {
    /// None if PostgreSQL is not installed.
    async fn new() -> Option<Self> {
        let server = mingle_services::shared(Engine::Postgres).await?;
        let upstream = server.addresses()[0];
        let proxy = Proxy::start(upstream, 7).await.expect("loopback listens");
        let space = space();
        let mut binding = SETTINGS.to_owned();
        for store in ["bank", "feed"] {
            binding += &bound(store, Some(Engine::Postgres), &space).await?;
        }
        let binding = binding.replace(&upstream.to_string(), &proxy.address().to_string());
        assert!(binding.contains(&proxy.address().to_string()), "{binding}");
        Some(Self { proxy, binding })
    }

    async fn process(&self) -> Arc<Database> {
        let program = mingle::compile(TEXT).expect("the program compiles");
        let binding = Binding::parse(&self.binding).expect("the binding is one");
        let opened = Database::open(program, &binding, None).await;
        Arc::new(opened.unwrap_or_else(|error| panic!("{error}")))
    }

    fn faults(&self) -> u64 {
        let counts = self.proxy.counts();
        counts.requests_cut + counts.answers_lost
    }
}

async fn keyed(server: &Database, key: &str, name: &str, whom: &str) -> Result<CallReport, Error> {
    let [first, second] = if name == "look" { ["of", "inbox"] } else { ["to", "inbox"] };
    let arguments = server.arguments(name, [(first, whom), (second, whom)])?;
    let key = (name != "look").then(|| CallKey::new("test", key));
    server.submit(Call { key, ..Call::new(name, arguments) }).await
}

async fn ok(server: &Database, key: &str, name: &str, whom: &str) -> (Json, bool) {
    let report = keyed(server, key, name, whom).await;
    let report = report.unwrap_or_else(|error| panic!("{name} of {whom}: {error}"));
    (server.result_json(name, &report), report.is_repeated)
}

/// Repeats a call until it is answered, as a client does that has lost an answer.
async fn insists(server: &Database, key: &str, name: &str, whom: &str) -> Json {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match keyed(server, key, name, whom).await {
            Ok(report) => return server.result_json(name, &report),
            Err(error) => {
                let may_pass = error.is_retryable()
                    || matches!(error, Error::Unknown { .. } | Error::Incomplete { .. });
                assert!(may_pass && Instant::now() < deadline, "{name} of {whom}: {error}");
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Checks the writes of a call with a key, for a fault at each of its commits.
async fn survives(name: &str, fault: Fault, unread: i64) {
    let Some(place) = Place::new().await else { return };
    let mut lost = 0;
    loop {
        let whom = format!("{name}{lost}");
        let server = place.process().await;
        let (before, seen) = (place.faults(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&seen);
        let is_it = move |burst: &[u8]| {
            burst.windows(6).any(|bytes| bytes == b"COMMIT")
                && counted.fetch_add(1, Ordering::Relaxed) == lost
        };
        place.proxy.once_matching(is_it, fault);
        let first = keyed(&server, &whom, name, &whom).await;
        let is_over = place.faults() == before;
        // From here on no fault occurs.
        seen.store(u64::MAX / 2, Ordering::Relaxed);
        drop(server);
        let server = place.process().await;
        let what = format!("{name}, {fault:?} of commit {lost}, first {first:?}");
        assert_eq!(insists(&server, &whom, name, &whom).await, json!(10), "{what}");
        // Requests that are still on their way do not make it two.
        assert!(server.settle(Duration::from_secs(30)).await, "{what}");
        assert_eq!(ok(&server, "", "look", &whom).await.0, json!([10, unread]), "{what}");
        if is_over {
            break;
        }
        lost += 1;
    }
    assert!(lost > 0, "{name} has no commit");
}

#[test]
fn of_answers_that_are_lost_the_same_call_again_has_the_first() {
    block_on(async {
        for (name, unread) in [("quick", 0), ("pay", 1), ("late", 1)] {
            survives(name, Fault::LoseAnswer, unread).await;
        }
    });
}

#[test]
fn of_requests_that_are_cut_the_same_call_again_has_the_first() {
    block_on(async {
        for (name, unread) in [("quick", 0), ("pay", 1), ("late", 1)] {
            survives(name, Fault::CutRequest, unread).await;
        }
    });
}

#[test]
fn of_calls_at_the_same_time_one_takes_effect() {
    block_on(async {
        let Some(place) = Place::new().await else { return };
        let servers = [place.process().await, place.process().await];
        for (name, unread) in [("quick", 0), ("pay", 1), ("late", 1)] {
            let calls: Vec<_> = (0..8)
                .map(|at| {
                    let server = Arc::clone(&servers[at % 2]);
                    tokio::spawn(async move { ok(&server, name, name, name).await })
                })
                .collect();
            let mut firsts = 0;
            for call in calls {
                let (result, is_repeated) = call.await.expect("it does not panic");
                assert_eq!(result, json!(10), "{name}");
                firsts += usize::from(!is_repeated);
            }
            assert_eq!(firsts, 1, "{name}");
            assert_eq!(ok(&servers[0], "", "look", name).await.0, json!([10, unread]), "{name}");
        }
    });
}

#[test]
fn a_key_outlives_its_process() {
    block_on(async {
        let Some(place) = Place::new().await else { return };
        for name in ["quick", "pay", "late"] {
            let server = place.process().await;
            assert_eq!(ok(&server, name, name, name).await, (json!(10), false));
            drop(server);
            let server = place.process().await;
            assert_eq!(ok(&server, name, name, name).await, (json!(10), true));
            let other = keyed(&server, name, name, "somebody").await;
            assert_eq!(other.map(drop), Err(Error::KeyReused), "{name}");
        }
    });
}
