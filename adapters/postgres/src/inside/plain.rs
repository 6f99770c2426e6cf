//! The application's transaction, with tokio-postgres. Statements are sent at once, in order, even
//! if the caller does not wait for the answer.

use futures_util::future::FutureExt as _;
use mingle_store::BoxFuture;
use tokio_postgres::{Client, SimpleQueryMessage, Transaction};

use super::driver::Driver;
use super::{Host, HostTransaction};
use crate::error::Wrong;
use crate::session::{Step, StepResult, run_unprepared};

/// Rolls back to the start of the call.
const UNDO: &str = "ROLLBACK TO SAVEPOINT mingle_call; RELEASE SAVEPOINT mingle_call";

impl HostTransaction for Transaction<'_> {
    fn host(&mut self) -> Host<'_> {
        Host(Box::new(Plain(self.client())))
    }
}

struct Plain<'a>(&'a Client);

impl Driver for Plain<'_> {
    fn open<'a>(
        &'a mut self,
        look: &'a str,
        setting: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Option<String>>, Wrong>> {
        let opening = format!("SAVEPOINT mingle_call; {look}; {setting}; SAVEPOINT mingle_phase");
        Box::pin(async move { Ok(first_row(&self.0.simple_query(&opening).await?)) })
    }

    fn run<'a>(&'a mut self, steps: &'a [Step]) -> BoxFuture<'a, Vec<StepResult>> {
        Box::pin(run_unprepared(self.0, steps))
    }

    fn close<'a>(&'a mut self, restore: &'a str) -> BoxFuture<'a, ()> {
        let closing = format!("{restore}; RELEASE SAVEPOINT mingle_call");
        // Its answer comes before the answer to the application's next statement.
        let _ = self.0.batch_execute(&closing).now_or_never();
        Box::pin(std::future::ready(()))
    }

    fn undo(&mut self) {
        let _ = self.0.batch_execute(UNDO).now_or_never();
    }
}

/// Returns the cells of the first row; none if there is no row.
pub fn first_row(answers: &[SimpleQueryMessage]) -> Vec<Option<String>> {
    let row = answers.iter().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let cells = |row: &tokio_postgres::SimpleQueryRow| {
        (0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect()
    };
    row.map(cells).unwrap_or_default()
}
