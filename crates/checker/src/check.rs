//! The check of one history against one model.

use mingle_model::Level;

use crate::history::{History, Outcome};
use crate::index::{INIT, Index};
use crate::limits::{
    SEARCH_CANDIDATES_MAX, SHRINK_CANDIDATES_MAX, SHRINK_OPERATIONS_MAX, SHRINK_RUNS,
    SHRINK_TRANSACTIONS_MAX,
};
use crate::model::Model;
use crate::serial::Rules;
use crate::verdict::{Anomaly, Basis, Counterexample, Verdict, Witness};
use crate::weak::Found;
use crate::{causal, converge, report, serial, weak};

/// Checks a history against a model.
///
/// # Examples
///
/// ```
/// use mingle_checker::{Model, check, read_text};
///
/// // Both read the initial value, and both write: one update is lost.
/// let history = read_text("r(1,0,1,1)\nw(1,1,1,1)\nr(1,0,2,2)\nw(1,2,2,2)\n").unwrap();
/// assert!(check(&history, Model::CausalPlus).is_satisfied());
/// let verdict = check(&history, Model::Snapshot);
/// assert!(verdict.to_string().contains("T1 -rw(1)-> T2"), "{verdict}");
/// ```
pub fn check(history: &History, model: Model) -> Verdict {
    match model {
        Model::Convergence => convergence(history),
        Model::Mixed => mixed(history),
        _ => ordered(history, model),
    }
}

/// Returns the model of a level (`Level`'s documentation states the promises of each).
pub fn model_of(level: Level) -> Model {
    match level {
        Level::Linearizable => Model::StrictSerializability,
        Level::Snapshot => Model::Snapshot,
        Level::Causal => Model::Causal,
        Level::Eventual => Model::Convergence,
    }
}

/// Returns the events at stores of at least a level (MixT, Definition 4.1), grouped in their
/// transactions. A transaction with an unknown outcome counts in a projection if another
/// transaction saw it there: its phase at a weaker store may still be to come.
pub fn project(history: &History, level: Level) -> History {
    history.keep(|transaction, place| transaction.operations[place].level <= level)
}

fn convergence(history: &History) -> Verdict {
    match converge::check(history) {
        Some(anomaly) => violated(history, Model::Convergence, Basis::Axioms, anomaly),
        None => satisfied(Model::Convergence, Basis::Axioms, Vec::new()),
    }
}

fn satisfied(model: Model, basis: Basis, order: Vec<i64>) -> Verdict {
    Verdict::Satisfied(Witness { model, basis, order, parts: Vec::new() })
}

fn violated(history: &History, model: Model, basis: Basis, anomaly: Anomaly) -> Verdict {
    let transactions = report::transactions(history, &anomaly);
    Verdict::Violated(Counterexample { model, projection: None, basis, anomaly, transactions })
}

/// Checks mixed consistency; reports the strongest level that is violated.
fn mixed(history: &History) -> Verdict {
    let (mut parts, mut unknown) = (Vec::new(), None);
    for level in Level::ALL {
        match check(&project(history, level), model_of(level)) {
            Verdict::Violated(found) => {
                let projection = Some(level);
                return Verdict::Violated(Counterexample { projection, ..found });
            }
            Verdict::Unknown(reason) => unknown = unknown.or(Some(format!("{level}: {reason}"))),
            Verdict::Satisfied(witness) => parts.push(witness),
        }
    }
    if let Some(reason) = unknown {
        return Verdict::Unknown(reason);
    }
    let bases = [Basis::Search, Basis::GivenOrder, Basis::RecordedOrder];
    let used = |basis: &Basis| parts.iter().any(|part| part.basis == *basis);
    let basis = bases.into_iter().find(used).unwrap_or(Basis::Axioms);
    Verdict::Satisfied(Witness { model: Model::Mixed, basis, order: Vec::new(), parts })
}

/// Checks the models that require one or more orders.
fn ordered(history: &History, model: Model) -> Verdict {
    let index = match Index::new(history) {
        Ok(index) => index,
        Err(anomaly) => return violated(history, model, Basis::Axioms, anomaly),
    };
    let found = match model {
        Model::ReadAtomic => weak::read_atomic(&index),
        Model::Causal => causal::check(&index),
        Model::CausalPlus => weak::causal_plus(&index),
        _ => serial::check(&index, rules(model), SEARCH_CANDIDATES_MAX),
    };
    match found {
        Found::Order(order, basis) => match without_time(&index, model) {
            Some(reason) => Verdict::Unknown(reason),
            None => satisfied(model, basis, ids(&index, &order)),
        },
        Found::Cycle(steps, basis) => {
            let anomaly = report::cycle(&index, model, &steps);
            violated(history, model, basis, anomaly)
        }
        Found::NoOrder => no_order(history, model),
        Found::Unknown(reason) => Verdict::Unknown(reason),
    }
}

