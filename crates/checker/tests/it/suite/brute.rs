//! A deliberately simple checker: the definitions, by brute force.
//!
//! It shares no code with the checker beyond the types, and does not follow reads back to writers:
//! it runs the transactions and compares their answers.

use std::collections::HashMap;

use mingle_checker::{History, Kind, Model, Outcome, Transaction};
use mingle_model::Level;

/// A set of transactions to try, with their session order.
struct Try<'h> {
    transactions: Vec<&'h Transaction>,
    /// `before[a][b]`: `a` comes before `b` in a session.
    before: Vec<Vec<bool>>,
}

/// Checks mixed consistency by Definition 4.2 of MixT: each level's model, of the events at stores
/// of at least that level.
fn is_mixed(history: &History) -> bool {
    let models = [
        (Level::Linearizable, Model::StrictSerializability),
        (Level::Snapshot, Model::Snapshot),
        (Level::Causal, Model::Causal),
    ];
    models.into_iter().all(|(level, model)| {
        let mut transactions = history.transactions().to_vec();
        for transaction in &mut transactions {
            transaction.operations.retain(|operation| operation.level <= level);
        }
        transactions.retain(|transaction| !transaction.operations.is_empty());
        is_satisfied(&History::new(transactions).expect("a part is a history"), model)
    })
}

/// True if a history satisfies a model for some choice of committed transactions among unknown
/// outcomes.
pub fn is_satisfied(history: &History, model: Model) -> bool {
    if model == Model::Mixed {
        return is_mixed(history);
    }
    let unknown = history.transactions().iter().filter(|found| found.outcome == Outcome::Unknown);
    let unknown: Vec<i64> = unknown.map(|found| found.id).collect();
    (0..1_u32 << unknown.len()).any(|choice| {
        let chosen = |id: i64| {
            let place = unknown.iter().position(|other| *other == id);
            place.is_some_and(|place| choice & (1 << place) != 0)
        };
        let transactions: Vec<&Transaction> = history
            .transactions()
            .iter()
            .filter(|found| found.outcome == Outcome::Committed || chosen(found.id))
            .collect();
        let before = sessions(&transactions);
        holds(&Try { transactions, before }, model)
    })
}

/// Returns the session order. A transaction with unknown outcome follows its session's earlier
/// transactions; none need follow it.
fn sessions(transactions: &[&Transaction]) -> Vec<Vec<bool>> {
    let is_before = |a: usize, b: usize| {
        a < b
            && transactions[a].session == transactions[b].session
            && transactions[a].outcome == Outcome::Committed
    };
    let count = transactions.len();
    (0..count).map(|a| (0..count).map(|b| is_before(a, b)).collect()).collect()
}

fn holds(found: &Try, model: Model) -> bool {
    match model {
        Model::StrictSerializability => {
            orders(found).into_iter().any(|order| in_time(found, &order) && runs(found, &order))
        }
        Model::Serializability => orders(found).into_iter().any(|order| runs(found, &order)),
        Model::Snapshot => snapshot(found),
        Model::Causal => causal(found),
        Model::CausalPlus => convergent(found, &causality(found)),
        Model::ReadAtomic => convergent(found, &direct(found)),
        Model::Convergence | Model::Mixed => unreachable!("these have tests of their own"),
    }
}

/// Returns all orders of the transactions that keep the sessions and the recorded versions.
fn orders(found: &Try) -> Vec<Vec<usize>> {
    let all = (0..found.transactions.len()).collect();
    let mut orders = extensions(&all, &found.before);
    orders.retain(|order| keeps_versions(found, order));
    orders
}

/// Returns all orders of some nodes that a relation allows.
fn extensions(nodes: &Vec<usize>, before: &[Vec<bool>]) -> Vec<Vec<usize>> {
    if nodes.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for last in nodes {
        if nodes.iter().any(|other| before[*last][*other]) {
            continue;
        }
        let rest = nodes.iter().copied().filter(|other| other != last).collect();
        for mut order in extensions(&rest, before) {
            order.push(*last);
            all.push(order);
        }
    }
    all
}

