//! Deadlines of requests to stores.
//!
//! A store that never answers must not keep a call beyond its deadline, however long its adapter
//! would wait. So each attempt at a phase ends with the deadline:
//!
//! - An attempt that has not sent its commit is dropped. Nothing was written, or it will be tried
//!   again. The error is [`StoreError::Unavailable`]; it names the store, its address, and the time
//!   without answers. If the store has answered most of the time, for example with conflicts, the
//!   error is its last one.
//! - A commit that was sent never counts as not sent. It goes on in the background, and its result
//!   is [`StoreError::Unknown`]. The store is asked for the outcome, for [`ASKED_AFTER_DEADLINE`]
//!   if no time is left.
//! - Computation ends by itself ([`turns`](crate::execute::turns)), with an error of its own.
//!
//! Requests outside any attempt, for example by sweeps and clean-up, each have the deadline of a
//! call.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{Either, select};
use mingle_model::Name;
use mingle_store::{BoxFuture, StoreError};

use crate::api::settings::ASKED_AFTER_DEADLINE;
use crate::stores::Stores;

/// The attempt waits for a store; the wait may be given up.
const ASKS: u8 = 0;
/// The attempt computes, which ends by itself.
const COMPUTES: u8 = 1;
/// The attempt has sent a commit, which is not given up.
const COMMITS: u8 = 2;

/// The present activity of an attempt.
#[derive(Default)]
pub(crate) struct Doing(AtomicU8);

impl Doing {
    /// Marks the attempt as computing until the guard is dropped.
    pub(crate) fn computes(&self) -> DoingGuard<'_> {
        self.begin(COMPUTES)
    }

    /// Marks the attempt as committing until the guard is dropped.
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

/// A guard that ends an activity of an attempt.
pub(crate) struct DoingGuard<'a> {
    doing: &'a Doing,
    before: u8,
}

impl Drop for DoingGuard<'_> {
    fn drop(&mut self) {
        self.doing.0.store(self.before, Ordering::Relaxed);
    }
}

impl Stores {
    /// Returns the result of a future; none if the deadline comes first.
    pub(crate) async fn by<T>(
        &self,
        deadline: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        self.by_unless(deadline, || true, pin!(future)).await
    }

    /// Returns the result of an attempt; none if the deadline comes first while it asks a store.
    pub(crate) async fn attempt_by<T>(
        &self,
        deadline: Duration,
        doing: &Doing,
        attempt: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        self.by_unless(deadline, || doing.may_be_given_up(), attempt).await
    }

    async fn by_unless<T>(
        &self,
        deadline: Duration,
        may_end: impl Fn() -> bool,
        mut future: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        // Usually the future is ready at once, or long before the deadline.
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

    /// Returns the result of a future; none after the deadline, when the future goes on in the
    /// background.
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

    /// Returns the answer of a store within a third of a lease; none if it does not answer.
    pub(crate) async fn at_most_a_third<T>(
        &self,
        asking: impl Future<Output = Result<T, StoreError>>,
    ) -> Option<T> {
        let asking = pin!(asking);
        match select(asking, self.world.sleep(self.settings.lease / 3)).await {
            Either::Left((answer, _)) => answer.ok(),
            Either::Right(_) => None,
        }
    }

    /// Returns the end of the questions for a commit's outcome, which is asked for at least once.
    pub(crate) fn asked_until(&self, deadline: Duration) -> Duration {
        deadline.max(self.world.elapsed().saturating_add(ASKED_AFTER_DEADLINE))
    }

    /// Returns the error for a store that has not answered since `since`.
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

    /// Adds the place of a store that is out of reach to its error.
    pub(crate) fn located(
        &self,
        store: usize,
        replica: Option<&Name>,
        error: StoreError,
    ) -> StoreError {
        let StoreError::Unavailable { store: name, reason } = error else { return error };
        let node = self.all[store].place(replica);
        let is_told = node.is_none_or(|node| reason.contains(&node));
        let place = if is_told { String::new() } else { self.place(store, replica) };
        StoreError::Unavailable { store: name, reason: format!("{place}{reason}") }
    }

    /// Returns the place of a store or replica as the prefix of a message, for example
    /// `replica eu at 10.0.0.7:5432: `.
    pub(crate) fn place(&self, store: usize, replica: Option<&Name>) -> String {
        let node = self.all[store].place(replica);
        match (replica, node) {
            (None, None) => String::new(),
            (Some(replica), None) => format!("replica {replica}: "),
            (None, Some(node)) => format!("{node}: "),
            (Some(replica), Some(node)) => format!("replica {replica} at {node}: "),
        }
    }
}
