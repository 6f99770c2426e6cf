//! Finishing transactions that other processes have begun.
//!
//! A transaction that has begun is finished by whichever process comes first: a transaction that waits for it,
//! a sweep, or the task of its own origin after an error. [`Executor::help`] fetches the intent, from whichever
//! replica has it, rebuilds the execution, and runs the phases after the first one (`phase`). A phase that has
//! taken effect already is found by its commit witness, and its recorded values are taken over.
//!
//! No lock is needed. Several helpers compute the same from the same intent, and the guards of each commit let
//! one of them through. Within one process, a second helper of the same transaction finds it
//! [`Busy`](Helped::Busy), which saves work.
//!
//! # Chains
//!
//! A helper can meet a transaction for which it has to wait, and then helps that one. The chain names the
//! transactions that wait, each because of the next. A transaction of the chain is never waited for in turn:
//! that wait would never end. The chain has at most `HELP_DEPTH_MAX` members.
//!
//! # Example
//!
//! (9,5) has committed at `shop`, and its process has stopped. (7,41) waits for it at `feed`.
//!
//! ```text
//!   (7,41)   help_after has passed: help (9,5), chain [(7,41)]
//!            reads at shop: the intent of (9,5), the floor of origin 9 (below 5), no mark that it is parked
//!            runs the phase of (9,5) at feed as a helper; it would have to wait for (7,41), which is in
//!            the chain, and so does not
//!            commits with the witness (9,5), under the guards: no witness (9,5), the floor is below 5
//!   (7,41)   its next attempt finds the witness (9,5) and goes on
//! ```
//!
//! # Other ends
//!
//! If the intent is not found, the transaction has not begun, or its store does not have the intent yet. A
//! reader of an `isolated` transaction that has not begun can be aborted: a witness says that it never commits.
//! If the intent has a mark, the transaction is parked, and only an operator has it tried again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mingle_lang::Program;
use mingle_lang::split::Mode;
use mingle_model::{Name, TransactionId};
use mingle_store::record::read_floor;
use mingle_store::{
    BoxFuture, Commit, Data, Outcome, Read, RecordKey, RecordKind, Session as StoreSession,
    StoreError, Write,
};

use crate::api::error::Error;
use crate::api::settings::HELP_DEPTH_MAX;
use crate::execute::Executor;
use crate::execute::control::Control;
use crate::execute::execution::{Execution, Runner};
use crate::execute::hold::Holds;
use crate::execute::phase::PhaseEnd;
use crate::in_flight::table::Left;
use crate::mutants::Mutant;
use crate::observe::stats::Counted;
use crate::protocol::commit_witness;
use crate::protocol::intent::{Intent, ProgramHash, Unreadable, Witness};
use crate::protocol::wait_set::Awaited;
use crate::stores::Stores;
use crate::stores::records::{read_parts, record_of, unreadable};

/// The result of an attempt to finish a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Helped {
    /// All its phases have committed.
    Finished,
    /// It had already been finished and cleaned up.
    Over,
    /// Its intent was not found: it has not begun, or its store does not have it yet.
    NotFound,
    /// Another task or process is already finishing it.
    Busy,
}

/// The settings with which a helper works.
#[derive(Clone, Debug)]
pub(crate) struct Helper {
    /// The replica for phases that need not run at a home; if none, the replica of the transaction's
    /// session.
    pub(crate) replica: Option<Name>,
    /// The transactions that wait for it, each because of the next. A transaction of this chain must
    /// not be waited for in turn, since that wait would never end.
    pub(crate) chain: Vec<TransactionId>,
    /// The deadline of the helper.
    pub(crate) deadline: Duration,
    /// True if it also tries a parked transaction.
    pub(crate) insists: bool,
    /// True if it helps although another task of this process is already at it: that task may wait
    /// for the very transaction that is helped here.
    pub(crate) pushes: bool,
}

/// A transaction's intent and its state.
struct Found {
    intent: Intent,
    parked: Option<String>,
}

enum Fetched {
    Found(Box<Found>),
    Over,
    NotFound,
}

