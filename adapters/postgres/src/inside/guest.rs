//! A transaction of a store inside the application's transaction: it sends no `BEGIN` or `COMMIT`
//! of its own.

use std::sync::Arc;

use mingle_model::{Stamp, TransactionId, Version};
use mingle_store::{
    Answer, BoxFuture, Capabilities, Commit, Committed, DataStore, Outcome, Read, Refusal, Session,
    StoreError, Transaction, Write,
};
use tokio::sync::oneshot;

use super::{Request, Requests};
use crate::commit;
use crate::encoding::object_digest;
use crate::error::Failure;
use crate::pool::within;
use crate::reading::Plan;
use crate::session::{Step, StepResult};
use crate::store::{Inner, Postgres};
use crate::system;
use crate::transaction::Done;
use crate::wire::Row;

/// The store within the application's transaction.
pub struct Place {
    inner: Arc<Inner>,
    capabilities: Capabilities,
    requests: Requests,
}

impl Place {
    pub fn new(store: &Postgres, requests: Requests) -> Self {
        let capabilities = mingle_store::DataStore::capabilities(store).clone();
        Self { inner: store.inner(), capabilities, requests }
    }
}

impl DataStore for Place {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn begin<'a>(
        &'a self,
        _session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>> {
        let guest: Box<dyn Transaction> = Box::new(Guest {
            inner: Arc::clone(&self.inner),
            requests: self.requests.clone(),
            done: Done::default(),
            has_sent: false,
            broken: None,
        });
        Box::pin(std::future::ready(Ok(guest)))
    }

    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        Box::pin(commit::ask(&self.inner, id))
    }
}

struct Guest {
    inner: Arc<Inner>,
    requests: Requests,
    done: Done,
    /// True if there is anything to undo.
    has_sent: bool,
    /// The reason why it can do nothing more; set while a call waits, in case the call is dropped.
    broken: Option<StoreError>,
}

/// The reason why statements failed.
enum Vain {
    Failed(Failure),
    Gone(StoreError),
}

impl Guest {
    fn unavailable(&self, reason: &str) -> StoreError {
        let store = self.inner.store.clone();
        StoreError::Unavailable { store, reason: reason.into() }
    }

    fn refused(&self, why: impl Into<Refusal>) -> StoreError {
        why.into().at(self.inner.store.clone())
    }

    async fn ask(&mut self, steps: Vec<Step>) -> Result<Vec<StepResult>, StoreError> {
        let (sender, answer) = oneshot::channel();
        self.has_sent = true;
        let gone = || self.unavailable("the application's transaction is gone");
        self.requests.send(Request::Run(steps, sender)).map_err(|_| gone())?;
        let pool = &self.inner.pool;
        match within(&**pool.world(), pool.answer_timeout(), answer).await {
            Some(Ok(results)) => Ok(results),
            Some(Err(_)) => Err(gone()),
            None => Err(self.unavailable("no answer in time")),
        }
    }

    /// Sends steps in one round trip.
    async fn send(&mut self, steps: Vec<Step>) -> Result<Vec<Vec<Row>>, Vain> {
        if let Some(broken) = &self.broken {
            return Err(Vain::Gone(broken.clone()));
        }
        self.broken = Some(self.unavailable("an earlier call was given up"));
        let results = match self.ask(steps).await {
            Ok(results) => results,
            Err(error) => {
                self.broken = Some(error.clone());
                return Err(Vain::Gone(error));
            }
        };
        let rows: Result<Vec<_>, _> = results.into_iter().collect();
        rows.inspect(|_| self.broken = None).map_err(|error| {
            let failure = Failure::of(&error, &self.inner.layout);
            self.broken = Some(failure.clone().before_commit(&self.inner.store));
            Vain::Failed(failure)
        })
    }

    async fn send_early(&mut self, steps: Vec<Step>) -> Result<Vec<Vec<Row>>, StoreError> {
        let store = self.inner.store.clone();
        self.send(steps).await.map_err(|vain| match vain {
            Vain::Failed(failure) => failure.before_commit(&store),
            Vain::Gone(error) => error,
        })
    }

    async fn read_now(&mut self, reads: &[Read]) -> Result<Vec<Answer>, StoreError> {
        let inner = Arc::clone(&self.inner);
        let mut plan =
            Plan::new(&inner.layout, &inner.operations, reads).map_err(|why| self.refused(why))?;
        if reads.is_empty() {
            return Ok(Vec::new());
        }
        let results = self.send_early(plan.take_steps()).await?;
        let found = plan.answers(&results).map_err(|why| self.refused(why))?;
        Ok(self.done.note_read(&plan, found))
    }

    async fn flush_now(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        if writes.is_empty() {
            return Ok(());
        }
        let inner = Arc::clone(&self.inner);
        let flush = self.done.flush(&inner, &writes);
        let (steps, writing) = flush.map_err(|why| self.refused(why))?;
        self.send_early(steps).await?;
        self.done.has_flushed(writing, &writes);
        Ok(())
    }

    async fn commit_now(mut self, commit: Commit) -> Result<Committed, StoreError> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        if commit.is_empty() && !self.done.has_written {
            // Its reads are valid if the application's transaction commits.
            self.has_sent = false;
            let version = Version(self.done.seen);
            return Ok(Committed { version, stamp: Stamp::default() });
        }
        let inner = Arc::clone(&self.inner);
        let planned =
            commit::plan(&inner, &mut self.done, &commit).map_err(|why| self.refused(why))?;
        let results = match self.send(planned.steps).await {
            Ok(rows) => rows.into_iter().map(Ok).collect::<Vec<StepResult>>(),
            Err(Vain::Gone(error)) => return Err(error),
            Err(Vain::Failed(Failure::Witnessed)) => return Err(self.witnessed(&commit).await),
            Err(Vain::Failed(failure)) => return Err(failure.before_commit(&inner.store)),
        };
        self.has_sent = false;
        inner.clean_up(commit.id, &self.done.floors);
        Ok(commit::committed(&results, planned.version, self.done.seen))
    }

    /// Returns the unknown witness rows of the objects to be written. They are in the snapshot; a
    /// commit that meets other witness rows is a conflict.
    async fn witnessed(&mut self, commit: &Commit) -> StoreError {
        let _ = self.requests.send(Request::Undo);
        self.has_sent = false;
        self.broken = None;
        let objects = self.done.written.iter().map(object_digest).collect();
        let rows = match self.send(vec![system::rows_of(&self.inner.layout, objects)]).await {
            Ok(results) => results,
            Err(Vain::Failed(failure)) => return failure.before_commit(&self.inner.store),
            Err(Vain::Gone(error)) => return error,
        };
        let rows: Result<Vec<_>, String> =
            rows.iter().flatten().map(|row| system::witness_row(row, 0)).collect();
        let known = commit::known(&self.done, commit);
        match rows {
            Err(why) => self.refused(why),
            Ok(rows) if rows.iter().any(|row| !known.contains(&row.id)) => {
                StoreError::Witnessed { rows }
            }
            Ok(_) => StoreError::Conflict,
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if self.has_sent {
            // The server of requests may be gone; it has then undone everything.
            let _ = self.requests.send(Request::Undo);
        }
    }
}

impl Transaction for Guest {
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        Box::pin(self.read_now(reads))
    }

    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.flush_now(writes))
    }

    fn commit(
        self: Box<Self>,
        commit: Commit,
    ) -> BoxFuture<'static, Result<Committed, StoreError>> {
        Box::pin((*self).commit_now(commit))
    }
}
