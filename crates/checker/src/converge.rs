//! Eventual convergence: reads after the system has come to rest agree.
//!
//! A finite history can break this only if its recorder marks transactions as final, which states
//! that the system had come to rest. Without final transactions, every history satisfies it, since
//! replicas may still converge (MixT §4.1: a model holds traces that do not violate its
//! guarantees).

use std::collections::HashMap;

use crate::history::{History, INITIAL, Kind, Outcome};
use crate::verdict::Anomaly;

/// Returns the first disagreement of final reads.
pub(crate) fn check(history: &History) -> Option<Anomaly> {
    let mut writers: HashMap<i64, i64> = HashMap::new();
    for transaction in history.transactions() {
        if transaction.outcome == Outcome::Committed {
            for operation in &transaction.operations {
                if operation.kind == Kind::Write {
                    writers.entry(operation.key).or_insert(transaction.id);
                }
            }
        }
    }
    let mut first: HashMap<i64, (i64, i64)> = HashMap::new();
    let finals = history.transactions().iter().filter(|transaction| transaction.is_final);
    for transaction in finals.filter(|transaction| transaction.outcome == Outcome::Committed) {
        for operation in transaction.operations.iter().filter(|found| found.kind == Kind::Read) {
            let (key, value, reader) = (operation.key, operation.value, transaction.id);
            let &mut known = first.entry(key).or_insert((reader, value));
            if known.1 != value {
                return Some(Anomaly::Diverged { key, reads: [known, (reader, value)] });
            }
            if let Some(&writer) = writers.get(&key).filter(|_| value == INITIAL) {
                return Some(Anomaly::Lost { key, reader, writer });
            }
        }
    }
    None
}
