//! Transactions that are not folded everywhere, and how far may be folded.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::timestamp::{DcId, Timestamp};
use crate::tx::Transaction;
use crate::vector::{DCS_MAX, Vector};

/// By origin: the transactions that have operations here which are not folded everywhere, in the order of
/// their timestamps.
#[derive(Clone, Debug, Default)]
pub struct Pending([VecDeque<Arc<Transaction>>; DCS_MAX + 1]);

impl Pending {
    /// Adds a transaction, unless it is here.
    pub fn insert(&mut self, transaction: &Arc<Transaction>) {
        let timestamp = transaction.timestamp();
        let Some(pending) = self.0.get_mut(usize::from(transaction.origin.0)) else { return };
        // Mostly it is the last.
        let place = match pending.back() {
            Some(last) if last.timestamp() >= timestamp => {
                match pending.binary_search_by_key(&timestamp, |it| it.timestamp()) {
                    Ok(_) => return,
                    Err(place) => place,
                }
            }
            _ => pending.len(),
        };
        pending.insert(place, transaction.clone());
    }

    /// The largest snapshot within this one that holds whatever it reaches to. Another may lack what it
    /// reaches to of one origin, since it lacks of a third what that had seen; of two that are folded so,
    /// neither would have all of an origin that either has (see
    /// [`State::join`](crate::types::State::join)).
    pub fn closed(&self, mut snapshot: Vector) -> Vector {
        let mut is_closed = false;
        while !is_closed {
            is_closed = true;
            for (origin, pending) in self.0.iter().enumerate() {
                let origin = DcId(origin as u8);
                let to = snapshot[origin];
                let mut reached = pending.iter().take_while(|it| it.timestamp() <= to);
                if let Some(lacking) = reached.find(|it| !snapshot.covers(&it.commit_vec)) {
                    snapshot[origin] = Timestamp(lacking.timestamp().0.saturating_sub(1));
                    is_closed = false;
                }
            }
        }
        snapshot
    }

    /// What a snapshot holds may be folded.
    pub fn settle(&mut self, snapshot: &Vector) {
        for pending in &mut self.0 {
            while pending.front().is_some_and(|first| snapshot.covers(&first.commit_vec)) {
                pending.pop_front();
            }
        }
    }

    /// Drops those of a data center above a cut.
    pub fn cut_off(&mut self, dc: DcId, at: Timestamp) {
        if let Some(pending) = self.0.get_mut(usize::from(dc.0)) {
            pending.retain(|it| it.timestamp() <= at);
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Transaction>> {
        self.0.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use mingle_model::{Origin, TransactionId};

    use super::*;

    fn vector(entries: [u64; 3]) -> Vector {
        let entries = (0..).map(DcId).zip(entries);
        entries.fold(Vector::ZERO, |vector, (dc, entry)| vector.with(dc, Timestamp(entry)))
    }

    fn transaction(origin: u8, commit: [u64; 3]) -> Arc<Transaction> {
        let sequence = commit[usize::from(origin)];
        Arc::new(Transaction {
            id: TransactionId { origin: Origin(origin.into()), sequence },
            begun_us: 0,
            origin: DcId(origin),
            commit_vec: vector(commit),
            snapshot_own: Timestamp::ZERO,
            updates: Vec::new(),
        })
    }

    #[test]
    fn closed_stops_below_what_lacks_something() {
        let mut pending = Pending::default();
        // Of d1 the second has seen something of d0 that itself has seen something of d2; they come
        // in another order than they were committed in.
        for transaction in [
            transaction(1, [9, 20, 0]),
            transaction(1, [0, 10, 0]),
            transaction(1, [0, 30, 0]),
            transaction(0, [9, 0, 50]),
        ] {
            pending.insert(&transaction);
        }
        assert_eq!(pending.closed(vector([9, 30, 50])), vector([9, 30, 50]));
        assert_eq!(pending.closed(vector([9, 30, 49])), vector([8, 19, 49]));
        assert_eq!(pending.closed(vector([9, 15, 49])), vector([8, 15, 49]));
        assert_eq!(pending.closed(vector([0, 5, 0])), vector([0, 5, 0]));
        pending.insert(&transaction(1, [0, 10, 0]));
        assert_eq!(pending.iter().count(), 4);
        pending.settle(&vector([8, 19, 49]));
        assert_eq!(pending.iter().count(), 3);
        pending.cut_off(DcId(1), Timestamp(20));
        assert_eq!(pending.iter().count(), 2);
    }
}
