//! Calls inside a transaction of the application's.

use mingle_runtime::{Call, Error, Inside};
use mingle_store_postgres::{HostTransaction, JoinError};

use crate::database::Database;

impl Database {
    /// Calls a transaction inside one that the application has begun itself, at the PostgreSQL database
    /// of the store that the call writes first. The call's writes there, and the records that finish it
    /// at the other stores, take effect together with the application's own writes when the application
    /// commits. The other stores follow then: see [`Inside::follow`].
    ///
    /// The application's transaction must be `SERIALIZABLE`. If this function fails, or its future is
    /// dropped, the application's transaction is as it was before.
    ///
    /// # Errors
    ///
    /// [`Error::Misuse`] when the call does not write first at a store in PostgreSQL, or the
    /// application's transaction is at another database, or at a weaker level. A conflict, which is
    /// [retryable](Error::is_retryable), means that the application must begin a new transaction to
    /// succeed. Otherwise see [`Error`].
    pub async fn call_inside(
        &self,
        call: Call,
        transaction: &mut impl HostTransaction,
    ) -> Result<Inside, Error> {
        let store = self.runtime.writes_first_at(&call)?;
        let postgres = self.known.postgres.get(&store).ok_or_else(|| {
            Error::Misuse(format!(
                "{} writes first at store {store}, which is not in one PostgreSQL database",
                call.transaction
            ))
        })?;
        let joined = postgres.join(transaction).await.map_err(|error| match error {
            JoinError::Misuse(why) => Error::Misuse(why),
            JoinError::Store(error) => Error::Store(error),
        })?;
        let place = joined.place();
        joined.run(self.runtime.call_inside(call, &store, place)).await
    }
}
