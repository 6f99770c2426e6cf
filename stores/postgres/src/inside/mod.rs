//! Transactions that are parts of one that the application has begun itself, on a connection of its
//! own.
//!
//! - this module: the application's transaction while a call is made in it;
//! - `sameness`: whether it is at the store's own database, at the level that the store needs, and which
//!   settings of its session have to be others meanwhile;
//! - `guest`: a transaction of the store's in it;
//! - `driver`: what a driver has to do for that; `plain` and `sqlx`: the drivers.
//!
//! The connection is borrowed, and a transaction of a store is not: so a guest sends what it wants to
//! say, and [`Joined::run`] says it, as long as the call runs.
//!
//! **Invariant: whatever ends a call before its time undoes it.** All of it stands behind a savepoint,
//! and what goes back there is sent when the call is dropped, before anything that the application may
//! send after it.

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

/// Goes back to where the phase began, to try it once more.
const UNDO_PHASE: &str = "ROLLBACK TO SAVEPOINT mingle_phase";

/// A transaction of the application's: one of tokio-postgres, or, with the feature `sqlx`, one of sqlx.
pub trait HostTransaction: Send {
    /// Its connection, on which nobody else says anything meanwhile.
    #[doc(hidden)]
    fn host(&mut self) -> Host<'_>;
}

/// A connection of the application's, whichever driver it is of.
pub struct Host<'a>(Box<dyn Driver + 'a>);

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
    driver: Box<dyn Driver + 'a>,
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
    /// and at `SERIALIZABLE`. One round trip; with sqlx three.
    ///
    /// # Errors
    ///
    /// [`JoinError::Misuse`] when it is not; else when the server fails. Its transaction is then as
    /// before, unless it had failed already.
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
            // The server may have been started again since it was last looked at.
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
        let (driver, requests) = (&mut self.driver, &mut self.requests);
        let serving = async {
            while let Some(request) = requests.recv().await {
                match request {
                    Request::Run(steps, answer) => {
                        // Who has asked may have gone.
                        let _ = answer.send(driver.run(&steps).await);
                    }
                    Request::Undo => {
                        // If that fails, so does whatever follows.
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

/// Who takes requests.
pub(crate) type Requests = UnboundedSender<Request>;
