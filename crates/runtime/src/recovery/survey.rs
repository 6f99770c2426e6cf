//! An operator's view of a runtime and of its stores.
//!
//! [`Runtime::backlog`](crate::Runtime::backlog) reports the knowledge of one process about its own
//! transactions, without asking a store. It takes a few sums under a lock, so figures may be collected every few seconds.
//! [`Runtime::left_behind`](crate::Runtime::left_behind) and
//! [`Runtime::survey`](crate::Runtime::survey) ask every replica of every store, side by side, for the records that all processes have left there. A replica that does not answer in time does
//! not hide the others; it is listed with the reason, since operators look during an outage.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::Duration;

use futures_util::future::join_all;
use mingle_model::{Level, Name, Origin, Principal, Time, TransactionId};
use mingle_store::{Bytes, RecordKind, StoreError};

use crate::api::error::Error;
use crate::in_flight::table::Left;
use crate::recovery::Recovery;
use crate::recovery::abandon::Abandoned;

/// A transaction that is not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Its id.
    pub id: TransactionId,
    /// Its name.
    pub transaction: Name,
    /// The caller, if it has a name.
    pub principal: Option<Principal>,
    /// The time of the call, by the clock of the process that ran it.
    pub since: Time,
    /// The store that holds its intent.
    pub intent: Name,
    /// The stores that it must still visit.
    pub missing: Vec<Name>,
    /// The stores for which this is not known, since they do not answer.
    pub unanswered: Vec<Name>,
    /// The reason why it cannot be finished, if that was tried.
    pub parked: Option<String>,
}

/// A store, or one replica of it, that could not be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// The store.
    pub store: Name,
    /// Its replica; none for the one copy.
    pub replica: Option<Name>,
    /// The error with which the request failed.
    pub error: StoreError,
}

/// Transactions that are unfinished or abandoned, from the stores that answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Transactions that are not finished.
    pub unfinished: Vec<Unfinished>,
    /// Transactions that an operator has ended.
    pub abandoned: Vec<Abandoned>,
    /// Stores and replicas that could not be asked.
    pub unreachable: Vec<Unreachable>,
}

/// The state of a store's replica, or of its one copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The store.
    pub store: Name,
    /// Its replica; none for the one copy.
    pub replica: Option<Name>,
    /// The store's guarantee.
    pub level: Level,
    /// The time that it took to answer all requests.
    pub took: Duration,
    /// The records that it holds, or the reason why it does not answer.
    pub holds: Result<Holdings, StoreError>,
}

/// The number of records of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Intents: transactions that began here and are not cleaned up.
    pub intents: usize,
    /// Commit witnesses: phases that have committed here and are not cleaned up.
    pub witnesses: usize,
    /// Witness rows: objects whose readers have to wait for a transaction at other stores.
    pub rows: usize,
    /// Transactions that a store has refused to finish.
    pub parked: usize,
}

/// A process that has left records at some store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The origin in the ids of its transactions.
    pub origin: Origin,
    /// The number of its transactions that are not cleaned up.
    pub transactions: usize,
    /// The number of these transactions that a store has refused to finish.
    pub parked: usize,
    /// The stores that hold its lease.
    pub leases: Vec<Name>,
    /// True if its lease has changed between two looks.
    pub is_alive: bool,
    /// True if another process has taken it for dead and finishes its transactions.
    pub is_fenced: bool,
}

/// The state of all stores, and of the processes that have left records there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Every replica of every store.
    pub places: Vec<Place>,
    /// Processes, by origin.
    pub processes: Vec<Process>,
}

/// The transactions that one process has begun and not cleaned up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// The number of its transactions.
    pub open: usize,
    /// The number of those whose phases run, or must still run.
    pub running: usize,
    /// The number of those that a store has refused to finish.
    pub parked: usize,
    /// The age of the oldest of them.
    pub oldest: Duration,
    /// The number of finished transactions whose records must still be removed, by store.
    pub to_clean: BTreeMap<Name, usize>,
    /// The age of the oldest of those, by store.
    pub lag: BTreeMap<Name, Duration>,
    /// The number of witness rows that its transactions have left and that are not removed, by store; rows
    /// that they have passed on for others are not included.
    pub rows: BTreeMap<Name, usize>,
}

/// The answer of one place about the processes that have left records there.
#[derive(Default)]
struct Told {
    holdings: Holdings,
    intents: BTreeMap<Origin, BTreeSet<u64>>,
    parked: BTreeMap<Origin, usize>,
    leases: BTreeMap<Origin, Bytes>,
    fenced: BTreeSet<Origin>,
}

