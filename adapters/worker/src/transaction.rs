//! A transaction whose operations go to the worker one by one.

use std::sync::Arc;

use mingle_store::{
    Answer, BoxFuture, Commit, Committed, Read, Session, StoreError, Transaction, Write,
};

use crate::store::{Shared, Trouble};
use crate::wire::{Given, Opening, Operation};

/// A transaction. The worker learns of it with its first operation.
pub(crate) struct WorkerTransaction {
    shared: Arc<Shared>,
    opening: Opening,
    /// True if the worker may hold it, and it has not ended.
    is_held: bool,
    /// The result of the commit, if its last reads have ended it.
    ended: Option<Committed>,
    has_flushed: bool,
}

impl WorkerTransaction {
    pub(crate) fn new(shared: Arc<Shared>, session: Session) -> Self {
        let opening = Opening { number: shared.number(), is_open: false, session };
        Self { shared, opening, is_held: false, ended: None, has_flushed: false }
    }

    async fn read_now(&mut self, reads: &[Read], is_last: bool) -> Result<Vec<Answer>, StoreError> {
        let operation =
            Operation::Read { transaction: self.opening.clone(), reads: reads.to_vec(), is_last };
        self.is_held = true;
        let given = self.shared.operate(&operation).await;
        self.opening.is_open = true;
        match given {
            Ok(Given::Answers(answers)) if answers.len() == reads.len() => Ok(answers),
            Ok(Given::Ended(answers, committed)) if answers.len() == reads.len() => {
                self.ended = Some(committed);
                self.is_held = false;
                Ok(answers)
            }
            Ok(_) => Err(self.shared.mixed_up()),
            Err(trouble) => Err(trouble.error()),
        }
    }

    async fn commit_now(mut self, commit: Commit) -> Result<Committed, StoreError> {
        if let Some(committed) = self.ended.take().filter(|_| commit.is_empty()) {
            return Ok(committed);
        }
        let id = commit.id;
        let may_have_written = !commit.writes.is_empty() || self.has_flushed;
        // The commit ends the transaction at the worker, with any result.
        self.is_held = false;
        let operation = Operation::Commit { transaction: self.opening.clone(), commit };
        match self.shared.operate(&operation).await {
            Ok(Given::Committed(committed)) => Ok(committed),
            Err(Trouble::Said(error)) => Err(error),
            Ok(_) | Err(Trouble::Lost(_)) if may_have_written => {
                Err(StoreError::Unknown { store: self.shared.store().clone(), id })
            }
            Ok(_) => Err(self.shared.mixed_up()),
            Err(Trouble::Lost(error)) => Err(error),
        }
    }
}

impl Transaction for WorkerTransaction {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(self.read_now(reads, false))
    }

    fn read_last<'a>(
        &'a mut self,
        reads: &'a [Read],
    ) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(self.read_now(reads, true))
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.is_held = true;
            self.has_flushed |= !writes.is_empty();
            let operation = Operation::Flush { transaction: self.opening.clone(), writes };
            let given = self.shared.operate(&operation).await;
            self.opening.is_open = true;
            given.map(|_| ()).map_err(Trouble::error)
        })
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin(self.commit_now(commit))
    }
}

impl Drop for WorkerTransaction {
    fn drop(&mut self) {
        if !self.is_held {
            return;
        }
        // Without this the worker would end it by itself later.
        let (shared, number) = (self.shared.clone(), self.opening.number);
        self.shared.spawn(Box::pin(async move {
            let _ = shared.operate(&Operation::Drop { number }).await;
        }));
    }
}
