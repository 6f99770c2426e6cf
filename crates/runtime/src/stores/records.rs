//! The runtime's own rows at stores, read and written outside any transaction of a program.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use mingle_model::{Name, Origin, TransactionId, WitnessRow};
use mingle_store::record::{floor, read_floor};
use mingle_store::{
    Answer, Bytes, Commit, Data, Guard, Read, RecordKey, RecordKind, Session as StoreSession,
    StoreError, Transaction, Write,
};

use tracing::Instrument as _;

use crate::api::error::Error;
use crate::api::settings::{BATCH, REMOVAL_PAUSE_MAX, REMOVED_AT_ONCE};
use crate::protocol::intent::{Unreadable, first_part};
use crate::stores::Stores;

impl Stores {
    /// Raises an origin's floor at a store, unless it is as high already: it never sinks.
    pub(crate) async fn raise_at(
        &self,
        store: usize,
        replica: Option<&Name>,
        last: TransactionId,
    ) -> Result<(), StoreError> {
        let key = RecordKey::of_origin(RecordKind::Floor, last.origin);
        let session = StoreSession { replica: replica.cloned(), ..StoreSession::default() };
        let mut attempts = 0;
        loop {
            let commit = Commit {
                writes: vec![Write::Record(key.clone(), floor(last.sequence))],
                guards: vec![Guard::Below(key.clone(), last.sequence)],
                ..Commit::default()
            };
            let raising = async { self.all[store].begin(&session).await?.commit(commit).await };
            let since = self.world.elapsed();
            let raised = self.by(since.saturating_add(self.settings.deadline), raising).await;
            match raised.unwrap_or_else(|| Err(self.silent(store, replica, since))) {
                Ok(_) => return Ok(()),
                Err(StoreError::Conflict | StoreError::Unknown { .. }) if attempts < 20 => {}
                Err(error) => return Err(error),
            }
            let read = [Read::Record(key.clone())];
            let answers = self.read_records(store, replica.cloned(), &read).await?;
            if let Some(Data::Record(Some(found))) = answers.first()
                && read_floor(found) >= last.sequence
            {
                return Ok(());
            }
            attempts += 1;
            self.world.sleep(self.backoff(attempts)).await;
        }
    }