impl Recovery {
    /// The transactions that this process has begun and not cleaned up.
    pub(crate) fn backlog(&self) -> Backlog {
        let now = self.stores.world.elapsed();
        let sums = self.in_flight.table().sums();
        let named = |store: &usize| self.stores.name_at(*store);
        let age = |since: &Duration| now.saturating_sub(*since);
        Backlog {
            open: sums.open,
            running: sums.running,
            parked: sums.parked,
            oldest: sums.oldest.as_ref().map(age).unwrap_or_default(),
            to_clean: sums.to_clean.iter().map(|(at, (count, _))| (named(at), *count)).collect(),
            lag: sums.to_clean.iter().map(|(at, (_, since))| (named(at), age(since))).collect(),
            rows: self.stores.cache().rows_at().iter().map(|(at, n)| (named(at), *n)).collect(),
        }
    }

    /// The transactions of all origins that are not finished.
    pub(crate) async fn unfinished(&self) -> Result<Vec<Unfinished>, Error> {
        let found = self.left_behind().await?;
        match found.unreachable.into_iter().next() {
            Some(unreachable) => Err(Error::Store(unreachable.error)),
            None => Ok(found.unfinished),
        }
    }

    /// The unfinished and abandoned transactions at all stores that answer, and
    /// the stores that do not answer.
    pub(crate) async fn left_behind(&self) -> Result<Found, Error> {
        let asked = self.all_places().into_iter().map(|(store, replica)| async move {
            let keys = self.stores.all_records(store, replica.as_ref(), RecordKind::Intent, None);
            let keys = self.in_time((store, replica.as_ref()), keys).await;
            (store, replica, keys)
        });
        let (mut ids, mut found) = (BTreeMap::new(), Found::default());
        for (store, replica, keys) in join_all(asked).await {
            match keys {
                Ok(keys) => {
                    for (key, _) in keys {
                        if let Some((id, 0)) = key.transaction() {
                            ids.entry(id).or_insert(store);
                        }
                    }
                }
                Err(error) => {
                    let store = self.stores.name_at(store);
                    found.unreachable.push(Unreachable { store, replica, error });
                }
            }
        }
        let away: BTreeSet<Name> =
            found.unreachable.iter().map(|unreachable| unreachable.store.clone()).collect();
        for (id, store) in ids {
            found.unfinished.extend(self.described(id, store, &away).await?);
        }
        for store in 0..self.stores.all.len() {
            if !away.contains(&self.stores.name_at(store)) {
                found.abandoned.extend(self.abandoned_at(store).await?);
            }
        }
        Ok(found)
    }

    async fn described(
        &self,
        id: TransactionId,
        store: usize,
        away: &BTreeSet<Name>,
    ) -> Result<Option<Unfinished>, Error> {
        let place = self.stores.name_at(store);
        let Some((intent, parked)) =
            self.executor.intent_and_mark(id, &place).await.map_err(Error::Store)?
        else {
            return Ok(None);
        };
        let (transaction, since) = (intent.transaction.clone(), intent.now);
        let principal = intent.principal.clone();
        let mut left = Left::default();
        self.executor.leaves(id, &place, &mut left).await.map_err(Error::Store)?;
        let (mut missing, mut unanswered) = (Vec::new(), Vec::new());
        for witness in left.witnesses {
            let name = self.stores.name_at(witness);
            if away.contains(&name) {
                unanswered.push(name);
            } else if !self.is_witnessed_anywhere(id, witness).await.map_err(Error::Store)? {
                missing.push(name);
            }
        }
        if missing.is_empty() && unanswered.is_empty() && parked.is_none() {
            return Ok(None);
        }
        let intent = place;
        let left =
            Unfinished { id, transaction, principal, since, intent, missing, unanswered, parked };
        Ok(Some(left))
    }

    /// Asks every replica of every store for its records. Leases are read twice, since only a
    /// lease that changes shows that its process lives: this takes a little longer than the time between two renewals.
    pub(crate) async fn survey(&self) -> Survey {
        let places = self.all_places();
        let asked = places.iter().map(|(store, replica)| async move {
            let began = self.stores.world.elapsed();
            let told =
                self.in_time((*store, replica.as_ref()), self.told(*store, replica.as_ref())).await;
            (told, self.stores.world.elapsed().saturating_sub(began))
        });
        let answers = join_all(asked).await;
        let has_leases = |(told, _): &(Result<Told, StoreError>, _)| {
            told.as_ref().is_ok_and(|told| !told.leases.is_empty())
        };
        let mut later: Vec<BTreeMap<Origin, Bytes>> = vec![BTreeMap::new(); places.len()];
        if answers.iter().any(has_leases) {
            self.stores.world.sleep(self.stores.settings.sweep_every * 3 / 2).await;
            let asked = places.iter().map(|(store, replica)| async move {
                let leases = self.leases(*store, replica.as_ref());
                self.in_time((*store, replica.as_ref()), leases).await.unwrap_or_default()
            });
            later = join_all(asked).await;
        }
        let processes = self.processes(&places, &answers, &later);
        let all = places.into_iter().zip(answers).map(|((store, replica), (told, took))| Place {
            store: self.stores.name_at(store),
            replica,
            level: self.stores.all[store].capabilities().level,
            took,
            holds: told.map(|told| told.holdings),
        });
        Survey { places: all.collect(), processes }
    }

