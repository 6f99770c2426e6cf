//! Commits in one data center take turns, so that what one demands still holds when it commits.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// One passes at a time.
#[derive(Default)]
pub struct Gate(Mutex<Turn>);

#[derive(Default)]
struct Turn {
    is_taken: bool,
    waiting: Vec<Waker>,
}

/// Whoever has it has passed; others may once it is dropped.
pub struct Pass(Arc<Gate>);

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes once nobody else has.
    pub async fn pass(self: &Arc<Self>) -> Pass {
        poll_fn(|context| {
            let mut turn = self.lock();
            if turn.is_taken {
                turn.waiting.push(context.waker().clone());
                return Poll::Pending;
            }
            turn.is_taken = true;
            Poll::Ready(())
        })
        .await;
        Pass(Arc::clone(self))
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut turn = self.0.lock();
        turn.is_taken = false;
        // All of them: one may have lost interest.
        for waker in turn.waiting.drain(..) {
            waker.wake();
        }
    }
}
