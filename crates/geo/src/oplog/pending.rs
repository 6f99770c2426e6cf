//! The transactions that are not folded everywhere, and the snapshot up to which folding is
//! allowed.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::timestamp::{DcId, Timestamp};
use crate::tx::Transaction;
use crate::vector::{DCS_MAX, Vector};

/// For each origin: the transactions with operations here that are not folded everywhere, by
/// timestamp.
#[derive(Clone, Debug, Default)]
pub struct Pending([VecDeque<Arc<Transaction>>; DCS_MAX + 1]);

impl Pending {
    /// Adds a transaction, unless it is already here.
    pub fn insert(&mut self, transaction: &Arc<Transaction>) {
        let timestamp = transaction.timestamp();
        let Some(pending) = self.0.get_mut(usize::from(transaction.origin.0)) else { return };
        // Usually it is the last.
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

    /// Returns the largest snapshot within this one that contains every transaction its entries
    /// reach. A snapshot may reach a transaction of one origin and lack it, because it lacks a
    /// transaction of a third origin that this one had seen. If two replicas folded at two such
    /// snapshots, neither would have all transactions of an origin that the other has (see
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

    /// Removes leading transactions that `snapshot` covers: they may be folded.
    pub fn settle(&mut self, snapshot: &Vector) {
        for pending in &mut self.0 {
            while pending.front().is_some_and(|first| snapshot.covers(&first.commit_vec)) {
                pending.pop_front();
            }
        }
    }

    /// Drops the transactions of a data center above a cut.
    pub fn cut_off(&mut self, dc: DcId, at: Timestamp) {
        if let Some(pending) = self.0.get_mut(usize::from(dc.0)) {
            pending.retain(|it| it.timestamp() <= at);
        }
    }

    /// Returns all pending transactions.
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
        // The second transaction of d1 has seen one of d0, which has seen one of d2. They arrive in
        // another order than they were committed in.
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
