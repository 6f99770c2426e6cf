//! A store as a process that may die calls it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mingle_model::{Stamp, TransactionId};
use mingle_store::wrap::fault::Call;
use mingle_store::{
    Answer, BoxFuture, Capabilities, Commit, Committed, DataStore, Outcome, Read, Session,
    StoreError, Transaction, Write,
};

use super::death::{DeathPlan, Moment};
use super::host::Process;

/// A store through which a process dies as planned. Nothing that a dead process does reaches the
/// store: its calls never return. What it did before has happened; a call on its way when it dies
/// has been heard or not, as far as `inner` had come with it. The exception are commits that the
/// plan lets arrive later, as a network would.
///
/// Only tasks of the process may call it: whoever else does waits for ever after its death.
pub struct MortalStore {
    inner: Arc<dyn DataStore>,
    life: Life,
}

#[derive(Clone)]
struct Life {
    process: Process,
    plan: Arc<DeathPlan>,
}

impl MortalStore {
    /// What `process` sees of `inner`.
    pub fn new(inner: Arc<dyn DataStore>, process: Process, plan: Arc<DeathPlan>) -> Arc<Self> {
        Arc::new(Self { inner, life: Life { process, plan } })
    }
}

impl Life {
    /// Counts a call and makes it, unless the process is dead or dies of it.
    async fn call<T, F: Future<Output = T>>(&self, call: Call, work: impl FnOnce() -> F) -> T {
        if !self.process.is_alive() {
            return std::future::pending().await;
        }
        let moment = self.plan.next(call);
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
}

impl DataStore for MortalStore {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(async move {
            let inner = self.life.call(Call::Begin, || self.inner.begin(session)).await?;
            let transaction: Box<dyn Transaction> =
                Box::new(Mortal { inner, life: self.life.clone() });
            Ok(transaction)
        })
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(self.life.call(Call::Outcome, move || self.inner.outcome(id)))
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        Box::pin(self.life.call(Call::Everywhere, || self.inner.everywhere()))
    }
}

struct Mortal {
    inner: Box<dyn Transaction>,
    life: Life,
}

impl Transaction for Mortal {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        let Self { inner, life } = self;
        Box::pin(life.call(Call::Read, move || inner.read(reads)))
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        let Self { inner, life } = self;
        Box::pin(life.call(Call::Flush, move || inner.flush(writes)))
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        let Self { inner, life } = *self;
        Box::pin(async move {
            let work: BoxFuture<'static, _> = Box::pin(async move { inner.commit(commit).await });
            let on_its_way = OnItsWay { work: Some(work), life: life.clone() };
            life.call(Call::Commit, || on_its_way).await
        })
    }
}

/// A commit that is dropped before it is answered because its process has died: it may arrive all
/// the same.
struct OnItsWay {
    work: Option<BoxFuture<'static, Result<Committed, StoreError>>>,
    life: Life,
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
                // Whatever came of it, nobody hears.
                let _unheard = work.await;
            }));
        }
    }
}

#[cfg(test)]
mod tests;
