//! Deadlines of requests to stores.
//!
//! A store that never answers must not keep a call beyond its deadline, however long its adapter would wait. So each
//! attempt at a phase ends with the deadline:
//!
//! - before its commit it is dropped. Nothing was written, or it will be tried again; the error is
//!   [`StoreError::Unavailable`] and names the store, where that is, and for how long it has not answered. Where the store
//!   has answered most of the time, such as with conflicts, the error is what it has said last.
//! - a commit that was sent is never taken for one that was not. It goes on behind the caller's back, and its result is
//!   [`StoreError::Unknown`]; the store is asked for it, for [`ASKED_AFTER_DEADLINE`] if there is no time left.
//! - computation ends by itself ([`turns`](crate::turns)), with an error of its own.
//!
//! Requests outside any attempt, such as those of sweeps and clean-up, have the deadline of a call each.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Poll;
use std::time::Duration;

use mingle_model::Name;
use mingle_store::{BoxFuture, StoreError};

use crate::limits::ASKED_AFTER_DEADLINE;
use crate::phase::Control;
use crate::runtime::Runtime;

/// Waits for a store that may be given up.
const ASKS: u8 = 0;
/// Computes, which ends by itself.
const COMPUTES: u8 = 1;
/// Has sent a commit, which is not given up.
const COMMITS: u8 = 2;

/// What an attempt does at present.
#[derive(Default)]
pub(crate) struct Doing(AtomicU8);

impl Doing {
    /// It computes until the guard is dropped.
    pub(crate) fn computes(&self) -> DoingGuard<'_> {
        self.begin(COMPUTES)
    }

    /// It commits until the guard is dropped.
    pub(crate) fn commits(&self) -> DoingGuard<'_> {
        self.begin(COMMITS)
    }

    fn begin(&self, state: u8) -> DoingGuard<'_> {
        DoingGuard { doing: self, before: self.0.swap(state, Ordering::Relaxed) }
    }

    fn may_be_given_up(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ASKS
    }
}

/// Ends what an attempt does.
pub(crate) struct DoingGuard<'a> {
    doing: &'a Doing,
    before: u8,
}

impl Drop for DoingGuard<'_> {
    fn drop(&mut self) {
        self.doing.0.store(self.before, Ordering::Relaxed);
    }
}

impl Runtime {
    /// The result of a future; none if the deadline comes first.
    pub(crate) async fn by<T>(
        &self,
        deadline: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        self.by_unless(deadline, || true, pin!(future)).await
    }

    /// The result of an attempt; none if the deadline comes first, and it neither computes nor commits.
    pub(crate) async fn attempt_by<T>(
        &self,
        control: &Control<'_>,
        attempt: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        self.by_unless(control.deadline, || control.doing.may_be_given_up(), attempt).await
    }

    async fn by_unless<T>(
        &self,
        deadline: Duration,
        may_end: impl Fn() -> bool,
        mut future: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        // Most often it is ready at once, or long before.
        let mut alarm: Option<BoxFuture<'static, ()>> = None;
        let mut is_late = false;
        poll_fn(|context| {
            if let Poll::Ready(found) = future.as_mut().poll(context) {
                return Poll::Ready(Some(found));
            }
            if !is_late {
                let alarm = alarm.get_or_insert_with(|| {
                    self.world.sleep(deadline.saturating_sub(self.world.elapsed()))
                });
                is_late = alarm.as_mut().poll(context).is_ready();
            }
            if is_late && may_end() { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }

    /// The result of a future that goes on behind the caller's back after the deadline; none then.
    pub(crate) async fn by_or_behind<T: Send + 'static>(
        &self,
        deadline: Duration,
        mut future: BoxFuture<'static, T>,
    ) -> Option<T> {
        let found = self.by(deadline, future.as_mut()).await;
        if found.is_none() {
            self.world.spawn(Box::pin(async move {
                let _ = future.await;
            }));
        }
        found
    }

    /// When a question ends that is asked once at least: what became of a commit.
    pub(crate) fn asked_until(&self, deadline: Duration) -> Duration {
        deadline.max(self.world.elapsed().saturating_add(ASKED_AFTER_DEADLINE))
    }

    /// What is said of a store that has not answered since a moment.
    pub(crate) fn silent(
        &self,
        store: usize,
        replica: Option<&Name>,
        since: Duration,
    ) -> StoreError {
        let waited = self.world.elapsed().saturating_sub(since);
        let place = self.place(store, replica);
        StoreError::Unavailable {
            store: self.name_at(store),
            reason: format!(
                "{place}no answer for {:.1} s, until the deadline",
                waited.as_secs_f64()
            ),
        }
    }

    /// An error of a store that is out of reach, with the place where it is.
    pub(crate) fn located(
        &self,
        store: usize,
        replica: Option<&Name>,
        error: StoreError,
    ) -> StoreError {
        let StoreError::Unavailable { store: name, reason } = error else { return error };
        let node = self.stores[store].place(replica);
        let is_told = node.is_none_or(|node| reason.contains(&node));
        let place = if is_told { String::new() } else { self.place(store, replica) };
        StoreError::Unavailable { store: name, reason: format!("{place}{reason}") }
    }

    /// Where a store is, or its replica, at the beginning of a message: `replica eu at 10.0.0.7:5432: `.
    pub(crate) fn place(&self, store: usize, replica: Option<&Name>) -> String {
        let node = self.stores[store].place(replica);
        match (replica, node) {
            (None, None) => String::new(),
            (Some(replica), None) => format!("replica {replica}: "),
            (None, Some(node)) => format!("{node}: "),
            (Some(replica), Some(node)) => format!("replica {replica} at {node}: "),
        }
    }
}
