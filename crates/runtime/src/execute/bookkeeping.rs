//! The records that a phase leaves beside its writes: intent, commit witness and witness rows.
//!
//! They depend on the [`Role`] of the phase:
//!
//! | role | phase | records | guards |
//! | --- | --- | --- | --- |
//! | `Plain` | the only one that writes, or one that follows all writes | none of its own | none |
//! | `Reader` | reads before an `isolated` transaction writes | read witnesses | no fence, and the floor is below |
//! | `First` | decides a transaction with more to write | intent, and rows on the objects written | no fence, and the floor is below |
//! | `Later` | follows the first one | commit witness, and rows on the objects written | no commit witness, and the floor is below |
//!
//! A plain phase that leaves a row under its own id has the guards of a first one.
//!
//! A first phase also leaves a commit witness if its store has replicas that can lag, or if the transaction is
//! `isolated`. Any role passes on the rows of other transactions that this one has met: a reader of its writes
//! must find, at every store, the writes that they depend on.
//!
//! The [`Draft`] collects all of it, in this order: [`Executor::meet`] joins the rows that the phase has met
//! into the wait set, [`Executor::leave_rows`] adds rows, and [`Executor::leave_records`] adds intent, witness
//! and guards. The forms of the records stand in `protocol/`.
//!
//! # Example
//!
//! (7,41) writes the item at `shop`, on which there is a row of (9,5) that names `feed` and `log`. (7,41) goes
//! to `feed` next and never to `log`.
//!
//! ```text
//!   found     (9,5) is awaited at feed
//!   left      a row (7,41) on the item, for feed
//!             a row (9,5) on the item, for log, unless every replica of log is known to have (9,5)
//! ```
//!
//! A later reader of the item that visits `log` waits there for (9,5), although it has met only (7,41).

use std::collections::BTreeSet;
use std::time::Duration;

use mingle_lang::split::Mode;
use mingle_lang::{Phase, Plan};
use mingle_model::{Name, Ref, RowKind, Stamp, TransactionId, WitnessRow};
use mingle_store::{Guard, RecordKind, Write};

use crate::api::error::Error;
use crate::execute::Executor;
use crate::execute::attempt::Visit;
use crate::execute::execution::Execution;
use crate::interpreter::machine::Finished;
use crate::mutants::Mutant;
use crate::observe::stats::Counted;
use crate::protocol::intent::{Witness, write_parts};
use crate::protocol::role::Role;
use crate::protocol::wait_set::WaitSet;
use crate::protocol::witness_rows::{added_rows, rows_on};
use crate::protocol::{commit_witness, floor};

/// The records and guards sent to the store besides the phase's own writes.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) writes: Vec<Write>,
    pub(crate) guards: Vec<Guard>,
    /// The transactions found in witness rows, to be waited for.
    pub(crate) found: WaitSet,
    pub(crate) known: BTreeSet<TransactionId>,
    /// The stamps that the session had seen and the rows pass on.
    pub(crate) seen: Vec<(Name, Stamp)>,
    pub(crate) has_rows: bool,
    pub(crate) own_rows: Vec<WitnessRow>,
    /// A commit witness that is not written for now.
    pub(crate) deferred: Option<Vec<Write>>,
}

impl Executor {
    /// Adds the witness rows on the objects read and written to the draft.
    pub(crate) fn meet(
        &self,
        execution: &Execution,
        index: usize,
        visit: &Visit,
        written: &BTreeSet<Option<Ref>>,
        draft: &mut Draft,
    ) {
        if visit.rows.is_empty() && visit.remembered.is_empty() {
            return;
        }
        // At stores that the transaction itself visits later it must look, however much is known by
        // now: its reads there may have begun before. An isolated one goes by what was known before it began.
        let to_come = execution.call.plan.phases[index + 1..].iter();
        let to_come: BTreeSet<Name> =
            to_come.filter_map(|phase| execution.store_name(phase)).collect();
        let rows = visit.rows.iter().chain(&visit.remembered);
        for row in rows.filter(|_| self.stores.settings.tracking) {
            draft.known.insert(row.id);
            if execution.id == Some(row.id) {
                continue;
            }
            let concerns = match row.kind {
                RowKind::Write => true,
                RowKind::Read => {
                    execution.call.plan.isolated
                        && self.stores.mutant != Mutant::ReadersNotAwaited
                        && (row.object.is_none() || written.contains(&row.object))
                }
            };
            if concerns {
                let mut row = row.clone();
                row.stores.retain(|store| {
                    *store != visit.name
                        && (execution.call.plan.isolated
                            || to_come.contains(store)
                            || !self.stores.is_through_at(store, row.id))
                });
                row.seen.retain(|(store, _)| store != self.stores.stamped(visit.store));
                draft.found.meet(&row);
            }
        }
    }

