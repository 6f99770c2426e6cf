//! A process: a separate world inside the simulated one.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mingle_model::random::{Random, mix};
use mingle_model::{Name, Time};
use mingle_store::{BoxFuture, World};

/// The rate and size of jumps of the time of day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockRates {
    /// One reading of the clock in this many makes it jump; 0 for never.
    pub one_in: usize,
    /// The maximum distance from the right time, in either direction.
    pub most: Duration,
}

/// One incarnation of a process. Its time of day may be wrong and may go back; its
/// [`World::elapsed`] is that of the simulated world. Its tasks and the process may hold references
/// to each other, so its starter must kill it in the end.
///
/// # Examples
///
/// ```
/// use mingle_sim::SimulatedWorld;
/// use mingle_sim::process::{ClockRates, Process};
/// use mingle_store::World;
///
/// let world = SimulatedWorld::new(7);
/// let process = Process::start(world.clone(), "p", 1, ClockRates::default());
/// process.spawn(Box::pin(std::future::pending()));
/// process.kill();
/// world.run(process.died());
/// assert_eq!(process.restart().incarnation(), 2);
/// ```
#[derive(Clone)]
pub struct Process {
    shared: Arc<Shared>,
}

struct Shared {
    outer: Arc<dyn World>,
    name: Name,
    incarnation: u64,
    seed: u64,
    rates: ClockRates,
    /// The clock belongs to the machine: all incarnations share it.
    clock: Arc<Mutex<Clock>>,
    group: Mutex<Group>,
}

struct Clock {
    random: Random,
    /// The distance of the time of day from the right one, in milliseconds.
    offset_ms: i64,
}

struct Group {
    is_alive: bool,
    random: Random,
    next: u64,
    tasks: BTreeMap<u64, Arc<Mutex<Slot>>>,
    /// The time until which all tasks stand still.
    paused_until: Duration,
    /// The tasks that wait for the end of the process.
    mourners: Vec<Waker>,
}

/// The place of a task while it is not being polled.
struct Slot {
    future: Option<BoxFuture<'static, ()>>,
    waker: Option<Waker>,
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Process {
    /// Starts the first incarnation of a process.
    pub fn start(
        outer: Arc<dyn World>,
        name: impl Into<Name>,
        seed: u64,
        rates: ClockRates,
    ) -> Self {
        let clock = Clock { random: Random::new(mix(seed)), offset_ms: 0 };
        Self::incarnate(outer, name.into(), 1, seed, rates, Arc::new(Mutex::new(clock)))
    }

    fn incarnate(
        outer: Arc<dyn World>,
        name: Name,
        incarnation: u64,
        seed: u64,
        rates: ClockRates,
        clock: Arc<Mutex<Clock>>,
    ) -> Self {
        let group = Group {
            is_alive: true,
            random: Random::new(mix(seed ^ mix(incarnation))),
            next: 0,
            tasks: BTreeMap::new(),
            paused_until: Duration::ZERO,
            mourners: Vec::new(),
        };
        let group = Mutex::new(group);
        Self { shared: Arc::new(Shared { outer, name, incarnation, seed, rates, clock, group }) }
    }

    /// Starts the next incarnation on the same machine; kills this one if it lives.
    #[must_use]
    pub fn restart(&self) -> Self {
        self.kill();
        let Shared { outer, name, incarnation, seed, rates, clock, .. } = &*self.shared;
        Self::incarnate(
            outer.clone(),
            name.clone(),
            incarnation + 1,
            *seed,
            *rates,
            Arc::clone(clock),
        )
    }

    /// Returns the process's name, which all incarnations share.
    pub fn name(&self) -> &Name {
        &self.shared.name
    }

    /// Returns the number of the incarnation, from 1.
    pub fn incarnation(&self) -> u64 {
        self.shared.incarnation
    }

    /// True if the process has not been killed yet.
    pub fn is_alive(&self) -> bool {
        lock(&self.shared.group).is_alive
    }

    /// Returns the outer world, which continues after the process dies.
    pub fn outer(&self) -> &Arc<dyn World> {
        &self.shared.outer
    }

    /// Kills the process: all of its tasks are dropped before this returns. A calling task of the
    /// process itself is dropped as soon as it yields, and is never polled again.
    pub fn kill(&self) {
        let (tasks, mourners) = {
            let mut group = lock(&self.shared.group);
            group.is_alive = false;
            (std::mem::take(&mut group.tasks), std::mem::take(&mut group.mourners))
        };
        // The lock is released first: a dropped task may inspect the process, or try to spawn.
        for slot in tasks.into_values() {
            let (future, waker) = {
                let mut slot = lock(&slot);
                (slot.future.take(), slot.waker.take())
            };
            drop(future);
            // The outer world drops the task when it polls it.
            waker.into_iter().for_each(Waker::wake);
        }
        mourners.into_iter().for_each(Waker::wake);
    }

    /// Returns once the process is dead.
    pub fn died(&self) -> BoxFuture<'static, ()> {
        let shared = Arc::clone(&self.shared);
        Box::pin(std::future::poll_fn(move |context| {
            let mut group = lock(&shared.group);
            if !group.is_alive {
                return Poll::Ready(());
            }
            group.mourners.push(context.waker().clone());
            Poll::Pending
        }))
    }

