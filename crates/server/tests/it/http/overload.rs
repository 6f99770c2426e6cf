//! Ten times the load that a store can serve: most of its work is still answered in time, the other
//! calls are refused at once, and requests that do not need the store are answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mingle_store::wrap::layer::{Layer, Layered, Request as StoreRequest, Work};
use mingle_store::{DataStore, StoreError};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::http::client::{Request, Served, TEXT};

/// The number of requests that the store serves at a time, and the duration of each.
const SLOTS: usize = 4;
const SERVICE: Duration = Duration::from_millis(20);

/// The numbers of callers that call without a pause: two and twenty times as many as the store
/// serves.
const FEW: usize = 2 * SLOTS;
const MANY: usize = 10 * FEW;

/// The deadline of calls in milliseconds, after which an answer is useless: the time in which the
/// store serves half of the calls of [`MANY`] callers.
const DEADLINE_MS: u64 = 200;

/// The time after which a refused caller tries again: all callers together still ask for far more
/// than the store can do.
const AGAIN_AFTER: Duration = Duration::from_millis(50);

/// The number of requests that the store serves before the measurement, and during it.
const WARM_UP: u64 = 400;
const JUDGED: u64 = 600;

/// A store that serves all requests in turn, even those whose callers no longer wait.
#[derive(Clone)]
struct Busy {
    slots: Arc<Semaphore>,
    done: Arc<AtomicU64>,
}

impl Layer for Busy {
    async fn call<T: Send>(
        &self,
        request: StoreRequest<'_>,
        work: Work<'_, T>,
    ) -> Result<T, StoreError> {
        if matches!(request, StoreRequest::Read(_)) {
            let busy = self.clone();
            let serving = tokio::spawn(async move {
                let slot = busy.slots.acquire().await.expect("nobody closes it");
                tokio::time::sleep(SERVICE).await;
                busy.done.fetch_add(1, Ordering::Relaxed);
                drop(slot);
            });
            serving.await.expect("it serves");
        }
        work().await
    }
}

/// A server over a store of limited speed.
struct Overloaded {
    served: Arc<Served>,
    done: Arc<AtomicU64>,
}

/// The results that callers have seen while the store worked.
#[derive(Debug)]
struct Seen {
    in_time: u64,
    refused: u64,
    late: u64,
    /// The share of the store's work that was useful.
    share: f64,
    /// The calls in time, per second.
    goodput: f64,
}

impl Overloaded {
    fn new(is_adaptive: bool) -> Self {
        let done = Arc::new(AtomicU64::new(0));
        let busy = Busy { slots: Arc::new(Semaphore::new(SLOTS)), done: done.clone() };
        let served = Served::around(
            TEXT,
            "",
            |config| config.is_adaptive = is_adaptive,
            |_, store| -> Arc<dyn DataStore> { Layered::around(store, busy.clone()) },
        );
        Self { served: Arc::new(served), done }
    }

    fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    fn await_work(&self, until: u64) {
        let deadline = Instant::now() + Duration::from_mins(2);
        while self.done() < until {
            assert!(Instant::now() < deadline, "the store has done {} of {until}", self.done());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Runs `callers` callers, and `meanwhile` beside them.
    fn offer(&self, callers: usize, meanwhile: impl FnOnce(&Served)) -> Seen {
        let (stop, judges) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let caller = |number: usize| {
            let (served, stop, judges) = (self.served.clone(), stop.clone(), judges.clone());
            std::thread::spawn(move || call_until(&served, number, &stop, &judges))
        };
        let before = self.done();
        let callers: Vec<_> = (0..callers).map(caller).collect();
        self.await_work(before + WARM_UP);
        meanwhile(&self.served);
        let (began, first) = (Instant::now(), self.done());
        judges.store(true, Ordering::Relaxed);
        self.await_work(first + JUDGED);
        judges.store(false, Ordering::Relaxed);
        let (took, work) = (began.elapsed(), self.done() - first);
        stop.store(true, Ordering::Relaxed);
        let (mut in_time, mut late, mut refused) = (0, 0, 0);
        for caller in callers {
            let told = caller.join().expect("it calls");
            (in_time, late) = (in_time + told.0, late + told.1);
            refused += told.2;
        }
        Seen {
            in_time,
            late,
            refused,
            share: in_time as f64 / work as f64,
            goodput: in_time as f64 / took.as_secs_f64(),
        }
    }
}

/// Returns the numbers of calls in time, late calls, and refusals that ended during the
/// measurement.
fn call_until(
    served: &Served,
    number: usize,
    stop: &AtomicBool,
    judges: &AtomicBool,
) -> (u64, u64, u64) {
    let body = json!({ "item": format!("item {number}") }).to_string();
    let path = format!("/v1/transactions/count?deadline_ms={DEADLINE_MS}");
    let call = || {
        Request::new("POST", &path).header("content-type", "application/json").body(body.clone())
    };
    let (mut in_time, mut late, mut refused) = (0, 0, 0);
    while !stop.load(Ordering::Relaxed) {
        let answer = served.send(&call());
        let is_judged = judges.load(Ordering::Relaxed);
        match answer.status {
            200 if is_judged => in_time += 1,
            503 if answer.code() == "overloaded" => {
                assert_eq!(answer.header("retry-after"), Some("1"));
                refused += u64::from(is_judged);
                std::thread::sleep(AGAIN_AFTER);
            }
            200 => {}
            status => {
                assert!(matches!(status, 503 | 504), "{status}: {}", answer.detail());
                late += u64::from(is_judged);
            }
        }
    }
    (in_time, late, refused)
}

#[test]
fn at_ten_times_the_load_most_work_is_of_use_and_the_rest_is_refused_at_once() {
    let overloaded = Overloaded::new(true);
    let peak = overloaded.offer(FEW, |_| {});
    println!("few callers: {peak:?}");
    assert!(peak.share > 0.8, "{peak:?}");
    let many = overloaded.offer(MANY, |served| {
        // Requests that need no store, or another store, are answered.
        for path in ["/healthz", "/readyz", "/metrics", "/openapi.json"] {
            assert_eq!(served.get(path).status, 200, "{path}");
        }
        assert_eq!(served.ok("ping", &json!({})), json!("pong"));
        assert_eq!(served.ok("add", &json!({ "item": "other", "count": 1 })), json!(1));
        served.call("read", &json!({ "of": "ana" })).json();
    });
    println!("many callers: {many:?}; goodput {:.2} of that of few", many.goodput / peak.goodput);
    assert!(many.share >= 0.8, "{many:?}");
    assert!(many.refused > 0 && many.late < many.in_time / 4, "{many:?}");
    let metrics = overloaded.served.get("/metrics").body;
    for name in ["limit", "running", "waiting", "refused_total"] {
        let metric = format!("mingle_admission_{name}{{call=\"count\"}} ");
        let value = metrics.lines().find_map(|line| line.strip_prefix(&metric));
        let value: f64 = value.and_then(|value| value.parse().ok()).expect("it is told");
        let expected = if name == "refused_total" { 1.0.. } else { 0.0.. };
        assert!(expected.contains(&value), "{name}: {value}");
    }
}

#[test]
fn by_count_alone_most_work_comes_too_late() {
    let overloaded = Overloaded::new(false);
    let many = overloaded.offer(MANY, |_| {});
    println!("many callers: {many:?}");
    assert!(many.share < 0.5, "the test would not notice: {many:?}");
    assert_eq!(many.refused, 0, "{many:?}");
}
