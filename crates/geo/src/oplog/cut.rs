//! Removal of the operations of a data center that was cut off.

use std::collections::BTreeSet;

use mingle_model::TransactionId;

use super::OpLog;
use crate::timestamp::{DcId, Timestamp};

impl OpLog {
    /// Drops the operations of a data center above a cut; none of them can have been folded.
    /// Returns the ids of the dropped transactions, and true if no remaining state depends on
    /// anything above the cut.
    pub fn cut_off(&mut self, dc: DcId, at: Timestamp) -> (BTreeSet<TransactionId>, bool) {
        let (mut dropped, mut is_clean) = (BTreeSet::new(), true);
        for item in self.items.values_mut() {
            let before = item.entries.len();
            is_clean &= item.base.snapshot[dc] <= at;
            item.entries.retain(|entry| {
                let transaction = &entry.transaction;
                if transaction.commit_vec[dc] <= at {
                    return true;
                }
                if transaction.origin != dc {
                    is_clean = false;
                    return true;
                }
                dropped.insert(transaction.id);
                self.bytes -= entry.weight();
                false
            });
            self.operation_count -= before - item.entries.len();
            if before != item.entries.len() || item.cached.snapshot[dc] > at {
                (item.cached, item.cached_count) = (item.base.clone(), 0);
            }
        }
        if !dropped.is_empty() {
            self.pending.cut_off(dc, at);
            self.derived.rebuild(self.keys.iter(), &self.items);
            self.queue_anew();
        }
        (dropped, is_clean)
    }

    /// Rebuilds the queue of items to fold, and settles the items that have nothing left to fold.
    fn queue_anew(&mut self) {
        self.foldable.clear();
        let mut settled = Vec::new();
        for key in &self.keys {
            let Some(item) = self.items.get_mut(key) else { continue };
            item.is_queued = !item.entries.is_empty();
            self.foldable.extend(item.entries.first().cloned());
            let state = &item.base.state;
            if item.entries.is_empty() && (state.is_blank() || state.remembers_ids()) {
                settled.push(key.clone());
            }
        }
        for key in settled {
            self.settle(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mingle_model::{Origin, Value};

    use super::*;
    use crate::key::Key;
    use crate::tx::Transaction;
    use crate::types::{Kind, Op, Update};
    use crate::vector::Vector;

    fn write(key: &Key, origin: u8, commit: [u64; 2]) -> Arc<Transaction> {
        let commit_vec = Vector::ZERO.with(DcId(0), Timestamp(commit[0]));
        let sequence = commit[usize::from(origin)];
        let op = Op::Write(Value::Int(sequence as i64));
        Arc::new(Transaction {
            id: TransactionId { origin: Origin(origin.into()), sequence },
            begun_us: 0,
            origin: DcId(origin),
            commit_vec: commit_vec.with(DcId(1), Timestamp(commit[1])),
            snapshot_own: Timestamp::ZERO,
            updates: vec![Update { key: key.clone(), op, id: None }],
        })
    }

    #[test]
    fn what_is_above_the_cut_is_gone_and_the_rest_is_folded() {
        let (key, only) = (Key::new(Kind::Register, "k"), Key::new(Kind::Register, "only"));
        let mut log = OpLog::default();
        // The first item of the queue is dropped.
        for transaction in [
            write(&key, 0, [6, 0]),
            write(&key, 0, [5, 0]),
            write(&key, 1, [5, 8]),
            write(&only, 0, [7, 0]),
        ] {
            log.append(&transaction);
        }
        let all = Vector::ZERO.with(DcId(0), Timestamp(9)).with(DcId(1), Timestamp(9));
        log.read(&key, &all).expect("readable");
        let (dropped, is_clean) = log.cut_off(DcId(0), Timestamp(5));
        assert_eq!(dropped.iter().map(|id| id.sequence).collect::<Vec<_>>(), [6, 7]);
        assert!(is_clean);
        assert_eq!((log.operation_count(), log.keys(None).count()), (2, 1));
        let state = log.read(&key, &all).expect("readable");
        let value = state.as_register().expect("a register").value().cloned();
        assert_eq!(value, Some(Value::Int(8)));
        let cut = all.with(DcId(0), Timestamp(5));
        assert_eq!(log.fold_some(&cut, |_, _| false), 1);
        assert_eq!((log.operation_count(), log.bytes()), (0, 0));
    }

    #[test]
    fn what_rests_on_what_goes_is_told() {
        let key = Key::new(Kind::Register, "k");
        let mut log = OpLog::default();
        log.append(&write(&key, 1, [6, 8]));
        assert!(!log.cut_off(DcId(0), Timestamp(5)).1);
    }
}
