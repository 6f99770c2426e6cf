//! Calls with a key: however often such a call is made, it takes effect once.
//!
//! The first commit that writes leaves a record under the key, in the same transaction of its
//! store, on condition that there is none. A repeated call first looks for that record at every
//! store that the transaction may write, and is answered from it; it also finishes the parts that
//! are missing at other stores. The record stays until [`Runtime::forget_keys`](crate::Runtime::forget_keys).
//!
//! The guarantee is as strong as the store's guards. Where a store has one copy, or its
//! replicas agree ([`mingle_store::Once::Serial`]), a call takes effect once, even if several
//! clients repeat it at several places at the same time. At other stores that holds for calls at one
//! replica; a call that is repeated at another replica takes effect once if the first has reached that
//! replica. A transaction that writes nothing leaves no record.

use std::collections::BTreeSet;
use std::time::Duration;

use mingle_lang::Plan;
use mingle_lang::hir::StoreId;
use mingle_lang::split::Mode;
use mingle_model::{Name, Stamp, Time, TransactionId, Value};
use mingle_store::{
    Commit, Data, Guard, Read, RecordKey, RecordKind, Session as StoreSession, StoreError,
    Transaction, Write,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::api::call::{Call, CallReport};
use crate::api::error::Error;
use crate::api::settings::{BATCH, RESULT_KEPT_BYTES_MAX};
use crate::execute::Executor;
use crate::execute::bookkeeping::Draft;
use crate::execute::execution::Execution;
use crate::execute::helper::{Helped, Helper};
use crate::interpreter::machine::Finished;
use crate::protocol::call_key::CallKey;
use crate::protocol::intent::{Unreadable, decode, encode, first_part, parts_of};
use crate::protocol::role::Role;
use crate::protocol::wait_set::{Awaited, WaitSet};

/// The record that is kept of a call under its key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Called {
    /// The digest of the transaction's name and the arguments: another call with this key is a mistake.
    digest: [u8; 32],
    /// The time of the first call.
    at: Time,
    /// Its id, if others may have to finish it.
    id: Option<TransactionId>,
    /// Its result, once that is known.
    result: Kept,
}

/// The state of a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Kept {
    /// Unknown: a later phase computes it.
    NotYet,
    /// The result; `None` where the transaction has no result.
    Known(Option<Value>),
    /// The result was too large to keep.
    TooLarge,
}

/// A record that was found, and the store that holds it.
struct Found {
    called: Called,
    store: usize,
    /// The replica at which it was found.
    replica: Option<Name>,
    stamp: Stamp,
}

fn digest(call: &Call) -> [u8; 32] {
    Sha256::digest(encode(&(&call.transaction, &call.arguments))).into()
}

fn kept(result: Option<Value>) -> Kept {
    let kept = Kept::Known(result);
    if encode(&kept).len() > RESULT_KEPT_BYTES_MAX { Kept::TooLarge } else { kept }
}

fn writes(key: &CallKey, called: &Called) -> Vec<Write> {
    parts_of(&encode(called), |part| key.record(part))
}

impl Executor {
    /// The answer of an earlier call with the same key; `None` if there was none, or none that wrote.
    pub(crate) async fn repeated(
        &self,
        plan: &Plan,
        call: &Call,
        deadline: Duration,
    ) -> Result<Option<CallReport>, Error> {
        let Some(key) = &call.key else { return Ok(None) };
        let mut attempts = 0;
        loop {
            let Some(found) = self.find(plan, call, key, deadline).await? else { return Ok(None) };
            if found.called.digest != digest(call) {
                return Err(Error::KeyReused);
            }
            let running = found.called.id.filter(|id| self.in_flight.table().is_running(*id));
            let Some(id) = running else {
                return self.answer_again(plan, call, key, found, deadline).await.map(Some);
            };
            // The first call is still running; its answer will be the answer here.
            attempts += 1;
            let pause = self.stores.backoff(attempts);
            if self.stores.world.elapsed() + pause > deadline {
                let (store, patience) = (self.stores.name_at(found.store), self.patience(call));
                let cause = Error::Waiting { store, id, deadline: patience };
                return Err(self.not_finished(plan, &found, id, cause));
            }
            self.stores.world.sleep(pause).await;
        }
    }

