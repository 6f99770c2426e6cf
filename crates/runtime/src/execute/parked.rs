//! Transactions that cannot be finished for now, and refusing those that would have to wait for one.
//!
//! A transaction is parked if a later store has refused its part for good, or if that part would
//! write or compute a value above the size limit: a mark beside its intent gives the reason. A
//! transaction that would have to wait for it, or for one that must first visit a store that is away, is
//! refused before it commits anything. An operator tries the parked one again, or abandons it
//! (`recovery/abandon`).

use std::collections::{BTreeMap, BTreeSet};

use mingle_model::{Name, TransactionId};
use mingle_store::{Data, Read, RecordKey, RecordKind, Write};

use crate::api::error::Error;
use crate::execute::Executor;
use crate::execute::execution::Execution;
use crate::mutants::Mutant;
use crate::observe::stats::Counted;
use crate::protocol::wait_set::{Awaited, WaitSet};
use crate::stores::records::{is_visible, visible_reads};

impl Executor {
    /// Parks a transaction whose later phase was refused for good: the mark tells other processes.
    pub(crate) async fn park(&self, execution: &Execution, reason: &str) -> Error {
        let begun = execution.begun().expect("what is parked has begun");
        self.stores.stats.count(Counted::Parked);
        let error = Error::Parked { id: begun.id, reason: reason.to_owned() };
        if let Some(store) = self.stores.store_called(&begun.intent) {
            let key = RecordKey::of(RecordKind::Parked, begun.id, 0);
            let parked = Write::Record(key, reason.as_bytes().into());
            // If that fails, the next process that tries the transaction parks it.
            let _ = self.stores.write_records(store, None, vec![parked]).await;
        }
        error
    }

    /// Refuses a transaction before its first commit, which `is_decisive`, if it would have to wait
    /// for a parked one afterwards.
    pub(crate) async fn refuse_behind_parked(
        &self,
        execution: &Execution,
        (index, is_decisive): (usize, bool),
        found: &WaitSet,
    ) -> Result<(), Error> {
        let later = execution.call.plan.phases.get(index + 1..).unwrap_or_default();
        let later: BTreeSet<Name> =
            later.iter().filter_map(|phase| execution.store_name(phase)).collect();
        if !is_decisive || later.is_empty() || self.stores.mutant != Mutant::None {
            return Ok(());
        }
        let mut asked: BTreeMap<&Name, BTreeSet<TransactionId>> = BTreeMap::new();
        for name in &later {
            let Some(store) = self.stores.store_called(name) else { continue };
            let waits = execution.wait_set.waits_at(name).chain(found.waits_at(name));
            for (id, awaited) in waits {
                let is_known = execution.id == Some(id)
                    || self.in_flight.table().is_running(id)
                    || self.stores.cache().is_visible(store, execution.replica.as_ref(), id);
                if !is_known && !awaited.is_reader {
                    asked.entry(&awaited.intent).or_default().insert(id);
                }
            }
        }
        for (intent, ids) in asked {
            self.refuse_if_parked(&ids, intent).await?;
        }
        self.refuse_behind_away(execution, &later, found).await
    }

    /// Refuses if one of these transactions is parked; their intents are all at one store.
    async fn refuse_if_parked(
        &self,
        ids: &BTreeSet<TransactionId>,
        intent: &Name,
    ) -> Result<(), Error> {
        let Some(store) = self.stores.store_called(intent) else { return Ok(()) };
        let read = |id: &TransactionId| Read::Record(RecordKey::of(RecordKind::Parked, *id, 0));
        let reads: Vec<Read> = ids.iter().map(read).collect();
        // A store that does not answer does not tell which transactions are parked.
        let Ok(answers) = self.stores.read_records(store, None, &reads).await else {
            return Ok(());
        };
        for (id, answer) in ids.iter().zip(answers) {
            if let Data::Record(Some(reason)) = answer {
                let reason = String::from_utf8_lossy(&reason).into_owned();
                return Err(Error::Parked { id: *id, reason });
            }
        }
        Ok(())
    }

    /// Refuses a transaction before its first commit if it would have to wait, at a store of
    /// `later`, for a transaction that must first visit a store that is away. Otherwise it would be
    /// half done, and others would wait for it in turn.
    pub(crate) async fn refuse_behind_away(
        &self,
        execution: &Execution,
        later: &BTreeSet<Name>,
        found: &WaitSet,
    ) -> Result<(), Error> {
        let home = execution.replica.as_ref();
        for store in self.stores.stores_with_failures() {
            let Some(away) = self.stores.away_for(store, home, true) else { continue };
            let waits = |name: &str| {
                let all = execution.wait_set.waits_at(name).chain(found.waits_at(name));
                let ids = all
                    .filter(|(id, _)| execution.id != Some(*id) && !execution.chain().contains(id));
                ids.map(|(id, _)| id).collect::<BTreeSet<TransactionId>>()
            };
            let stuck = waits(&away.store);
            for name in later.iter().filter(|name| **name != away.store) {
                let Some(site) = self.stores.store_called(name) else { continue };
                let replica = self.stores.replica_at(site, home);
                let known = |id: &TransactionId| {
                    self.stores.cache().is_visible(site, replica.as_ref(), *id)
                };
                let open: Vec<_> =
                    waits(name).intersection(&stuck).copied().filter(|id| !known(id)).collect();
                let reads: Vec<Read> = open.iter().flat_map(|id| visible_reads(*id)).collect();
                if reads.is_empty() {
                    continue;
                }
                let answers =
                    self.stores.read_records(site, replica, &reads).await.map_err(Error::Store)?;
                let mut pairs = open.iter().zip(answers.chunks(2));
                if let Some((id, _)) = pairs.find(|(id, answers)| !is_visible(**id, answers)) {
                    self.stores.note_refused(&away.store);
                    return Err(Error::Store(away.holds_up(*id, name)));
                }
            }
        }
        Ok(())
    }

    /// Ends the wait of a transaction that has written nothing yet, if the awaited transactions
    /// must first visit a store that is away.
    pub(crate) fn refuse_wait_for_away(
        &self,
        execution: &Execution,
        at: Option<&Name>,
        awaited: &[(TransactionId, Awaited)],
    ) -> Result<(), Error> {
        let Some(at) = at.filter(|_| !execution.has_written()) else { return Ok(()) };
        for store in self.stores.stores_with_failures() {
            let Some(away) = self.stores.away_for(store, execution.replica.as_ref(), true) else {
                continue;
            };
            let is_stuck = |id: TransactionId| {
                away.store != *at
                    && execution.wait_set.waits_at(&away.store).any(|(other, _)| other == id)
            };
            if let Some((id, _)) = awaited.iter().find(|(id, _)| is_stuck(*id)) {
                self.stores.note_refused(&away.store);
                return Err(Error::Store(away.holds_up(*id, at)));
            }
        }
        Ok(())
    }
}
