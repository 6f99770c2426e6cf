//! Calls inside a transaction of the application's.

use std::fmt;
use std::marker::PhantomData;

use mingle_model::Name;
use mingle_runtime::{CallReport, Error, Inside};
use mingle_store_postgres::HostTransaction;

use super::call::{Call, Outcome};

/// A call that takes effect when the application's transaction commits. Dropped, the rest of it follows
/// by itself.
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
    /// tokio-postgres, at the database of the store that it writes first: both take effect, or neither.
    /// What the call does at other stores follows once the application has committed.
    ///
    /// The application's transaction has to be `SERIALIZABLE`. If this fails, or is dropped, it is as it
    /// was before, and can go on.
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
    /// The result, if it is known already. It holds if the application commits.
    pub fn result(&self) -> Option<T> {
        let report = self.inner.report();
        T::of(report.result.as_ref(), &self.inner.following())
    }

    /// Stores at which the rest follows once the application has committed.
    pub fn following(&self) -> Vec<Name> {
        self.inner.following()
    }

    /// How the phases went that are part of the application's transaction, and those before them.
    pub fn report(&self) -> &CallReport {
        self.inner.report()
    }

    /// Waits for the rest, after the application has committed; with [`Call::until`] as far as that
    /// says. From then on the call's session has seen it. Dropped, the rest follows all the same.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] when the application has rolled back; [`Error::Unknown`] when its
    /// transaction did not end within the deadline; [`Error::Incomplete`] when a later store has not
    /// committed yet.
    ///
    /// # Panics
    ///
    /// Never: a checked program's results are of the types that it declares.
    pub async fn follow(self) -> Result<T, Error> {
        let report = self.inner.follow().await?;
        let outcome = T::of(report.result.as_ref(), &report.following);
        Ok(outcome.expect("a checked program's results are of the types it declares"))
    }
}
