//! A world whose clock, randomness and order of tasks come from one seed.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mingle_model::Time;
use mingle_model::random::Random;
use mingle_store::{BoxFuture, World};

/// The start of every simulation: 2026-11-20T00:00:00Z.
const START: i64 = 1_795_132_800_000;

/// A world that runs a random one of the runnable tasks; time advances when no task can run.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use mingle_sim::SimulatedWorld;
/// use mingle_store::World;
///
/// let world = SimulatedWorld::new(7);
/// world.run(world.sleep(Duration::from_secs(60)));
/// assert_eq!(world.elapsed(), Duration::from_secs(60));
/// ```
pub struct SimulatedWorld {
    inner: Arc<Mutex<Inner>>,
    ready: Arc<Mutex<Vec<u64>>>,
}

struct Inner {
    elapsed: Duration,
    random: Random,
    /// The random source of stores and the runtime, separate from the order of tasks.
    drawn: Random,
    sleepers: BTreeMap<(Duration, u64), Waker>,
    tasks: BTreeMap<u64, BoxFuture<'static, ()>>,
    next: u64,
    /// A digest of the order in which tasks ran: two runs of one seed have the same.
    digest: u64,
}

/// Puts its task among the runnable ones.
struct Ready {
    task: u64,
    ready: Arc<Mutex<Vec<u64>>>,
}

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        let mut ready = lock(&self.ready);
        if !ready.contains(&self.task) {
            ready.push(self.task);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SimulatedWorld {
    /// Creates the world of a seed.
    pub fn new(seed: u64) -> Arc<Self> {
        let inner = Inner {
            elapsed: Duration::ZERO,
            random: Random::new(seed),
            drawn: Random::new(seed ^ 0xD1B5_4A32_D192_ED03),
            sleepers: BTreeMap::new(),
            tasks: BTreeMap::new(),
            next: 1,
            digest: 0,
        };
        Arc::new(Self { inner: Arc::new(Mutex::new(inner)), ready: Arc::default() })
    }

    /// Runs a future to its end, together with all other tasks.
    ///
    /// # Panics
    ///
    /// If no task can run and none sleeps.
    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        // The future itself is task 0.
        let waker = self.waker(0);
        waker.wake_by_ref();
        loop {
            let Some(task) = self.pick() else {
                self.pass_time();
                continue;
            };
            if task == 0 {
                if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker))
                {
                    return result;
                }
                continue;
            }
            let Some(mut running) = lock(&self.inner).tasks.remove(&task) else { continue };
            let waker = self.waker(task);
            if running.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                lock(&self.inner).tasks.insert(task, running);
            }
        }
    }

    fn waker(&self, task: u64) -> Waker {
        Waker::from(Arc::new(Ready { task, ready: Arc::clone(&self.ready) }))
    }

    /// Returns a random one of the runnable tasks.
    fn pick(&self) -> Option<u64> {
        let mut ready = lock(&self.ready);
        if ready.is_empty() {
            return None;
        }
        let mut inner = lock(&self.inner);
        let index = inner.random.below(ready.len());
        let task = ready.swap_remove(index);
        inner.digest =
            mingle_model::random::mix(inner.digest ^ task ^ inner.elapsed.as_micros() as u64);
        Some(task)
    }

    fn pass_time(&self) {
        let mut inner = lock(&self.inner);
        let (due, waker) =
            inner.sleepers.pop_first().expect("nothing can go on, and nobody sleeps");
        inner.elapsed = inner.elapsed.max(due.0);
        drop(inner);
        waker.wake();
    }

    /// Drops all tasks and sleepers. They and the world hold references to each other, so a world
    /// that is not stopped is never freed.
    pub fn stop(&self) {
        loop {
            let (tasks, sleepers) = {
                let mut inner = lock(&self.inner);
                (std::mem::take(&mut inner.tasks), std::mem::take(&mut inner.sleepers))
            };
            lock(&self.ready).clear();
            // The lock is released first: a dropped task may inspect the world, or spawn.
            if tasks.is_empty() && sleepers.is_empty() {
                return;
            }
        }
    }

    /// Returns a digest of the order in which tasks ran.
    pub fn digest(&self) -> u64 {
        lock(&self.inner).digest
    }
}

impl World for SimulatedWorld {
    fn now(&self) -> Time {
        Time::from_millis(START + lock(&self.inner).elapsed.as_millis() as i64)
    }

    fn elapsed(&self) -> Duration {
        lock(&self.inner).elapsed
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let shared = Arc::clone(&self.inner);
        let until = lock(&shared).elapsed + duration;
        // A future is woken once, however often it is polled; otherwise futures that are polled
        // together would multiply.
        let mut known = None;
        Box::pin(std::future::poll_fn(move |context| {
            let mut inner = lock(&shared);
            if inner.elapsed >= until {
                return Poll::Ready(());
            }
            let key = *known.get_or_insert_with(|| {
                inner.next += 1;
                (until, inner.next)
            });
            inner.sleepers.insert(key, context.waker().clone());
            Poll::Pending
        }))
    }

    fn random(&self) -> u64 {
        lock(&self.inner).drawn.bits()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let mut inner = lock(&self.inner);
        inner.next += 1;
        let id = inner.next;
        inner.tasks.insert(id, task);
        drop(inner);
        lock(&self.ready).push(id);
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        work();
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_that_is_polled_often_wakes_once() {
        let world = SimulatedWorld::new(1);
        let sleeps = (1..=20).map(|n| world.sleep(Duration::from_millis(n)));
        let mut sleeps: Vec<_> = sleeps.map(|sleep| (sleep, false)).collect();
        let mut polls = 0;
        world.run(std::future::poll_fn(|context| {
            polls += 1;
            for (sleep, is_over) in sleeps.iter_mut().filter(|(_, is_over)| !*is_over) {
                *is_over = sleep.as_mut().poll(context).is_ready();
            }
            if sleeps.iter().all(|(_, is_over)| *is_over) { Poll::Ready(()) } else { Poll::Pending }
        }));
        assert!(polls <= 21, "polled {polls} times");
        assert_eq!(world.elapsed(), Duration::from_millis(20));
    }
}
