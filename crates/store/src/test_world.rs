//! A world for tests: its clock stands still until nothing else can go on.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mingle_model::Time;

use crate::random::next_random;
use crate::world::{BoxFuture, World};

/// A world with a virtual clock and seeded randomness: runs in it are the same each time.
///
/// Sleepers wake in order of time, and time passes only in [`TestWorld::block_on`], when neither
/// the future nor any task can go on.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use mingle_store::{World, TestWorld};
///
/// let world = TestWorld::new(7);
/// world.block_on(world.sleep(Duration::from_hours(1)));
/// assert_eq!(world.elapsed(), Duration::from_hours(1));
/// ```
pub struct TestWorld {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    elapsed: Duration,
    random: u64,
    sleepers: BTreeMap<(Duration, u64), Waker>,
    next_sleeper: u64,
    tasks: Vec<Task>,
}

struct Task {
    future: BoxFuture<'static, ()>,
    woken: Arc<Flag>,
}

/// 2026-11-20T00:00:00Z, when every test begins.
const START: Time = Time::from_millis(1_795_132_800_000);

impl TestWorld {
    /// A world whose randomness comes from `seed`.
    pub fn new(seed: u64) -> Arc<Self> {
        let inner = Inner {
            elapsed: Duration::ZERO,
            random: seed,
            sleepers: BTreeMap::new(),
            next_sleeper: 0,
            tasks: Vec::new(),
        };
        Arc::new(Self { inner: Arc::new(Mutex::new(inner)) })
    }

    /// Lets time pass at once, whether or not anyone can go on.
    pub fn advance(&self, duration: Duration) {
        let mut inner = lock(&self.inner);
        let now = inner.elapsed + duration;
        inner.advance_to(now);
    }

    /// Runs a future to its end, and tasks beside it. Several threads may do so at once.
    ///
    /// # Panics
    ///
    /// When nothing can go on any more and no task sleeps.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let flag = Flag::new();
        let waker = Waker::from(Arc::clone(&flag));
        loop {
            while flag.take() {
                if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker))
                {
                    return result;
                }
            }
            if self.run_tasks() || flag.is_set() {
                continue;
            }
            let mut inner = lock(&self.inner);
            match inner.sleepers.first_key_value() {
                Some((&(due, _), _)) => inner.advance_to(due),
                // Another thread may be about to wake this one.
                None => {
                    drop(inner);
                    assert!(
                        flag.wait(Duration::from_secs(10)),
                        "nothing can go on, and nobody sleeps"
                    );
                }
            }
        }
    }

    /// Polls each task that was woken; whether there was one.
    fn run_tasks(&self) -> bool {
        let mut woken = Vec::new();
        {
            let mut inner = lock(&self.inner);
            let mut index = 0;
            while index < inner.tasks.len() {
                if inner.tasks[index].woken.take() {
                    woken.push(inner.tasks.remove(index));
                } else {
                    index += 1;
                }
            }
        }
        let any = !woken.is_empty();
        for mut task in woken {
            let waker = Waker::from(Arc::clone(&task.woken));
            let poll = task.future.as_mut().poll(&mut Context::from_waker(&waker));
            if poll.is_pending() {
                lock(&self.inner).tasks.push(task);
            }
        }
        any
    }
}

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    fn advance_to(&mut self, now: Duration) {
        self.elapsed = self.elapsed.max(now);
        let later = self.sleepers.split_off(&(self.elapsed, u64::MAX));
        for waker in std::mem::replace(&mut self.sleepers, later).into_values() {
            waker.wake();
        }
    }
}

impl World for TestWorld {
    fn now(&self) -> Time {
        let passed = i64::try_from(self.elapsed().as_millis()).unwrap_or(i64::MAX);
        START.plus_millis(passed)
    }

    fn elapsed(&self) -> Duration {
        lock(&self.inner).elapsed
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let due = self.elapsed() + duration;
        Box::pin(Sleep { inner: Arc::clone(&self.inner), due })
    }

    fn random(&self) -> u64 {
        next_random(&mut lock(&self.inner).random)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        lock(&self.inner).tasks.push(Task { future: task, woken: Flag::new() });
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        Box::pin(async move { work() })
    }
}

struct Sleep {
    inner: Arc<Mutex<Inner>>,
    due: Duration,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut inner = lock(&self.inner);
        if inner.elapsed >= self.due {
            return Poll::Ready(());
        }
        let number = inner.next_sleeper;
        inner.next_sleeper += 1;
        let waker = context.waker().clone();
        inner.sleepers.insert((self.due, number), waker);
        Poll::Pending
    }
}

/// A flag that is set when its owner is woken.
struct Flag {
    is_set: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Flag {
    /// Creates a flag that is set, so that its owner is polled once.
    fn new() -> Arc<Self> {
        Arc::new(Self {
            is_set: AtomicBool::new(true),
            lock: Mutex::new(()),
            changed: Condvar::new(),
        })
    }

    fn take(&self) -> bool {
        self.is_set.swap(false, Ordering::AcqRel)
    }

    fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    fn wait(&self, at_most: Duration) -> bool {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let _guard = self
            .changed
            .wait_timeout_while(guard, at_most, |()| !self.is_set())
            .unwrap_or_else(PoisonError::into_inner);
        self.is_set()
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.is_set.store(true, Ordering::Release);
        let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed.notify_all();
    }
}

/// Runs all futures side by side in one task, in turns, and gives their results in order.
pub async fn join_all<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut running: Vec<(Option<BoxFuture<'_, T>>, Option<T>)> =
        futures.into_iter().map(|future| (Some(future), None)).collect();
    std::future::poll_fn(|context| {
        let mut is_pending = false;
        for (future, result) in &mut running {
            if let Some(polled) = future {
                match polled.as_mut().poll(context) {
                    Poll::Ready(value) => {
                        *result = Some(value);
                        *future = None;
                    }
                    Poll::Pending => is_pending = true,
                }
            }
        }
        if is_pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    running.into_iter().map(|(_, result)| result.expect("every future has ended")).collect()
}

/// Lets others have their turn.
pub async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleepers_wake_in_order_of_time_and_no_time_passes_in_between() {
        let world = TestWorld::new(1);
        let log = Arc::new(Mutex::new(Vec::new()));
        for ms in [30, 10, 20] {
            let (sleep, log) = (world.sleep(Duration::from_millis(ms)), Arc::clone(&log));
            world.spawn(Box::pin(async move {
                sleep.await;
                log.lock().expect("no panic").push(ms);
            }));
        }
        world.block_on(world.sleep(Duration::from_millis(25)));
        assert_eq!(world.elapsed(), Duration::from_millis(25));
        assert_eq!(*log.lock().expect("no panic"), [10, 20]);
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let draw = |seed| {
            let world = TestWorld::new(seed);
            [world.random(), world.random()]
        };
        assert_eq!(draw(5), draw(5));
        assert_ne!(draw(5), draw(6));
    }
}
