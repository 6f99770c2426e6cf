//! Parked transactions in the hands of an operator: trying them again, or ending them.
//!
//! `execute/parked` parks a transaction. An operator tries it again once the cause is removed, or
//! abandons it: its first parts stay, the others count as done but never run, and a permanent record
//! says so.

use mingle_model::{Name, Time, TransactionId};
use mingle_store::{
    Commit, Data, RecordKey, RecordKind, Session as StoreSession, StoreError, Write,
};
use serde::{Deserialize, Serialize};

use crate::api::error::Error;
use crate::execute::execution::Execution;
use crate::execute::helper::{Helped, Helper};
use crate::protocol::commit_witness;
use crate::protocol::intent::{Unreadable, Witness, decode, encode, write_parts};
use crate::recovery::Recovery;
use crate::recovery::sweeper::Swept;
use crate::stores::records::{is_visible, read_parts, unreadable, visible_reads};

/// The number of tries to leave a commit witness in the place of an abandoned part.
const TRIES_MAX: u32 = 20;

/// A transaction that an operator has ended before it was finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abandoned {
    /// Its id.
    pub id: TransactionId,
    /// The transaction's name.
    pub transaction: Name,
    /// The store that it wrote first.
    pub intent: Name,
    /// The stores that did not get their part, and never will.
    pub missing: Vec<Name>,
    /// The reason why it could not be finished.
    pub parked: String,
    /// The reason why it was abandoned.
    pub because: String,
    /// The time of the abandonment.
    pub at: Time,
}

/// The record that is kept of an abandoned transaction.
#[derive(Serialize, Deserialize)]
struct Kept {
    transaction: Name,
    missing: Vec<Name>,
    parked: String,
    because: String,
    at: Time,
}

impl Recovery {
    /// Tries a parked transaction once more.
    pub(crate) async fn retry(&self, id: TransactionId) -> Result<(), Error> {
        let place = self.place_of(id).await?;
        let deadline = self.stores.world.elapsed() + self.stores.settings.deadline;
        let helper =
            Helper { replica: None, chain: Vec::new(), deadline, insists: true, pushes: false };
        match self.executor.help(id, &place, helper).await? {
            Helped::Finished | Helped::Over => {}
            Helped::NotFound => return Err(none_called(id)),
            Helped::Busy => {
                return Err(Error::Waiting {
                    store: place,
                    id,
                    deadline: self.stores.settings.deadline,
                });
            }
        }
        // Its records are cleaned up.
        self.recover_own(false, &mut Swept::default()).await.map_err(Error::Store)
    }

    /// Ends a parked transaction: the parts that have committed stay, the others never run, and no
    /// transaction waits for them any more.
    pub(crate) async fn abandon(
        &self,
        id: TransactionId,
        because: &str,
    ) -> Result<Abandoned, Error> {
        let place = self.place_of(id).await?;
        let found = self.executor.intent_and_mark(id, &place).await.map_err(Error::Store)?;
        let Some((intent, Some(parked))) = found else {
            return Err(Error::Misuse(format!(
                "transaction {id} is not parked: only one that a store has refused can be abandoned"
            )));
        };
        let execution = self.executor.resumed(id, &place, intent).await?;
        let missing = self.missing_of(id, &execution).await?;
        let names: Vec<Name> = missing.iter().map(|store| self.stores.name_at(*store)).collect();
        let kept = Kept {
            transaction: execution.call.plan.name.clone(),
            missing: names,
            parked,
            because: because.to_owned(),
            at: self.stores.world.now(),
        };
        let store = self.stores.store_called(&place).ok_or_else(|| none_called(id))?;
        let writes = write_parts(RecordKind::Abandoned, id, &encode(&kept));
        self.stores.write_records(store, None, writes).await.map_err(Error::Store)?;
        // The last part first: a process that continues the transaction meanwhile finds the mark
        // before a part that depends on one that never ran.
        for missing in missing.into_iter().rev() {
            self.take_for_done(&execution, id, missing).await?;
        }
        let mark = Write::Discard(RecordKey::of(RecordKind::Parked, id, 0));
        self.stores.write_records(store, None, vec![mark]).await.map_err(Error::Store)?;
        tracing::warn!(%id, transaction = %kept.transaction, because, "a transaction was abandoned");
        self.recover_own(false, &mut Swept::default()).await.map_err(Error::Store)?;
        Ok(abandoned(id, place, kept))
    }

