//! A world in which nothing happens, for stores that are checked and never used.

use std::future::{pending, ready};
use std::time::Duration;

use mingle_model::Time;
use mingle_store::{BoxFuture, World};

/// A world in which no time passes and no task runs.
pub(crate) struct StillWorld;

impl World for StillWorld {
    fn now(&self) -> Time {
        Time::from_micros(0)
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(pending())
    }

    fn random(&self) -> u64 {
        0
    }

    fn spawn(&self, _: BoxFuture<'static, ()>) {}

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        work();
        Box::pin(ready(()))
    }
}
