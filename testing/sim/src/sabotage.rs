//! Faults that are planted on purpose: each breaks a promise, and the checks must detect it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mingle_model::{Name, Stamp, TransactionId};
use mingle_store::wrap::layer::{Layer, Request, within};
use mingle_store::{
    BoxFuture, Capabilities, Commit, Committed, DataStore, Outcome, Session, StoreError,
    Transaction, Write,
};

/// The planted fault of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// No fault.
    None,
    /// The strong store commits despite a conflicting transaction in between.
    ConflictsForgotten,
    /// The strong store reports every lost commit as not having taken effect.
    OutcomesForgotten,
    /// The near store drops one commit in ten.
    CommitsDropped,
    /// The second strong store keeps the fields of a deleted object.
    DeletesForgotten,
}

impl Sabotage {
    /// All planted faults.
    pub const ALL: [Self; 4] = [
        Self::ConflictsForgotten,
        Self::OutcomesForgotten,
        Self::CommitsDropped,
        Self::DeletesForgotten,
    ];
}

/// A store with a planted fault.
pub struct Sabotaged {
    inner: Arc<dyn DataStore>,
    sabotage: Sabotage,
    commits: Arc<AtomicU64>,
}

impl Sabotaged {
    /// Plants the fault in a store, if it belongs to stores of this name.
    pub fn wrap(name: &str, inner: Arc<dyn DataStore>, sabotage: Sabotage) -> Arc<dyn DataStore> {
        let concerned = match sabotage {
            Sabotage::None => "",
            Sabotage::ConflictsForgotten | Sabotage::OutcomesForgotten => "bank",
            Sabotage::CommitsDropped => "feed",
            Sabotage::DeletesForgotten => "shop",
        };
        if name != concerned {
            return inner;
        }
        Arc::new(Self { inner, sabotage, commits: Arc::default() })
    }
}

impl DataStore for Sabotaged {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        Box::pin(async move {
            let begun = self.inner.begin(session).await?;
            let (inner, commits) = (Arc::clone(&self.inner), Arc::clone(&self.commits));
            let (session, sabotage) = (session.clone(), self.sabotage);
            Ok(within(begun, Committer { inner, session, sabotage, commits }))
        })
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        if self.sabotage == Sabotage::OutcomesForgotten {
            return Box::pin(std::future::ready(Ok(Outcome::NotCommitted)));
        }
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

/// The layer around a transaction: reads and flushes are sound.
#[derive(Clone)]
struct Committer {
    inner: Arc<dyn DataStore>,
    session: Session,
    sabotage: Sabotage,
    commits: Arc<AtomicU64>,
}

impl Layer for Committer {
    fn commit(
        self,
        _request: Request<'static>,
        begun: Box<dyn Transaction>,
        mut commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin(async move {
            let Self { inner, session, sabotage, commits } = self;
            let (writes, known) = (commit.writes.clone(), commit.known.clone());
            match sabotage {
                Sabotage::ConflictsForgotten => match begun.commit(commit).await {
                    Err(StoreError::Conflict) => {
                        inner
                            .begin(&session)
                            .await?
                            .commit(Commit { writes, known, ..Commit::default() })
                            .await
                    }
                    other => other,
                },
                Sabotage::DeletesForgotten => {
                    commit.writes.retain(|write| !matches!(write, Write::Delete(_)));
                    begun.commit(commit).await
                }
                Sabotage::CommitsDropped if commits.fetch_add(1, Ordering::Relaxed) % 10 == 9 => {
                    begun.commit(Commit::default()).await
                }
                _ => begun.commit(commit).await,
            }
        })
    }
}
