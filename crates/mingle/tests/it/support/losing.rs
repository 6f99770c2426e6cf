//! A store with a replica that is given up while another transaction waits for its data.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_model::{Name, Stamp, TransactionId};
use mingle_store::{
    BoxFuture, Capabilities, Commit, Committed, DataStore, Outcome, Session, StoreError,
    Transaction,
    wrap::layer::{Layer, Request, within},
};

/// The replica that is given up.
const LOST: &str = "lost";

/// A store whose commits have seen a write of a replica that no other replica receives. The replica is
/// given up when the first transaction asks for that write; each transaction that asks is refused.
pub struct Losing {
    inner: Arc<dyn DataStore>,
    refused: AtomicU64,
}

impl Losing {
    pub fn around(inner: Arc<dyn DataStore>) -> Arc<Self> {
        Arc::new(Self { inner, refused: AtomicU64::new(0) })
    }

    /// The number of refused transactions.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Acquire)
    }
}

impl DataStore for Losing {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(async move {
            if session.after.of(LOST) > 0 {
                self.refused.fetch_add(1, Ordering::AcqRel);
                let store = self.inner.capabilities().store.clone();
                let reason = format!("{LOST} was given up");
                return Err(StoreError::Refused { store, reason });
            }
            Ok(within(self.inner.begin(session).await?, Seeing))
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

    fn departed(&self) -> Vec<Name> {
        let is_given_up = self.refused() > 0;
        is_given_up.then(|| Name::from(LOST)).into_iter().collect()
    }

    fn kept(&self, seen: &Stamp) -> Stamp {
        let departed = self.departed();
        let kept = seen.iter().filter(|(name, _)| !departed.contains(name));
        kept.map(|(name, number)| (name.clone(), number)).collect()
    }
}

/// Adds the write that is lost later to the dependencies of each commit.
#[derive(Clone)]
struct Seeing;

impl Layer for Seeing {
    fn commit(
        self,
        _: Request<'static>,
        inner: Box<dyn Transaction>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin(async move {
            let mut committed = inner.commit(commit).await?;
            committed.stamp.join(&[(Name::from(LOST), 1)].into_iter().collect());
            Ok(committed)
        })
    }
}