    /// Leaves the witness rows on the objects that a phase has written, or read in isolation.
    pub(crate) fn leave_rows(
        &self,
        execution: &mut Execution,
        index: usize,
        role: Role,
        visit: &Visit,
        written: &BTreeSet<Option<Ref>>,
        draft: &mut Draft,
    ) -> Result<(), Error> {
        if !self.stores.settings.tracking {
            return Ok(());
        }
        let mut waits = execution.wait_set.clone();
        waits.join(&draft.found);
        let later = if matches!(role, Role::First | Role::Later | Role::Reader) {
            execution.witnessed_later(index)
        } else {
            BTreeSet::new()
        };
        let told = self.stores.to_pass_on(&waits, visit.store, &later);
        self.check_waits(execution, &waits, &told, &later)?;
        if !written.is_empty() {
            draft.seen = self.unseen_somewhere(&told, visit.store, &later);
            self.stores.stats.add(Counted::LeftSeen, u64::from(!draft.seen.is_empty()));
            let is_last = later.is_empty() && role == Role::Later;
            if !is_last || self.stores.mutant != Mutant::NoRowsInLastPhase {
                let stores = self.own_stores(execution, index, role, visit, &later);
                self.leave_own_row(execution, index, visit, stores, written, draft);
            }
            if self.stores.mutant != Mutant::NoInheritance {
                self.pass_rows_on(&told, visit, written, draft);
            }
        }
        let is_isolated = execution.call.plan.isolated && execution.call.plan.phases.len() > 1;
        if is_isolated
            && self.stores.mutant != Mutant::NoReadWitnesses
            && !later_of(execution, index).is_empty()
        {
            self.leave_read_rows(execution, index, visit, draft);
        }
        draft.has_rows = !draft.writes.is_empty();
        if self.stores.mutant == Mutant::RowsReplaced && draft.has_rows {
            let own = execution.id;
            let replaced = draft.known.iter().filter(|id| Some(**id) != own);
            let replaced: Vec<Write> = replaced.map(|id| Write::Forget(*id)).collect();
            draft.writes.splice(0..0, replaced);
        }
        Ok(())
    }

    /// Refuses, before its first write, a transaction that would have to wait for too many others.
    fn check_waits(
        &self,
        execution: &Execution,
        waits: &WaitSet,
        told: &WaitSet,
        later: &BTreeSet<Name>,
    ) -> Result<(), Error> {
        let most = self.stores.settings.worklist_max;
        if execution.has_written() || waits.len() <= most {
            return Ok(());
        }
        let here = later.iter().filter_map(|name| self.stores.store_called(name));
        let asked = here.map(|store| {
            let replica = self.stores.replica_at(store, execution.replica.as_ref());
            let known = self.stores.cache();
            let is_open = |id: &TransactionId| !known.is_visible(store, replica.as_ref(), *id);
            waits.waits_at(&self.stores.name_at(store)).filter(|(id, _)| is_open(id)).count()
        });
        let count = asked.sum::<usize>() + told.len();
        if count <= most {
            return Ok(());
        }
        Err(Error::Limit(format!(
            "the transaction would have to wait for {count} others, and may for {most}; nothing was written"
        )))
    }

    /// Leaves the rows that name this transaction itself.
    fn leave_own_row(
        &self,
        execution: &mut Execution,
        index: usize,
        visit: &Visit,
        stores: Vec<Name>,
        written: &BTreeSet<Option<Ref>>,
        draft: &mut Draft,
    ) {
        if stores.is_empty() && draft.seen.is_empty() {
            return;
        }
        let id = *execution.id.get_or_insert_with(|| self.in_flight.allocate());
        let intent = intent_store(execution, index);
        let seen = draft.seen.clone();
        let row = WitnessRow { object: None, id, kind: RowKind::Write, intent, stores, seen };
        let added = added_rows(&visit.rows, written, row);
        if !execution.is_helper() {
            draft.own_rows.extend(added.iter().cloned());
        }
        draft.writes.extend(added.into_iter().map(Write::Witness));
    }

    /// Leaves rows for the transactions that this one had to wait for, or would have to at stores
    /// where it leaves no commit witness. They are the few that are not known to be
    /// [through](crate::stores::visibility) there.
    fn pass_rows_on(
        &self,
        told: &WaitSet,
        visit: &Visit,
        written: &BTreeSet<Option<Ref>>,
        draft: &mut Draft,
    ) {
        for (id, (intent, stores)) in told.passed_on() {
            self.stores.stats.count(Counted::PassedOn);
            let seen = Vec::new();
            let row = WitnessRow { object: None, id, kind: RowKind::Write, intent, stores, seen };
            draft
                .writes
                .extend(added_rows(&visit.rows, written, row).into_iter().map(Write::Witness));
        }
    }