    /// Returns the transactions that were abandoned, at all stores.
    pub(crate) async fn abandoned(&self) -> Result<Vec<Abandoned>, Error> {
        let mut found = Vec::new();
        for store in 0..self.stores.all.len() {
            found.extend(self.abandoned_at(store).await?);
        }
        Ok(found)
    }

    /// Returns the transactions that began at a store, and were abandoned.
    pub(crate) async fn abandoned_at(&self, store: usize) -> Result<Vec<Abandoned>, Error> {
        let mut found = Vec::new();
        let kind = RecordKind::Abandoned;
        let records =
            self.stores.all_records(store, None, kind, None).await.map_err(Error::Store)?;
        for (key, first) in records {
            let Some((id, 0)) = key.transaction() else { continue };
            let session = StoreSession::default();
            let begun = self.stores.all[store].begin(&session).await;
            let mut transaction = begun.map_err(Error::Store)?;
            let bytes = read_parts(&mut *transaction, kind, id, 0, &first).await?;
            let kept: Kept = decode(&bytes).map_err(|Unreadable| unreadable("abandonment", id))?;
            found.push(abandoned(id, self.stores.name_at(store), kept));
        }
        Ok(found)
    }

    /// Returns the store that holds a transaction's intent.
    async fn place_of(&self, id: TransactionId) -> Result<Name, Error> {
        for store in 0..self.stores.all.len() {
            let place = self.stores.name_at(store);
            if self.executor.intent_and_mark(id, &place).await.map_err(Error::Store)?.is_some() {
                return Ok(place);
            }
        }
        Err(none_called(id))
    }

    /// Returns the stores at which a transaction is still to leave a commit witness, in the order
    /// of its phases.
    async fn missing_of(
        &self,
        id: TransactionId,
        execution: &Execution,
    ) -> Result<Vec<usize>, Error> {
        let first = execution.begun().map_or(0, |begun| begun.first);
        let last = execution.last_witnessed().map_or(0, |last| last + 1);
        let mut missing = Vec::new();
        for phase in execution.call.plan.phases.get(first + 1..last).unwrap_or_default() {
            let store =
                execution.store_name(phase).and_then(|name| self.stores.store_called(&name));
            let Some(store) = store else { continue };
            let replica = self.home_at(execution, store);
            let answers = self.stores.read_records(store, replica, &visible_reads(id)).await;
            if !is_visible(id, &answers.map_err(Error::Store)?) {
                missing.push(store);
            }
        }
        Ok(missing)
    }

    /// Returns the replica at which a transaction's phases run at a store, if it keeps to one.
    fn home_at(&self, execution: &Execution, store: usize) -> Option<Name> {
        self.stores.replica_at(store, execution.home.as_ref())
    }

    /// Leaves a commit witness in the place of a part that never runs, unless it has run.
    async fn take_for_done(
        &self,
        execution: &Execution,
        id: TransactionId,
        store: usize,
    ) -> Result<(), Error> {
        let session =
            StoreSession { replica: self.home_at(execution, store), ..StoreSession::default() };
        let mut attempts = 0;
        loop {
            let mut transaction =
                self.stores.all[store].begin(&session).await.map_err(Error::Store)?;
            let reads = visible_reads(id);
            let answers = transaction.read(&reads).await.map_err(Error::Store)?;
            let answers: Vec<Data> = answers.into_iter().map(|answer| answer.data).collect();
            if is_visible(id, &answers) {
                return Ok(());
            }
            let guards = commit_witness::is_undecided(id);
            let writes = commit_witness::records(id, &Witness::Abandoned);
            match transaction.commit(Commit { writes, guards, ..Commit::default() }).await {
                Ok(_) => return Ok(()),
                Err(StoreError::Conflict | StoreError::Unknown { .. }) if attempts < TRIES_MAX => {
                    attempts += 1;
                    self.stores.world.sleep(self.stores.backoff(attempts)).await;
                }
                Err(error) => return Err(Error::Store(error)),
            }
        }
    }
}

fn none_called(id: TransactionId) -> Error {
    Error::Misuse(format!("no transaction {id} is unfinished"))
}

fn abandoned(id: TransactionId, intent: Name, kept: Kept) -> Abandoned {
    let Kept { transaction, missing, parked, because, at } = kept;
    Abandoned { id, transaction, intent, missing, parked, because, at }
}
