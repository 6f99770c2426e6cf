//! Sending an attempt to the worker beside a store, and applying the answer to the execution here.

mod unanswered;
pub(crate) mod wire;

use std::collections::{BTreeMap, BTreeSet};

use mingle_lang::split::Mode;
use mingle_model::TransactionId;
use mingle_store::{Errand, StoreError, Worker};

use self::wire::{After, Attempt, Attempted, Bounds, End, Known};
use crate::api::call::PhaseReport;
use crate::api::error::Error;
use crate::api::settings::ASKED_AFTER_DEADLINE;
use crate::execute::Executor;
use crate::execute::attempt::Step;
use crate::execute::control::Control;
use crate::execute::execution::{Begun, Execution};
use crate::execute::phase::Tries;
use crate::in_flight::table::Left;
use crate::interpreter::machine::Recorded;
use crate::mutants::Mutant;
use crate::observe::stats::Counted;
use crate::protocol::intent::{Unreadable, decode, encode};

impl Executor {
    /// The worker that runs an attempt at a store, or `None` if this runtime runs it itself.
    pub(crate) fn worker_for(&self, store: usize, tries: &Tries) -> Option<&dyn Worker> {
        // Planted faults change the code of this process only.
        let is_whole = self.stores.mutant == Mutant::None
            && self.stores.mutation == mingle_lang::split::Mutation::None;
        let is_sent = is_whole && !tries.in_pieces && !tries.recomputes;
        self.stores.all[store].worker().filter(|_| is_sent)
    }

    /// Runs a phase once, at the worker beside its store.
    pub(crate) async fn attempt_remotely(
        &self,
        worker: &dyn Worker,
        execution: &mut Execution,
        (index, store): (usize, usize),
        tries: &mut Tries,
        control: &Control<'_>,
        report: &mut PhaseReport,
    ) -> Result<Step, Error> {
        let plan = execution.call.plan.clone();
        let may_decide = !execution.has_written() && plan.phases[index].mode == Mode::Write;
        // Once it is sent, this process cannot stop it.
        let shared = control.shared.filter(|_| may_decide);
        if shared.is_some_and(|shared| !shared.begin_commit()) {
            return Err(Error::Cancelled);
        }
        let lent = execution.id.unwrap_or_else(|| self.in_flight.allocate());
        let attempt = self.to_send(execution, (index, store), tries, control, lent);
        let program = execution.call.program.clone();
        let errand = Errand {
            program: execution.call.hash.0,
            text: &program.text,
            nonce: u128::from(self.stores.world.random()) << 64
                | u128::from(self.stores.world.random()),
            attempt: &encode(&attempt),
            within: attempt.bounds.within,
        };
        let _commits = control.doing.commits();
        let until = control.deadline.saturating_add(ASKED_AFTER_DEADLINE);
        let unknown = || StoreError::Unknown { store: self.stores.name_at(store), id: Some(lent) };
        let ran = self.stores.by(until, worker.run(errand)).await;
        let result = match ran.unwrap_or_else(|| Err(unknown())) {
            Ok(ran) => {
                report.round_trips += ran.round_trips;
                match decode::<Attempted>(&ran.answer) {
                    Ok(attempted) => {
                        self.take_up(execution, (index, store), tries, (lent, attempted), report)
                            .await
                    }
                    Err(Unreadable) => Err(self.unreadable_answer(store)),
                }
            }
            Err(StoreError::Unknown { .. }) => {
                report.round_trips += 1;
                self.lost(execution, (index, store), tries, control, lent).await
            }
            Err(error) => Err(Error::Store(error)),
        };
        if execution.id != Some(lent) {
            // The lent id was not used.
            self.in_flight.is_over(lent, Left::default());
        }
        if let Some(shared) = shared.filter(|_| !execution.has_written()) {
            shared.commit_failed();
        }
        result
    }

    fn unreadable_answer(&self, store: usize) -> Error {
        let store = self.stores.name_at(store);
        let reason = "its worker speaks another version of the protocol".to_owned();
        Error::Store(StoreError::Refused { store, reason })
    }

    fn to_send(
        &self,
        execution: &Execution,
        (index, store): (usize, usize),
        tries: &Tries,
        control: &Control<'_>,
        lent: TransactionId,
    ) -> Attempt {
        let phase = &execution.call.plan.phases[index];
        let endorsed = phase.store.and_then(|store| execution.endorsed.get(&store));
        let begun = execution.begun();
        // Asks again for stamps that are out of date, while the attempt runs.
        self.unseen_somewhere(&execution.wait_set, store, &BTreeSet::new());
        Attempt {
            store: self.stores.name_at(store),
            transaction: execution.call.plan.name.clone(),
            phase: index as u32,
            arguments: execution.call.arguments.clone(),
            now: execution.call.facts.now,
            seed: execution.call.facts.seed,
            time: execution.time,
            recorded: execution.recorded.queues().to_vec(),
            result: execution.result.clone(),
            wait_set: execution.wait_set.clone(),
            replica: execution.replica.clone(),
            home: execution.home.clone(),
            begun: begun.map(|begun| (begun.id, begun.first as u32, begun.intent.clone())),
            has_written: execution.has_written(),
            key: execution.call.key,
            principal: execution.call.principal.clone(),
            digest: execution.call.digest,
            id: execution.id,
            lent,
            endorsed: endorsed.cloned().unwrap_or_default(),
            is_helper: execution.is_helper(),
            chain: execution.chain().to_vec(),
            look: tries.look,
            rows: tries.rows.clone(),
            elsewhere: tries.replica.clone(),
            pinned: tries.pinned.clone(),
            stores: self.known_stores(execution),
            latest: self.time_of_phases(),
            bounds: Bounds {
                within: control.deadline.saturating_sub(self.stores.world.elapsed()),
                steps: self.stores.settings.steps_max,
                memory_bytes: self.stores.settings.memory_bytes_max as u64,
                wait_set: self.stores.settings.worklist_max as u64,
                tracking: self.stores.settings.tracking,
            },
        }
    }