impl Executor {
    /// Helps a transaction that another one waits for.
    pub(crate) async fn help_awaited(
        &self,
        id: TransactionId,
        awaited: &Awaited,
        helper: Helper,
    ) -> Result<(), Error> {
        if helper.chain.is_empty() && self.in_flight.table().is_running(id) {
            // Its own task runs it. That task may wait for the transaction that waits here, if others can
            // wait for that one: then it needs help too.
            return Ok(());
        }
        match self.help(id, &awaited.intent, helper).await {
            Ok(Helped::Finished) => {
                self.stores.stats.count(Counted::Helped);
                Ok(())
            }
            Err(parked @ Error::Parked { .. }) => Err(parked),
            // The waiting transaction finds out the outcome by itself.
            Err(_) => Ok(()),
            Ok(Helped::NotFound) if awaited.is_reader => {
                self.stores.stats.count(Counted::Aborted);
                self.abort(id, &awaited.intent).await;
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }

    /// Ensures that an undecided transaction never commits.
    async fn abort(&self, id: TransactionId, store: &Name) {
        let Some(store) = self.stores.store_called(store) else { return };
        let session = StoreSession::default();
        let Ok(transaction) = self.stores.all[store].begin(&session).await else { return };
        let guards = commit_witness::is_undecided(id);
        let writes = commit_witness::records(id, &Witness::Aborted);
        let _ = transaction.commit(Commit { writes, guards, ..Commit::default() }).await;
    }

    /// Runs the remaining phases of a transaction, unless it is parked.
    pub(crate) fn help<'a>(
        &'a self,
        id: TransactionId,
        place: &'a Name,
        helper: Helper,
    ) -> BoxFuture<'a, Result<Helped, Error>> {
        Box::pin(async move {
            if helper.chain.len() >= HELP_DEPTH_MAX {
                return Ok(Helped::Busy);
            }
            let found = match self.fetch(id, place).await.map_err(Error::Store)? {
                Fetched::Found(found) => *found,
                Fetched::Over => return Ok(Helped::Over),
                Fetched::NotFound => return Ok(Helped::NotFound),
            };
            if let Some(reason) = found.parked.filter(|_| !helper.insists) {
                return Err(Error::Parked { id, reason });
            }
            let is_first = self.stores.cache().begin_help(id);
            if !is_first && !helper.pushes {
                return Ok(Helped::Busy);
            }
            let guard = is_first.then(|| Helping { stores: &self.stores, id });
            let helped = self.help_now(id, place, found.intent, helper).await;
            drop(guard);
            helped
        })
    }

    async fn help_now(
        &self,
        id: TransactionId,
        place: &Name,
        intent: Intent,
        helper: Helper,
    ) -> Result<Helped, Error> {
        let mut execution = self.resumed(id, place, intent).await?;
        execution.runner = Runner::Helper { chain: helper.chain, pushes: helper.pushes };
        execution.replica = helper.replica.or(execution.replica);
        // A helper stops computing when the transaction that waits for it ends. The sweep computes to the end.
        let may_end = !execution.chain().is_empty();
        let control =
            Control::without_caller(helper.deadline, self.stores.settings.deadline, may_end);
        let first = execution.begun().map_or(0, |begun| begun.first);
        let last = execution.last_witnessed().map_or(0, |last| last + 1);
        for index in first + 1..last {
            match self.phase(&mut execution, index, &control).await? {
                PhaseEnd::Ran(_) => {}
                // Only the clean-up is left.
                PhaseEnd::Abandoned => return Ok(Helped::Finished),
                PhaseEnd::Over | PhaseEnd::StartOver => return Ok(Helped::Over),
            }
        }
        if let Some(store) = self.stores.store_called(place) {
            self.keep_result(&execution, store).await;
        }
        if helper.insists
            && let Some(store) = self.stores.store_called(place)
        {
            let parked = Write::Discard(RecordKey::of(RecordKind::Parked, id, 0));
            self.stores.write_records(store, None, vec![parked]).await.map_err(Error::Store)?;
        }
        Ok(Helped::Finished)
    }

    /// Rebuilds a transaction from its intent.
    pub(crate) async fn resumed(
        &self,
        id: TransactionId,
        place: &Name,
        intent: Intent,
    ) -> Result<Execution, Error> {
        let program = self.program_of(intent.program, place).await?;
        let plan = program.plan(&intent.transaction).cloned().ok_or_else(|| {
            Error::Unsupported(format!(
                "transaction {id} is one of {:?}, which its program has not",
                intent.transaction
            ))
        })?;
        Ok(Execution::from_intent(id, place.clone(), intent, program, plan))
    }

