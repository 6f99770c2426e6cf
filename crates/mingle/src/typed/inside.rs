//! Calls inside a transaction of the application.

use std::fmt;
use std::marker::PhantomData;

use mingle_model::Name;
use mingle_runtime::{CallReport, Error, Inside};
use mingle_store_postgres::HostTransaction;

use super::call::{Call, Outcome};

/// A call that takes effect when the application's transaction commits. If it is dropped, the other
/// stores still follow.
pub struct Joined<T> {
    inner: Inside,
    outcome: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for Joined<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Joined").field(&self.inner).finish()
    }
}

impl<T> Call<T> {
    /// Makes the call a part of a transaction that the application has begun itself, with
    /// tokio-postgres, at the database of the store that the call writes first: both take effect, or
    /// neither. The call's phases at other stores follow once the application has committed.
    ///
    /// The application's transaction must be `SERIALIZABLE`. If this function fails, or its future is
    /// dropped, the application's transaction is as it was before, and can go on.
    ///
    /// # Errors
    ///
    /// As [`Database::call_inside`](crate::Database::call_inside).
    pub async fn inside(self, transaction: &mut impl HostTransaction) -> Result<Joined<T>, Error> {
        let (database, call) = self.into_parts();
        let inner = database.call_inside(call, transaction).await?;
        Ok(Joined { inner, outcome: PhantomData })
    }
}

impl<T: Outcome> Joined<T> {
    /// The result, if it is known already. It becomes valid if the application commits.
    pub fn result(&self) -> Option<T> {
        let report = self.inner.report();
        T::of(report.result.as_ref(), &self.inner.following())
    }

    /// The stores at which the rest follows once the application has committed.
    pub fn following(&self) -> Vec<Name> {
        self.inner.following()
    }

    /// The report on the phases inside the application's transaction, and on the phases before them.
    pub fn report(&self) -> &CallReport {
        self.inner.report()
    }

    /// Waits for the other stores, after the application has committed; with [`Call::until`], only up to
    /// that store. From then on the call's session has seen it. If dropped, the other stores still follow.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] when the application has rolled back; [`Error::Unknown`] when its
    /// transaction did not end within the deadline; [`Error::Incomplete`] when a later store has not
    /// committed yet.
    ///
    /// # Panics
    ///
    /// Never: the results of a checked program have the declared types.
    pub async fn follow(self) -> Result<T, Error> {
        let report = self.inner.follow().await?;
        let outcome = T::of(report.result.as_ref(), &report.following);
        Ok(outcome.expect("a checked program's results are of the types it declares"))
    }
}
