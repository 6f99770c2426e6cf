//! Commits whose answer was lost: asking for their outcome.

use std::time::Duration;

use mingle_model::{Name, TransactionId};
use mingle_store::{Commit, Committed, Outcome, Session as StoreSession, StoreError};

use crate::api::error::Error;
use crate::execute::Executor;
use crate::execute::attempt::Visit;
use crate::execute::execution::Execution;

impl Executor {
    /// Asks for the outcome of a commit whose answer was lost, until the deadline, or at least
    /// once.
    pub(crate) async fn commit_that_was_lost(
        &self,
        execution: &mut Execution,
        visit: &Visit,
        id: TransactionId,
        (deadline, since): (Duration, Duration),
    ) -> Result<Committed, Error> {
        let site = &self.stores.all[visit.store];
        let unknown = || Error::Unknown { store: visit.name.clone(), id: Some(id) };
        let mut attempts = 1;
        loop {
            let asked = self.stores.by(self.stores.asked_until(deadline), site.outcome(id)).await;
            match asked.ok_or_else(unknown)? {
                Ok(Outcome::Committed) => {
                    let (store, replica) = (visit.store, visit.replica.as_ref());
                    let committed = self.committed_unseen(store, replica, deadline).await;
                    return committed.ok_or_else(unknown);
                }
                Ok(Outcome::NotCommitted) => {
                    // The store has promised that its id never commits: the next attempt has
                    // another one.
                    self.in_flight.table().is_spent = true;
                    if execution.id == Some(id) {
                        self.in_flight.is_over(id, (*execution.left).clone());
                        execution.id = None;
                    }
                    // Without time for another attempt, the error reports the silent store.
                    let is_late = self.stores.world.elapsed() > deadline;
                    let silent = || self.stores.silent(visit.store, visit.replica.as_ref(), since);
                    return Err(Error::Store(if is_late {
                        silent()
                    } else {
                        StoreError::Conflict
                    }));
                }
                Ok(Outcome::Unknown) | Err(_) => {}
            }
            let pause = self.stores.backoff(attempts);
            attempts += 1;
            if self.stores.world.elapsed() + pause > deadline {
                return Err(unknown());
            }
            self.stores.world.sleep(pause).await;
        }
    }

    /// Returns an answer in place of a commit's lost answer: the replica has seen the commit by
    /// now. None if the store does not answer until the deadline.
    pub(crate) async fn committed_unseen(
        &self,
        store: usize,
        replica: Option<&Name>,
        deadline: Duration,
    ) -> Option<Committed> {
        if !self.stores.is_many(store) {
            return Some(Committed::default());
        }
        let session = StoreSession { replica: replica.cloned(), ..StoreSession::default() };
        let mut attempts = 1;
        loop {
            let looking = async {
                let transaction = self.stores.all[store].begin(&session).await?;
                transaction.commit(Commit::default()).await
            };
            if let Ok(committed) =
                self.stores.by(self.stores.asked_until(deadline), looking).await?
            {
                return Some(committed);
            }
            let pause = self.stores.backoff(attempts);
            attempts += 1;
            if self.stores.world.elapsed() + pause > deadline {
                return None;
            }
            self.stores.world.sleep(pause).await;
        }
    }
}
