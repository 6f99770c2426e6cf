//! A process that dies at one of its store calls: from then on it never hears of its stores again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_model::{Stamp, TransactionId};
use mingle_store::{
    Answer, BoxFuture, Capabilities, Commit, Committed, DataStore, Outcome, Read,
    Session as StoreSession, StoreError, Transaction, Write,
};

/// At which call the process dies.
pub struct Life {
    calls: AtomicU64,
    last: u64,
    arrives: bool,
}

impl Life {
    /// It dies with its call number `last`, counted from 0, which still arrives or does not.
    pub fn until(last: u64, arrives: bool) -> Arc<Self> {
        Arc::new(Self { calls: AtomicU64::new(0), last, arrives })
    }

    pub fn is_over(&self) -> bool {
        self.calls.load(Ordering::Acquire) > self.last
    }

    /// Makes a call, if the process lives to make it, and hears the answer if it lives on.
    async fn call<T>(&self, call: impl Future<Output = T>) -> T {
        let number = self.calls.fetch_add(1, Ordering::AcqRel);
        if number < self.last {
            return call.await;
        }
        if number == self.last && self.arrives {
            call.await;
        }
        std::future::pending().await
    }
}

/// A store as a process sees it that dies.
pub struct Dying {
    inner: Arc<dyn DataStore>,
    life: Arc<Life>,
}

impl Dying {
    pub fn within(inner: Arc<dyn DataStore>, life: Arc<Life>) -> Arc<dyn DataStore> {
        Arc::new(Self { inner, life })
    }
}

impl DataStore for Dying {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn begin<'a>(
        &'a self,
        session: &'a StoreSession,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(async move {
            // No round trip: a process does not die here.
            let inner = self.inner.begin(session).await?;
            let begun: Box<dyn Transaction> = Box::new(Last { inner, life: self.life.clone() });
            Ok(begun)
        })
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(self.life.call(self.inner.outcome(id)))
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        Box::pin(self.life.call(self.inner.everywhere()))
    }
}

struct Last {
    inner: Box<dyn Transaction>,
    life: Arc<Life>,
}

impl Transaction for Last {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(self.life.call(self.inner.read(reads)))
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.life.call(self.inner.flush(writes)))
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin(async move { self.life.call(self.inner.commit(commit)).await })
    }
}
