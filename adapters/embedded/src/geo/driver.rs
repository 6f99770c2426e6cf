//! The background task: without calls of clients, messages still arrive and replicas still tick.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Poll, Waker};

use super::net::Net;

/// Wakes the driver.
#[derive(Default)]
pub struct Signal(Mutex<Raised>);

#[derive(Default)]
struct Raised {
    is_raised: bool,
    waker: Option<Waker>,
}

impl Signal {
    /// Wakes the waiting task, or the next task that waits.
    pub fn raise(&self) {
        let mut raised = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        raised.is_raised = true;
        if let Some(waker) = raised.waker.take() {
            waker.wake();
        }
    }

    /// True if it was raised; if not, `waker` is woken once it is.
    pub fn take(&self, waker: &Waker) -> bool {
        let mut raised = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut raised.is_raised) {
            return true;
        }
        raised.waker = Some(waker.clone());
        false
    }
}

/// Starts the driver, which runs until the store is dropped.
pub fn start(net: &Arc<Net>) {
    let (weak, signal) = (Arc::downgrade(net), Arc::clone(&net.signal));
    net.world.spawn(Box::pin(drive(weak, signal)));
}

async fn drive(net: Weak<Net>, signal: Arc<Signal>) {
    loop {
        let Some(strong) = net.upgrade() else { return };
        let due = strong.drive();
        let pause = due.saturating_sub(strong.world.elapsed());
        let mut sleep = strong.world.sleep(pause);
        drop(strong);
        poll_fn(|context| {
            if signal.take(context.waker()) {
                return Poll::Ready(());
            }
            sleep.as_mut().poll(context)
        })
        .await;
    }
}