    fn known_stores(&self, execution: &Execution) -> Vec<Option<Known>> {
        let declared = execution.call.program.checked.stores.iter();
        let known = declared.map(|declared| {
            let store = self.stores.store_called(&declared.name)?;
            let capabilities = self.stores.all[store].capabilities().clone();
            let everywhere = self.stores.cache().everywhere(store).map(|(stamp, _)| stamp.clone());
            Some(Known { capabilities, everywhere })
        });
        known.collect()
    }

    /// Applies the outcome of an attempt at a worker to the execution.
    async fn take_up(
        &self,
        execution: &mut Execution,
        (index, store): (usize, usize),
        tries: &mut Tries,
        (lent, attempted): (TransactionId, Attempted),
        report: &mut PhaseReport,
    ) -> Result<Step, Error> {
        let Attempted { end, after, stats } = attempted;
        for (counted, times) in Counted::ALL.iter().zip(stats) {
            self.stores.stats.add(*counted, times);
        }
        report.attempts += after.tried.saturating_sub(1);
        report.recorded = after.recorded_count as usize;
        report.was_done = after.was_done;
        tries.look |= after.look;
        for row in &after.rows {
            if !tries.rows.contains(row) {
                tries.rows.push(row.clone());
            }
        }
        self.apply(execution, (index, store), after, lent);
        match end {
            End::Done => Ok(Step::Done),
            End::Over if execution.id.is_none() => Err(self.unreadable_answer(store)),
            End::Over => Ok(Step::Over),
            End::StartOver => Ok(Step::StartOver),
            End::Again => Ok(Step::Again),
            End::Wait(ids) if ids.is_empty() => Ok(Step::Again),
            End::Wait(ids) => Ok(Step::Wait(ids)),
            End::Pin(pinned) => {
                if !execution.has_begun() {
                    return Err(self.unreadable_answer(store));
                }
                self.pin_as(execution, index, std::future::ready(Ok(pinned))).await?;
                // The next attempt looks for the pinned answers: these, or those of another process.
                Ok(Step::Again)
            }
            End::Failed(Error::Limit(why)) if execution.has_written() => {
                // A committed transaction must be finished, even beyond the worker's bounds.
                tracing::debug!(%why, "a phase is run from here instead");
                tries.in_pieces = true;
                Ok(Step::Again)
            }
            End::Failed(error) => Err(error),
        }
    }

    fn apply(
        &self,
        execution: &mut Execution,
        (index, store): (usize, usize),
        after: After,
        lent: TransactionId,
    ) {
        let had_id = execution.id;
        if after.is_fenced {
            execution.id = None;
            if had_id.is_some() {
                self.in_flight.renew(lent.origin);
            }
        } else if after.is_spent {
            if had_id == Some(lent) {
                self.in_flight.is_over(lent, (*execution.left).clone());
            }
            execution.id = None;
        } else {
            // The worker returns the lent id, or none.
            execution.id = had_id.or(after.id.filter(|id| *id == lent));
        }
        execution.time = after.time;
        execution.wait_set = after.wait_set;
        execution.recorded.merge(Recorded::from_queues(&execution.call.plan, after.recorded));
        execution.result = after.result.or(execution.result.take());
        if let (Some(site), Some(read)) = (execution.call.plan.phases[index].store, after.endorsed)
        {
            execution.endorsed.insert(site, read);
        }
        execution.satisfied.extend(after.satisfied);
        if after.has_begun
            && !execution.has_begun()
            && let Some(id) = execution.id
        {
            let intent = self.stores.name_at(store);
            execution.begins(Begun { id, first: index, intent });
        }
        if after.has_written || execution.has_written() {
            execution.writes_at(store);
        }
        let called = |names: Vec<mingle_model::Name>| -> BTreeSet<usize> {
            names.iter().filter_map(|name| self.stores.store_called(name)).collect()
        };
        let left = &mut execution.left;
        if let Some(intent) = after.left.intent.and_then(|name| self.stores.store_called(&name)) {
            left.intent = Some(intent);
        }
        left.witnesses.extend(called(after.left.witnesses));
        left.maybe.extend(called(after.left.maybe));
        left.rows.extend(called(after.left.rows));
        let seen: BTreeMap<_, _> = after.left.seen;
        for (store, stamp) in seen {
            left.seen.entry(store).or_default().join(&stamp);
        }
    }
}
