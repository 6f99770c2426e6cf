//! Phases whose operations must be the same in every process that runs them.

use mingle_lang::code::Instr;
use mingle_lang::split::Mode;
use mingle_model::Stamp;
use mingle_store::{
    Commit, Guard, Once, Read, RecordKey, RecordKind, Session as StoreSession, StoreError,
};

use crate::api::error::Error;
use crate::execute::Executor;
use crate::execute::attempt::Visit;
use crate::execute::execution::Execution;
use crate::execute::phase::Tries;
use crate::mutants::Mutant;
use crate::observe::stats::Counted;
use crate::protocol::floor;
use crate::protocol::intent::{PinnedAnswers, Unreadable, decode};
use crate::protocol::pinned_answers::pinned_records;
use crate::stores::records::{read_parts, record_of, unreadable};

impl Executor {
    /// True if a phase's operations are pinned in its intent before they are sent: its store counts
    /// one of several copies, and they depend on the phase's reads.
    pub(crate) fn pins_answers(&self, execution: &Execution, index: usize, store: usize) -> bool {
        execution.has_begun()
            && self.stores.mutant != Mutant::OperationsDiffer
            && self.stores.all[store].capabilities().once == Once::ById
            && Some(index) <= execution.last_witnessed()
            && phase_reads(&execution.call.plan.phases[index])
    }

    /// Looks for answers that another process may have pinned for a phase before this attempt.
    pub(crate) async fn learn_pinned(
        &self,
        execution: &Execution,
        (index, store): (usize, usize),
        tries: &mut Tries,
        attempt: u32,
    ) -> Result<(), Error> {
        // No answers are pinned when the transaction's own process tries a phase for the first time.
        let may_be_pinned = execution.is_helper() || tries.look || attempt > 1;
        if may_be_pinned && tries.pinned.is_none() && self.pins_answers(execution, index, store) {
            tries.pinned = self.look_for_pinned(execution, index).await?;
        }
        Ok(())
    }

    /// Returns the answers that the first run of a phase was given, if they are pinned.
    async fn look_for_pinned(
        &self,
        execution: &Execution,
        index: usize,
    ) -> Result<Option<PinnedAnswers>, Error> {
        let begun = execution.begun().expect("a later phase has begun");
        // A worker beside a store cannot reach the intent: the sender of the attempt has looked.
        let intent = self.stores.store_called(&begun.intent).filter(|_| !self.stores.is_worker);
        let Some(store) = intent else { return Ok(None) };
        let replica = self.stores.replica_at(store, execution.home.as_ref());
        let session = StoreSession { replica, ..StoreSession::default() };
        let mut transaction = self.stores.all[store].begin(&session).await.map_err(Error::Store)?;
        let from = (index as u32) << 16;
        let reads = [Read::Record(RecordKey::of(RecordKind::Fixed, begun.id, from))];
        let answers = transaction.read(&reads).await.map_err(Error::Store)?;
        let Some(first) = answers.into_iter().next().and_then(record_of) else { return Ok(None) };
        let bytes =
            read_parts(&mut *transaction, RecordKind::Fixed, begun.id, from, &first).await?;
        let pinned = decode(&bytes).map_err(|Unreadable| unreadable("fixed phase", begun.id))?;
        Ok(Some(pinned))
    }

    /// Returns a stamp that covers all that an attempt has seen.
    async fn seen_at(&self, visit: &Visit) -> Result<Stamp, Error> {
        let session = StoreSession { replica: visit.replica.clone(), ..StoreSession::default() };
        let begun = self.stores.all[visit.store].begin(&session).await.map_err(Error::Store)?;
        let committed = begun.commit(Commit::default()).await.map_err(Error::Store)?;
        Ok(committed.stamp)
    }

    /// Pins the answers that a phase was given; false if another process has pinned others.
    pub(crate) async fn pin(
        &self,
        execution: &Execution,
        index: usize,
        visit: &Visit,
        tries: &mut Tries,
    ) -> Result<bool, Error> {
        if self.stores.is_worker {
            tries.to_pin = Some(self.to_pin(visit).await?);
            return Ok(false);
        }
        self.pin_as(execution, index, self.to_pin(visit)).await
    }

    pub(crate) async fn to_pin(&self, visit: &Visit) -> Result<PinnedAnswers, Error> {
        let seen = self.seen_at(visit).await?;
        Ok(PinnedAnswers { answers: visit.answers.clone(), seen, version: visit.version })
    }

    /// Pins these answers; false if another process has pinned others.
    pub(crate) async fn pin_as(
        &self,
        execution: &Execution,
        index: usize,
        pinned: impl Future<Output = Result<PinnedAnswers, Error>>,
    ) -> Result<bool, Error> {
        let begun = execution.begun().expect("a later phase has begun");
        let Some(store) = self.stores.store_called(&begun.intent) else { return Ok(true) };
        let replica = self.stores.replica_at(store, execution.home.as_ref());
        let session = StoreSession { replica, ..StoreSession::default() };
        let transaction = self.stores.all[store].begin(&session).await.map_err(Error::Store)?;
        let from = (index as u32) << 16;
        let writes = pinned_records(begun.id, index, &pinned.await?);
        let guards = vec![
            Guard::Absent(RecordKey::of(RecordKind::Fixed, begun.id, from)),
            floor::is_not_over(begun.id),
        ];
        match transaction.commit(Commit { writes, guards, ..Commit::default() }).await {
            Ok(_) => {
                self.stores.stats.count(Counted::Fixed);
                Ok(true)
            }
            Err(StoreError::Conflict | StoreError::Unknown { .. }) => Ok(false),
            Err(error) => Err(Error::Store(error)),
        }
    }
}

/// True if a phase's code reads its store.
fn phase_reads(phase: &mingle_lang::Phase) -> bool {
    phase.mode == Mode::Read
        || phase.code.iter().any(|instr: &Instr| crate::interpreter::instructions::reads(instr))
}
