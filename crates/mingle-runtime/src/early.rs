//! Reading early: what the phase after the first one that writes reads is asked while that one still
//! runs, where nothing that it reads follows from what an earlier phase was answered.
//!
//! Whether it stands is judged once the first phase is known: whom that has met, and waits for at the
//! next store, must have been visible there before these reads began, and what it has seen must be
//! what was asked for. Else the phase reads anew, as if nobody had.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use mingle_lang::code::Instr;
use mingle_lang::split::Mutation;
use mingle_model::TransactionId;
use mingle_store::BoxFuture;

use crate::ahead::{Found, later};
use crate::planted::Planted;
use crate::runtime::Runtime;
use crate::transaction::{Begun, Execution};

/// Reads that go on while a phase runs.
pub(crate) struct Early {
    asking: BoxFuture<'static, Found>,
    asked: Option<Found>,
}

impl Early {
    fn poll(&mut self, context: &mut Context<'_>) {
        if self.asked.is_none()
            && let Poll::Ready(asked) = self.asking.as_mut().poll(context)
        {
            self.asked = Some(asked);
        }
    }

    /// What comes of it.
    pub(crate) async fn end(self: Box<Self>) -> Found {
        match self.asked {
            Some(asked) => asked,
            None => self.asking.await,
        }
    }
}

/// Waits for a phase, while what is read early goes on.
pub(crate) fn beside<F: Future>(
    early: &mut Option<Box<Early>>,
    mut phase: Pin<&mut F>,
) -> impl Future<Output = F::Output> {
    poll_fn(move |context| {
        if let Some(early) = early {
            early.poll(context);
        }
        phase.as_mut().poll(context)
    })
}

impl Runtime {
    /// Whether a transaction may read for a phase before the one before it has committed.
    pub(crate) fn may_read_ahead(&self, execution: &Execution) -> bool {
        // Planted faults are faults of the other way.
        let is_whole = self.planted == Planted::None && self.mutation == Mutation::None;
        execution.reads_ahead
            && execution.host.is_none()
            && is_whole
            && !self.is_beside
            && !execution.plan.isolated
    }

    /// Begins to read for the phase after the one of this index, if that is the first one that writes.
    pub(crate) fn read_early(&self, execution: &Execution, index: usize) -> Option<Box<Early>> {
        let plan = &execution.plan;
        if plan.first_write != Some(index)
            || execution.has_written
            || !self.may_read_ahead(execution)
        {
            return None;
        }
        let hands_on = |instr: &Instr| matches!(instr, Instr::Replay { .. });
        let next = plan.phases.get(index + 1)?;
        if next.code.iter().any(hands_on) {
            return None;
        }
        let begun = Begun {
            // Nobody's: numbers begin at 1.
            id: TransactionId { origin: self.own().origin(), sequence: 0 },
            first: index,
            intent: execution.store_name(&plan.phases[index])?,
        };
        let later = later(execution, begun, execution.worklist.clone(), execution.recorded.clone());
        let store = self.reads_ahead_at(&later, index + 1)?;
        let runtime = self.me.upgrade()?;
        let asking = async move { runtime.ask_ahead(&later, index + 1, store, false).await };
        Some(Box::new(Early { asking: Box::pin(asking), asked: None }))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use std::pin::pin;

    use super::*;

    fn early(asking: impl Future<Output = Found> + Send + 'static) -> Early {
        Early { asking: Box::pin(asking), asked: None }
    }

    #[test]
    fn a_phase_is_not_held_up_by_what_is_read_early() {
        let mut reading = Some(Box::new(early(std::future::pending())));
        assert_eq!(beside(&mut reading, pin!(async { 1 })).now_or_never(), Some(1));
        assert!(reading.expect("it is there").end().now_or_never().is_none());
    }

    #[test]
    fn what_was_read_meanwhile_is_there_at_once() {
        let mut reading = Some(Box::new(early(async { Found::Waits })));
        let phase = pin!(std::future::pending::<()>());
        assert!(beside(&mut reading, phase).now_or_never().is_none());
        let ended = reading.expect("it is there").end().now_or_never();
        assert!(matches!(ended, Some(Found::Waits)));
    }
}
