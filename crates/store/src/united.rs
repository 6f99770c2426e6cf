//! One transaction over several stores of one engine.
//!
//! Stores that know nothing of each other are visited one by one, and the runtime makes one
//! transaction of that. Stores that live in one engine, with one snapshot and one commit, need none
//! of it: their engine does it all at once.

use mingle_model::{Name, TransactionId};

use crate::store::{Commit, Committed, StoreError, Transaction};
use crate::world::BoxFuture;

/// Tells engines apart within a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EngineId(pub u64);

/// A transaction over several stores of one engine: one snapshot, one commit. Dropped without a
/// commit, it leaves nothing behind.
pub trait United: Send {
    /// The transaction as one of its stores sees it, for reads and flushes. It ends with the whole:
    /// a commit of a part is refused.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] when the store does not live in this engine; as those of
    /// [`DataStore::begin`](crate::DataStore::begin).
    fn part<'a>(
        &'a mut self,
        store: &'a Name,
    ) -> BoxFuture<'a, Result<&'a mut dyn Transaction, StoreError>>;

    /// Makes the writes of all stores visible together. One round trip, as a
    /// [`Transaction::commit`].
    ///
    /// # Errors
    ///
    /// As those of [`Transaction::commit`], of whichever store.
    fn commit(
        self: Box<Self>,
        commit: UnitedCommit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>>;
}

/// The data that the commit of a [`United`] transaction sends to an engine.
#[derive(Clone, Debug, Default)]
pub struct UnitedCommit {
    /// Under which id its outcome can be asked for, at the store with which it was begun.
    pub id: Option<TransactionId>,
    /// The commit of each store; their own ids and operation ids are ignored.
    pub parts: Vec<(Name, Commit)>,
}

impl UnitedCommit {
    /// True if the commit of every store is empty.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|(_, commit)| commit.is_empty())
    }
}
