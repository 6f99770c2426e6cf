//! Reading ahead: what the next phase reads is asked before the transaction is decided.
//!
//! Where a store counts one of several copies of a phase, the answers that the phase was given must be fixed
//! before anybody acts on them. Asked before the first commit they ride in it, and take no commit of
//! their own. Nothing rests on it: where the store does not answer at once, where somebody has to be
//! waited for, or where the caller waits for the first commit alone, the phase reads when it
//! runs, and its answers are fixed then.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use mingle_lang::split::Mutation;
use mingle_model::{Level, WitnessRow};
use mingle_store::{StoreError, Transaction};

use crate::attempt::visits;
use crate::call::PhaseReport;
use crate::drive::session_of;
use crate::error::Error;
use crate::fixed::fixed_records;
use crate::intent::Fixed;
use crate::leave::{Draft, Role};
use crate::limits::{AHEAD_AGAIN_AFTER, AHEAD_MAX};
use crate::machine::Finished;
use crate::phase::Tries;
use crate::planted::Planted;
use crate::runtime::Runtime;
use crate::stats::Counted;
use crate::transaction::{Begun, Execution};

/// What the next phase has read.
pub(crate) struct Ahead {
    /// The phase's index.
    pub(crate) index: usize,
    pub(crate) fixed: Fixed,
    /// Witness rows of what was read.
    pub(crate) rows: Vec<WitnessRow>,
    pub(crate) round_trips: u32,
    /// What has read, where the phase can go on in it.
    pub(crate) begun: Kept,
    /// When that began, by the world's clock.
    pub(crate) since: Duration,
}

/// A transaction at a store that is kept until somebody goes on with it. Nobody looks at it meanwhile, so
/// several threads may.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Option<Box<dyn Transaction>>>);

impl Kept {
    pub(crate) fn take(&mut self) -> Option<Box<dyn Transaction>> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Runtime {
    /// Reads for the phase after the one of this index, if that decides the transaction and is about to
    /// commit. What was read is written with that commit. All of it is boxed: few transactions do that,
    /// and the futures of all would be larger.
    pub(crate) async fn read_ahead(
        &self,
        execution: &Execution,
        (index, role): (usize, Role),
        finished: &Finished,
        draft: &mut Draft,
    ) -> Option<Box<Ahead>> {
        if role != Role::First {
            return None;
        }
        Box::pin(self.read_next(execution, index, finished, draft)).await.map(Box::new)
    }

    async fn read_next(
        &self,
        execution: &Execution,
        index: usize,
        finished: &Finished,
        draft: &mut Draft,
    ) -> Option<Ahead> {
        let id = execution.id.filter(|_| execution.reads_ahead && execution.host.is_none())?;
        // Planted faults are faults of the other way.
        let is_whole = self.planted == Planted::None && self.mutation == Mutation::None;
        if !is_whole || self.is_beside || execution.plan.isolated {
            return None;
        }
        let next = index + 1;
        let phase = execution.plan.phases.get(next)?;
        let store = phase.store.filter(|_| phase.code.iter().any(visits))?.index();
        let begun = Begun {
            id,
            first: index,
            intent: execution.store_name(&execution.plan.phases[index])?,
        };
        let later = later(execution, begun, finished, draft);
        if !self.is_fixed(&later, next, store)
            || self.worker_for(store, &Tries::default()).is_some()
        {
            return None;
        }
        if self.world.elapsed() < self.known().reads_ahead_from(store) {
            return None;
        }
        let mut reading = pin!(self.read_as(&later, next, store));
        let mut enough = self.world.sleep(AHEAD_MAX);
        let read = poll_fn(|context| match reading.as_mut().poll(context) {
            Poll::Ready(read) => Poll::Ready(Some(read)),
            Poll::Pending => enough.as_mut().poll(context).map(|()| None),
        });
        match read.await {
            Some(Ok(ahead)) => {
                let ahead = ahead?;
                self.stats.count(Counted::ReadAhead);
                draft.writes.extend(fixed_records(id, next, &ahead.fixed));
                Some(ahead)
            }
            None | Some(Err(Error::Store(StoreError::Unavailable { .. }))) => {
                let again = self.world.elapsed() + AHEAD_AGAIN_AFTER;
                self.known().note_reads_ahead_from(store, again);
                None
            }
            // Whatever it is, the phase meets it when it runs.
            Some(Err(_)) => None,
        }
    }

    /// What a phase reads; none if it has to wait for somebody.
    async fn read_as(
        &self,
        later: &Execution,
        index: usize,
        store: usize,
    ) -> Result<Option<Ahead>, Error> {
        let since = self.world.elapsed();
        let mut visit = self.visit(later, index, &Tries::default(), store);
        let session = session_of(later, visit.replica.clone(), self.after(later, store, None));
        let mut transaction = self.stores[store].begin(&session).await.map_err(Error::Store)?;
        let facts = self.facts(later);
        let mut machine = self.machine(later, index, &facts);
        let mut report = PhaseReport::default();
        let driven = self.drive(&mut machine, None, &mut visit, &mut *transaction, &mut report);
        if driven.await?.is_some() {
            return Ok(None);
        }
        let fixed = self.to_fix(&visit).await?;
        // A snapshot that is older than the first commit would not do for a store that keeps an order.
        let goes_on =
            self.stores[store].capabilities().level == Level::Eventual && visit.flushed.is_empty();
        Ok(Some(Ahead {
            index,
            fixed,
            rows: visit.rows,
            round_trips: report.round_trips,
            begun: Kept(Mutex::new(Some(transaction).filter(|_| goes_on))),
            since,
        }))
    }
}

/// The transaction as it will be once a phase has committed.
fn later(execution: &Execution, begun: Begun, finished: &Finished, draft: &Draft) -> Execution {
    let mut worklist = execution.worklist.clone();
    worklist.join(&draft.found);
    let mut recorded = execution.recorded.clone();
    recorded.merge(finished.recorded.clone());
    Execution {
        recorded,
        home: execution.home.clone(),
        id: Some(begun.id),
        begun: Some(begun),
        has_written: true,
        time: execution.time,
        chain: execution.chain.clone(),
        ..Execution::new(
            (execution.program.clone(), execution.hash),
            execution.plan.clone(),
            execution.arguments.clone(),
            execution.facts.clone(),
            worklist,
            execution.replica.clone(),
        )
    }
}
