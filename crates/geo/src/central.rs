//! One certification service for all partitions. The paper's baseline `RedBlue` has it instead of a
//! log for each partition (UniStore, §8.1).
//!
//! The service is the group of the first partition. Sessions send it everything that a strong
//! transaction touches and writes, so its log alone decides and orders all strong transactions. In
//! each data center the service sends each partition the operations that the partition must apply,
//! in the order of strong timestamps, as intervals. A partition that lacks something below the
//! start of an interval ignores the interval, reports its state, and is served again from there. So
//! messages may be lost and may arrive in any order.
//!
//! # Departures
//!
//! - The service sends deliveries on its ticks and not after each decision. One message for each
//!   partition and decision would be most of the service's work.
//! - A strong transaction may not take away part of a sum: the service has no items, so it cannot
//!   say how much is taken.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::certify::Group;
use crate::timestamp::{Now, PartitionId, Timestamp};
use crate::tx::Transaction;

/// The partition whose group certifies for all partitions.
pub const SERVICE: PartitionId = PartitionId(0);

/// Service to replica: all strong transactions of its partition with timestamps in `(from, to]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Serve {
    /// From here, exclusive.
    pub from: Timestamp,
    /// To here, inclusive.
    pub to: Timestamp,
    /// In the order of their timestamps. None if they are no longer kept one by one: the state must
    /// then be transferred from another data center.
    pub transactions: Option<Vec<Arc<Transaction>>>,
}

/// Replica to service: the strong transactions that the replica has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The sending replica's partition.
    pub partition: PartitionId,
    /// The replica has all strong transactions up to here.
    pub known: Timestamp,
    /// All replicas of its partition have them up to here, as far as the sender knows.
    pub everywhere: Timestamp,
}

/// The transactions already served to a partition.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    sent: Timestamp,
    /// The time of the last message to it.
    sent_us: u64,
    everywhere: Timestamp,
}

/// The serving side of the service, for the partitions of one data center.
#[derive(Clone, Debug)]
pub struct Service {
    /// By partition. The service's own row is not used.
    rows: Vec<Row>,
    again_us: u64,
}

impl Service {
    /// Creates the service for `partition_count` partitions. Unconfirmed transactions are sent
    /// again after `retry_ms`.
    pub fn new(partition_count: u16, retry_ms: u64) -> Self {
        let rows = vec![Row::default(); usize::from(partition_count)];
        Self { rows, again_us: retry_ms.saturating_mul(1_000) }
    }

    /// Handles a partition's report of its state.
    pub fn on_held(&mut self, now: Now, held: &Held) {
        let Some(row) = self.rows.get_mut(usize::from(held.partition.0)) else { return };
        row.everywhere = row.everywhere.max(held.everywhere);
        // A message that was sent recently may still be on its way.
        let is_overdue = row.sent_us.saturating_add(self.again_us) <= now.mono_us;
        if held.known > row.sent || held.known < row.sent && is_overdue {
            row.sent = held.known;
        }
    }

    /// Returns the timestamp up to which all replicas of all other partitions have everything on
    /// disk, as far as known; `None` if there are no other partitions.
    pub fn everywhere(&self) -> Option<Timestamp> {
        self.rows.iter().skip(1).map(|row| row.everywhere).min()
    }

