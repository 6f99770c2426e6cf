//! The world in which a runtime and its stores run.
//!
//! Clock, sleeping, randomness and tasks come only from here, so that a simulator can replace
//! them.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use mingle_model::Time;

/// A future that can be kept in a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A task's turn to compute, which ends when it is dropped.
#[derive(Default)]
pub struct Turn(Option<Box<dyn Send + Sync>>);

impl Turn {
    /// A turn that holds something until it ends, such as a permit.
    pub fn holding(held: impl Send + Sync + 'static) -> Self {
        Self(Some(Box::new(held)))
    }
}

impl std::fmt::Debug for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Turn").field(&self.0.is_some()).finish()
    }
}

/// Returns once other tasks that are ready had their chance to run.
pub async fn yield_once() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Clock, sleep, randomness and tasks.
pub trait World: Send + Sync {
    /// The time of day.
    fn now(&self) -> Time;

    /// Returns the time since some fixed moment; it never goes back.
    fn elapsed(&self) -> Duration;

    /// Returns after this long.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// Sixty-four random bits.
    fn random(&self) -> u64;

    /// Runs a task to its end, even if its caller does not await it.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// True if the calling task runs where tasks are spawned. Work that may end with the calling task can
    /// then run within it. A world that cannot tell returns false.
    fn is_here(&self) -> bool {
        false
    }

    /// Lets other tasks run, and returns once the calling task may continue to compute. A task that
    /// computes for long calls this before each further slice, and drops the returned turn at the end of that slice.
    fn turn(&self) -> BoxFuture<'static, Turn> {
        Box::pin(async {
            yield_once().await;
            Turn::default()
        })
    }

    /// Runs work that may block on a disk, without delaying other tasks; returns when it is
    /// done.
    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()>;
}
