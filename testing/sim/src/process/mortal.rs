//! A store as seen by a process that may die.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mingle_store::wrap::layer::{Layer, Layered, Request, Work};
use mingle_store::{BoxFuture, Commit, Committed, DataStore, StoreError, Transaction};

use super::death::{DeathPlan, Moment};
use super::host::Process;

/// The layer through which a process dies as planned. No later action of a dead process reaches the
/// store: its calls never return. Its earlier actions have happened; a call under way at the time
/// of death takes effect or not, depending on its progress in `inner`. The exception are commits
/// that the plan delivers later, as a network would.
///
/// Only tasks of the process may call it: any other caller waits for ever after the process's
/// death.
#[derive(Clone)]
pub struct MortalStore {
    process: Process,
    plan: Arc<DeathPlan>,
}

impl MortalStore {
    /// Creates the view that `process` has of `inner`.
    pub fn new(
        inner: Arc<dyn DataStore>,
        process: Process,
        plan: Arc<DeathPlan>,
    ) -> Arc<Layered<Self>> {
        Layered::around(inner, Self { process, plan })
    }
}

impl Layer for MortalStore {
    /// Counts a call and makes it, unless the process is dead or dies of it.
    async fn call<T: Send>(
        &self,
        request: Request<'_>,
        work: Work<'_, T>,
    ) -> Result<T, StoreError> {
        if !self.process.is_alive() {
            return std::future::pending().await;
        }
        let moment = self.plan.next(request.call());
        if moment == Some(Moment::Before) {
            self.process.kill();
            drop(work);
            return std::future::pending().await;
        }
        let answer = work().await;
        if moment == Some(Moment::After) {
            self.process.kill();
        }
        if self.process.is_alive() { answer } else { std::future::pending().await }
    }

    fn commit(
        self,
        request: Request<'static>,
        inner: Box<dyn Transaction>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin(async move {
            let work: BoxFuture<'static, _> = Box::pin(async move { inner.commit(commit).await });
            let on_its_way = OnItsWay { work: Some(work), life: self.clone() };
            self.call(request, Box::new(|| Box::pin(on_its_way))).await
        })
    }
}

/// A commit that is dropped before its answer because its process has died; it may still arrive.
struct OnItsWay {
    work: Option<BoxFuture<'static, Result<Committed, StoreError>>>,
    life: MortalStore,
}

impl Future for OnItsWay {
    type Output = Result<Committed, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let polled = work.as_mut().poll(context);
        if polled.is_ready() {
            self.work = None;
        }
        polled
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        if self.life.process.is_alive() {
            return;
        }
        if let Some(later) = self.life.plan.arrival() {
            let outer = self.life.process.outer();
            let sleep = outer.sleep(later);
            outer.spawn(Box::pin(async move {
                sleep.await;
                // No caller gets the result.
                let _unheard = work.await;
            }));
        }
    }
}

#[cfg(test)]
mod tests;
