//! One call of a transaction, and its options.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mingle_model::{Name, Value};
use mingle_runtime::{CallReport, Error, Session};

use super::value::FromValue;
use crate::database::Database;

/// A call of a transaction whose result is a `T`. It runs when it is awaited.
///
/// Its future may be dropped at any time. Before the first phase that writes has committed, dropping
/// undoes the call; afterwards the transaction finishes by itself.
#[must_use = "a transaction runs once its call is awaited"]
pub struct Call<T> {
    database: Arc<Database>,
    inner: mingle_runtime::Call,
    outcome: PhantomData<fn() -> T>,
}

/// The result of a call that succeeded.
pub trait Outcome: Sized {
    /// Converts the transaction's result; none if the result is of another type.
    fn of(result: Option<&Value>, following: &[Name]) -> Option<Self>;
}

impl Outcome for () {
    fn of(_: Option<&Value>, _: &[Name]) -> Option<Self> {
        Some(())
    }
}

impl<T: FromValue> Outcome for T {
    fn of(result: Option<&Value>, _: &[Name]) -> Option<Self> {
        T::from_value(result?)
    }
}

/// The known state of a call whose caller did not wait for all of its stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Early<T> {
    /// The result, if it was computed by then.
    pub result: Option<T>,
    /// The stores at which the rest follows by itself.
    pub following: Vec<Name>,
}

impl<T: Outcome> Outcome for Early<T> {
    fn of(result: Option<&Value>, following: &[Name]) -> Option<Self> {
        Some(Self { result: T::of(result, following), following: following.into() })
    }
}

impl<T> Call<T> {
    pub(super) fn new(database: Arc<Database>, inner: mingle_runtime::Call) -> Self {
        Self { database, inner, outcome: PhantomData }
    }

    #[cfg(feature = "postgres")]
    pub(super) fn into_parts(self) -> (Arc<Database>, mingle_runtime::Call) {
        (self.database, self.inner)
    }

    /// Makes the call a part of this session: it sees all that the session has seen and written, and the
    /// session records all that the call sees and writes.
    pub fn session(mut self, session: &Session) -> Self {
        self.inner.session = session.clone();
        self
    }

    /// Sets the time for which conflicts are retried and other transactions are waited for. The default
    /// is the deadline of the binding.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.inner.deadline = Some(deadline);
        self
    }

    /// Waits until this store, and all stores before it, have committed; the rest follows by itself.
    pub fn until(mut self, store: impl Into<Name>) -> Call<Early<T>> {
        self.inner.until = Some(store.into());
        Call::new(self.database, self.inner)
    }
}

impl<T: Outcome> Call<T> {
    /// Runs the call, and also returns a report on its phases.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    ///
    /// # Panics
    ///
    /// Never: the results of a checked program have the declared types.
    pub async fn report(self) -> Result<(T, CallReport), Error> {
        let report = self.database.submit(self.inner).await?;
        let outcome = T::of(report.result.as_ref(), &report.following);
        let outcome = outcome.expect("a checked program's results are of the types it declares");
        Ok((outcome, report))
    }
}

impl<T: Outcome + 'static> IntoFuture for Call<T> {
    type Output = Result<T, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { Ok(self.report().await?.0) })
    }
}
