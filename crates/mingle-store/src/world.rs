//! The world that a runtime and its stores live in.
//!
//! Clock, sleeping, randomness and tasks come from here and from nowhere else, so that a
//! simulator can put its own in their place.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use mingle_model::Time;

/// A future that can be kept in a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Clock, sleep, randomness and tasks.
pub trait World: Send + Sync {
    /// The time of day.
    fn now(&self) -> Time;

    /// Time since some fixed moment; never goes back.
    fn elapsed(&self) -> Duration;

    /// Returns after this long.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// Sixty-four random bits.
    fn random(&self) -> u64;

    /// Runs a task to its end, whoever awaits it or not.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// Whether the task that asks runs where tasks are spawned. What need not go on without it may
    /// then run within it; where nobody can tell, it may not.
    fn is_here(&self) -> bool {
        false
    }

    /// Runs work that may block on a disk where it holds up no other task; returns when it is
    /// done.
    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()>;
}