fn rules(model: Model) -> Rules {
    Rules { is_split: model == Model::Snapshot, real_time: model == Model::StrictSerializability }
}

fn ids(index: &Index, order: &[usize]) -> Vec<i64> {
    let transactions = order.iter().filter_map(|node| index.transaction(*node));
    transactions.map(|transaction| transaction.id).collect()
}

/// Returns the reason why real time was not checked, if the model requires it and the history lacks
/// it.
fn without_time(index: &Index, model: Model) -> Option<String> {
    if model != Model::StrictSerializability {
        return None;
    }
    let all = index.live().filter(|(number, _)| *number != INIT);
    let committed = all.filter_map(|(number, _)| index.transaction(number));
    let without = committed
        .filter(|found| found.outcome == Outcome::Committed && found.interval.is_none())
        .count();
    (without > 0).then(|| {
        format!(
            "the transactions can be ordered, but {without} of them have no begin and end to \
             compare with real time"
        )
    })
}

/// Handles a violation that only a search showed: leaves out operations as long as the history
/// stays a violation. From a history that satisfies a model, operations that no transaction relies
/// on can be left out, so the remainder proves that the whole history violates the model.
fn no_order(history: &History, model: Model) -> Verdict {
    let mut smallest = resolved(history);
    if history.transactions().len() <= SHRINK_TRANSACTIONS_MAX {
        smallest = Shrinking { model, left: SHRINK_OPERATIONS_MAX }.run(smallest);
    }
    let index = Index::new(&smallest)
        .map(|index| serial::check(&index, rules(model), SEARCH_CANDIDATES_MAX));
    if let Ok(Found::Cycle(steps, basis)) = index
        && let Ok(index) = Index::new(&smallest)
    {
        let anomaly = report::cycle(&index, model, &steps);
        return violated(&smallest, model, basis, anomaly);
    }
    violated(&smallest, model, Basis::Search, Anomaly::NoOrder)
}

/// Makes a history without an order smaller, within a bound.
struct Shrinking {
    model: Model,
    /// The number of operations that further tries may examine.
    left: usize,
}

impl Shrinking {
    /// Leaves out runs of operations, long ones first and single ones last, until each operation is
    /// needed or the bound is reached.
    fn run(&mut self, mut smallest: History) -> History {
        let mut width = (operations(&smallest) / SHRINK_RUNS).max(1);
        loop {
            let (smaller, is_changed) = self.pass(smallest, width);
            smallest = smaller;
            if width == 1 && (!is_changed || self.left == 0) {
                return smallest;
            }
            width = (width / 2).max(1);
        }
    }

    /// Makes one pass over all operations, `width` of one transaction at a time, the last ones
    /// first. Returns true if it left out any.
    fn pass(&mut self, mut smallest: History, width: usize) -> (History, bool) {
        let mut is_changed = false;
        let sizes: Vec<(i64, usize)> = smallest
            .transactions()
            .iter()
            .map(|found| (found.id, found.operations.len()))
            .collect();
        for (id, size) in sizes {
            let mut end = size;
            while end > 0 {
                let run = end.saturating_sub(width)..end;
                end = run.start;
                let cost = operations(&smallest);
                if cost > self.left {
                    self.left = 0;
                    return (smallest, is_changed);
                }
                self.left -= cost;
                let smaller = smallest.keep(|found, other| found.id != id || !run.contains(&other));
                if is_out_of_order(&smaller, self.model) {
                    (smallest, is_changed) = (smaller, true);
                }
            }
        }
        (smallest, is_changed)
    }
}

fn operations(history: &History) -> usize {
    history.transactions().iter().map(|transaction| transaction.operations.len()).sum()
}

/// Returns the history with only the recorded orders in use, so that no other recorded order comes
/// into use when writes are left out.
fn resolved(history: &History) -> History {
    let mut resolved = history.clone();
    if let Ok(index) = Index::new(history) {
        let numbers = index.recorded_numbers();
        resolved.record(|transaction, key| numbers.get(&(transaction, key)).copied());
    }
    resolved
}

fn is_out_of_order(history: &History, model: Model) -> bool {
    Index::new(history).is_ok_and(|index| {
        matches!(
            serial::check(&index, rules(model), SHRINK_CANDIDATES_MAX),
            Found::NoOrder | Found::Cycle(..)
        )
    })
}
