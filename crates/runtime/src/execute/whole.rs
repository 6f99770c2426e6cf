//! An `isolated` transaction waits for the whole of a transaction that it follows.
//!
//! A transaction that has met the row of another waits for it at the stores that both visit (MixT §5.4). That is
//! enough for atomic visibility, and not for one order of all `isolated` transactions: knowledge travels with
//! writes alone, so a transaction that overwrites an object which another has only read, and one that begins
//! once a caller has its answer, learn of nothing. So an `isolated` transaction that meets, at a serializable
//! store, the row of a transaction which it has to follow commits nothing there until that one has been at all its
//! serializable stores, also at those that it does not visit itself. The attempt that commits begins after that.
//!
//! # Why this gives one order, with real time
//!
//! Let a transaction's *end* be its place in the order of the last serializable store that it visits. If U
//! follows T at a store `s` (one of them wrote what both have accessed, and T comes first there), then T ends before
//! U does:
//!
//! - if `s` is T's last store, T ends at its place in `s`, which is before U's;
//! - otherwise T has left a row at `s` on each object that it read or wrote, and U has met it. So the attempt
//!   by which U committed at `s` began after T's end, and U's place in `s` is not before that.
//!
//! A transaction that began after another's answer ends after it too. Ends are points in time, so no circle of
//! such steps exists: the order of the ends is one order of all `isolated` transactions at all serializable
//! stores, and it respects real time.
//!
//! # Why the waits end
//!
//! U waits at `s`, where it has not committed, for T, which has. All `isolated` transactions visit stores in one order
//! (`check_isolated_order`), so T waits at a later store, if it waits, and a circle of waits cannot close. Circles through
//! transactions that are not `isolated`, which wait in another way, are broken as ever: after `help_after`
//! by a helper's chain.
//!
//! # Example
//!
//! ```text
//!   (1,7)   reads x at bank, and goes to shop     its read witness stands on x
//!   (2,4)   visits bank alone, and writes x and z: it meets the read witness of (1,7) that names shop
//!   (2,4)   begins its attempt again once the commit witness of (1,7) is at shop, and commits
//!   (3,9)   reads z at bank, writes y at shop: after (1,7), which read y there
//! ```

use std::collections::BTreeSet;

use mingle_model::{Name, Ref, Stamp, TransactionId};
use mingle_store::Read;

use crate::api::call::PhaseReport;
use crate::api::error::Error;
use crate::execute::Executor;
use crate::execute::attempt::{Step, Visit};
use crate::execute::bookkeeping::Draft;
use crate::execute::control::Control;
use crate::execute::execution::Execution;
use crate::execute::phase::Tries;
use crate::mutants::Mutant;
use crate::observe::stats::Counted;
use crate::protocol::wait_set::{Awaited, WaitSet};
use crate::stores::records::{is_visible, visible_reads};

impl Executor {
    /// Returns the end of an attempt that has run and must not commit: other answers are pinned, or an `isolated`
    /// transaction must wait for the whole of another one.
    pub(crate) async fn stops(
        &self,
        execution: &Execution,
        index: usize,
        (visit, written): (&Visit, &BTreeSet<Option<Ref>>),
        tries: &mut Tries,
    ) -> Result<Option<Step>, Error> {
        if !self.may_go_on(execution, index, visit, tries).await? {
            return Ok(Some(Step::Again));
        }
        if !execution.call.plan.isolated {
            return Ok(None);
        }
        let mut draft = Draft::default();
        self.meet(execution, index, visit, written, &mut draft);
        Ok(self.needs_whole(execution, visit, &draft.found))
    }

    /// Ends the attempt of an `isolated` transaction that has met another one that was not known to be at all its
    /// serializable stores before the attempt began.
    fn needs_whole(&self, execution: &Execution, visit: &Visit, found: &WaitSet) -> Option<Step> {
        // A worker knows one store. The processes that send phases to it do not send these.
        if self.stores.is_worker
            || self.stores.mutant == Mutant::WholeNotAwaited
            || !self.is_serializable(visit.store)
        {
            return None;
        }
        let is_known = |name: &Name, store, id| {
            let replica = self.stores.replica_at(store, execution.replica.as_ref());
            *name == visit.name
                || self.stores.cache().was_visible(store, replica.as_ref(), id, visit.known_before)
        };
        let is_open = found.stores().any(|name| {
            let awaited = self.awaited_at(execution, name, found);
            awaited.iter().any(|(store, id, _)| !is_known(name, *store, *id))
        });
        is_open.then(|| Step::Whole(Box::new(found.clone())))
    }

