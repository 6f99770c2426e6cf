//! The end of an attempt: the records sent with the phase's writes, and the commit.
//!
//! [`Executor::commit_phase`] goes on when the code of the phase has run:
//!
//! 1. the role of the phase follows from its writes and from the progress of the transaction (`bookkeeping`);
//! 2. answers that every process must share are pinned first (`pinned_reads`);
//! 3. the records are drafted: rows, intent, commit witness, and the record of the call's key;
//! 4. the first commit is refused if a later phase would have to wait for a parked transaction, or for one that
//!    has to visit a store that is away (`parked`);
//! 5. the next phase may read now, so that its answers travel with this commit (`prefetch`);
//! 6. the caller can give the call up until here. Then the writes, the records and the guards are sent as one
//!    commit of the store;
//! 7. once the commit has taken effect, the execution and the knowledge of this process are brought up to date
//!    ([`Executor::take_effect`]). If the commit is a part of the application's own transaction, it is held
//!    until that one has ended.
//!
//! A phase that only reads and has met no row takes a shorter way with the same result
//! ([`Executor::commit_read`]).
//!
//! # A lost answer
//!
//! A commit that was sent never counts as not sent: at the deadline it goes on in the background. If its answer
//! is lost, the store is asked for the outcome by the id that was sent with it (`lost_answer`). A later phase
//! needs no such question: its next attempt finds its commit witness, or is guarded by its absence.
//!
//! # Example
//!
//! The two commits of `order`, called as (7,41):
//!
//! ```text
//!   at shop   writes    item.stock = 2
//!             records   intent (7,41), row (7,41) on the item
//!             guards    no fence of origin 7; its floor is below 41
//!             id        (7,41), if shop can lose answers
//!
//!   at feed   writes    customer.feed.append(item)
//!             records   commit witness (7,41)
//!             guards    the floor of origin 7 is below 41; no commit witness (7,41)
//! ```

use std::collections::{BTreeSet, HashSet};

use mingle_model::{Ref, Stamp, TransactionId, WitnessRow};
use mingle_store::{
    Commit, Committed, Once, OperationId, Read, RecordKey, RecordKind, StoreError, Transaction,
    Write,
};

use crate::api::call::PhaseReport;
use crate::api::error::Error;
use crate::execute::Executor;
use crate::execute::attempt::{Step, Visit};
use crate::execute::bookkeeping::{Draft, intent_store, role};
use crate::execute::control::Control;
use crate::execute::early_prefetch::EarlyPrefetch;
use crate::execute::execution::{Begun, Execution};
use crate::execute::host::HeldCommit;
use crate::execute::phase::Tries;
use crate::in_flight::table::Left;
use crate::interpreter::machine::Finished;
use crate::mutants::Mutant;
use crate::observe::stats::Counted;
use crate::protocol::intent::write_parts;
use crate::protocol::role::Role;
use crate::protocol::witness_rows::written_objects;

/// An attempt whose code has run.
pub(crate) struct Uncommitted<'a, 'c> {
    pub(crate) index: usize,
    pub(crate) tries: &'a mut Tries,
    pub(crate) control: &'a Control<'c>,
    pub(crate) visit: Visit,
    pub(crate) transaction: Box<dyn Transaction>,
    pub(crate) finished: Finished,
    /// The reads for the next phase, which run meanwhile.
    pub(crate) early: Option<Box<EarlyPrefetch>>,
}

/// A commit, and the data needed once it has taken effect.
pub(crate) struct PhaseCommit {
    pub(crate) index: usize,
    pub(crate) role: Role,
    pub(crate) visit: Visit,
    pub(crate) draft: Draft,
    pub(crate) finished: Finished,
    pub(crate) committed: Committed,
    pub(crate) is_decisive: bool,
}

impl Executor {
    /// True if a phase has only read, found no witness row, and waits for no transaction. Most
    /// phases that only read are of this kind.
    pub(crate) fn has_only_read(
        &self,
        execution: &Execution,
        attempt: &Uncommitted<'_, '_>,
    ) -> bool {
        let Uncommitted { visit, finished, .. } = attempt;
        visit.leaves_nothing
            && visit.rows.is_empty()
            && visit.flushed.is_empty()
            && finished.writes.is_empty()
            && execution.wait_set.waits_for_nobody()
            && execution.host().is_none()
            && !execution.call.plan.phases[attempt.index].before_endorsement
            && self.stores.mutant == Mutant::None
    }