    /// Leaves read witnesses (MixT §6.2): a writer of an object read here waits, at the stores to
    /// come, until this transaction has been there. Reads for an endorsement leave them too: their
    /// store comes first in the order of visits, and is not visited again (M0403).
    fn leave_read_rows(
        &self,
        execution: &mut Execution,
        index: usize,
        visit: &Visit,
        draft: &mut Draft,
    ) {
        let id = *execution.id.get_or_insert_with(|| self.in_flight.allocate());
        let intent = intent_store(execution, index);
        let stores: Vec<Name> = later_of(execution, index).into_iter().collect();
        let objects: BTreeSet<Option<Ref>> =
            visit.reads.iter().map(|read| read.object().cloned()).collect();
        let row =
            WitnessRow { object: None, id, kind: RowKind::Read, intent, stores, seen: Vec::new() };
        draft.writes.extend(rows_on(&objects, &row).map(Write::Witness));
    }

    /// Returns the stamps seen at other stores that some replica there may lack.
    pub(crate) fn unseen_somewhere(
        &self,
        waits: &WaitSet,
        here: usize,
        later: &BTreeSet<Name>,
    ) -> Vec<(Name, Stamp)> {
        if self.stores.mutant == Mutant::NoTrackingSet {
            return Vec::new();
        }
        let mut unseen = Vec::new();
        let later = later.iter().filter_map(|name| self.stores.store_called(name));
        let visited: BTreeSet<&Name> =
            later.chain([here]).map(|store| self.stores.stamped(store)).collect();
        for (store, stamp) in waits.seen() {
            let Some(index) = self.stores.store_called(store) else { continue };
            if visited.contains(store) {
                continue;
            }
            let now = self.stores.world.elapsed();
            let known = self.stores.cache().everywhere(index).cloned();
            let is_everywhere =
                known.as_ref().is_some_and(|(everywhere, _)| everywhere.covers(stamp));
            if !is_everywhere {
                let asked = known.map_or(Duration::ZERO, |(_, at)| at + EVERYWHERE_EVERY);
                if asked <= now {
                    self.stores.ask_everywhere(index);
                }
                unseen.push((store.clone(), stamp.clone()));
            }
        }
        unseen
    }

    /// Returns the stores at which others that find this row wait for this transaction: stores that
    /// it still has to visit, and stores where some replica may lack it.
    fn own_stores(
        &self,
        execution: &Execution,
        index: usize,
        role: Role,
        visit: &Visit,
        later: &BTreeSet<Name>,
    ) -> Vec<Name> {
        if !matches!(role, Role::First | Role::Later) {
            return Vec::new();
        }
        let mut stores = later.clone();
        let first = execution.begun().map_or(index, |begun| begun.first);
        for phase in &execution.call.plan.phases[first..index] {
            let name = execution.store_name(phase);
            let lags = |name: &Name| {
                self.stores.store_called(name).is_some_and(|at| self.stores.is_many(at))
            };
            stores.extend(name.filter(lags));
        }
        stores.remove(&visit.name);
        stores.into_iter().collect()
    }

    /// Leaves the intent and the commit witness.
    pub(crate) fn leave_records(
        &self,
        execution: &mut Execution,
        index: usize,
        role: Role,
        visit: &Visit,
        finished: &Finished,
        draft: &mut Draft,
    ) {
        let own_row = draft.has_rows;
        match role {
            Role::Plain | Role::Reader => {
                // Other transactions would not wait for rows of an origin that is taken for dead.
                if let Some(id) = execution.id.filter(|_| own_row && !execution.has_begun()) {
                    draft.guards.extend(floor::may_begin(id));
                }
            }
            Role::First => {
                let id = *execution.id.get_or_insert_with(|| self.in_flight.allocate());
                draft.guards.extend(floor::may_begin(id));
                execution.time = self.time_of_phases();
                execution.is_decided_after(self.stores.world.elapsed());
                let has_more = execution.last_witnessed().is_some_and(|last| last > index);
                let hidden =
                    matches!(self.stores.mutant, Mutant::NoIntent | Mutant::IntentAfterCommit);
                if has_more && !hidden {
                    draft.writes.extend(intent_records(execution, index, finished, draft));
                    if !self.stores.cache().is_kept(visit.store, execution.call.hash) {
                        let text = execution.call.program.text.as_bytes().into();
                        draft.writes.push(Write::Record(execution.call.hash.key(), text));
                    }
                }
                if self.stores.is_many(visit.store) || execution.call.plan.isolated {
                    // A transaction without read witnesses is never aborted.
                    let is_guarded =
                        execution.call.plan.isolated && self.stores.mutant != Mutant::AbortIgnored;
                    leave_witness(id, self.stores.world.random(), finished, is_guarded, draft);
                }
            }
            Role::Later => {
                let id = execution.begun().expect("a later phase has begun").id;
                let skips = self.stores.mutant == Mutant::HelperSkipsFloor && execution.is_helper();
                if !skips {
                    draft.guards.push(floor::is_not_over(id));
                }
                // Where the store counts one of several copies, another copy does no harm.
                let is_guarded =
                    self.stores.mutant != Mutant::UnguardedWitness && visit.goes_on.is_none();
                if self.defers_witness(execution, index, visit) {
                    if is_guarded {
                        draft.guards.push(commit_witness::is_absent(id));
                    }
                    draft.deferred = Some(witness(id, self.stores.world.random(), finished, draft));
                } else {
                    leave_witness(id, self.stores.world.random(), finished, is_guarded, draft);
                }
            }
        }
    }
}

