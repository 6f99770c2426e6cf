//! Reads of registers, checked without vectors, against the models of this crate that know nothing
//! of this store.
//!
//! A register is checked if all values written to it differ, none is written by an operation with
//! an id and none is erased: then each read leads back to its writer. A token is modelled as a
//! register, which the session that issues it writes and the session that joins it reads, so that
//! session order includes it. A session that continues with loss counts as a new session.

use std::collections::{BTreeSet, HashMap};

use mingle_model::{Level, Value};

use super::history::{Action, Attached, Content, Item, ItemKind, Op, Outcome, What};
use super::index::{Index, Node};
use super::problem::{Problem, Promise};
use crate::history::{self, History, INITIAL, Kind, Operation};
use crate::model::Model;
use crate::verdict::{Anomaly, Counterexample, Verdict};

/// The first key used for tokens.
const FIRST_TOKEN: i64 = 1 << 40;

/// The first transaction number used for steps of sessions that are not transactions.
const FIRST_STEP: i64 = 1 << 40;

/// Checks that registers are causal+, in the order of versions.
pub fn check(index: &Index<'_>) -> Vec<Problem> {
    let history = match Plain::new(index).history() {
        Ok(history) => history,
        Err(error) => {
            let what = format!("the registers are no history: {error}");
            return vec![Problem::new(Promise::Recording, what)];
        }
    };
    let verdict = crate::check(&history, Model::CausalPlus);
    problem(index, Promise::Registers, &verdict).into_iter().collect()
}

/// Checks that no read of registers shows only a part of a transaction.
pub fn fractured(index: &Index<'_>) -> Vec<Problem> {
    let Ok(history) = Plain::new(index).history() else { return Vec::new() };
    let verdict = crate::check(&history, Model::ReadAtomic);
    problem(index, Promise::Atomicity, &verdict).into_iter().collect()
}

fn problem(index: &Index<'_>, promise: Promise, verdict: &Verdict) -> Option<Problem> {
    let found = match verdict {
        Verdict::Satisfied(_) => return None,
        Verdict::Unknown(reason) => {
            return Some(Problem::new(Promise::Recording, format!("unknown: {reason}")));
        }
        Verdict::Violated(found) => found,
    };
    let numbers = numbers(found).into_iter().filter_map(|number| usize::try_from(number).ok());
    let ids = numbers.filter_map(|number| index.nodes.get(number)).map(Node::id);
    let model = found.model;
    let what = format!("no {model} order explains what was read of registers");
    let problem = Problem::new(promise, what).of(ids);
    Some(problem.values(format!("a {model} history"), found))
}

/// Returns the transactions of a counterexample.
fn numbers(found: &Counterexample) -> BTreeSet<i64> {
    match &found.anomaly {
        Anomaly::Read { transaction, .. } => BTreeSet::from([*transaction]),
        Anomaly::Cycle { edges, support } => {
            let edges = edges.iter().chain(support.iter().flatten());
            edges.flat_map(|edge| [edge.from, edge.to]).flatten().collect()
        }
        Anomaly::NoOrder | Anomaly::Diverged { .. } | Anomaly::Lost { .. } => BTreeSet::new(),
    }
}

/// The registers of a run as a plain history.
struct Plain<'i, 'r> {
    index: &'i Index<'r>,
    /// The checked registers, by number.
    keys: HashMap<Item, i64>,
    /// The numbers of their values.
    values: HashMap<(Item, &'r Value), i64>,
    /// The places of all committed writes among those of their item.
    versions: HashMap<(usize, usize), u64>,
    /// The issued tokens, by session and number of its finished calls.
    tokens: HashMap<(u64, usize), i64>,
    transactions: Vec<history::Transaction>,
    sessions: i64,
    steps: i64,
}

impl<'i, 'r> Plain<'i, 'r> {
    fn new(index: &'i Index<'r>) -> Self {
        let mut plain = Self {
            index,
            keys: HashMap::new(),
            values: HashMap::new(),
            versions: HashMap::new(),
            tokens: HashMap::new(),
            transactions: Vec::new(),
            sessions: 0,
            steps: FIRST_STEP,
        };
        plain.find_registers();
        for (item, operations) in &index.items {
            if plain.keys.contains_key(item) {
                for (place, entry) in operations.entries().iter().enumerate() {
                    plain.versions.insert((entry.transaction, entry.index), place as u64);
                }
            }
        }
        for session in &index.run.sessions {
            for call in &session.calls {
                if let What::Join { session: from, call_count, .. } = &call.what {
                    let next = FIRST_TOKEN + plain.tokens.len() as i64;
                    plain.tokens.entry((*from, *call_count)).or_insert(next);
                }
            }
        }
        plain
    }

