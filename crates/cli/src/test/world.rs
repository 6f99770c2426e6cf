//! The process under test: it crashes at a chosen step, and is started again over the same stores.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use mingle_model::Time;
use mingle_store::wrap::fault::Call;
use mingle_store::wrap::layer::{Layer, Layered, Request, Work};
use mingle_store::{
    BoxFuture, Commit, Committed, DataStore, StoreError, TestWorld, Transaction, World,
};
use tokio::sync::Notify;

/// The moment of a crash relative to a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the store hears of the step.
    Before,
    /// After the store has done the step, before the process has the answer.
    After,
}

/// The place of a crash: the number of the step, from 0, and the moment.
pub type Crash = (u64, Moment);

/// The steps of a run: calls to stores, counted over all processes under test.
pub struct Steps {
    count: AtomicU64,
    crash: Option<Crash>,
    place: Mutex<Option<String>>,
}

impl Steps {
    /// Counts steps, and crashes the process at one of them.
    pub fn new(crash: Option<Crash>) -> Arc<Self> {
        Arc::new(Self { count: AtomicU64::new(0), crash, place: Mutex::default() })
    }

    /// Returns the number of steps so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// True if the process crashes in this run.
    pub fn can_crash(&self) -> bool {
        self.crash.is_some()
    }

    /// Returns the place of the crash in words, once it has happened.
    pub fn place(&self) -> Option<String> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a step; returns the moment if the process crashes at it.
    fn next(&self, store: &str, call: Call) -> Option<Moment> {
        let index = self.count.fetch_add(1, Ordering::AcqRel);
        let (at, moment) = self.crash?;
        if at != index {
            return None;
        }
        let when = match moment {
            Moment::Before => "before",
            Moment::After => "after",
        };
        let action = match call {
            Call::Begin => "beginning",
            Call::Read => "reading",
            Call::Flush => "writing ahead",
            Call::Commit => "committing",
            Call::Outcome => "asking for an outcome",
            Call::Everywhere => "asking the replicas",
        };
        let place = format!("a crash {when} {action} at {store} (step {})", index + 1);
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
        Some(moment)
    }
}

/// One life of the process under test, as the world of its runtime.
pub struct Process {
    outer: Arc<TestWorld>,
    is_alive: AtomicBool,
    death: Notify,
}

impl Process {
    /// Starts a process.
    pub fn start(outer: Arc<TestWorld>) -> Arc<Self> {
        Arc::new(Self { outer, is_alive: AtomicBool::new(true), death: Notify::new() })
    }

    /// True until it has crashed.
    pub fn is_alive(&self) -> bool {
        self.is_alive.load(Ordering::Acquire)
    }

    /// Returns once it has crashed.
    pub async fn died(&self) {
        loop {
            let death = self.death.notified();
            if !self.is_alive() {
                return;
            }
            death.await;
        }
    }

    /// Ends it as `kill -9` does: nothing that it has not yet done happens.
    pub fn kill(&self) {
        self.is_alive.store(false, Ordering::Release);
        self.death.notify_waiters();
    }
}

/// A task of a process, which ends with it.
struct Mortal {
    process: Arc<Process>,
    task: Option<BoxFuture<'static, ()>>,
}

impl Future for Mortal {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if !self.process.is_alive() {
            self.task = None;
        }
        match &mut self.task {
            Some(task) => task.as_mut().poll(context),
            None => Poll::Ready(()),
        }
    }
}

/// The handle by which a runtime has a [`Process`] as its world.
pub struct ProcessWorld(pub Arc<Process>);

impl World for ProcessWorld {
    fn now(&self) -> Time {
        self.0.outer.now()
    }

    fn elapsed(&self) -> Duration {
        self.0.outer.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.0.outer.sleep(duration)
    }

    fn random(&self) -> u64 {
        self.0.outer.random()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let process = self.0.clone();
        self.0.outer.spawn(Box::pin(Mortal { process, task: Some(task) }));
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        self.0.outer.run_blocking(work)
    }
}

/// A store as a process sees it: each call takes a random time, so that the seed decides which of
/// several calls comes first, and none returns after the process's death.
#[derive(Clone)]
pub struct Seen {
    process: Arc<Process>,
    /// The count of steps; none for the process that only looks.
    steps: Option<Arc<Steps>>,
    store: Arc<str>,
}

/// The longest time of one call to a store, in microseconds.
const CALL_MICROS_MAX: u64 = 4_000;

impl Seen {
    /// Returns the view that a process has of a store.
    pub fn around(
        inner: Arc<dyn DataStore>,
        process: &Arc<Process>,
        steps: Option<&Arc<Steps>>,
    ) -> Arc<dyn DataStore> {
        let store = Arc::from(&*inner.capabilities().store);
        Layered::around(inner, Self { process: process.clone(), steps: steps.cloned(), store })
    }
}

impl Layer for Seen {
    async fn call<T: Send>(
        &self,
        request: Request<'_>,
        work: Work<'_, T>,
    ) -> Result<T, StoreError> {
        if !self.process.is_alive() {
            return std::future::pending().await;
        }
        if request.is_free() {
            return work().await;
        }
        let Some(steps) = &self.steps else { return work().await };
        let outer = &self.process.outer;
        outer.sleep(Duration::from_micros(outer.random() % CALL_MICROS_MAX)).await;
        let moment = steps.next(&self.store, request.call());
        if moment == Some(Moment::Before) {
            self.process.kill();
        }
        if !self.process.is_alive() {
            drop(work);
            return std::future::pending().await;
        }
        let answer = work().await;
        if moment == Some(Moment::After) {
            self.process.kill();
        }
        if self.process.is_alive() { answer } else { std::future::pending().await }
    }

    fn commit(
        self,
        request: Request<'static>,
        inner: Box<dyn Transaction>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin(async move { self.call(request, Box::new(|| inner.commit(commit))).await })
    }
}
