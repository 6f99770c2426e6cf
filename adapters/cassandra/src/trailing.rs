//! Commit witnesses of later phases: written after their phase's writes are acknowledged, many at a
//! time.
//!
//! The caller need not wait for them. Until a witness is written, its transaction's intent remains,
//! as it does until all replicas have the witness. If this process dies before, any process that
//! finds the intent runs the phase again, with the same result. So a witness that cannot be written
//! is tried again as long as this process lives, and a read of records in this process waits for
//! pending witnesses. Witnesses of one origin share partitions: witnesses that arrive during a
//! write, or soon after it, are written together.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::try_join_all;
use futures_util::lock::Mutex as AsyncMutex;
use mingle_store::StoreError;

use crate::block::Listing;
use crate::change::{Change, RecordPlace};
use crate::limits::{AGAIN_AFTER, TRAILING_AGAIN_MAX, TRAILING_GATHERED_FOR, TRAILING_MAX};
use crate::store::Core;

/// The pending records of one replica.
#[derive(Default)]
pub struct Trailing {
    queue: Mutex<Queue>,
    /// Held by the task that writes.
    turn: AsyncMutex<()>,
}

#[derive(Default)]
struct Queue {
    /// Each record stays until it has been written.
    coming: BTreeMap<RecordPlace, Change>,
    /// True if a task is going to write them.
    is_seen_to: bool,
}

impl Trailing {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds records; returns their number, and true if no task is going to write them.
    fn add(&self, changes: Vec<Change>) -> (usize, bool) {
        let mut queue = self.lock();
        for change in changes {
            if let Change::PutRecord { at, .. } = &change {
                queue.coming.insert(at.clone(), change);
            }
        }
        (queue.coming.len(), !std::mem::replace(&mut queue.is_seen_to, true))
    }

    /// True if any of these is pending, or any record at all if `places` is none.
    fn has(&self, places: Option<&[RecordPlace]>) -> bool {
        let queue = self.lock();
        match places {
            None => !queue.coming.is_empty(),
            Some(places) => places.iter().any(|at| queue.coming.contains_key(at)),
        }
    }

    /// Removes written records, unless a newer one for the same place has arrived.
    fn written(&self, changes: &[Change]) {
        let mut queue = self.lock();
        for change in changes {
            if let Change::PutRecord { at, .. } = change
                && queue.coming.get(at) == Some(change)
            {
                queue.coming.remove(at);
            }
        }
    }

    /// True if all is written, so that the task can end.
    fn is_over(&self) -> bool {
        let mut queue = self.lock();
        queue.is_seen_to = !queue.coming.is_empty();
        !queue.is_seen_to
    }
}

impl Core {
    /// Writes records at a replica soon; those that register blocks go before all others. Waits
    /// only if too many are pending.
    pub(crate) async fn trail(self: &Arc<Self>, replica: usize, records: Vec<Change>) {
        let (count, is_first) = self.trailing[replica].add(records);
        if is_first {
            self.see_to_trailing(replica);
        }
        if count > TRAILING_MAX {
            // The background task handles the result.
            let _ = self.wait_for_trailing(replica).await;
        }
    }

    /// Waits until these records, if they are pending, have been written; waits for all if `places`
    /// is none.
    pub(crate) async fn await_trailing(
        self: &Arc<Self>,
        replica: usize,
        places: Option<&[RecordPlace]>,
    ) -> Result<(), StoreError> {
        if self.trailing[replica].has(places) {
            self.wait_for_trailing(replica).await?;
        }
        Ok(())
    }

    async fn wait_for_trailing(self: &Arc<Self>, replica: usize) -> Result<(), StoreError> {
        let core = Arc::clone(self);
        self.attended(async move { core.write_trailing(replica).await }).await
    }

    fn see_to_trailing(self: &Arc<Self>, replica: usize) {
        let (mut core, world) = (Some(Arc::clone(self)), Arc::clone(&self.world));
        self.world.spawn(Box::pin(async move {
            let mut pause = AGAIN_AFTER;
            // The retries alone must not keep a store open.
            while let Some(open) = core.take() {
                let tried = open.write_trailing(replica).await;
                if tried.is_ok() {
                    world.sleep(TRAILING_GATHERED_FOR).await;
                    if open.trailing[replica].is_over() {
                        return;
                    }
                    (core, pause) = (Some(open), AGAIN_AFTER);
                    continue;
                }
                let weak = Arc::downgrade(&open);
                drop(open);
                world.sleep(pause).await;
                pause = (pause * 2).min(TRAILING_AGAIN_MAX);
                core = weak.upgrade();
            }
        }));
    }

    /// Writes the pending records. If the task is stopped, all of them stay pending.
    async fn write_trailing(&self, replica: usize) -> Result<(), StoreError> {
        let trailing = &self.trailing[replica];
        let _turn = trailing.turn.lock().await;
        let coming: Vec<Change> = trailing.lock().coming.values().cloned().collect();
        let is_listing = |change: &Change| Listing::is_of(&self.layout.area, change);
        let (listings, records): (Vec<Change>, Vec<Change>) =
            coming.into_iter().partition(is_listing);
        let send = |some: Vec<Change>| async move {
            self.send(replica, &some, None).await?;
            trailing.written(&some);
            Ok::<Vec<Change>, StoreError>(some)
        };
        for some in of_each_partition(listings) {
            self.registered.note(&send(some).await?, self.world.elapsed());
        }
        try_join_all(of_each_partition(records).map(send)).await?;
        Ok(())
    }
}

/// Returns records in the order of their places, grouped by partition.
fn of_each_partition(records: Vec<Change>) -> impl Iterator<Item = Vec<Change>> {
    let partitions = records.chunk_by(|a, b| a.partition() == b.partition());
    partitions.map(<[Change]>::to_vec).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(tail: u8, value: u8) -> Change {
        let at = RecordPlace { kind: "a store 3".into(), head: vec![1], tail: vec![tail] };
        Change::PutRecord { at, value: vec![value], time: 1 }
    }

    fn place(change: &Change) -> RecordPlace {
        match change {
            Change::PutRecord { at, .. } => at.clone(),
            other => panic!("{other:?} is no record"),
        }
    }

    #[test]
    fn what_comes_stays_until_it_is_written_itself() {
        let trailing = Trailing::default();
        let (old, new, other) = (put(1, 1), put(1, 2), put(2, 1));
        assert_eq!(trailing.add(vec![old.clone(), other.clone()]), (2, true));
        assert_eq!(trailing.add(vec![new.clone()]), (2, false), "somebody sees to it");
        trailing.written(&[old, other.clone()]);
        assert!(trailing.has(Some(&[place(&new)])), "what was written is older");
        assert!(!trailing.has(Some(&[place(&other)])) && trailing.has(None));
        assert!(!trailing.is_over());
        trailing.written(&[new]);
        assert!(!trailing.has(None) && trailing.is_over());
        assert_eq!(trailing.add(vec![other]), (1, true), "nobody saw to it any more");
    }
}