    /// Finds the registers to be checked, and numbers their values.
    fn find_registers(&mut self) {
        let mut out = BTreeSet::new();
        for node in &self.index.nodes {
            for (item, op, id) in node.transaction.updates() {
                if item.kind != ItemKind::Register {
                    continue;
                }
                let next = self.keys.len() as i64 + 1;
                self.keys.entry(item).or_insert(next);
                let value = self.values.len() as i64 + 1;
                match op {
                    Op::Write(written) if id.is_none() => {
                        if self.values.insert((item, written), value).is_some() {
                            out.insert(item);
                        }
                    }
                    _ => {
                        out.insert(item);
                    }
                }
            }
        }
        self.keys.retain(|item, _| !out.contains(item));
    }

    fn history(mut self) -> Result<History, history::Malformed> {
        let mut nodes = self.index.nodes.iter().enumerate().peekable();
        for (place, session) in self.index.run.sessions.iter().enumerate() {
            let mut current = self.session();
            for (count, call) in session.calls.iter().enumerate() {
                self.hand_out(session.id, count, current);
                match &call.what {
                    What::Transaction(_) => {
                        let next = nodes.next_if(|(_, node)| node.session == place);
                        let (number, node) = next.expect("each transaction has its node, in order");
                        self.transaction(number, node, current);
                    }
                    What::Attach { answer: Attached::WithLoss { .. }, .. } => {
                        current = self.session();
                    }
                    What::Join { session: from, call_count, .. } => {
                        let key = self.tokens[&(*from, *call_count)];
                        self.step(current, Kind::Read, key);
                    }
                    What::Attach { .. }
                    | What::Barrier { .. }
                    | What::Raised { .. }
                    | What::Learned { .. } => {}
                }
            }
            self.hand_out(session.id, session.calls.len(), current);
        }
        History::new(self.transactions)
    }

    fn session(&mut self) -> i64 {
        self.sessions += 1;
        self.sessions
    }

    fn hand_out(&mut self, session: u64, count: usize, current: i64) {
        if let Some(key) = self.tokens.get(&(session, count)) {
            self.step(current, Kind::Write, *key);
        }
    }

    /// Adds a step in which a token is issued or joined.
    fn step(&mut self, session: i64, kind: Kind, key: i64) {
        let id = self.steps;
        self.steps += 1;
        self.push(id, session, history::Outcome::Committed, vec![operation(kind, key, 1, None)]);
    }

    fn transaction(&mut self, number: usize, node: &Node<'r>, session: i64) {
        let id = number as i64;
        let is_told = matches!(node.transaction.outcome, Outcome::Committed { .. });
        if is_told || node.commit.is_some() {
            // A session without an answer about the commit need not see it later.
            let session = if is_told { session } else { self.session() };
            let operations = self.operations(number, node, true, true);
            return self.push(id, session, history::Outcome::Committed, operations);
        }
        let reads = self.operations(number, node, true, false);
        self.push(id, session, history::Outcome::Committed, reads);
        let (writes, apart, step) =
            (self.operations(number, node, false, true), self.session(), self.steps);
        self.steps += 1;
        self.push(step, apart, history::Outcome::Aborted, writes);
    }

    fn push(
        &mut self,
        id: i64,
        session: i64,
        outcome: history::Outcome,
        operations: Vec<Operation>,
    ) {
        if !operations.is_empty() {
            self.transactions.push(history::Transaction {
                id,
                session,
                outcome,
                interval: None,
                commit: None,
                is_final: false,
                operations,
            });
        }
    }

    /// Returns a transaction's operations on the checked registers. Without its writes, a read that
    /// shows them is left out too.
    fn operations(
        &self,
        number: usize,
        node: &Node<'r>,
        with_reads: bool,
        with_writes: bool,
    ) -> Vec<Operation> {
        let (mut operations, mut written, mut index) = (Vec::new(), BTreeSet::new(), 0);
        for action in &node.transaction.actions {
            match action {
                Action::Update { item, op, .. } => {
                    if let (Some(key), Op::Write(value)) = (self.keys.get(item), op) {
                        written.insert(*item);
                        if with_writes {
                            let value = self.values[&(*item, value)];
                            let version = self.versions.get(&(number, index)).copied();
                            operations.push(operation(Kind::Write, *key, value, version));
                        }
                    }
                    index += 1;
                }
                Action::Read { item, found: Content::Register(found) } if with_reads => {
                    let is_own = !with_writes && written.contains(item);
                    if let (Some(key), false) = (self.keys.get(item), is_own) {
                        let value = found.last().map_or(INITIAL, |value| self.number(*item, value));
                        operations.push(operation(Kind::Read, *key, value, None));
                    }
                }
                Action::Read { .. } => {}
            }
        }
        operations
    }

    /// Returns the number of a value; -1 for one that no transaction wrote.
    fn number(&self, item: Item, value: &Value) -> i64 {
        self.values.get(&(item, value)).copied().unwrap_or(-1)
    }
}

fn operation(kind: Kind, key: i64, value: i64, version: Option<u64>) -> Operation {
    let (store, level) = ("geo".into(), Level::Causal);
    Operation { kind, key, value, store, level, version }
}
