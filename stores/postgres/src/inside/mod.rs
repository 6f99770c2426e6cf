//! Transactions that are parts of one that the application has begun itself, on a connection of its
//! own.
//!
//! - this module: the application's transaction while a call is made in it;
//! - `sameness`: whether it is at the store's own database, at the level that the store needs, and which
//!   settings of its session have to be others meanwhile;
//! - `guest`: a transaction of the store's in it.
//!
//! The connection is borrowed, and a transaction of a store is not: so a guest sends what it wants to
//! say, and [`Joined::run`] says it, as long as the call runs.
//!
//! **Invariant: whatever ends a call before its time undoes it.** All of it stands behind a savepoint,
//! and what goes back there is sent when the call is dropped, before anything that the application may
//! send after it.

mod guest;
mod sameness;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, FutureExt as _, select};
use mingle_store::{DataStore, StoreError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio_postgres::Client;

use crate::error::{Failure, message};
use crate::session::{Step, StepResult, run_unprepared};
use crate::store::{Inner, Postgres};
use guest::Place;
use sameness::Found;
pub(crate) use sameness::Own;

/// Goes back to where the call began.
const UNDO: &str = "ROLLBACK TO SAVEPOINT mingle_call; RELEASE SAVEPOINT mingle_call";

/// Goes back to where the phase began, to try it once more.
const UNDO_PHASE: &str = "ROLLBACK TO SAVEPOINT mingle_phase";

/// A transaction of the application's: one of tokio-postgres.
pub trait HostTransaction: Send {
    /// Its connection, on which nobody else says anything meanwhile.
    #[doc(hidden)]
    fn client(&self) -> &Client;
}

impl HostTransaction for tokio_postgres::Transaction<'_> {
    fn client(&self) -> &Client {
        tokio_postgres::Transaction::client(self)
    }
}

/// Why nothing can be done in a transaction of the application's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinError {
    /// It is at another database, or at too weak a level; with what was seen and what is needed.
    Misuse(String),
    /// The server fails.
    Store(StoreError),
}

/// What a guest wants to say.
pub(crate) enum Request {
    /// These statements, in one round trip.
    Run(Vec<Step>, oneshot::Sender<Vec<StepResult>>),
    /// That nothing of its phase was meant.
    Undo,
}

/// A transaction of the application's while a call is made in it.
pub struct Joined<'a> {
    client: &'a Client,
    inner: Arc<Inner>,
    place: Arc<Place>,
    requests: UnboundedReceiver<Request>,
    /// Sets back what was set, once all has gone well.
    restore: String,
    /// Whether it is to be undone when it is dropped.
    is_open: bool,
}

impl Postgres {
    /// Prepares a transaction of the application's for a call: it has to be at this store's database,
    /// and at `SERIALIZABLE`. One round trip.
    ///
    /// # Errors
    ///
    /// [`JoinError::Misuse`] when it is not; else when the server fails. Its transaction is then as
    /// before, unless it had failed already.
    pub async fn join<'a>(
        &self,
        host: &'a mut impl HostTransaction,
    ) -> Result<Joined<'a>, JoinError> {
        let own = sameness::own(self.inner()).await.map_err(JoinError::Store)?;
        let (sender, requests) = unbounded_channel();
        let place = Place::new(self, sender);
        let mut joined = Joined {
            client: host.client(),
            inner: Arc::clone(self.inner()),
            place: Arc::new(place),
            requests,
            restore: String::new(),
            is_open: true,
        };
        let answers = joined.client.simple_query(&own.opening()).await;
        let answers = answers.map_err(|error| joined.failed(&error))?;
        let found = Found::read(&answers).ok_or_else(|| {
            let (store, reason) = (joined.inner.store.clone(), "it gave no settings".into());
            JoinError::Store(StoreError::Unavailable { store, reason })
        })?;
        found.check_level(&joined.inner.store).map_err(JoinError::Misuse)?;
        if !found.is_same(&own) {
            // The server may have been started again since it was last looked at.
            let own = sameness::look(self.inner()).await.map_err(JoinError::Store)?;
            if !found.is_same(&own) {
                let why = found.differs(&own, &joined.inner.store);
                return Err(JoinError::Misuse(why));
            }
        }
        joined.restore = found.restoring();
        Ok(joined)
    }
}

impl Joined<'_> {
    /// A store whose transactions are parts of the application's, as long as [`Joined::run`] runs.
    pub fn place(&self) -> Arc<dyn DataStore> {
        self.place.clone()
    }

    /// Runs a call. If it succeeds, what it did stands in the application's transaction; if it fails,
    /// or this is dropped, nothing does.
    ///
    /// # Errors
    ///
    /// Those of the call.
    pub async fn run<T, E>(mut self, call: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let (client, requests) = (self.client, &mut self.requests);
        let serving = async {
            while let Some(request) = requests.recv().await {
                match request {
                    Request::Run(steps, answer) => {
                        // Who has asked may have gone.
                        let _ = answer.send(run_unprepared(client, &steps).await);
                    }
                    Request::Undo => {
                        // If that fails, so does whatever follows.
                        let _ = client.batch_execute(UNDO_PHASE).await;
                    }
                }
            }
            std::future::pending::<()>().await;
        };
        let result = match select(pin!(call), pin!(serving)).await {
            Either::Left((result, _)) => result?,
            Either::Right(((), _)) => unreachable!("it serves as long as it is asked to"),
        };
        self.is_open = false;
        // Sent at once; its answer comes before those to what the application says next.
        let _ = self.client.batch_execute(&self.restore).now_or_never();
        Ok(result)
    }

    fn failed(&self, error: &tokio_postgres::Error) -> JoinError {
        let code = error.code().map(tokio_postgres::error::SqlState::code);
        match code {
            Some("25P01") => JoinError::Misuse("the connection is not within a transaction".into()),
            Some("25P02") => JoinError::Misuse(format!(
                "the application's transaction has failed before: {}",
                message(error)
            )),
            _ => {
                let failure = Failure::of(error, &self.inner.layout);
                JoinError::Store(failure.before_commit(&self.inner.store))
            }
        }
    }
}

impl Drop for Joined<'_> {
    fn drop(&mut self) {
        if self.is_open {
            // Sent at once, after all that was sent before it.
            let _ = self.client.batch_execute(UNDO).now_or_never();
        }
    }
}

/// Who takes requests.
pub(crate) type Requests = UnboundedSender<Request>;