    fn patience(&self, call: &Call) -> Duration {
        call.deadline.unwrap_or(self.stores.settings.deadline)
    }

    /// Looks for the record at every store that the transaction may write first.
    async fn find(
        &self,
        plan: &Plan,
        call: &Call,
        key: &CallKey,
        deadline: Duration,
    ) -> Result<Option<Found>, Error> {
        let written = plan.phases.iter().filter(|phase| phase.mode == Mode::Write);
        let stores: BTreeSet<usize> =
            written.filter_map(|phase| phase.store.map(StoreId::index)).collect();
        for store in stores {
            let mut attempts = 0;
            loop {
                let since = self.stores.world.elapsed();
                let home = self.stores.home(plan, &call.session)?;
                let replica = || self.stores.replica_at(store, home.as_ref());
                let finding = self.find_at(store, replica(), call, key);
                let finding = self.stores.by(deadline, finding).await;
                let silent =
                    || Err(Error::Store(self.stores.silent(store, replica().as_ref(), since)));
                let finding = finding.unwrap_or_else(silent).map_err(|error| match error {
                    Error::Store(error) => {
                        Error::Store(self.stores.located(store, replica().as_ref(), error))
                    }
                    error => error,
                });
                match finding {
                    Ok(Some(found)) => return Ok(Some(found)),
                    Ok(None) => break,
                    Err(Error::Store(error)) if error.is_retryable() => {
                        attempts += 1;
                        let pause = self.stores.backoff(attempts);
                        if self.stores.world.elapsed() + pause > deadline {
                            return Err(Error::Store(error));
                        }
                        self.stores.world.sleep(pause).await;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(None)
    }

    async fn find_at(
        &self,
        store: usize,
        replica: Option<Name>,
        call: &Call,
        key: &CallKey,
    ) -> Result<Option<Found>, Error> {
        let after = call.session.worklist().seen_at(self.stores.stamped(store));
        let session = StoreSession { replica: replica.clone(), after, ..StoreSession::default() };
        let mut transaction = self.stores.all[store].begin(&session).await.map_err(Error::Store)?;
        let Some(called) = self.read_called(&mut *transaction, store, key).await? else {
            return Ok(None);
        };
        let seen = transaction.commit(Commit::default()).await.map_err(Error::Store)?;
        Ok(Some(Found { called, store, replica, stamp: seen.stamp }))
    }

    async fn read_called(
        &self,
        transaction: &mut dyn Transaction,
        store: usize,
        key: &CallKey,
    ) -> Result<Option<Called>, Error> {
        let unreadable = |_: Unreadable| {
            let name = self.stores.name_at(store);
            Error::Unsupported(format!(
                "the record of call {key:?} at store {name} is corrupt, or was written by a newer version"
            ))
        };
        let Some(first) = record(transaction, key.record(0)).await? else { return Ok(None) };
        let (count, chunk) = first_part(&first).map_err(unreadable)?;
        let mut bytes = chunk.to_vec();
        for part in 1..count {
            match record(transaction, key.record(part)).await? {
                Some(chunk) => bytes.extend(&*chunk),
                // The record is being removed.
                None => return Err(Error::Store(StoreError::Conflict)),
            }
        }
        decode(&bytes).map(Some).map_err(unreadable)
    }

    /// The answer that the first call was given, or would have been given.
    async fn answer_again(
        &self,
        plan: &Plan,
        call: &Call,
        key: &CallKey,
        found: Found,
        deadline: Duration,
    ) -> Result<CallReport, Error> {
        let place = self.stores.name_at(found.store);
        let mut seen = WaitSet::default();
        seen.saw(self.stores.stamped(found.store), &found.stamp);
        let mut result = found.called.result.clone();
        if let Some(id) = found.called.id {
            for store in self.written_after(plan, found.store) {
                seen.wait_at(&store, id, Awaited { intent: place.clone(), is_reader: false });
            }
            let helper =
                Helper { replica: None, chain: Vec::new(), deadline, insists: false, pushes: true };
            match self.help(id, &place, helper).await {
                Ok(Helped::Finished | Helped::Over | Helped::NotFound) => {}
                Ok(Helped::Busy) => {
                    let (store, patience) = (place.clone(), self.patience(call));
                    let cause = Error::Waiting { store, id, deadline: patience };
                    return Err(self.not_finished(plan, &found, id, cause));
                }
                Err(cause) => return Err(self.not_finished(plan, &found, id, cause)),
            }
        }
        if result == Kept::NotYet {
            result = self.await_result(call, key, &found, deadline).await?;
        }
        call.session.learn(&seen);
        match result {
            Kept::Known(result) => Ok(CallReport {
                result,
                phases: Vec::new(),
                id: found.called.id,
                following: Vec::new(),
                is_repeated: true,
            }),
            Kept::NotYet | Kept::TooLarge => Err(Error::ResultGone { id: found.called.id }),
        }
    }

    /// Waits for the result of a call that has taken effect. The process that runs the call keeps the
    /// result right after its first commit, or once the call is finished. If it died in between, it never
    /// keeps the result, so this waits no longer than a lease.
    async fn await_result(
        &self,
        call: &Call,
        key: &CallKey,
        found: &Found,
        deadline: Duration,
    ) -> Result<Kept, Error> {
        let until =
            self.stores.world.elapsed().saturating_add(self.stores.settings.lease).min(deadline);
        for attempts in 1.. {
            let replica = found.replica.clone();
            let result = match self.find_at(found.store, replica, call, key).await {
                Ok(again) => again.map_or(Kept::NotYet, |again| again.called.result),
                Err(Error::Store(StoreError::Conflict)) => Kept::NotYet,
                Err(error) => return Err(error),
            };
            if result != Kept::NotYet || self.stores.world.elapsed() >= until {
                return Ok(result);
            }
            // Looks at growing intervals: a look may conflict with the commit that keeps the result.
            self.stores.world.sleep(self.stores.settings.help_after / 4 * attempts).await;
        }
        Ok(Kept::NotYet)
    }

    /// The stores that are written after the one that holds the record.
    fn written_after(&self, plan: &Plan, store: usize) -> Vec<Name> {
        let written = plan.phases.iter().filter(|phase| phase.mode == Mode::Write);
        let stores = written.filter_map(|phase| phase.store.map(StoreId::index));
        let mut names: Vec<Name> = stores
            .filter(|found| *found != store)
            .map(|found| self.stores.name_at(found))
            .collect();
        names.dedup();
        names
    }

    fn not_finished(&self, plan: &Plan, found: &Found, id: TransactionId, cause: Error) -> Error {
        Error::Incomplete {
            id: Some(id),
            committed: vec![self.stores.name_at(found.store)],
            missing: self.written_after(plan, found.store),
            cause: Box::new(cause),
        }
    }

    /// Adds the call's record to the first commit that writes.
    pub(crate) fn leave_called(
        &self,
        execution: &Execution,
        index: usize,
        (role, is_decisive): (Role, bool),
        finished: &Finished,
        draft: &mut Draft,
    ) {
        let is_write = is_decisive && execution.call.plan.phases[index].mode == Mode::Write;
        let Some(key) = execution.call.key.as_ref().filter(|_| is_write) else { return };
        let has_more = execution.last_witnessed().is_some_and(|last| last > index);
        let result = finished.result.clone().or_else(|| execution.result.clone());
        let is_known = result.is_some() || execution.call.plan.result.is_none();
        let called = Called {
            digest: execution.call.digest,
            at: self.stores.world.now(),
            id: execution.id.filter(|_| role == Role::First && has_more),
            result: if is_known { kept(result) } else { Kept::NotYet },
        };
        draft.guards.push(Guard::Absent(key.record(0)));
        draft.writes.extend(writes(key, &called));
    }

    /// Keeps a result that was not known when the transaction first wrote. If that fails, a repeated
    /// call learns that the call took effect, but not its result.
    pub(crate) async fn keep_result(&self, execution: &Execution, place: usize) {
        let Some(key) = &execution.call.key else { return };
        if execution.call.plan.result.is_none() || execution.result.is_none() {
            return;
        }
        let session = StoreSession {
            replica: self.stores.replica_at(place, execution.home.as_ref()),
            ..StoreSession::default()
        };
        for attempts in 1..=KEEP_ATTEMPTS_MAX {
            let Ok(mut transaction) = self.stores.all[place].begin(&session).await else { return };
            let found = self.read_called(&mut *transaction, place, key).await;
            if let Ok(Some(Called { result: Kept::Known(_) | Kept::TooLarge, .. })) = found {
                return;
            }
            // A replica may not have the record yet, though the commit that wrote it has ended.
            if let Ok(Some(called)) = found {
                let called = Called { result: kept(execution.result.clone()), ..called };
                let commit = Commit { writes: writes(key, &called), ..Commit::default() };
                match transaction.commit(commit).await {
                    Ok(_) => return,
                    Err(StoreError::Conflict | StoreError::Unknown { .. }) => {}
                    Err(_) => return,
                }
            }
            self.stores.world.sleep(self.stores.backoff(attempts)).await;
        }
    }

    /// Removes the records of calls that were first made at least `age` ago, and returns their number;
    /// their keys may then be used again.
    pub(crate) async fn forget_keys(&self, age: Duration) -> Result<usize, Error> {
        let now = self.stores.world.now();
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        let before = now.plus_millis(age.saturating_neg());
        let mut forgotten = 0;
        for store in 0..self.stores.all.len() {
            let mut from = [].as_slice().into();
            loop {
                let reads = [Read::Records { kind: RecordKind::Called, from, limit: BATCH }];
                let answers =
                    self.stores.read_records(store, None, &reads).await.map_err(Error::Store)?;
                let Some(Data::Records(records)) = answers.into_iter().next() else { break };
                let Some((last, _)) = records.last() else { break };
                from = [&**last, &[0]].concat().into();
                let is_full = records.len() == BATCH;
                for (key, _) in records {
                    let Some(key) = CallKey::of_first_part(&key) else { continue };
                    forgotten += usize::from(self.forget_key(store, key, before).await?);
                }
                if !is_full {
                    break;
                }
            }
        }
        Ok(forgotten)
    }

    /// Removes a record, after reading it again in the same transaction: another process may have
    /// removed it, and a new call may have taken its place.
    async fn forget_key(&self, store: usize, key: CallKey, before: Time) -> Result<bool, Error> {
        let session = StoreSession::default();
        let mut transaction = self.stores.all[store].begin(&session).await.map_err(Error::Store)?;
        let called = match self.read_called(&mut *transaction, store, &key).await {
            Ok(Some(called)) if called.at < before => called,
            Ok(_) | Err(Error::Store(StoreError::Conflict)) => return Ok(false),
            Err(error) => return Err(error),
        };
        let parts = writes(&key, &called).len() as u32;
        let discards = (0..parts).map(|part| Write::Discard(key.record(part))).collect();
        match transaction.commit(Commit { writes: discards, ..Commit::default() }).await {
            Ok(_) => Ok(true),
            // A later run removes it.
            Err(StoreError::Conflict | StoreError::Unknown { .. }) => Ok(false),
            Err(error) => Err(Error::Store(error)),
        }
    }
}

/// The most attempts to keep the result of a call.
const KEEP_ATTEMPTS_MAX: u32 = 10;

async fn record(
    transaction: &mut dyn Transaction,
    key: RecordKey,
) -> Result<Option<mingle_store::Bytes>, Error> {
    let answers = transaction.read(&[Read::Record(key)]).await.map_err(Error::Store)?;
    Ok(match answers.into_iter().next().map(|answer| answer.data) {
        Some(Data::Record(found)) => found,
        _ => None,
    })
}

impl Execution {
    /// Adds the key and the principal of the call.
    pub(crate) fn keyed(mut self, call: &Call) -> Self {
        self.call.principal.clone_from(&call.principal);
        if let Some(key) = call.key {
            self.call.key = Some(key);
            self.call.digest = digest(call);
        }
        self
    }
}
