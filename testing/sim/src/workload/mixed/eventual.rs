//! Judges eventual stores together with all others, by the two projections of Definition 4.1 that
//! contain them.
//!
//! The weakest level promises that replicas converge. The causal projection promises nothing about
//! reads at eventual stores, but everything about all other reads, also of sessions that visit
//! eventual stores. So it is judged with the eventual stores in it: a read there that does not fit is
//! granted and counted, and belongs to an unrelated transaction from then on. It must still be a
//! read of a value that a transaction has written. Causality that passes through an eventual store can
//! show a documented anomaly at the other stores; it is granted and counted as there.

use std::collections::{BTreeMap, BTreeSet};

use mingle_checker::history::Transaction;
use mingle_checker::{History as Checked, Model, Verdict, check};

use super::{Demand, PART, Told, broken, operations, split, told_as};
use crate::workload::calls::Store;
use crate::workload::checked::finals;
use crate::workload::history::{End, History};
use crate::workload::promises::Broken;

/// The documented anomaly of a read at an eventual store.
pub(super) const GRANTED: &str = "exception: an eventual store read out of causal order";

/// The count of transactions whose reads at eventual stores are judged with all stores.
pub(super) const JUDGED: &str =
    "transactions with reads at eventual stores, judged with all stores";

/// Judges all stores after the exceptions of the causal ones; returns the further ones, and the counts of
/// reads at eventual stores.
pub(super) fn judge(
    history: &History,
    causal: &Demand,
    mut told: BTreeMap<usize, Told>,
) -> Result<(Vec<Told>, BTreeMap<String, u64>), Broken> {
    converged(history, causal)?;
    let readers: BTreeSet<usize> =
        (0..history.operations.len()).filter(|index| reads(history, *index)).collect();
    let (mut apart, mut granted) = (BTreeSet::new(), Vec::new());
    loop {
        let whole = Checked::new(told_as(history, causal, &told, Some(&apart)));
        let whole = whole.map_err(|error| broken(error.to_string()))?;
        let Verdict::Violated(found) = check(&whole, causal.model) else { break };
        let concerned = operations(history, &found);
        let reader = concerned.intersection(&readers).find(|one| !apart.contains(*one));
        if let Some(reader) = reader {
            apart.insert(*reader);
        } else if let Some((index, next)) = split(history, causal, &found, &told) {
            told.insert(index, next);
            granted.push(next);
        } else {
            return Err(broken(Verdict::Violated(found).to_string()));
        }
    }
    let counts = [(JUDGED, readers.len()), (GRANTED, apart.len())].into_iter();
    let counts = counts.filter(|(name, count)| *name == JUDGED || *count > 0);
    Ok((granted, counts.map(|(name, count)| (name.to_owned(), count as u64)).collect()))
}

/// True if an operation has read a log at an eventual store.
fn reads(history: &History, index: usize) -> bool {
    let End::Done { seen, .. } = &history.operations[index].end else { return false };
    let is_eventual = |store: &Store| history.eventual.contains(store);
    seen.iter().any(|(object, _)| is_eventual(&object.store()) && !object.is_sheet())
}

/// Judges all stores by convergence, with the final reads of every replica.
fn converged(history: &History, causal: &Demand) -> Result<(), Broken> {
    let mut all = told_as(history, causal, &BTreeMap::new(), Some(&BTreeSet::new()));
    for store in Store::ALL {
        let place = PART * (10 + store as i64);
        let reads = finals(history, store).into_iter();
        all.extend(reads.map(|read| Transaction { id: read.id + place, ..read }));
    }
    let all = Checked::new(all).map_err(|error| broken(error.to_string()))?;
    let verdict = check(&all, Model::Convergence);
    if verdict.is_violated() { Err(broken(verdict.to_string())) } else { Ok(()) }
}