    /// The program with this hash: the current one, or an earlier one whose text the store keeps.
    async fn program_of(&self, hash: ProgramHash, place: &Name) -> Result<Arc<Program>, Error> {
        if let Some(program) = self.stores.cache().program(hash) {
            return Ok(program);
        }
        let missing = || {
            Error::Unsupported(format!("store {place} does not keep the text of program {hash:?}"))
        };
        let store = self.stores.store_called(place).ok_or_else(missing)?;
        let read = [Read::Record(hash.key())];
        let answers = self.stores.read_records(store, None, &read).await.map_err(Error::Store)?;
        let Some(Data::Record(Some(text))) = answers.into_iter().next() else {
            return Err(missing());
        };
        let text = std::str::from_utf8(&text).map_err(|_| missing())?;
        if ProgramHash::of(text) != hash {
            return Err(missing());
        }
        let program = Arc::new(mingle_lang::check(text).program.ok_or_else(missing)?);
        self.stores.cache().note_program(hash, program.clone());
        Ok(program)
    }

    /// A transaction's intent, from whichever replica has it.
    async fn fetch(&self, id: TransactionId, place: &Name) -> Result<Fetched, StoreError> {
        let Some(store) = self.stores.store_called(place) else { return Ok(Fetched::NotFound) };
        let mut failed = None;
        for replica in self.stores.replicas(store) {
            match self.fetch_at(id, store, replica).await {
                Ok(Fetched::NotFound) => {}
                Ok(fetched) => return Ok(fetched),
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(Fetched::NotFound), Err)
    }

    /// A transaction's intent, and the reason if it is parked.
    pub(crate) async fn intent_and_mark(
        &self,
        id: TransactionId,
        place: &Name,
    ) -> Result<Option<(Intent, Option<String>)>, StoreError> {
        Ok(match self.fetch(id, place).await? {
            Fetched::Found(found) => Some((found.intent, found.parked)),
            Fetched::Over | Fetched::NotFound => None,
        })
    }

    async fn fetch_at(
        &self,
        id: TransactionId,
        store: usize,
        replica: Option<Name>,
    ) -> Result<Fetched, StoreError> {
        let session = StoreSession { replica, ..StoreSession::default() };
        let mut transaction = self.stores.all[store].begin(&session).await?;
        let reads = [
            Read::Record(RecordKey::of(RecordKind::Intent, id, 0)),
            Read::Record(RecordKey::of_origin(RecordKind::Floor, id.origin)),
            Read::Record(RecordKey::of(RecordKind::Parked, id, 0)),
        ];
        let mut records = transaction.read(&reads).await?.into_iter().map(record_of);
        let (intent, floor, parked) = (records.next(), records.next(), records.next());
        if floor.flatten().is_some_and(|floor| read_floor(&floor) >= id.sequence) {
            return Ok(Fetched::Over);
        }
        let Some(first) = intent.flatten() else { return Ok(Fetched::NotFound) };
        let refused = |error: Error| match error {
            Error::Store(error) => error,
            other => {
                StoreError::Refused { store: self.stores.name_at(store), reason: other.to_string() }
            }
        };
        let bytes = read_parts(&mut *transaction, RecordKind::Intent, id, 0, &first)
            .await
            .map_err(refused)?;
        let intent =
            Intent::decode(&bytes).map_err(|Unreadable| refused(unreadable("intent", id)))?;
        let parked = parked.flatten();
        let parked = parked.map(|reason| String::from_utf8_lossy(&reason).into_owned());
        Ok(Fetched::Found(Box::new(Found { intent, parked })))
    }

    /// Returns the stores that a transaction's program names, and those where it has left records.
    pub(crate) fn may_concern(&self, execution: &Execution) -> BTreeSet<usize> {
        let phases = execution.call.plan.phases.iter();
        let named = phases.filter_map(|phase| execution.store_name(phase));
        let mut stores: BTreeSet<usize> =
            named.filter_map(|name| self.stores.store_called(&name)).collect();
        stores.extend(execution.left.stores());
        stores
    }

    /// Retries a transaction of this origin until it is finished or parked.
    pub(crate) fn finish_later(&self, id: TransactionId, execution: &Execution) {
        let is_certain = execution.has_begun();
        let candidates: Vec<Name> = match execution.begun() {
            Some(begun) => vec![begun.intent.clone()],
            // It is not known whether the first phase that could write has written.
            None => execution
                .call
                .plan
                .phases
                .iter()
                .filter(|phase| phase.mode == Mode::Write)
                .filter_map(|phase| execution.store_name(phase))
                .collect(),
        };
        let (left, holds) = (execution.left.clone(), execution.holds.clone());
        self.in_flight.table().gives_up(id, Some(self.may_concern(execution)));
        let me = self.me.clone();
        let world = self.stores.world.clone();
        self.stores.world.spawn(Box::pin(async move {
            let mut attempts = 6;
            loop {
                let Some(executor) = me.upgrade() else { return };
                if executor.stores.mutant == Mutant::NobodyHelps {
                    return;
                }
                if executor.finish_now(id, &candidates, is_certain, (&left, &holds)).await {
                    return;
                }
                let pause = executor.stores.backoff(attempts);
                attempts = (attempts + 1).min(12);
                drop(executor);
                world.sleep(pause).await;
            }
        }));
    }

    /// Returns true if nothing is left to do.
    async fn finish_now(
        &self,
        id: TransactionId,
        candidates: &[Name],
        is_certain: bool,
        (left, holds): (&Left, &Holds),
    ) -> bool {
        let deadline = self.stores.world.elapsed() + self.stores.settings.deadline;
        let mut left = left.clone();
        for place in candidates {
            let helper = Helper {
                replica: None,
                chain: Vec::new(),
                deadline,
                insists: false,
                pushes: false,
            };
            match self.help(id, place, helper).await {
                Ok(Helped::Finished) => {
                    if self.leaves(id, place, &mut left).await.is_err() {
                        return false;
                    }
                    self.in_flight.is_over(id, left);
                    return true;
                }
                Ok(Helped::Over) => {
                    // Others have finished it and cleaned up.
                    self.in_flight.is_over(id, Left::default());
                    return true;
                }
                // If it waits for another one that is parked, it follows once that one is recovered.
                Err(Error::Parked { id: parked, .. }) if parked == id => {
                    self.in_flight.table().parks(id, left);
                    return true;
                }
                Ok(Helped::Busy) | Err(_) => return false,
                Ok(Helped::NotFound) if is_certain => return false,
                Ok(Helped::NotFound) => {}
            }
        }
        if !self.never_begins(id, candidates, holds).await
            || self.give_back(&mut holds.clone()).await.is_err()
        {
            return false;
        }
        self.in_flight.is_over(id, left);
        true
    }

    /// True if the outcome of a transaction without an intent is known at all stores that it may have written first.
    async fn never_begins(&self, id: TransactionId, candidates: &[Name], holds: &Holds) -> bool {
        for place in candidates {
            let Some(store) = self.stores.store_called(place) else { continue };
            match self.stores.all[store].outcome(id).await {
                // Its intent was not there and never will be, or it never needed one.
                Ok(Outcome::NotCommitted) => {}
                // The phase at the store of a hold has settled that; any other commit has left an intent.
                Ok(Outcome::Committed)
                    if !holds.held.iter().all(|held| held.store as usize == store) =>
                {
                    return false;
                }
                Ok(Outcome::Committed) => break,
                Ok(Outcome::Unknown) | Err(_) => return false,
            }
        }
        true
    }

    /// Adds the traces that a transaction leaves at its stores, as its intent shows them.
    pub(crate) async fn leaves(
        &self,
        id: TransactionId,
        place: &Name,
        left: &mut Left,
    ) -> Result<(), StoreError> {
        let Fetched::Found(found) = self.fetch(id, place).await? else { return Ok(()) };
        let execution = match self.resumed(id, place, found.intent).await {
            Ok(execution) => execution,
            Err(Error::Store(error)) => return Err(error),
            Err(other) => {
                let (store, reason) = (place.clone(), other.to_string());
                return Err(StoreError::Refused { store, reason });
            }
        };
        let first = execution.begun().map_or(0, |begun| begun.first);
        if let Some(store) = self.stores.store_called(place) {
            left.intent = Some(store);
            left.rows.insert(store);
            self.leaves_witnesses(&execution, first, store, left);
        }
        for phase in &execution.call.plan.phases {
            let store =
                execution.store_name(phase).and_then(|name| self.stores.store_called(&name));
            left.rows.extend(store);
        }
        Ok(())
    }
}

/// A guard that ends the help when it is dropped, however the help ended.
struct Helping<'a> {
    stores: &'a Stores,
    id: TransactionId,
}

impl Drop for Helping<'_> {
    fn drop(&mut self) {
        self.stores.cache().end_help(self.id);
    }
}