    /// Waits for the transactions for which an attempt at a phase must wait, if its end says so. Boxed, since waits are
    /// rare and the futures of calls are large.
    pub(crate) async fn wait_for(
        &self,
        execution: &Execution,
        tries: &mut Tries,
        control: &Control<'_>,
        report: &mut PhaseReport,
        (phase, step): (usize, Step),
    ) -> Result<(), Error> {
        match step {
            Step::Wait(ids) => {
                self.tell_waits(control, report, phase, &ids);
                let at = report.store.clone();
                Box::pin(self.wait(execution, tries, control, report, (at.as_ref(), &ids))).await
            }
            Step::Whole(found) => {
                let whole = (phase, &*found);
                Box::pin(self.wait_for_whole(execution, tries, control, report, whole)).await
            }
            _ => Ok(()),
        }
    }

    /// Waits until these transactions are at all serializable stores that they are awaited at.
    ///
    /// # Errors
    ///
    /// If the deadline has passed, a transaction is parked, or, before the first write, a store does not answer.
    async fn wait_for_whole(
        &self,
        execution: &Execution,
        tries: &mut Tries,
        control: &Control<'_>,
        report: &mut PhaseReport,
        (phase, awaited): (usize, &WaitSet),
    ) -> Result<(), Error> {
        self.stores.stats.count(Counted::AwaitedWhole);
        let mut has_told = false;
        for name in awaited.stores() {
            loop {
                let open = self.ask_for_whole(execution, name, awaited).await?;
                if open.is_empty() {
                    break;
                }
                if !std::mem::replace(&mut has_told, true) {
                    self.tell_waits(control, report, phase, &open);
                }
                self.wait(execution, tries, control, report, (Some(name), &open)).await?;
            }
        }
        Ok(())
    }

    /// Returns the transactions that must be at a store, if the store is serializable.
    fn awaited_at(
        &self,
        execution: &Execution,
        name: &Name,
        awaited: &WaitSet,
    ) -> Vec<(usize, TransactionId, Awaited)> {
        let store = self.stores.store_called(name).filter(|store| self.is_serializable(*store));
        let Some(store) = store else { return Vec::new() };
        let is_other =
            |id: &TransactionId| execution.id != Some(*id) && !execution.chain().contains(id);
        let awaited = awaited.waits_at(name).filter(|(id, _)| is_other(id));
        awaited.map(|(id, awaited)| (store, id, awaited.clone())).collect()
    }

    /// Asks a store for the transactions awaited there, and returns those that are not there yet.
    async fn ask_for_whole(
        &self,
        execution: &Execution,
        name: &Name,
        awaited: &WaitSet,
    ) -> Result<Vec<(TransactionId, Awaited)>, Error> {
        let mut open = Vec::new();
        for (store, id, awaited) in self.awaited_at(execution, name, awaited) {
            let replica = self.stores.replica_at(store, execution.replica.as_ref());
            let mut known = self.stores.cache();
            if known.is_visible(store, replica.as_ref(), id) {
                // Also one below a floor counts from now on as known by itself.
                known.note_visible(store, replica.as_ref(), id);
            } else {
                open.push((store, id, awaited));
            }
        }
        let Some((store, ..)) = open.first() else { return Ok(Vec::new()) };
        let (store, replica) = (*store, self.stores.replica_at(*store, execution.replica.as_ref()));
        let reads: Vec<Read> = open.iter().flat_map(|(_, id, _)| visible_reads(*id)).collect();
        let answers = match self.stores.read_records(store, replica.clone(), &reads).await {
            Ok(answers) => answers,
            // What it has begun must be finished: the store is asked again.
            Err(_) if execution.has_written() => Vec::new(),
            Err(error) => return Err(Error::Store(error)),
        };
        let mut left = Vec::new();
        let mut answers = answers.chunks(2);
        for (_, id, awaited) in open {
            if answers.next().is_some_and(|answers| is_visible(id, answers)) {
                self.stores.note_visible(store, replica.as_ref(), id, &Stamp::default());
            } else {
                left.push((id, awaited));
            }
        }
        Ok(left)
    }

    /// True if a store orders its transactions, and so takes part in the order of `isolated` ones.
    fn is_serializable(&self, store: usize) -> bool {
        self.stores.all[store].capabilities().serializable
    }
}