    /// Stops all its tasks for `duration`, as a machine that swaps does, or a runtime that collects
    /// garbage. Requests that they have sent keep their state.
    pub fn pause(&self, duration: Duration) {
        let until = self.elapsed() + duration;
        let mut group = lock(&self.shared.group);
        group.paused_until = group.paused_until.max(until);
    }

    /// Moves the time of day by `by_ms` milliseconds, for this and all later incarnations.
    pub fn jump(&self, by_ms: i64) {
        let mut clock = lock(&self.shared.clock);
        clock.offset_ms = clock.offset_ms.saturating_add(by_ms);
    }

    /// Runs a future as a task of the process and returns its result to the caller outside; `None`
    /// if the process dies first.
    pub fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> BoxFuture<'static, Option<T>> {
        let answer = Arc::new(Mutex::new(Answer { result: None, is_over: false, waker: None }));
        let ending = Ending(Arc::clone(&answer));
        self.spawn(Box::pin(async move {
            let result = future.await;
            lock(&ending.0).result = Some(result);
            drop(ending);
        }));
        Box::pin(std::future::poll_fn(move |context| {
            let mut answer = lock(&answer);
            if answer.is_over {
                return Poll::Ready(answer.result.take());
            }
            answer.waker = Some(context.waker().clone());
            Poll::Pending
        }))
    }
}

/// The result of a task that a caller outside waits for.
struct Answer<T> {
    result: Option<T>,
    is_over: bool,
    waker: Option<Waker>,
}

/// Notifies the waiting caller when the task has ended in any way.
struct Ending<T>(Arc<Mutex<Answer<T>>>);

impl<T> Drop for Ending<T> {
    fn drop(&mut self) {
        let mut answer = lock(&self.0);
        answer.is_over = true;
        if let Some(waker) = answer.waker.take() {
            waker.wake();
        }
    }
}

/// A task as the outer world sees it.
struct Member {
    shared: Arc<Shared>,
    id: u64,
    slot: Arc<Mutex<Slot>>,
    /// Wakes the task at the end of a pause.
    pause: Option<BoxFuture<'static, ()>>,
}

impl Future for Member {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let now = self.shared.outer.elapsed();
        let (is_alive, until) = {
            let group = lock(&self.shared.group);
            (group.is_alive, group.paused_until)
        };
        if is_alive && now < until {
            lock(&self.slot).waker = Some(context.waker().clone());
            let mut pause = self.shared.outer.sleep(until.saturating_sub(now));
            if pause.as_mut().poll(context).is_pending() {
                self.pause = Some(pause);
                return Poll::Pending;
            }
        }
        self.pause = None;
        let taken = {
            let mut slot = lock(&self.slot);
            slot.waker = Some(context.waker().clone());
            slot.future.take()
        };
        let Some(mut future) = taken else { return Poll::Ready(()) };
        let polled = future.as_mut().poll(context);
        let mut group = lock(&self.shared.group);
        if polled.is_ready() || !group.is_alive {
            group.tasks.remove(&self.id);
            drop(group);
            drop(future);
            return Poll::Ready(());
        }
        lock(&self.slot).future = Some(future);
        Poll::Pending
    }
}

impl World for Process {
    fn now(&self) -> Time {
        let Shared { rates, outer, clock, .. } = &*self.shared;
        let mut clock = lock(clock);
        if rates.one_in > 0 && clock.random.one_in(rates.one_in) {
            let most = rates.most.as_millis() as i64;
            let drawn = clock.random.below(usize::try_from(2 * most + 1).unwrap_or(1)) as i64;
            clock.offset_ms = drawn - most;
        }
        outer.now().plus_millis(clock.offset_ms)
    }

    fn elapsed(&self) -> Duration {
        self.shared.outer.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.shared.outer.sleep(duration)
    }

    fn random(&self) -> u64 {
        lock(&self.shared.group).random.bits()
    }