/// The interval between two questions for the stamps that all replicas have seen.
const EVERYWHERE_EVERY: Duration = Duration::from_millis(50);

pub(crate) fn role(execution: &Execution, index: usize, wrote: bool) -> Role {
    let last = execution.last_witnessed();
    if execution.has_begun() {
        return if Some(index) <= last { Role::Later } else { Role::Plain };
    }
    if execution.has_written() {
        return Role::Plain;
    }
    if execution.call.plan.isolated && execution.call.plan.phases.len() > 1 {
        let decides = decides(execution);
        return if index < decides { Role::Reader } else { Role::First };
    }
    let has_more = last.is_some_and(|last| last > index);
    if wrote && has_more { Role::First } else { Role::Plain }
}

/// True if a phase leaves nothing at its store: it does not write, and no other process need know
/// that it has read.
pub(crate) fn leaves_nothing(execution: &Execution, index: usize) -> bool {
    execution.call.plan.phases[index].mode == Mode::Read
        && role(execution, index, false) == Role::Plain
        && !(execution.call.plan.isolated && execution.call.plan.phases.len() > 1)
}

/// True if a transaction leaves nothing at any store, whether it commits or not.
pub(crate) fn never_leaves_any(plan: &Plan) -> bool {
    let is_read = |phase: &Phase| phase.mode == Mode::Read;
    plan.phases.iter().all(is_read) && !(plan.isolated && plan.phases.len() > 1)
}

/// Returns the phase that decides an `isolated` transaction: the first one that may write, or the
/// last one if all only read.
fn decides(execution: &Execution) -> usize {
    execution.call.plan.first_write.unwrap_or(execution.call.plan.phases.len() - 1)
}

/// Returns the stores after a phase at which an `isolated` transaction leaves a commit witness.
fn later_of(execution: &Execution, index: usize) -> BTreeSet<Name> {
    let mut later = execution.witnessed_later(index);
    let decides = decides(execution);
    if decides > index {
        later.extend(execution.store_name(&execution.call.plan.phases[decides]));
    }
    later
}

/// Returns the store that holds the intent, or will hold it once the transaction gets so far.
pub(crate) fn intent_store(execution: &Execution, index: usize) -> Name {
    if let Some(begun) = execution.begun() {
        return begun.intent.clone();
    }
    let decides = if execution.call.plan.isolated { decides(execution) } else { index };
    execution.store_name(&execution.call.plan.phases[decides]).unwrap_or_default()
}

fn intent_records(
    execution: &Execution,
    index: usize,
    finished: &Finished,
    draft: &Draft,
) -> Vec<Write> {
    let mut recorded = execution.recorded.clone();
    recorded.merge(finished.recorded.clone());
    let mut wait_set = execution.wait_set.clone();
    wait_set.join(&draft.found);
    let intent = execution.intent(index, &recorded, wait_set);
    let id = execution.id.expect("whoever has an intent has an id");
    write_parts(RecordKind::Intent, id, &intent.encode())
}

/// Adds the commit witness to the draft.
fn leave_witness(
    id: TransactionId,
    copy: u64,
    finished: &Finished,
    is_guarded: bool,
    draft: &mut Draft,
) {
    if is_guarded {
        draft.guards.push(commit_witness::is_absent(id));
    }
    let writes = witness(id, copy, finished, draft);
    draft.writes.extend(writes);
}

/// Returns the records of a commit witness.
fn witness(id: TransactionId, copy: u64, finished: &Finished, draft: &Draft) -> Vec<Write> {
    commit_witness::records(
        id,
        &Witness::Committed {
            copy,
            recorded: finished.recorded.queues().to_vec(),
            result: finished.result.clone(),
            wait_set: draft.found.clone(),
        },
    )
}
