//! The application's transaction, with sqlx. Each statement is a round trip, and a request is only
//! sent if it is awaited. Statements stay prepared on the connection, like the application's own.
//!
//! When a call is dropped, sqlx itself rolls back the innermost transaction that it knows of. A
//! call is therefore such a transaction: a savepoint of sqlx in the application's transaction.
//!
//! **Invariant: sqlx counts as many transactions after a call as before it.** It uses that number
//! to decide if the application's commit is a real `COMMIT`.

use std::future::poll_fn;
use std::mem::ManuallyDrop;

use futures_util::future::FutureExt as _;
use mingle_store::BoxFuture;
use sqlx_core::arguments::Arguments as _;
use sqlx_core::connection::Connection as _;
use sqlx_core::encode::{Encode, IsNull};
use sqlx_core::error::BoxDynError;
use sqlx_core::query::query_with;
use sqlx_core::raw_sql::raw_sql;
use sqlx_core::row::Row as _;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_core::transaction::{
    Transaction, TransactionManager, begin_ansi_transaction_sql, commit_ansi_transaction_sql,
};
use sqlx_core::types::Type;
use sqlx_postgres::types::Oid;
use sqlx_postgres::{
    PgArgumentBuffer, PgArguments, PgConnection, PgDatabaseError, PgRow, PgTransactionManager,
    PgTypeInfo, Postgres,
};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull as Nothing, ToSql as _, Type as SqlType};

use super::driver::Driver;
use super::{Host, HostTransaction};
use crate::error::{Complaint, Wrong};
use crate::session::{Step, StepResult};
use crate::wire::{Param, Row};

/// SQLSTATE of a statement outside any transaction that needs one.
const NO_TRANSACTION: &str = "25P01";

/// SQLSTATE of a prepared statement whose table was changed.
const STALE: &str = "0A000";

impl HostTransaction for PgConnection {
    fn host(&mut self) -> Host<'_> {
        let depth = depth(self);
        Host(Box::new(Sqlx { connection: self, depth, is_nested: false }))
    }
}

impl HostTransaction for Transaction<'_, Postgres> {
    fn host(&mut self) -> Host<'_> {
        (**self).host()
    }
}

fn depth(connection: &PgConnection) -> usize {
    PgTransactionManager::get_transaction_depth(connection)
}

struct Sqlx<'a> {
    connection: &'a mut PgConnection,
    /// The depth of nested transactions that sqlx knew of before the call.
    depth: usize,
    /// True if the call is one level deeper.
    is_nested: bool,
}

impl Sqlx<'_> {
    async fn open_now(&mut self, look: &str, setting: &str) -> Result<Vec<Option<String>>, Wrong> {
        if self.depth == 0 {
            // If the transaction was begun by hand, sqlx would take its first savepoint for the
            // whole transaction.
            return Err(Wrong::Server(Box::new(Complaint {
                code: NO_TRANSACTION.into(),
                message: "sqlx knows of no transaction".into(),
                ..Complaint::default()
            })));
        }
        // A savepoint like the one that sqlx makes next. That one may be released behind it and
        // still be undone.
        let opening = format!("{}; {look}", begin_ansi_transaction_sql(self.depth).as_str());
        let rows = raw_sql(AssertSqlSafe(opening)).fetch_all(&mut *self.connection).await?;
        let found = rows.first().map(cells).unwrap_or_default();
        // If this future were dropped while it waits, it would roll back the application's whole
        // transaction. Its leaked memory is small, and the savepoint does no harm.
        let begin = Box::pin(PgTransactionManager::begin(self.connection, None));
        let mut begin = ManuallyDrop::new(begin);
        let begun = poll_fn(|context| begin.as_mut().poll(context)).await;
        drop(ManuallyDrop::into_inner(begin));
        begun?;
        self.is_nested = true;
        let setting = format!("{setting}; SAVEPOINT mingle_phase");
        raw_sql(AssertSqlSafe(setting)).execute(&mut *self.connection).await?;
        Ok(found)
    }

    async fn step(&mut self, step: &Step) -> StepResult {
        let sql = AssertSqlSafe(step.sql.to_string());
        if step.is_control {
            raw_sql(sql).execute(&mut *self.connection).await?;
            return Ok(Vec::new());
        }
        let mut arguments = PgArguments::default();
        for (at, param) in step.params.iter().enumerate() {
            let sent = Sent { param, given: step.types.get(at) };
            arguments.add(sent).map_err(|error| Wrong::Lost(error.to_string()))?;
        }
        let rows = query_with(sql, arguments).fetch_all(&mut *self.connection).await?;
        Ok(rows.into_iter().map(Row::Sqlx).collect())
    }

    async fn run_now(&mut self, steps: &[Step]) -> Vec<StepResult> {
        let mut results = Vec::with_capacity(steps.len());
        for step in steps {
            let result = self.step(step).await;
            let failure = result.as_ref().err().cloned();
            results.push(result);
            let Some(failure) = failure else { continue };
            if matches!(&failure, Wrong::Server(complaint) if complaint.code == STALE) {
                // The statement would fail like this forever. If clearing fails, the connection is
                // gone.
                let _ = self.connection.clear_cached_statements().await;
            }
            break;
        }
        results
    }

    async fn close_now(&mut self, restore: &str) {
        let restored = raw_sql(AssertSqlSafe(restore)).execute(&mut *self.connection).await;
        if restored.is_err() || PgTransactionManager::commit(self.connection).await.is_err() {
            // The server then refuses all later statements of the application.
            return self.undo();
        }
        self.is_nested = false;
        // The savepoint below the one that is released now. The answer is not needed.
        let outer = commit_ansi_transaction_sql(self.depth + 1);
        let _ = raw_sql(outer).execute(&mut *self.connection).now_or_never();
    }
}

