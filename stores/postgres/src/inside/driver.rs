//! What a driver has to do for a call in a transaction that the application has begun with it.

use mingle_store::BoxFuture;

use crate::error::Wrong;
use crate::session::{Step, StepResult};

/// A connection on which the application has begun a transaction.
///
/// A future of it may be dropped where it waits. What the server has been asked until then, and what it
/// answers, is in nobody's way, and [`Driver::undo`] takes it back.
pub trait Driver: Send {
    /// Marks where the call begins; looks, and gives the cells of the first row; says `setting`; and
    /// marks where the phase begins, as the savepoint `mingle_phase`.
    ///
    /// # Errors
    ///
    /// What went wrong; the transaction is then as before, once [`Driver::undo`] was called.
    fn open<'a>(
        &'a mut self,
        look: &'a str,
        setting: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Option<String>>, Wrong>>;

    /// Says these steps, and gives what the server says to each, up to the first failure at least.
    fn run<'a>(&'a mut self, steps: &'a [Step]) -> BoxFuture<'a, Vec<StepResult>>;

    /// Says `restore`, and keeps what was done. If that fails, so does whatever the application says next.
    fn close<'a>(&'a mut self, restore: &'a str) -> BoxFuture<'a, ()>;

    /// Goes back to where the call began, before anything that the application may say next.
    fn undo(&mut self);
}