    /// Ends a phase that [has only read](Self::has_only_read). [`Self::commit_phase`] would find
    /// nothing more to do.
    pub(crate) async fn commit_read(
        &self,
        execution: &mut Execution,
        Uncommitted { index, control, visit, transaction, finished, .. }: Uncommitted<'_, '_>,
        report: &mut PhaseReport,
    ) -> Result<Step, Error> {
        debug_assert_eq!(role(execution, index, false), Role::Plain, "it leaves nothing");
        let site = (transaction, control);
        let committed = self.commit(execution, Role::Plain, &visit, site, Commit::default()).await;
        match committed {
            Ok(committed) => {
                execution.wait_set.saw(self.stores.stamped(visit.store), &committed.stamp);
            }
            Err(error) => return not_committed(execution, control, false, error),
        }
        report.recorded = finished.recorded.count();
        execution.recorded.merge(finished.recorded);
        execution.result = finished.result.or(execution.result.take());
        Ok(Step::Done)
    }

    /// Commits the effects of a phase.
    pub(crate) async fn commit_phase(
        &self,
        execution: &mut Execution,
        uncommitted: Uncommitted<'_, '_>,
        report: &mut PhaseReport,
    ) -> Result<Step, Error> {
        let Uncommitted { index, tries, control, mut visit, transaction, mut finished, early } =
            uncommitted;
        let phase = &execution.call.plan.clone().phases[index];
        if let Some(store) = phase.store.filter(|_| phase.before_endorsement) {
            execution.endorsed.insert(store, visit.read());
        }
        let own_writes = std::mem::take(&mut finished.writes);
        let written = written_objects(&visit.flushed, &own_writes);
        let wrote = !visit.flushed.is_empty() || !own_writes.is_empty();
        self.remember_rows(&mut visit, &written);
        let is_plain = tries.recomputes || !self.stores.settings.tracking;
        let decides = wrote || execution.decides_in_host(index);
        let role = if is_plain { Role::Plain } else { role(execution, index, decides) };
        if let Some(step) = self.stops(execution, index, (&visit, &written), tries).await? {
            return Ok(step);
        }
        let mut draft = Draft::default();
        self.meet(execution, index, &visit, &written, &mut draft);
        self.leave_rows(execution, index, role, &visit, &written, &mut draft)?;
        self.leave_records(execution, index, role, &visit, &finished, &mut draft);
        let is_decisive = !execution.has_written() && (wrote || role == Role::First);
        self.leave_called(execution, index, (role, is_decisive), &finished, &mut draft);
        self.refuse_behind_parked(execution, (index, is_decisive), &draft.found).await?;
        let prefetched = self.prefetch(execution, (index, role), early, &finished, &mut draft);
        execution.keep_prefetched(prefetched.await);
        begin_commit(control, is_decisive)?;
        let is_plain_read = !wrote && draft.writes.is_empty();
        report.round_trips += u32::from(!is_plain_read);
        let mut commit = Commit::default();
        if !tries.recomputes {
            commit = self.commit_of(execution, index, role, &visit, own_writes, &mut draft);
        }
        if self.stores.mutant != Mutant::None {
            Box::pin(self.spoil(&mut commit, role, &visit)).await?;
        }
        let commit_id = commit.id;
        let site = (transaction, control);
        let committed = match self.commit(execution, role, &visit, site, commit).await {
            Ok(committed) => committed,
            Err(error) => return not_committed(execution, control, is_decisive, error),
        };
        report.recorded = finished.recorded.count();
        let phase_commit =
            PhaseCommit { index, role, visit, draft, finished, committed, is_decisive };
        if !is_plain_read && !execution.hosts(&phase_commit) {
            self.stores.figures.committed(&phase_commit.visit.name, role);
        }
        match self.apply_or_hold(execution, phase_commit, commit_id) {
            Some(visit) if self.stores.mutant == Mutant::IntentAfterCommit => {
                Box::pin(self.write_intent_late(execution, role, index, &visit)).await
            }
            _ => Ok(Step::Done),
        }
    }