    fn processes(
        &self,
        places: &[(usize, Option<Name>)],
        answers: &[(Result<Told, StoreError>, Duration)],
        later: &[BTreeMap<Origin, Bytes>],
    ) -> Vec<Process> {
        let mut processes: BTreeMap<Origin, (Process, BTreeSet<u64>)> = BTreeMap::new();
        for (((store, _), (told, _)), later) in places.iter().zip(answers).zip(later) {
            let Ok(told) = told else { continue };
            let origins: BTreeSet<Origin> = told
                .intents
                .keys()
                .chain(told.leases.keys())
                .chain(&told.fenced)
                .copied()
                .collect();
            for origin in origins {
                let (process, ids) = processes
                    .entry(origin)
                    .or_insert_with(|| (Process::of(origin), BTreeSet::new()));
                ids.extend(told.intents.get(&origin).into_iter().flatten());
                process.parked = process.parked.max(told.parked.get(&origin).copied().unwrap_or(0));
                process.is_fenced |= told.fenced.contains(&origin);
                if let Some(first) = told.leases.get(&origin) {
                    let name = self.stores.name_at(*store);
                    if !process.leases.contains(&name) {
                        process.leases.push(name);
                    }
                    process.is_alive |= later.get(&origin).is_some_and(|second| second != first);
                }
            }
        }
        let counted = processes.into_values().map(|(mut process, ids)| {
            process.transactions = ids.len();
            process
        });
        counted.collect()
    }

    async fn told(&self, store: usize, replica: Option<&Name>) -> Result<Told, StoreError> {
        let mut told = Told::default();
        for (key, _) in self.stores.all_records(store, replica, RecordKind::Intent, None).await? {
            if let Some((id, 0)) = key.transaction() {
                told.intents.entry(id.origin).or_default().insert(id.sequence);
                told.holdings.intents += 1;
            }
        }
        for (key, _) in self.stores.all_records(store, replica, RecordKind::Witness, None).await? {
            told.holdings.witnesses += usize::from(matches!(key.transaction(), Some((_, 0))));
        }
        for (key, _) in self.stores.all_records(store, replica, RecordKind::Parked, None).await? {
            if let Some((id, 0)) = key.transaction() {
                *told.parked.entry(id.origin).or_default() += 1;
                told.holdings.parked += 1;
            }
        }
        for (key, _) in self.stores.all_records(store, replica, RecordKind::Fence, None).await? {
            told.fenced.extend(key.origin());
        }
        told.leases = self.leases(store, replica).await?;
        told.holdings.rows = self.stores.all_rows(store, replica, None).await?.len();
        Ok(told)
    }

    async fn leases(
        &self,
        store: usize,
        replica: Option<&Name>,
    ) -> Result<BTreeMap<Origin, Bytes>, StoreError> {
        let leases = self.stores.all_records(store, replica, RecordKind::Lease, None).await?;
        Ok(leases.into_iter().filter_map(|(key, sign)| Some((key.origin()?, sign))).collect())
    }

    /// Every replica of every store.
    fn all_places(&self) -> Vec<(usize, Option<Name>)> {
        let of =
            |store| self.stores.replicas(store).into_iter().map(move |replica| (store, replica));
        (0..self.stores.all.len()).flat_map(of).collect()
    }

    /// A store's answer, if it comes within the deadline of a call.
    async fn in_time<T>(
        &self,
        (store, replica): (usize, Option<&Name>),
        asking: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let since = self.stores.world.elapsed();
        let answer =
            self.stores.by(since.saturating_add(self.stores.settings.deadline), asking).await;
        answer.unwrap_or_else(|| Err(self.stores.silent(store, replica, since)))
    }
}

impl Process {
    fn of(origin: Origin) -> Self {
        Self {
            origin,
            transactions: 0,
            parked: 0,
            leases: Vec::new(),
            is_alive: false,
            is_fenced: false,
        }
    }
}