/// Returns the last version that a transaction writes of each key.
fn versions(transaction: &Transaction) -> HashMap<i64, u64> {
    let writes = transaction.operations.iter().filter(|found| found.kind == Kind::Write);
    writes.filter_map(|found| Some((found.key, found.version?))).collect()
}

fn keeps_versions(found: &Try, order: &[usize]) -> bool {
    let mut last: HashMap<i64, u64> = HashMap::new();
    order.iter().all(|number| {
        versions(found.transactions[*number])
            .into_iter()
            .all(|(key, version)| last.insert(key, version).is_none_or(|before| before < version))
    })
}

fn in_time(found: &Try, order: &[usize]) -> bool {
    order.iter().enumerate().all(|(place, later)| {
        order[place + 1..].iter().all(|earlier| {
            let (first, second) = (found.transactions[*earlier], found.transactions[*later]);
            let ends = first.interval.filter(|_| first.outcome == Outcome::Committed);
            match (ends, second.interval) {
                (Some(first), Some(second)) => first.end >= second.begin,
                _ => true,
            }
        })
    })
}

type State = HashMap<i64, i64>;

/// Runs a transaction on a snapshot. Returns its writes, if its reads get the recorded answers.
fn run(transaction: &Transaction, snapshot: &State) -> Option<State> {
    let mut own = State::new();
    for operation in &transaction.operations {
        let (key, value) = (operation.key, operation.value);
        match operation.kind {
            Kind::Write => {
                own.insert(key, value);
            }
            Kind::Read => {
                let held = own.get(&key).or_else(|| snapshot.get(&key)).copied().unwrap_or(0);
                if held != value {
                    return None;
                }
            }
        }
    }
    Some(own)
}

fn runs(found: &Try, order: &[usize]) -> bool {
    let mut state = State::new();
    order.iter().all(|number| {
        let writes = run(found.transactions[*number], &state);
        let is_explained = writes.is_some();
        state.extend(writes.unwrap_or_default());
        is_explained
    })
}

/// Checks snapshot isolation, over all orders of starts and commits.
fn snapshot(found: &Try) -> bool {
    let state =
        Snapshots { found, started: Vec::new(), committed: Vec::new(), state: State::new() };
    state.goes_on()
}

struct Snapshots<'t> {
    found: &'t Try<'t>,
    /// The transactions between start and commit, with their future writes.
    started: Vec<(usize, State)>,
    committed: Vec<usize>,
    state: State,
}

impl Snapshots<'_> {
    fn goes_on(&self) -> bool {
        let count = self.found.transactions.len();
        if self.committed.len() == count {
            return keeps_versions(self.found, &self.committed);
        }
        let commits = (0..self.started.len()).any(|place| self.with_commit(place).goes_on());
        let is_new = |number: &usize| {
            !self.committed.contains(number)
                && self.started.iter().all(|(other, _)| other != number)
        };
        commits
            || (0..count)
                .filter(is_new)
                .any(|number| self.with_start(number).is_some_and(|next| next.goes_on()))
    }

    fn with_commit(&self, place: usize) -> Self {
        let mut next = Self {
            found: self.found,
            started: self.started.clone(),
            committed: self.committed.clone(),
            state: self.state.clone(),
        };
        let (number, writes) = next.started.remove(place);
        next.committed.push(number);
        next.state.extend(writes);
        next
    }

    fn with_start(&self, number: usize) -> Option<Self> {
        let before = (0..self.found.transactions.len())
            .all(|other| !self.found.before[other][number] || self.committed.contains(&other));
        let writes = run(self.found.transactions[number], &self.state).filter(|_| before)?;
        let meets =
            self.started.iter().any(|(_, other)| other.keys().any(|key| writes.contains_key(key)));
        if meets {
            return None;
        }
        let mut started = self.started.clone();
        started.push((number, writes));
        let (committed, state) = (self.committed.clone(), self.state.clone());
        Some(Self { found: self.found, started, committed, state })
    }
}