    /// True if every replica of these stores has the floor.
    pub(crate) async fn is_raised(
        &self,
        last: TransactionId,
        stores: &BTreeSet<usize>,
    ) -> Result<bool, StoreError> {
        let read = [Read::Record(RecordKey::of_origin(RecordKind::Floor, last.origin))];
        // A store with one copy has all that it has acknowledged.
        for store in stores.iter().filter(|store| self.is_many(**store)) {
            let replicas = self.replicas(*store).into_iter();
            let asked = replicas.map(|replica| self.read_records(*store, replica, &read));
            for answers in join_all(asked).await {
                let answers = answers?;
                let Some(Data::Record(Some(found))) = answers.first() else { return Ok(false) };
                if read_floor(found) < last.sequence {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns removals of all records of these kinds, in their order, whose transactions are in
    /// this range. The kinds are asked for together: the round trips to a distant store dominate
    /// the cost.
    pub(crate) async fn records_between(
        &self,
        store: usize,
        kinds: &[RecordKind],
        first: TransactionId,
        last: TransactionId,
    ) -> Result<Vec<Write>, StoreError> {
        let mut found = vec![Vec::new(); kinds.len()];
        let mut open: Vec<(usize, Bytes)> =
            (0..kinds.len()).map(|at| (at, RecordKey::of(kinds[at], first, 0).key)).collect();
        while !open.is_empty() {
            let read = |(at, from): &(usize, Bytes)| Read::Records {
                kind: kinds[*at],
                from: from.clone(),
                limit: BATCH,
            };
            let reads: Vec<Read> = open.iter().map(read).collect();
            let answers = self.read_records(store, None, &reads).await?;
            for ((at, _), data) in std::mem::take(&mut open).into_iter().zip(answers) {
                let (kind, Data::Records(records)) = (kinds[at], data) else { continue };
                let is_full = records.len() == BATCH;
                let end = RecordKey::of(kind, last, u32::MAX).key;
                match records.last() {
                    Some((key, _)) if is_full && *key <= end => {
                        open.push((at, [&**key, &[0]].concat().into()));
                    }
                    _ => {}
                }
                let within = records.into_iter().filter(|(key, _)| *key <= end);
                found[at].extend(within.map(|(key, _)| Write::Discard(RecordKey { kind, key })));
            }
        }
        Ok(found.concat())
    }

    pub(crate) async fn write_in_batches(
        &self,
        store: usize,
        replica: Option<&Name>,
        writes: Vec<Write>,
    ) -> Result<(), StoreError> {
        let mut batches = writes.chunks(REMOVED_AT_ONCE).peekable();
        while let Some(batch) = batches.next() {
            let begin = self.world.elapsed();
            self.write_records(store, replica.cloned(), batch.to_vec()).await?;
            if batches.peek().is_some() {
                // Most of the time is left to the callers.
                let took = self.world.elapsed().saturating_sub(begin);
                self.world.sleep((took * 2).min(REMOVAL_PAUSE_MAX)).await;
            }
        }
        Ok(())
    }

    /// Reads outside any transaction of a program.
    pub(crate) async fn read_records(
        &self,
        store: usize,
        replica: Option<Name>,
        reads: &[Read],
    ) -> Result<Vec<Data>, StoreError> {
        let session = StoreSession { replica, ..StoreSession::default() };
        let read = async {
            let mut transaction = self.all[store].begin(&session).await?;
            transaction.read(reads).await
        };
        let read = read.instrument(self.request_span(store, "read records"));
        let since = self.world.elapsed();
        let read = self.by(since.saturating_add(self.settings.deadline), read).await;
        let answers =
            read.unwrap_or_else(|| Err(self.silent(store, session.replica.as_ref(), since)));
        let answers = answers.map_err(|error| self.located(store, session.replica.as_ref(), error));
        self.note_answer(store, session.replica.as_ref(), &answers);
        if answers.is_ok() {
            let took = self.world.elapsed().saturating_sub(since);
            self.note_time(store, session.replica.as_ref(), took);
        }
        Ok(answers?.into_iter().map(|answer| answer.data).collect())
    }

    /// Writes records outside any transaction of a program; a repetition changes nothing.
    pub(crate) async fn write_records(
        &self,
        store: usize,
        replica: Option<Name>,
        writes: Vec<Write>,
    ) -> Result<(), StoreError> {
        let session = StoreSession { replica, ..StoreSession::default() };
        let mut attempts = 0;
        loop {
            let commit = Commit { writes: writes.clone(), ..Commit::default() };
            let writing = async { self.all[store].begin(&session).await?.commit(commit).await };
            let writing = writing.instrument(self.request_span(store, "write records"));
            let since = self.world.elapsed();
            let written = self.by(since.saturating_add(self.settings.deadline), writing).await;
            // The write may have happened; the next process that writes the record repeats it.
            let silent = || self.silent(store, session.replica.as_ref(), since);
            match written.unwrap_or_else(|| Err(silent())) {
                Ok(_) => return Ok(()),
                Err(StoreError::Conflict | StoreError::Unknown { .. }) if attempts < 20 => {
                    attempts += 1;
                    self.world.sleep(self.backoff(attempts)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn name_at(&self, store: usize) -> Name {
        self.all[store].capabilities().store.clone()
    }

    /// Returns all records of a kind at a replica, or those of one origin.
    pub(crate) async fn all_records(
        &self,
        store: usize,
        replica: Option<&Name>,
        kind: RecordKind,
        origin: Option<Origin>,
    ) -> Result<Vec<(RecordKey, Bytes)>, StoreError> {
        let mut from: Bytes = origin.map_or_else(
            || Bytes::from([].as_slice()),
            |origin| origin.0.to_be_bytes().as_slice().into(),
        );
        let mut found = Vec::new();
        loop {
            let reads = [Read::Records { kind, from: from.clone(), limit: BATCH }];
            let answers = self.read_records(store, replica.cloned(), &reads).await?;
            let Some(Data::Records(records)) = answers.into_iter().next() else { return Ok(found) };
            let count = records.len();
            for (key, value) in records {
                from = [&*key, &[0]].concat().into();
                let key = RecordKey { kind, key };
                if origin.is_some() && key.origin() != origin {
                    return Ok(found);
                }
                found.push((key, value));
            }
            if count < BATCH {
                return Ok(found);
            }
        }
    }

    /// Returns all witness rows of a store, or those of one origin.
    pub(crate) async fn all_rows(
        &self,
        store: usize,
        replica: Option<&Name>,
        origin: Option<Origin>,
    ) -> Result<Vec<WitnessRow>, StoreError> {
        let first = origin.unwrap_or(Origin(0));
        let mut from = TransactionId { origin: first, sequence: 0 };
        let mut found = Vec::new();
        loop {
            let reads = [Read::Witnesses { from, limit: BATCH }];
            let answers = self.read_records(store, replica.cloned(), &reads).await?;
            let Some(Data::Witnesses(rows)) = answers.into_iter().next() else { return Ok(found) };
            let Some(last) = rows.last().map(|row| row.id) else { return Ok(found) };
            let count = rows.len();
            found.extend(rows.into_iter().filter(|row| origin.is_none_or(|o| row.id.origin == o)));
            if count < BATCH || origin.is_some_and(|origin| last.origin > origin) {
                return Ok(found);
            }
            from = TransactionId { origin: last.origin, sequence: last.sequence + 1 };
        }
    }

    /// Returns the lowest floor of an origin at any replica of a store.
    pub(crate) async fn floor_at(&self, store: usize, origin: Origin) -> Result<u64, StoreError> {
        let read = [Read::Record(RecordKey::of_origin(RecordKind::Floor, origin))];
        let mut lowest = u64::MAX;
        for replica in self.replicas(store) {
            let answers = self.read_records(store, replica, &read).await?;
            let found = match answers.first() {
                Some(Data::Record(Some(found))) => read_floor(found),
                _ => 0,
            };
            lowest = lowest.min(found);
        }
        Ok(lowest)
    }
}

/// Returns the reads that tell if a transaction's commit witness is visible.
pub(crate) fn visible_reads(id: TransactionId) -> [Read; 2] {
    [
        Read::Record(RecordKey::of(RecordKind::Witness, id, 0)),
        Read::Record(RecordKey::of_origin(RecordKind::Floor, id.origin)),
    ]
}

/// True if the answers to [`visible_reads`] show the witness or a floor above it.
pub(crate) fn is_visible(id: TransactionId, answers: &[Data]) -> bool {
    match answers {
        [Data::Record(Some(_)), _] => true,
        [_, Data::Record(Some(found))] => read_floor(found) >= id.sequence,
        _ => false,
    }
}

pub(crate) fn unreadable(what: &str, id: TransactionId) -> Error {
    Error::Unsupported(format!(
        "the {what} of transaction {id} is corrupt, or was written by a newer version"
    ))
}

/// Reads all bytes of a record that is kept in parts, from its first part on.
pub(crate) async fn read_parts(
    transaction: &mut dyn Transaction,
    kind: RecordKind,
    id: TransactionId,
    from: u32,
    first: &[u8],
) -> Result<Vec<u8>, Error> {
    let (count, chunk) = first_part(first).map_err(|Unreadable| unreadable("record", id))?;
    let mut bytes = chunk.to_vec();
    let rest: Vec<Read> =
        (1..count).map(|part| Read::Record(RecordKey::of(kind, id, from + part))).collect();
    if rest.is_empty() {
        return Ok(bytes);
    }
    for answer in transaction.read(&rest).await.map_err(Error::Store)? {
        match answer.data {
            Data::Record(Some(part)) => bytes.extend(&*part),
            // The record is being removed: a conflict now; after that it is gone.
            _ => return Err(Error::Store(mingle_store::StoreError::Conflict)),
        }
    }
    Ok(bytes)
}

pub(crate) fn record_of(answer: Answer) -> Option<mingle_store::Bytes> {
    match answer.data {
        Data::Record(record) => record,
        _ => None,
    }
}
