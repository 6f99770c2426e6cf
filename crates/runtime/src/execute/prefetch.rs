//! Reading ahead: the next phase's reads are sent before the transaction is decided.
//!
//! Where a store counts one of several copies of a phase, the answers to the phase must be pinned
//! before any process acts on them. If they are read before the first commit, they are stored in
//! that commit and need no commit of their own. This is only an optimisation: if the store does not
//! answer at once, if the phase must wait for another transaction, or if the caller waits for the
//! first commit alone, the phase reads when it runs, and its answers are pinned then.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use mingle_model::{Level, Name, Stamp, TransactionId, WitnessRow};
use mingle_store::{StoreError, Transaction};

use crate::api::call::PhaseReport;
use crate::api::error::Error;
use crate::api::settings::{PREFETCH_AGAIN_AFTER, PREFETCH_MAX};
use crate::execute::Executor;
use crate::execute::bookkeeping::Draft;
use crate::execute::drive::session_of;
use crate::execute::early_prefetch::EarlyPrefetch;
use crate::execute::execution::{Begun, Execution, Stage};
use crate::execute::phase::Tries;
use crate::execute::turns::Turns;
use crate::interpreter::instructions::visits;
use crate::interpreter::machine::{Finished, Recorded};
use crate::observe::stats::Counted;
use crate::protocol::intent::PinnedAnswers;
use crate::protocol::pinned_answers::pinned_records;
use crate::protocol::role::Role;
use crate::protocol::wait_set::WaitSet;

/// The reads and answers of the next phase.
pub(crate) struct Prefetched {
    /// The phase's index.
    pub(crate) index: usize,
    pub(crate) pinned: PinnedAnswers,
    /// Witness rows of the data that was read.
    pub(crate) rows: Vec<WitnessRow>,
    pub(crate) round_trips: u32,
    /// The store transaction that read, if the phase can continue in it.
    pub(crate) begun: Kept,
    /// The time at which it began, by the world's clock.
    pub(crate) since: Duration,
    /// The replica that was asked, and the stamp that it had to have seen.
    replica: Option<Name>,
    after: Stamp,
    /// The number of commit witnesses seen when it began, and those that it has seen itself.
    visible_count: u64,
    satisfied: Vec<TransactionId>,
}

/// The result of the next phase's reads.
pub(crate) enum Found {
    Read(Box<Prefetched>),
    /// The phase would have to wait for another transaction.
    Waits,
    /// The store does not answer at once.
    Away,
    /// Any other failure; the phase meets it again when it runs.
    Failed,
}

/// An open store transaction, kept until a phase continues in it. No thread uses it meanwhile, so
/// it may be shared between threads.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Option<Box<dyn Transaction>>>);

