//! Transactions that run inside a transaction of the application, on the application's connection.
//!
//! - this module: the application's transaction while a call is made in it;
//! - `sameness`: checks that it is at the store's own database, at the level that the store needs,
//!   and finds the session settings that must be changed during the call;
//! - `guest`: a transaction of the store inside it;
//! - `driver`: the operations that a driver must provide; `plain` and `sqlx`: the drivers.
//!
//! The connection is borrowed, but a transaction of a store is not. A guest therefore sends its
//! requests through a channel, and [`Joined::run`] executes them as long as the call runs.
//!
//! **Invariant: a call that ends early is undone.** Everything is behind a savepoint. The rollback
//! to it is sent when the call is dropped, before any later request of the application.

mod driver;
mod guest;
mod plain;
mod sameness;
#[cfg(feature = "sqlx")]
mod sqlx;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use mingle_store::{DataStore, StoreError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::error::{Failure, Wrong};
use crate::session::{Step, StepResult};
use crate::store::{Inner, Postgres};
use driver::Driver;
use guest::Place;
use sameness::Found;
pub(crate) use sameness::Own;

/// Rolls back to the start of the phase, for another attempt.
const UNDO_PHASE: &str = "ROLLBACK TO SAVEPOINT mingle_phase";

/// A transaction of the application, of tokio-postgres or, with the feature `sqlx`, of sqlx.
pub trait HostTransaction: Send {
    /// Returns its connection, which no other code uses in the meantime.
    #[doc(hidden)]
    fn host(&mut self) -> Host<'_>;
}

/// A connection of the application, of either driver.
pub struct Host<'a>(Box<dyn Driver + 'a>);

/// The reason why a transaction of the application cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinError {
    /// It is at another database, or its level is too weak; the text has the found and the required
    /// value.
    Misuse(String),
    /// The server fails.
    Store(StoreError),
}

/// A request of a guest.
pub(crate) enum Request {
    /// These statements, in one round trip.
    Run(Vec<Step>, oneshot::Sender<Vec<StepResult>>),
    /// Undo the whole phase.
    Undo,
}

/// A transaction of the application's while a call is made in it.
pub struct Joined<'a> {
    driver: Box<dyn Driver + 'a>,
    inner: Arc<Inner>,
    place: Arc<Place>,
    requests: UnboundedReceiver<Request>,
    /// Restores the changed settings after a successful call.
    restore: String,
    /// True if it is to be undone when it is dropped.
    is_open: bool,
}

impl Postgres {
    /// Prepares a transaction of the application for a call: it must be at this store's database,
    /// and at `SERIALIZABLE`. Takes one round trip, with sqlx three.
    ///
    /// # Errors
    ///
    /// [`JoinError::Misuse`] when it is not; [`JoinError::Store`] when the server fails. The
    /// application's transaction is then as before, unless it had failed already.
    pub async fn join<'a>(
        &self,
        host: &'a mut impl HostTransaction,
    ) -> Result<Joined<'a>, JoinError> {
        let inner = self.inner();
        let own = sameness::own(&inner).await.map_err(JoinError::Store)?;
        let (sender, requests) = unbounded_channel();
        let place = Place::new(self, sender);
        let mut joined = Joined {
            driver: host.host().0,
            inner: Arc::clone(&inner),
            place: Arc::new(place),
            requests,
            restore: String::new(),
            is_open: true,
        };
        let opened = joined.driver.open(&sameness::query(), &own.setting()).await;
        let cells = opened.map_err(|wrong| joined.failed(&wrong))?;
        let found = Found::read(cells).ok_or_else(|| {
            let (store, reason) = (joined.inner.store.clone(), "it gave no settings".into());
            JoinError::Store(StoreError::Unavailable { store, reason })
        })?;
        found.check_level(&joined.inner.store).map_err(JoinError::Misuse)?;
        if !found.is_same(&own) {
            // The server may have been restarted since the last look.
            let own = sameness::look(&inner).await.map_err(JoinError::Store)?;
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
    /// Returns a store whose transactions are parts of the application's, as long as
    /// [`Joined::run`] runs.
    pub fn place(&self) -> Arc<dyn DataStore> {
        self.place.clone()
    }

    /// Runs a call. If it succeeds, its effects are part of the application's transaction; if it
    /// fails, or this future is dropped, it has no effects.
    ///
    /// # Errors
    ///
    /// Those of the call.
    pub async fn run<T, E>(mut self, call: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let (driver, requests) = (&mut self.driver, &mut self.requests);
        let serving = async {
            while let Some(request) = requests.recv().await {
                match request {
                    Request::Run(steps, answer) => {
                        // The requesting guest may be gone.
                        let _ = answer.send(driver.run(&steps).await);
                    }
                    Request::Undo => {
                        // If that fails, every later statement fails too.
                        driver.run(&[Step::control(UNDO_PHASE)]).await;
                    }
                }
            }
            std::future::pending::<()>().await;
        };
        let result = match select(pin!(call), pin!(serving)).await {
            Either::Left((result, _)) => result?,
            Either::Right(((), _)) => unreachable!("it serves as long as it is asked to"),
        };
        self.driver.close(&self.restore).await;
        self.is_open = false;
        Ok(result)
    }

    fn failed(&self, wrong: &Wrong) -> JoinError {
        let code = match wrong {
            Wrong::Server(complaint) => Some(complaint.code.as_str()),
            Wrong::Lost(_) => None,
        };
        match code {
            Some("25P01") => JoinError::Misuse("the connection is not within a transaction".into()),
            Some("25P02") => JoinError::Misuse(format!(
                "the application's transaction has failed before: {wrong}"
            )),
            _ => {
                let failure = Failure::of(wrong, &self.inner.layout);
                JoinError::Store(failure.before_commit(&self.inner.store))
            }
        }
    }
}

impl Drop for Joined<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.driver.undo();
        }
    }
}

/// The channel for a guest's requests.
pub(crate) type Requests = UnboundedSender<Request>;
