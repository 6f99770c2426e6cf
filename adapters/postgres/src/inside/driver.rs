//! The driver's part of a call inside a transaction that the application has begun.

use mingle_store::BoxFuture;

use crate::error::Wrong;
use crate::session::{Step, StepResult};

/// A connection on which the application has begun a transaction.
///
/// A waiting future of it may be dropped. Requests sent before, and their answers, disturb no later
/// request, and [`Driver::undo`] takes them back.
pub trait Driver: Send {
    /// Marks the start of the call; runs `look` and returns the cells of its first row; runs
    /// `setting`; and marks the start of the phase, as the savepoint `mingle_phase`.
    ///
    /// # Errors
    ///
    /// The failure; the transaction is as before after a call of [`Driver::undo`].
    fn open<'a>(
        &'a mut self,
        look: &'a str,
        setting: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Option<String>>, Wrong>>;

    /// Runs these steps, and returns the server's answer to each, at least up to the first failure.
    fn run<'a>(&'a mut self, steps: &'a [Step]) -> BoxFuture<'a, Vec<StepResult>>;

    /// Runs `restore`, and keeps the call's effects. If that fails, the application's next
    /// statement fails too.
    fn close<'a>(&'a mut self, restore: &'a str) -> BoxFuture<'a, ()>;

    /// Rolls back to the start of the call, before the application's next statement.
    fn undo(&mut self);
}