    /// Returns true if the answers of the phase are pinned, or need not be. If false, the phase is
    /// run again on the answers that another process has pinned.
    pub(crate) async fn may_go_on(
        &self,
        execution: &Execution,
        index: usize,
        visit: &Visit,
        tries: &mut Tries,
    ) -> Result<bool, Error> {
        if !self.pins_answers(execution, index, visit.store) || tries.pinned.is_some() {
            return Ok(true);
        }
        let is_ours = Box::pin(self.pin(execution, index, visit, tries)).await?;
        tries.look |= !is_ours;
        Ok(is_ours)
    }

    /// Applies a commit, or holds it (and returns none) if it takes effect with a host transaction.
    fn apply_or_hold(
        &self,
        execution: &mut Execution,
        phase_commit: PhaseCommit,
        id: Option<TransactionId>,
    ) -> Option<Visit> {
        if execution.hosts(&phase_commit) {
            let held = Some(Box::new(HeldCommit { phase_commit, id }));
            execution.host_mut().expect("it was there above").held = held;
            return None;
        }
        Some(self.take_effect(execution, phase_commit))
    }

    /// Updates the execution after the commit of a phase has taken effect.
    pub(crate) fn take_effect(
        &self,
        execution: &mut Execution,
        phase_commit: PhaseCommit,
    ) -> Visit {
        let PhaseCommit { index, role, visit, draft, finished, committed, is_decisive } =
            phase_commit;
        if is_decisive {
            execution.writes_at(visit.store);
        }
        execution.wait_set.join(&draft.found);
        execution.wait_set.saw(self.stores.stamped(visit.store), &committed.stamp);
        if role == Role::First {
            self.begin(execution, index, &visit);
        }
        self.note_left(execution, role, &visit, &draft, &committed.stamp);
        self.note_deferred(execution, index, &visit, draft);
        execution.recorded.merge(finished.recorded);
        execution.result = finished.result.or(execution.result.take());
        visit
    }

    /// Adds the witness rows that this runtime itself left on the objects written: the store need
    /// not report them.
    pub(crate) fn remember_rows(&self, visit: &mut Visit, written: &BTreeSet<Option<Ref>>) {
        let known = self.stores.cache();
        let told: HashSet<&WitnessRow> = visit.rows.iter().collect();
        let rows = written.iter().flat_map(|object| known.rows_on(visit.store, object.as_ref()));
        let untold = rows.filter(|row| !told.contains(row)).cloned().collect();
        visit.remembered = untold;
    }

    /// Carries out planted faults that concern a commit.
    async fn spoil(&self, commit: &mut Commit, role: Role, visit: &Visit) -> Result<(), Error> {
        if self.stores.mutant == Mutant::BlindWrites {
            commit.known.extend(self.all_known(visit).await);
        }
        if self.stores.mutant == Mutant::CommandsLeaveNoRows {
            let is_of_command =
                |write: &Write| matches!(write, Write::Witness(row) if row.object.is_none());
            commit.writes.retain(|write| !is_of_command(write));
        }
        if self.stores.mutant == Mutant::WitnessBeforeEffects && role == Role::Later {
            let is_witness = |write: &Write| matches!(write, Write::Record(..));
            let witness = commit.writes.iter().filter(|write| is_witness(write)).cloned().collect();
            let written =
                self.stores.write_records(visit.store, visit.replica.clone(), witness).await;
            written.map_err(Error::Store)?;
            commit.guards.clear();
        }
        Ok(())
    }