/// Returns the reads-from relation, without reads that a transaction's own writes answer.
fn reads_from(found: &Try) -> Vec<Vec<bool>> {
    let count = found.transactions.len();
    let mut from = vec![vec![false; count]; count];
    for (reader, transaction) in found.transactions.iter().enumerate() {
        for operation in transaction.operations.iter().filter(|found| found.kind == Kind::Read) {
            for (writer, other) in found.transactions.iter().enumerate() {
                from[writer][reader] |= writer != reader
                    && other.operations.iter().any(|write| {
                        write.kind == Kind::Write
                            && (write.key, write.value) == (operation.key, operation.value)
                    });
            }
        }
    }
    from
}

fn direct(found: &Try) -> Vec<Vec<bool>> {
    let mut relation = reads_from(found);
    for (row, sessions) in relation.iter_mut().zip(&found.before) {
        for (cell, session) in row.iter_mut().zip(sessions) {
            *cell |= session;
        }
    }
    relation
}

fn causality(found: &Try) -> Vec<Vec<bool>> {
    let mut relation = direct(found);
    let count = relation.len();
    for middle in 0..count {
        for a in 0..count {
            for b in 0..count {
                relation[a][b] |= relation[a][middle] && relation[middle][b];
            }
        }
    }
    relation
}

/// True if, for some order that the relation allows, each transaction's reads are explained by the
/// transactions it sees, applied in that order.
fn convergent(found: &Try, sees: &[Vec<bool>]) -> bool {
    let all = (0..found.transactions.len()).collect();
    extensions(&all, &causality(found)).into_iter().any(|order| {
        keeps_versions(found, &order)
            && (0..order.len()).all(|reader| explains(found, sees, reader, &order))
    })
}

fn explains(found: &Try, sees: &[Vec<bool>], reader: usize, order: &[usize]) -> bool {
    let mut state = State::new();
    for number in order.iter().filter(|number| sees[**number][reader]) {
        let writes = found.transactions[*number].operations.iter();
        let writes = writes.filter(|operation| operation.kind == Kind::Write);
        state.extend(writes.map(|operation| (operation.key, operation.value)));
    }
    run(found.transactions[reader], &state).is_some()
}

/// Checks the same with a separate order for each transaction.
fn causal(found: &Try) -> bool {
    let sees = causality(found);
    let count = found.transactions.len();
    if (0..count).any(|number| sees[number][number]) {
        return false;
    }
    (0..count).all(|reader| {
        let past: Vec<usize> = (0..count).filter(|other| sees[*other][reader]).collect();
        extensions(&past, &sees).iter().any(|order| explains(found, &sees, reader, order))
    })
}

/// Runs a witness: the order that the checker found must explain the reads.
pub fn replay(history: &History, model: Model, order: &[i64], seed: u64) {
    if !matches!(model, Model::StrictSerializability | Model::Serializability) {
        return;
    }
    let find = |id: &i64| history.transactions().iter().find(|found| found.id == *id);
    let transactions: Vec<&Transaction> =
        order.iter().map(|id| find(id).expect("the order is of this history")).collect();
    let committed =
        history.transactions().iter().filter(|found| found.outcome == Outcome::Committed);
    assert!(committed.count() <= order.len(), "seed {seed}: {model}: all are in the order");
    let before = sessions(&transactions);
    let found = Try { transactions, before };
    let order: Vec<usize> = (0..order.len()).collect();
    assert!(runs(&found, &order), "seed {seed}: {model}: the order explains the reads");
    let in_time = model == Model::Serializability || in_time(&found, &order);
    assert!(
        in_time && keeps_versions(&found, &order),
        "seed {seed}: {model}: the order is allowed"
    );
}
