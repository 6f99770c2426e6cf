//! Commits in one data center take turns, so that a commit's conditions still hold when it commits.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// A lock for futures: one holder at a time.
#[derive(Default)]
pub struct Gate(Mutex<Turn>);

#[derive(Default)]
struct Turn {
    is_taken: bool,
    waiting: Vec<Waker>,
}

/// The right to commit; dropping it lets the next waiting commit pass.
pub struct Pass(Arc<Gate>);

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other commit holds the gate, then takes it.
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
        // Wake all of them: a single woken waiter may have been dropped.
        for waker in turn.waiting.drain(..) {
            waker.wake();
        }
    }
}