impl Driver for Sqlx<'_> {
    fn open<'a>(
        &'a mut self,
        look: &'a str,
        setting: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Option<String>>, Wrong>> {
        Box::pin(self.open_now(look, setting))
    }

    fn run<'a>(&'a mut self, steps: &'a [Step]) -> BoxFuture<'a, Vec<StepResult>> {
        Box::pin(self.run_now(steps))
    }

    fn close<'a>(&'a mut self, restore: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(self.close_now(restore))
    }

    fn undo(&mut self) {
        if std::mem::take(&mut self.is_nested) && depth(self.connection) > self.depth {
            // Sent before the next request.
            PgTransactionManager::start_rollback(self.connection);
        }
    }
}

/// A parameter on its way. Its type is the server's to say, where the statement is not given one.
struct Sent<'a> {
    param: &'a Param,
    given: Option<&'a SqlType>,
}

impl Type<Postgres> for Sent<'_> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(SqlType::UNKNOWN.oid()))
    }
}

impl Encode<'_, Postgres> for Sent<'_> {
    fn encode_by_ref(&self, out: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let mut bytes = BytesMut::new();
        let sql_type = self.given.cloned().unwrap_or_else(|| self.param.sql_type());
        Ok(match self.param.to_sql(&sql_type, &mut bytes)? {
            Nothing::Yes => IsNull::Yes,
            Nothing::No => {
                out.extend_from_slice(&bytes);
                IsNull::No
            }
        })
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        self.given.map(|given| PgTypeInfo::with_oid(Oid(given.oid())))
    }
}

fn cells(row: &PgRow) -> Vec<Option<String>> {
    let text = |at| Some(row.try_get_raw(at).ok()?.as_str().ok()?.to_owned());
    (0..row.len()).map(text).collect()
}

impl From<sqlx_core::Error> for Wrong {
    fn from(error: sqlx_core::Error) -> Self {
        let found = error.as_database_error();
        let Some(found) = found.and_then(|error| error.try_downcast_ref::<PgDatabaseError>())
        else {
            return Self::Lost(error.to_string());
        };
        let owned = |part: Option<&str>| part.map(str::to_owned);
        Self::Server(Box::new(Complaint {
            code: found.code().to_owned(),
            message: found.message().to_owned(),
            detail: owned(found.detail()),
            hint: owned(found.hint()),
            schema: owned(found.schema()),
            table: owned(found.table()),
            column: owned(found.column()),
            constraint: owned(found.constraint()),
            context: owned(found.r#where()),
        }))
    }
}
