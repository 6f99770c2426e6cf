//! `committedCausal`: the transactions of one origin that other data centers may still need.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::floors::Raised;
use crate::limits::{BATCH_BYTES_MAX, BATCH_TRANSACTIONS_MAX};
use crate::timestamp::Timestamp;
use crate::tx::Transaction;

/// Transactions of one origin above a cut, by timestamp.
#[derive(Clone, Debug, Default)]
pub struct Committed {
    transactions: BTreeMap<Timestamp, Arc<Transaction>>,
    /// Floors of operation ids, by the timestamps at which they were raised.
    floors: BTreeMap<Timestamp, Raised>,
    bytes: usize,
    /// Transactions up to here are no longer kept.
    cut: Timestamp,
}

impl Committed {
    /// Keeps a transaction, unless it is at or below the cut.
    pub fn keep(&mut self, transaction: &Arc<Transaction>) {
        let timestamp = transaction.timestamp();
        if timestamp > self.cut {
            let before = self.transactions.insert(timestamp, transaction.clone());
            self.bytes += transaction.weight();
            self.bytes -= before.map_or(0, |before| before.weight());
        }
    }

    /// Keeps a floor that the origin raised, unless it is at or below the cut.
    pub fn keep_floor(&mut self, raised: Raised) {
        if raised.at > self.cut {
            self.floors.insert(raised.at, raised);
        }
    }

    /// Returns the floors that were raised in `(from, to]`.
    pub fn floors(&self, from: Timestamp, to: Timestamp) -> Vec<Raised> {
        if from >= to {
            return Vec::new();
        }
        let range = (Bound::Excluded(from), Bound::Included(to));
        self.floors.range(range).map(|(_, raised)| *raised).collect()
    }

    /// Returns the cut: transactions up to it are no longer kept.
    pub fn cut(&self) -> Timestamp {
        self.cut
    }

    /// Returns a batch of the transactions in `(from, known]`, and the timestamp up to which the
    /// batch is complete.
    pub fn batch(&self, from: Timestamp, known: Timestamp) -> (Vec<Arc<Transaction>>, Timestamp) {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        if from >= known {
            return (batch, from);
        }
        let range = (Bound::Excluded(from), Bound::Included(known));
        for (_, transaction) in self.transactions.range(range) {
            bytes += transaction.weight();
            let is_full = batch.len() >= BATCH_TRANSACTIONS_MAX || bytes > BATCH_BYTES_MAX;
            if is_full && !batch.is_empty() {
                let to = batch.last().map_or(from, |last: &Arc<Transaction>| last.timestamp());
                return (batch, to);
            }
            batch.push(transaction.clone());
        }
        (batch, known)
    }

    /// Drops the transactions that every data center has.
    pub fn prune(&mut self, had_by_all: Timestamp) {
        self.raise_cut(had_by_all);
    }

    /// Drops the oldest transactions until at most `bytes_max` bytes are left. It drops none above
    /// `uniform`, since perhaps no other data center has those.
    pub fn bound(&mut self, bytes_max: usize, uniform: Timestamp) {
        while self.bytes > bytes_max {
            match self.transactions.first_key_value() {
                Some((first, _)) if *first <= uniform => self.drop_up_to(*first),
                _ => return,
            }
        }
    }

    /// Raises the cut: from now on only transactions above `to` are complete.
    pub fn raise_cut(&mut self, to: Timestamp) {
        if to > self.cut {
            self.drop_up_to(to);
        }
    }

    fn drop_up_to(&mut self, to: Timestamp) {
        self.cut = to;
        self.floors.retain(|at, _| *at > to);
        while let Some(entry) = self.transactions.first_entry() {
            if *entry.key() > to {
                return;
            }
            self.bytes -= entry.remove().weight();
        }
    }

    /// Drops everything above `at`, where the origin was cut off.
    pub fn cut_off(&mut self, at: Timestamp) {
        while let Some(entry) = self.transactions.last_entry() {
            if *entry.key() <= at {
                break;
            }
            self.bytes -= entry.remove().weight();
        }
        self.floors.retain(|raised_at, _| *raised_at <= at);
        self.cut = self.cut.min(at);
    }

    /// Returns the timestamp of the last kept transaction.
    pub fn last(&self) -> Option<Timestamp> {
        self.transactions.last_key_value().map(|(timestamp, _)| *timestamp)
    }

    /// A planted mistake ([`Flaw::ForwardLogDropped`](crate::flaw::Flaw)): drops the transactions
    /// up to `to` without raising the cut, as if the rest were complete.
    pub fn forget(&mut self, to: Timestamp) {
        let cut = self.cut;
        self.raise_cut(to);
        self.cut = cut;
    }

    /// Returns all kept transactions, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Transaction>> {
        self.transactions.values()
    }

    /// Returns the approximate number of kept bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