    /// Returns the messages to the partitions, one for each partition with new transactions.
    pub fn serve(&mut self, now: Now, group: &Group) -> Vec<(PartitionId, Serve)> {
        let count = self.rows.len() as u16;
        let mut parts: BTreeMap<Timestamp, Option<(Timestamp, Parts)>> = BTreeMap::new();
        let mut messages = Vec::new();
        for (place, row) in self.rows.iter_mut().enumerate().skip(1) {
            let from = row.sent;
            // Usually all partitions have been sent the same interval.
            let part = parts.entry(from).or_insert_with(|| match group.certifier().deliver(from) {
                Ok(delivery) => delivery.map(|new| (new.to, split(&new.transactions, count))),
                Err(_) => Some((group.certifier().complete(), Parts::Dropped)),
            });
            let Some((to, part)) = part else { continue };
            let transactions = match part {
                Parts::Of(parts) => Some(parts.remove(&place).unwrap_or_default()),
                Parts::Dropped if row.sent_us.saturating_add(self.again_us) > now.mono_us => {
                    continue;
                }
                Parts::Dropped => None,
            };
            if transactions.is_some() {
                row.sent = *to;
            }
            row.sent_us = now.mono_us;
            messages.push((PartitionId(place as u16), Serve { from, to: *to, transactions }));
        }
        messages
    }
}

/// The transactions to deliver, by partition.
enum Parts {
    Of(BTreeMap<usize, Vec<Arc<Transaction>>>),
    /// They are no longer kept.
    Dropped,
}

/// Returns the part of a transaction that concerns one partition.
pub fn part_of(transaction: &Transaction, partition: PartitionId, count: u16) -> Arc<Transaction> {
    let of = transaction.updates.iter();
    let updates = of.filter(|update| update.key.partition(count) == partition).cloned();
    Arc::new(Transaction { updates: updates.collect(), ..transaction.clone() })
}

fn split(transactions: &[Arc<Transaction>], count: u16) -> Parts {
    let mut parts: BTreeMap<usize, Vec<Arc<Transaction>>> = BTreeMap::new();
    for transaction in transactions {
        let mut partitions: Vec<PartitionId> =
            transaction.updates.iter().map(|update| update.key.partition(count)).collect();
        partitions.sort_unstable();
        partitions.dedup();
        for partition in partitions {
            let part = part_of(transaction, partition, count);
            parts.entry(usize::from(partition.0)).or_default().push(part);
        }
    }
    Parts::Of(parts)
}

#[cfg(test)]
mod tests {
    use mingle_model::{Origin, TransactionId};

    use super::*;
    use crate::key::Key;
    use crate::timestamp::DcId;
    use crate::types::{Kind, Op, Update};
    use crate::vector::Vector;

    #[test]
    fn a_partition_is_handed_what_is_its_own() {
        let count = 4;
        let keys = (0..20).map(|at| Key::new(Kind::Counter, format!("key:{at}")));
        let updates: Vec<Update> =
            keys.map(|key| Update { key, op: Op::Add(1), id: None }).collect();
        let transaction = Transaction {
            id: TransactionId { origin: Origin(1), sequence: 1 },
            begun_us: 1,
            origin: DcId::STRONG,
            commit_vec: Vector::ZERO.with(DcId::STRONG, Timestamp(9)),
            snapshot_own: Timestamp::ZERO,
            updates: updates.clone(),
        };
        let Parts::Of(parts) = split(&[Arc::new(transaction)], count) else { panic!("it is kept") };
        let mut handed = 0;
        for (place, transactions) in &parts {
            for update in transactions.iter().flat_map(|part| &part.updates) {
                assert_eq!(usize::from(update.key.partition(count).0), *place);
                handed += 1;
            }
        }
        assert_eq!((handed, parts.len()), (updates.len(), 4));
    }

    #[test]
    fn what_was_not_confirmed_in_time_is_sent_again() {
        let at = |mono_us| Now { wall_us: 1_000_000, mono_us };
        let mut service = Service::new(2, 100);
        (service.rows[1].sent, service.rows[1].sent_us) = (Timestamp(50), 1_000);
        let held =
            Held { partition: PartitionId(1), known: Timestamp(20), everywhere: Timestamp(10) };
        service.on_held(at(2_000), &held);
        assert_eq!(
            (service.rows[1].sent, service.everywhere()),
            (Timestamp(50), Some(Timestamp(10)))
        );
        service.on_held(at(200_000), &held);
        assert_eq!(service.rows[1].sent, Timestamp(20));
    }
}
