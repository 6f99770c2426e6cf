//! The clock, the tasks and the randomness of a process that has stores.

use std::future::Future;
use std::io;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mingle_model::Time;
use mingle_store::{BoxFuture, World};
use tokio::runtime::{Builder as Runtime, Handle};
use tokio::sync::oneshot;

use crate::random;

/// A world with a thread for timers and tasks. Futures run on the threads that wait for them.
#[derive(Debug)]
pub struct ProcessWorld {
    handle: Handle,
    started: Instant,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ProcessWorld {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// If the operating system gives no thread or no timers.
    pub fn start() -> io::Result<Self> {
        let runtime = Runtime::new_current_thread().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let drive = move || {
            // An error is the end, too.
            let _ = runtime.block_on(ended);
        };
        let thread = Some(Builder::new().name("stores".into()).spawn(drive)?);
        Ok(Self { handle, started: Instant::now(), end: Some(end), thread })
    }

    /// Runs a future on the calling thread, which must be no thread of tasks.
    pub fn wait_for<T>(&self, future: impl Future<Output = T>) -> T {
        self.handle.block_on(future)
    }
}

impl Drop for ProcessWorld {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic was printed where it happened.
            let _ = thread.join();
        }
    }
}

impl World for ProcessWorld {
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let _entered = self.handle.enter();
        Box::pin(tokio::time::sleep(duration))
    }

    fn random(&self) -> u64 {
        random()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(self.handle.spawn(task));
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        let running = self.handle.spawn_blocking(work);
        Box::pin(async move {
            if let Err(error) = running.await
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        })
    }
}