    /// A dead process runs nothing.
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let mut group = lock(&self.shared.group);
        if !group.is_alive {
            drop(group);
            drop(task);
            return;
        }
        group.next += 1;
        let id = group.next;
        let slot = Arc::new(Mutex::new(Slot { future: Some(task), waker: None }));
        group.tasks.insert(id, Arc::clone(&slot));
        drop(group);
        let shared = Arc::clone(&self.shared);
        self.shared.outer.spawn(Box::pin(Member { shared, id, slot, pause: None }));
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        if self.is_alive() {
            self.shared.outer.run_blocking(work)
        } else {
            Box::pin(std::future::pending())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimulatedWorld;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Records its own drop.
    struct Tail(Arc<Mutex<Vec<String>>>, String);

    impl Drop for Tail {
        fn drop(&mut self) {
            lock(&self.0).push(format!("{} dropped", self.1));
        }
    }

    fn start(world: &Arc<SimulatedWorld>) -> Process {
        Process::start(world.clone(), "p", 3, ClockRates::default())
    }

    /// Starts tasks that count up each millisecond and log a line when they are dropped.
    fn count(process: &Process, log: &Arc<Mutex<Vec<String>>>, name: &str) {
        let (world, log, name) = (process.clone(), Arc::clone(log), name.to_owned());
        process.spawn(Box::pin(async move {
            let _tail = Tail(Arc::clone(&log), name.clone());
            for round in 0.. {
                lock(&log).push(format!("{name} {round}"));
                world.sleep(MS(1)).await;
            }
        }));
    }

    #[test]
    fn a_kill_from_outside_drops_all_tasks_at_once() {
        let world = SimulatedWorld::new(1);
        let (process, log) = (start(&world), Arc::default());
        count(&process, &log, "a");
        count(&process, &log, "b");
        world.run(world.sleep(MS(5)));
        assert!(process.is_alive());
        lock(&log).clear();
        process.kill();
        assert_eq!(*lock(&log), ["a dropped", "b dropped"]);
        count(&process, &log, "late");
        world.run(world.sleep(MS(5)));
        let end = ["a dropped", "b dropped"];
        assert_eq!(*lock(&log), end, "a dead process runs nothing");
    }

    #[test]
    fn a_kill_from_inside_ends_with_the_poll() {
        let world = SimulatedWorld::new(1);
        let (process, log) = (start(&world), Arc::default());
        count(&process, &log, "other");
        let (killer, killed) = (process.clone(), Arc::clone(&log));
        let answer = process.run(async move {
            let _tail = Tail(Arc::clone(&killed), "killer".into());
            killer.sleep(MS(2)).await;
            killer.kill();
            lock(&killed).push("goes on until it waits".into());
            killer.sleep(Duration::ZERO).await;
            killer.sleep(MS(1)).await;
            lock(&killed).push("never".into());
        });
        world.spawn(process.died());
        assert_eq!(world.run(answer), None, "nobody answers");
        world.run(world.sleep(MS(5)));
        let end = ["other dropped", "goes on until it waits", "killer dropped"];
        let log = lock(&log);
        assert_eq!(log[log.len() - 3..], end, "{log:?}");
    }

    #[test]
    fn a_pause_holds_all_tasks_up_and_ends() {
        let world = SimulatedWorld::new(1);
        let (process, log) = (start(&world), Arc::default());
        count(&process, &log, "a");
        world.run(world.sleep(MS(3)));
        process.pause(MS(10));
        let before = lock(&log).len();
        world.run(world.sleep(MS(9)));
        assert_eq!(lock(&log).len(), before, "nothing goes on");
        world.run(world.sleep(MS(4)));
        assert!(lock(&log).len() > before, "it goes on");
        process.pause(MS(10));
        process.kill();
        assert_eq!(lock(&log).last().map(String::as_str), Some("a dropped"));
    }

    #[test]
    fn what_a_task_gives_is_heard_outside() {
        let world = SimulatedWorld::new(1);
        let process = start(&world);
        let sleeper = process.clone();
        let answer = process.run(async move {
            sleeper.sleep(MS(3)).await;
            7
        });
        assert_eq!(world.run(answer), Some(7));
        assert_eq!(world.elapsed(), MS(3));
        process.kill();
        assert_eq!(world.run(process.run(async { 8 })), None);
    }

    #[test]
    fn incarnations_draw_otherwise_and_runs_alike() {
        let draw = || {
            let world = SimulatedWorld::new(1);
            let first = start(&world);
            let second = first.restart();
            assert!(!first.is_alive() && second.is_alive());
            [first.random(), first.random(), second.random(), world.random()]
        };
        let drawn = draw();
        assert_eq!(drawn, draw());
        assert!((1..4).all(|index| !drawn[..index].contains(&drawn[index])), "{drawn:?}");
    }

    #[test]
    fn the_time_of_day_jumps_and_the_elapsed_time_does_not() {
        let world = SimulatedWorld::new(1);
        let process = start(&world);
        process.jump(-5_000);
        assert_eq!(process.now(), world.now().plus_millis(-5_000));
        assert_eq!(process.restart().now(), world.now().plus_millis(-5_000), "the machine's clock");
        let rates = ClockRates { one_in: 3, most: MS(1_000) };
        let jumping = Process::start(world.clone(), "j", 9, rates);
        let mut offsets = Vec::new();
        for _ in 0..200 {
            let elapsed = jumping.elapsed();
            offsets.push(jumping.now().millis_since(world.now()));
            world.run(world.sleep(MS(1)));
            assert!(jumping.elapsed() > elapsed);
        }
        assert!(offsets.iter().all(|offset| (-1_000..=1_000).contains(offset)), "{offsets:?}");
        let backwards = offsets.windows(2).filter(|pair| pair[1] < pair[0]).count();
        let forwards = offsets.windows(2).filter(|pair| pair[1] > pair[0]).count();
        assert!(backwards > 10 && forwards > 10, "{offsets:?}");
    }
}
