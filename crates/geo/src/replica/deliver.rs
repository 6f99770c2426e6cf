//! Delivery of certified strong transactions (3:4-8).

use std::sync::Arc;

use super::Replica;
use crate::error::Refusal;
use crate::record::{Alarm, Interval, Record};
use crate::timestamp::{DcId, Now, Timestamp};
use crate::tx::Transaction;
use crate::types::Update;
use crate::vector::Vector;

/// All strong transactions of this partition up to a timestamp that were not delivered before.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// Up to here, inclusive.
    pub to: Timestamp,
    /// In the order of their strong timestamps; their origin is [`DcId::STRONG`].
    pub transactions: Vec<Arc<Transaction>>,
}

impl Replica {
    /// DELIVER_UPDATES. Transactions that were delivered before are skipped, so the call may be
    /// repeated.
    pub(super) fn on_deliver(&mut self, now: Now, delivery: Delivery) {
        if self.is_over() {
            return;
        }
        let strong = DcId::STRONG;
        let known = self.known_vec[strong];
        let is_sound = delivery.transactions.iter().all(|transaction| {
            transaction.origin == strong
                && transaction.timestamp() <= delivery.to
                && self.fits_here(transaction)
        });
        if !is_sound {
            return self.alarm(Alarm::Malformed("a delivery of strong transactions"));
        }
        if delivery.to <= known {
            return;
        }
        let new = delivery.transactions.into_iter();
        let new: Vec<_> = new.filter(|transaction| transaction.timestamp() > known).collect();
        for transaction in &new {
            self.apply(transaction);
        }
        self.known_vec[strong] = delivery.to;
        self.write(Record::Delivered(Interval {
            origin: strong,
            to: delivery.to,
            transactions: new,
            floors: Vec::new(),
        }));
        self.wake(now);
    }

    /// Returns the updates of a strong transaction as they are replicated, or `None` while its
    /// snapshot is not here.
    ///
    /// # Errors
    ///
    /// [`Refusal::SnapshotTooOld`] if the snapshot can no longer be read.
    pub(crate) fn measure_strong(
        &mut self,
        now: Now,
        snap_vec: &Vector,
        updates: &[Update],
    ) -> Result<Option<Vec<Update>>, Refusal> {
        if !updates.iter().any(|update| update.op.measures()) {
            return Ok(Some(updates.to_vec()));
        }
        if self.check_snapshot(now, snap_vec).is_err() || !self.has_reached(now, snap_vec) {
            return Ok(None);
        }
        self.measure(snap_vec, updates.to_vec()).map(Some)
    }

    /// Returns the highest strong timestamp that any partition of this data center has reached.
    pub fn strong_ahead(&self) -> Timestamp {
        let known = self.local_matrix.iter().map(|row| row.known_vec[DcId::STRONG]);
        known.max().unwrap_or_default()
    }

    /// Returns the lowest strong timestamp that the replicas of this partition at all data centers
    /// are known to have reached.
    pub fn strong_everywhere(&self) -> Timestamp {
        self.strong_known().into_iter().min().unwrap_or_default()
    }

    /// Returns the strong timestamp that `f + 1` of these replicas are known to have reached.
    pub fn strong_uniform(&self) -> Timestamp {
        let mut known = self.strong_known();
        known.sort_unstable_by(|one, other| other.cmp(one));
        known.get(usize::from(self.config.f)).copied().unwrap_or_default()
    }

    /// Returns the strong timestamps that the replicas of this partition are known to have on disk.
    fn strong_known(&self) -> Vec<Timestamp> {
        let strong = DcId::STRONG;
        let own = self.local_matrix[usize::from(self.config.partition.0)].known_vec[strong];
        let others = self.others_in();
        let others = others.map(|dc| self.global_matrix[usize::from(dc.0)][strong]);
        others.chain([own]).collect()
    }
}
