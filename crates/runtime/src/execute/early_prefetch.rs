//! Reading early: the reads of the phase after the first writing phase are sent while that phase
//! still runs, if none of them depends on the answers of an earlier phase.
//!
//! The result is checked once the first phase is known. The transactions that it has met, and waits
//! for at the next store, must have been visible there before these reads began, and the stamp
//! asked for must cover all that it has seen. Otherwise the phase reads anew, as if there were no
//! early reads.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use mingle_lang::code::Instr;
use mingle_lang::split::Mutation;
use mingle_model::TransactionId;
use mingle_store::BoxFuture;

use crate::execute::Executor;
use crate::execute::execution::{Begun, Execution};
use crate::execute::prefetch::{Found, later};
use crate::mutants::Mutant;

/// Reads that go on while a phase runs.
pub(crate) struct EarlyPrefetch {
    asking: BoxFuture<'static, Found>,
    asked: Option<Found>,
}

impl EarlyPrefetch {
    fn poll(&mut self, context: &mut Context<'_>) {
        if self.asked.is_none()
            && let Poll::Ready(asked) = self.asking.as_mut().poll(context)
        {
            self.asked = Some(asked);
        }
    }

    /// Returns the result.
    pub(crate) async fn end(self: Box<Self>) -> Found {
        match self.asked {
            Some(asked) => asked,
            None => self.asking.await,
        }
    }
}

/// Waits for a phase while the early reads go on.
pub(crate) fn alongside<F: Future>(
    early: &mut Option<Box<EarlyPrefetch>>,
    mut phase: Pin<&mut F>,
) -> impl Future<Output = F::Output> {
    poll_fn(move |context| {
        if let Some(early) = early {
            early.poll(context);
        }
        phase.as_mut().poll(context)
    })
}

impl Executor {
    /// True if a transaction may read for a phase before the previous phase has committed.
    pub(crate) fn may_prefetch(&self, execution: &Execution) -> bool {
        // Planted faults concern runs that do not read ahead.
        let is_whole = self.stores.mutant == Mutant::None && self.stores.mutation == Mutation::None;
        execution.caller().is_some_and(|caller| caller.prefetches)
            && execution.host().is_none()
            && is_whole
            && !self.stores.is_worker
            && !execution.call.plan.isolated
            // The bound of a read begins where the program reaches it.
            && !execution.call.plan.needs_origin()
    }

    /// Begins to read for the phase after the one of this index, if that one writes first.
    pub(crate) fn prefetch_early(
        &self,
        execution: &Execution,
        index: usize,
    ) -> Option<Box<EarlyPrefetch>> {
        let plan = &execution.call.plan;
        if plan.first_write != Some(index)
            || execution.has_written()
            || !self.may_prefetch(execution)
        {
            return None;
        }
        let hands_on = |instr: &Instr| matches!(instr, Instr::Replay { .. });
        let next = plan.phases.get(index + 1)?;
        if next.code.iter().any(hands_on) {
            return None;
        }
        let begun = Begun {
            // No transaction has this id: numbers begin at 1.
            id: TransactionId { origin: self.in_flight.table().origin(), sequence: 0 },
            first: index,
            intent: execution.store_name(&plan.phases[index])?,
        };
        let later = later(execution, begun, execution.wait_set.clone(), execution.recorded.clone());
        let store = self.prefetches_at(&later, index + 1)?;
        let executor = self.me.upgrade()?;
        let asking =
            async move { executor.prefetch_in_time(&later, index + 1, store, false).await };
        Some(Box::new(EarlyPrefetch { asking: Box::pin(asking), asked: None }))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use std::pin::pin;

    use super::*;

    fn early(asking: impl Future<Output = Found> + Send + 'static) -> EarlyPrefetch {
        EarlyPrefetch { asking: Box::pin(asking), asked: None }
    }

    #[test]
    fn a_phase_is_not_held_up_by_what_is_read_early() {
        let mut reading = Some(Box::new(early(std::future::pending())));
        assert_eq!(alongside(&mut reading, pin!(async { 1 })).now_or_never(), Some(1));
        assert!(reading.expect("it is there").end().now_or_never().is_none());
    }

    #[test]
    fn what_was_read_meanwhile_is_there_at_once() {
        let mut reading = Some(Box::new(early(async { Found::Waits })));
        let phase = pin!(std::future::pending::<()>());
        assert!(alongside(&mut reading, phase).now_or_never().is_none());
        let ended = reading.expect("it is there").end().now_or_never();
        assert!(matches!(ended, Some(Found::Waits)));
    }
}
