//! A store that records the commits that reach it.

use std::sync::{Arc, Mutex, PoisonError};

use mingle_model::{Name, Stamp, TransactionId};
use mingle_store::{
    BoxFuture, Capabilities, Commit, Committed, DataStore, Outcome, Session, StoreError,
    Transaction,
    wrap::layer::{Layer, Request, within},
};

type Noted = Arc<Mutex<Vec<Commit>>>;

/// Records commits that write or have guards.
pub struct Noting {
    inner: Arc<dyn DataStore>,
    noted: Noted,
}

impl Noting {
    pub fn around(inner: Arc<dyn DataStore>) -> Arc<Self> {
        Arc::new(Self { inner, noted: Noted::default() })
    }

    /// Returns the commits recorded since the last call.
    pub fn take(&self) -> Vec<Commit> {
        std::mem::take(&mut self.noted.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl DataStore for Noting {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(async move {
            let notes = Notes(Arc::clone(&self.noted));
            Ok(within(self.inner.begin(session).await?, notes))
        })
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        self.inner.outcome(id)
    }

    fn time(&self) -> u64 {
        self.inner.time()
    }

    fn place(&self, replica: Option<&Name>) -> Option<String> {
        self.inner.place(replica)
    }

    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        self.inner.everywhere()
    }
}

#[derive(Clone)]
struct Notes(Noted);

impl Layer for Notes {
    fn commit(
        self,
        _: Request<'static>,
        inner: Box<dyn Transaction>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        if !commit.is_empty() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(commit.clone());
        }
        inner.commit(commit)
    }
}