    pub(crate) fn commit_of(
        &self,
        execution: &Execution,
        index: usize,
        role: Role,
        visit: &Visit,
        mut writes: Vec<Write>,
        draft: &mut Draft,
    ) -> Commit {
        let capabilities = self.stores.all[visit.store].capabilities();
        let wrote = !visit.flushed.is_empty() || !writes.is_empty();
        Self::leave_holds(execution, index, wrote, draft);
        writes.append(&mut draft.writes);
        if self.stores.is_worker && writes.is_empty() && !visit.flushed.is_empty() {
            // The sender of the phase asks by its id, which a commit without writes does not leave.
            writes.push(Write::Discard(RecordKey::of(
                RecordKind::Parked,
                self.in_flight.allocate(),
                0,
            )));
        }
        // The outcome of a host transaction must be asked for in any case.
        let is_asked = execution.host().is_some() && !visit.flushed.is_empty();
        let writes_some = is_asked || !writes.is_empty();
        let asks = capabilities.may_lose_answers && role != Role::Later && writes_some;
        let operation = match (execution.begun(), role) {
            (Some(begun), Role::Later) if capabilities.once == Once::ById => {
                Some(OperationId { id: begun.id, phase: index as u32 })
            }
            _ => None,
        };
        let id = asks.then(|| {
            execution.id.unwrap_or_else(|| {
                let now = self.stores.world.elapsed();
                self.in_flight.table().allocate_void(now)
            })
        });
        Commit {
            id,
            writes,
            guards: std::mem::take(&mut draft.guards),
            known: draft.known.clone(),
            operation,
            time: operation.map_or(0, |_| time_of(execution, index, visit)),
            fresh_until: visit.goes_on.map(|since| since + self.stores.settings.fresh_for()),
        }
    }

    /// Returns the time from which the phases of a new transaction count: later than all that this
    /// process has seen at stores whose writes bear timestamps.
    pub(crate) fn time_of_phases(&self) -> u64 {
        let now = u64::try_from(self.stores.world.now().micros()).unwrap_or(0);
        self.stores.all.iter().map(|store| store.time()).fold(now, u64::max)
    }