impl Kept {
    pub(crate) fn take(&mut self) -> Option<Box<dyn Transaction>> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Executor {
    /// Reads for the phase after the one of this index, if that one decides the transaction and is
    /// about to commit. Data that was read `early` is not read again. The answers are written with
    /// that commit. All of it is boxed: few transactions do that, and otherwise all futures would
    /// be larger.
    pub(crate) async fn prefetch(
        &self,
        execution: &Execution,
        (index, role): (usize, Role),
        early: Option<Box<EarlyPrefetch>>,
        finished: &Finished,
        draft: &mut Draft,
    ) -> Option<Box<Prefetched>> {
        if role != Role::First {
            return None;
        }
        Box::pin(self.prefetch_next(execution, index, early, finished, draft)).await
    }

    async fn prefetch_next(
        &self,
        execution: &Execution,
        index: usize,
        early: Option<Box<EarlyPrefetch>>,
        finished: &Finished,
        draft: &mut Draft,
    ) -> Option<Box<Prefetched>> {
        let id = execution.id.filter(|_| self.may_prefetch(execution))?;
        let begun = Begun {
            id,
            first: index,
            intent: execution.store_name(&execution.call.plan.phases[index])?,
        };
        let mut wait_set = execution.wait_set.clone();
        wait_set.join(&draft.found);
        let mut recorded = execution.recorded.clone();
        recorded.merge(finished.recorded.clone());
        let later = later(execution, begun, wait_set, recorded);
        let next = index + 1;
        let store = self.prefetches_at(&later, next)?;
        let asked = match early {
            None => self.prefetch_in_time(&later, next, store, true).await,
            Some(early) => match early.end().await {
                Found::Read(prefetched) if self.stands(&prefetched, &later, store) => {
                    self.stores.stats.count(Counted::ReadEarly);
                    Found::Read(prefetched)
                }
                Found::Away => Found::Away,
                _ => self.prefetch_in_time(&later, next, store, true).await,
            },
        };
        match asked {
            Found::Read(prefetched) => {
                self.stores.stats.count(Counted::ReadAhead);
                draft.writes.extend(pinned_records(id, next, &prefetched.pinned));
                Some(prefetched)
            }
            Found::Away => {
                let again = self.stores.world.elapsed() + PREFETCH_AGAIN_AFTER;
                self.stores.cache().note_prefetches_from(store, again);
                None
            }
            Found::Waits | Found::Failed => None,
        }
    }

    /// Returns the store at which a phase may read before the first commit.
    pub(crate) fn prefetches_at(&self, later: &Execution, index: usize) -> Option<usize> {
        let phase = later.call.plan.phases.get(index)?;
        let store = phase.store.filter(|_| phase.code.iter().any(visits))?.index();
        let is_asked = self.pins_answers(later, index, store)
            && self.worker_for(store, &Tries::default()).is_none()
            && self.stores.world.elapsed() >= self.stores.cache().prefetches_from(store);
        is_asked.then_some(store)
    }

    /// Sends a phase's reads; `is_decided` if nothing in it can keep the first phase from its
    /// commit.
    pub(crate) async fn prefetch_in_time(
        &self,
        later: &Execution,
        index: usize,
        store: usize,
        is_decided: bool,
    ) -> Found {
        let mut reading = pin!(self.read_as(later, index, store, is_decided));
        let mut enough = self.stores.world.sleep(PREFETCH_MAX);
        let read = poll_fn(|context| match reading.as_mut().poll(context) {
            Poll::Ready(read) => Poll::Ready(Some(read)),
            Poll::Pending => enough.as_mut().poll(context).map(|()| None),
        });
        match read.await {
            Some(Ok(Some(prefetched))) => Found::Read(Box::new(prefetched)),
            Some(Ok(None)) => Found::Waits,
            None | Some(Err(Error::Store(StoreError::Unavailable { .. }))) => Found::Away,
            Some(Err(_)) => Found::Failed,
        }
    }

    /// True if reads made before the first phase was known equal those that the next phase would
    /// make now: the transactions to wait for were visible before, and the replica had to have seen
    /// as much.
    fn stands(&self, prefetched: &Prefetched, later: &Execution, store: usize) -> bool {
        let name = &self.stores.all[store].capabilities().store;
        let replica = prefetched.replica.as_ref();
        let was_there = |id: TransactionId| {
            later.chain().contains(&id)
                || prefetched.satisfied.contains(&id)
                || self.stores.cache().was_visible(store, replica, id, prefetched.visible_count)
        };
        later.wait_set.waits_at(name).all(|(id, _)| was_there(id))
            && prefetched.after.covers(&self.after(later, store, None))
    }

    /// Performs the reads of a phase; none if it has to wait for another transaction.
    async fn read_as(
        &self,
        later: &Execution,
        index: usize,
        store: usize,
        is_decided: bool,
    ) -> Result<Option<Prefetched>, Error> {
        let (since, visible_count) =
            (self.stores.world.elapsed(), self.stores.cache().visible_count());
        let mut visit = self.visit(later, index, &Tries::default(), store);
        let (replica, after) = (visit.replica.clone(), self.after(later, store, None));
        let session = session_of(later, replica.clone(), after.clone());
        let mut transaction = self.stores.all[store].begin(&session).await.map_err(Error::Store)?;
        let facts = self.facts(later);
        let mut machine = self.machine_within(later, index, &facts, is_decided);
        let mut report = PhaseReport::default();
        let mut turns = Turns::without_deadline();
        let told = (&mut turns, &mut report);
        let driven = self.drive(&mut machine, None, &mut visit, &mut *transaction, told);
        if driven.await?.is_some() {
            return Ok(None);
        }
        let pinned = self.to_pin(&visit).await?;
        // A snapshot older than the first commit would not do for a store that keeps an order.
        let goes_on = self.stores.all[store].capabilities().level == Level::Eventual
            && visit.flushed.is_empty();
        Ok(Some(Prefetched {
            index,
            pinned,
            rows: visit.rows,
            round_trips: report.round_trips,
            begun: Kept(Mutex::new(Some(transaction).filter(|_| goes_on))),
            since,
            replica,
            after,
            visible_count,
            satisfied: visit.satisfied,
        }))
    }
}

/// Returns the execution as it will be once a phase has committed.
pub(crate) fn later(
    execution: &Execution,
    begun: Begun,
    wait_set: WaitSet,
    recorded: Recorded,
) -> Execution {
    Execution {
        recorded,
        home: execution.home.clone(),
        id: Some(begun.id),
        stage: Stage::Begun { begun, first: None },
        time: execution.time,
        ..Execution::new(execution.call.clone(), wait_set, execution.replica.clone())
    }
}
