//! Long computation, in turns with other tasks.
//!
//! A machine that has used up a slice asks for a turn. First its driver checks that the call still
//! wants the result: a call whose caller has gone away is cancelled, and one whose deadline has
//! passed ends with [`Error::Deadline`]. A transaction that must be finished, since it has begun,
//! computes on for its helper, for which no caller waits.

use std::time::Duration;

use mingle_store::Turn;

use crate::api::call::Shared;
use crate::api::error::Error;
use crate::execute::Executor;
use crate::execute::control::Control;
use crate::interpreter::machine::{Machine, Need};
use crate::stores::deadline::Doing;

/// The task's turns to compute, and the time at which they end.
pub(crate) struct Turns<'a> {
    shared: Option<&'a Shared>,
    /// The moment at which computation ends, and the time it had until then; none for a task that
    /// must finish a transaction that has begun.
    until: Option<(Duration, Duration)>,
    doing: Option<&'a Doing>,
    current: Option<Turn>,
}

impl<'a> Turns<'a> {
    /// Creates turns up to the deadline of a call or a helper.
    pub(crate) fn of(control: &'a Control<'_>) -> Self {
        let until = control.ends_computation.then_some((control.deadline, control.patience));
        Self { shared: control.shared, until, doing: Some(&control.doing), current: None }
    }

    /// Creates turns for a task that ends by other means than a deadline.
    pub(crate) fn without_deadline() -> Self {
        Self { shared: None, until: None, doing: None, current: None }
    }
}

impl Executor {
    /// Computes until the phase needs something other than a turn.
    pub(crate) async fn compute(
        &self,
        machine: &mut Machine<'_>,
        turns: &mut Turns<'_>,
    ) -> Result<Need, Error> {
        let _computes = turns.doing.map(Doing::computes);
        loop {
            match machine.resume()? {
                Need::Turn => self.next_turn(turns).await?,
                need => {
                    turns.current = None;
                    return Ok(need);
                }
            }
        }
    }

    /// Lets other tasks run, and returns at the task's next turn.
    async fn next_turn(&self, turns: &mut Turns<'_>) -> Result<(), Error> {
        turns.current = None;
        if turns.shared.is_some_and(Shared::is_given_up) {
            return Err(Error::Cancelled);
        }
        if let Some((deadline, patience)) = turns.until
            && self.stores.world.elapsed() > deadline
        {
            return Err(Error::Deadline { deadline: patience });
        }
        turns.current = Some(self.stores.world.turn().await);
        Ok(())
    }
}