    /// Commits. If the answer of a deciding commit is lost, asks until the outcome is known or the
    /// deadline has passed.
    async fn commit(
        &self,
        execution: &mut Execution,
        role: Role,
        visit: &Visit,
        (transaction, control): (Box<dyn Transaction>, &Control<'_>),
        commit: Commit,
    ) -> Result<Committed, Error> {
        let id = commit.id;
        let is_durable = !commit.writes.is_empty();
        let (deadline, since) = (control.deadline, self.stores.world.elapsed());
        let is_read_only = !is_durable && visit.flushed.is_empty();
        let _commits = control.doing.commits();
        let committing = self.stores.traced(visit.store, "commit", transaction.commit(commit));
        let error = match self.stores.by_or_behind(deadline, committing).await {
            Some(Ok(committed)) => return Ok(committed),
            Some(Err(error)) => error,
            None if is_read_only => self.stores.silent(visit.store, visit.replica.as_ref(), since),
            None => StoreError::Unknown { store: visit.name.clone(), id },
        };
        if !matches!(error, StoreError::Unknown { .. }) || role == Role::Later {
            return Err(Error::Store(error));
        }
        let site = &self.stores.all[visit.store];
        let unknown = || Error::Unknown { store: site.capabilities().store.clone(), id };
        let id = id.filter(|_| is_durable).ok_or_else(unknown)?;
        match self.stores.mutant {
            Mutant::LostMeansCommitted => return Ok(Committed::default()),
            Mutant::LostMeansNotCommitted => {
                execution.id = None;
                return Err(Error::Store(StoreError::Conflict));
            }
            _ => {}
        }
        self.commit_that_was_lost(execution, visit, id, (deadline, since)).await
    }

    fn begin(&self, execution: &mut Execution, index: usize, visit: &Visit) {
        let id = execution.id.expect("a transaction that begins has an id");
        let has_more = execution.last_witnessed().is_some_and(|last| last > index);
        self.stores.cache().note_kept(visit.store, execution.call.hash);
        if has_more {
            self.stores.stats.count(Counted::Begun);
            execution.begins(Begun { id, first: index, intent: visit.name.clone() });
            execution.left.intent = Some(visit.store);
        }
        let mut left = std::mem::take(&mut execution.left);
        self.leaves_witnesses(execution, index, visit.store, &mut left);
        execution.left = left;
    }

    /// Adds the commit witnesses, and the rows beside them, of a transaction whose first writing
    /// phase has this index and runs at this store.
    pub(crate) fn leaves_witnesses(
        &self,
        execution: &Execution,
        first: usize,
        store: usize,
        left: &mut Left,
    ) {
        if self.stores.is_many(store) || execution.call.plan.isolated {
            left.witnesses.insert(store);
        }
        for name in execution.witnessed_later(first) {
            if let Some(store) = self.stores.store_called(&name) {
                left.witnesses.insert(store);
                left.rows.insert(store);
            }
        }
    }

    pub(crate) fn note_left(
        &self,
        execution: &mut Execution,
        role: Role,
        visit: &Visit,
        draft: &Draft,
        seen: &Stamp,
    ) {
        if execution.has_written() {
            execution.writes_at(visit.store);
        }
        for row in &draft.own_rows {
            self.stores.cache().note_row(visit.store, row);
        }
        if let (Role::First | Role::Later, Some(begun)) = (role, execution.begun()) {
            self.stores.note_visible(visit.store, visit.replica.as_ref(), begun.id, seen);
        }
        if draft.has_rows {
            execution.left.rows.insert(visit.store);
        }
        if role == Role::Reader {
            let decides = intent_store(execution, 0);
            execution.left.maybe.extend(self.stores.store_called(&decides));
        }
        for (store, stamp) in &draft.seen {
            let seen = execution.left.seen.entry(store.clone()).or_default();
            seen.join(stamp);
        }
    }

    async fn write_intent_late(
        &self,
        execution: &Execution,
        role: Role,
        index: usize,
        visit: &Visit,
    ) -> Result<Step, Error> {
        if role != Role::First {
            return Ok(Step::Done);
        }
        let id = execution.id.expect("whoever has an intent has an id");
        let intent = execution.intent(index, &execution.recorded, execution.wait_set.clone());
        let mut writes = write_parts(RecordKind::Intent, id, &intent.encode());
        let text = execution.call.program.text.as_bytes().into();
        writes.push(Write::Record(execution.call.hash.key(), text));
        let written = self.stores.write_records(visit.store, visit.replica.clone(), writes).await;
        written.map(|()| Step::Done).map_err(Error::Store)
    }

    /// Returns all witness rows of a store, which the planted fault `BlindWrites` claims to know.
    async fn all_known(&self, visit: &Visit) -> BTreeSet<TransactionId> {
        let from = TransactionId { origin: mingle_model::Origin(0), sequence: 0 };
        let all = [Read::Witnesses { from, limit: usize::MAX }];
        let answers = self.stores.read_records(visit.store, visit.replica.clone(), &all).await;
        let rows = answers.ok().and_then(|mut answers| answers.pop());
        match rows {
            Some(mingle_store::Data::Witnesses(rows)) => rows.iter().map(|row| row.id).collect(),
            _ => BTreeSet::new(),
        }
    }
}

/// Returns the time of a phase: the same in every process that runs it, later than the phases
/// before it, and later than all versions that it was answered.
fn time_of(execution: &Execution, index: usize, visit: &Visit) -> u64 {
    execution.time.max(visit.version).saturating_add(1 + index as u64)
}

/// Decides the next step after the commit of a phase did not take effect.
fn not_committed(
    execution: &Execution,
    control: &Control<'_>,
    is_decisive: bool,
    error: Error,
) -> Result<Step, Error> {
    if let Some(shared) = control.shared.filter(|_| is_decisive) {
        shared.commit_failed();
    }
    if execution.call.plan.isolated && execution.id.is_none() {
        // Its read witnesses carry the id that it has lost.
        return Ok(Step::StartOver);
    }
    Err(error)
}

/// Marks the first commit as begun: from then on a call cannot be cancelled.
fn begin_commit(control: &Control<'_>, is_decisive: bool) -> Result<(), Error> {
    let is_given_up = is_decisive && control.shared.is_some_and(|shared| !shared.begin_commit());
    if is_given_up { Err(Error::Cancelled) } else { Ok(()) }
}
