//! A run prepared for the checkers: the pasts of sessions, and the operations on each item.

use std::collections::{BTreeMap, HashMap, HashSet};

use mingle_model::TransactionId;

use super::history::{Attached, Call, Commit, Item, Outcome, Run, Session, Transaction, What};
use super::problem::{Problem, Promise};
use super::values::{Entry, Operations};
use super::vector::{DCS_MAX, STRONG, Vector};

/// A transaction with its context.
#[derive(Clone, Copy, Debug)]
pub struct Node<'r> {
    /// Its session, by place in the run.
    pub session: usize,
    /// Its call, by place in the session.
    pub place: usize,
    /// Its call.
    pub call: &'r Call,
    /// The transaction.
    pub transaction: &'r Transaction,
    /// Everything that its session had seen before it.
    pub past_vec: Vector,
    /// Its commit, if it is committed.
    pub commit: Option<Commit>,
}

impl Node<'_> {
    pub fn id(&self) -> TransactionId {
        self.transaction.id
    }
}

/// A confirmation to a session that everything that it has seen is uniform.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    /// The session, by its number.
    pub session: u64,
    /// Everything that it had seen.
    pub past_vec: Vector,
    /// The time of the confirmation.
    pub at_us: u64,
}

/// A run prepared for the checkers.
#[derive(Debug)]
pub struct Index<'r> {
    pub run: &'r Run,
    /// All transactions, session by session, in order.
    pub nodes: Vec<Node<'r>>,
    /// The committed ones, by number, in the order of versions.
    pub committed: Vec<usize>,
    pub by_id: HashMap<TransactionId, usize>,
    /// The committed operations on each item.
    pub items: BTreeMap<Item, Operations<'r>>,
    /// Everything that each session had seen before each of its calls, and in the end.
    pub pasts: Vec<Vec<Vector>>,
    pub acknowledged: Vec<Acknowledged>,
}

impl<'r> Index<'r> {
    /// Prepares a run.
    ///
    /// # Errors
    ///
    /// If it is not recorded correctly.
    pub fn new(run: &'r Run) -> Result<Self, Vec<Problem>> {
        let problems = malformed(run);
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut index = Self {
            run,
            nodes: Vec::new(),
            committed: Vec::new(),
            by_id: HashMap::new(),
            items: BTreeMap::new(),
            pasts: Vec::new(),
            acknowledged: Vec::new(),
        };
        for (place, session) in run.sessions.iter().enumerate() {
            index.session(place, session);
        }
        let committed = index.nodes.iter().enumerate();
        let mut committed: Vec<(Commit, usize)> = committed
            .filter_map(|(number, node)| node.commit.map(|commit| (commit, number)))
            .collect();
        committed.sort_by_key(|(commit, number)| (commit.version(), *number));
        index.committed = committed.into_iter().map(|(_, number)| number).collect();
        index.read_items();
        Ok(index)
    }

    fn session(&mut self, session_place: usize, session: &'r Session) {
        let (mut past_vec, mut pasts) = (Vector::ZERO, Vec::new());
        for (place, call) in session.calls.iter().enumerate() {
            self.run.see_before(&mut past_vec);
            pasts.push(past_vec);
            match &call.what {
                What::Transaction(transaction) => {
                    let commit = effective_commit(transaction, &past_vec);
                    self.by_id.insert(transaction.id, self.nodes.len());
                    self.nodes.push(Node {
                        session: session_place,
                        place,
                        call,
                        transaction,
                        past_vec,
                        commit,
                    });
                    if let Some(snapshot) = &transaction.snapshot {
                        past_vec.join(snapshot);
                    }
                    if let Outcome::Committed { commit_vec, is_uniform } = &transaction.outcome {
                        past_vec.join(commit_vec);
                        if *is_uniform {
                            self.acknowledge(session.id, past_vec, call);
                        }
                    }
                }
                What::Barrier { is_uniform: true, .. } => {
                    self.acknowledge(session.id, past_vec, call);
                }
                What::Attach { answer: Attached::WithLoss { past_vec: left, .. }, .. } => {
                    past_vec = *left;
                }
                What::Join { past_vec: joined, .. } | What::Raised { floor: joined } => {
                    past_vec.join(joined);
                }
                What::Learned { commit_vec, .. } => past_vec.join(commit_vec),
                What::Barrier { .. } | What::Attach { .. } => {}
            }
        }
        self.run.see_before(&mut past_vec);
        pasts.push(past_vec);
        self.pasts.push(pasts);
    }

    fn acknowledge(&mut self, session: u64, past_vec: Vector, call: &Call) {
        let at_us = call.end_us.unwrap_or(self.run.end.at_us);
        self.acknowledged.push(Acknowledged { session, past_vec, at_us });
    }

    fn read_items(&mut self) {
        let mut items: BTreeMap<Item, Vec<Entry<'r>>> = BTreeMap::new();
        for number in &self.committed {
            let node = &self.nodes[*number];
            let Some(commit) = node.commit else { continue };
            for (index, (item, op, id)) in node.transaction.updates().enumerate() {
                let by = node.id();
                let entry = Entry { transaction: *number, by, index, commit, op, id };
                items.entry(item).or_default().push(entry);
            }
        }
        let items = items.into_iter();
        self.items = items.map(|(item, ops)| (item, Operations::new(item.kind, ops))).collect();
    }

    /// True if a data center does not exist in the end.
    pub fn is_lost(&self, dc: u8) -> bool {
        self.run.losses.iter().any(|loss| loss.dc == dc) || self.run.is_to_come(dc)
    }

    /// True if too many data centers were lost for any promise about their transactions.
    pub fn lost_too_many(&self) -> bool {
        self.run.lost_dcs().len() > usize::from(self.run.system.losses_max)
    }

    /// Returns the committed transactions, in the order of versions.
    pub fn committed(&self) -> impl Iterator<Item = (&Node<'r>, Commit)> {
        self.committed.iter().filter_map(|number| {
            let node = &self.nodes[*number];
            node.commit.map(|commit| (node, commit))
        })
    }
}

/// Returns the commit of a transaction: from the logs or, if no replica has it any more, from the
/// session's answer. In the second case, if it read nothing, its snapshot at its origin is unknown,
/// but holds at least its session's past.
fn effective_commit(transaction: &Transaction, past_vec: &Vector) -> Option<Commit> {
    let told = || match &transaction.outcome {
        Outcome::Committed { commit_vec, .. } => {
            let origin = if transaction.strong.is_some() { STRONG } else { transaction.dc };
            let seen = transaction.snapshot.as_ref().unwrap_or(past_vec).get(origin);
            let (commit_vec, snap_vec) = (*commit_vec, commit_vec.with(origin, seen));
            Some(Commit { origin, snap_vec, commit_vec })
        }
        _ => None,
    };
    transaction.commit.or_else(told)
}

/// Returns the faults of the recording itself.
fn malformed(run: &Run) -> Vec<Problem> {
    let mut problems = Vec::new();
    let count = run.system.dc_count;
    if usize::from(count) > DCS_MAX || count == 0 {
        let what = format!("a run has from 1 to {DCS_MAX} data centers, this one has {count}");
        problems.push(Problem::new(Promise::Recording, what));
    }
    let mut sessions = HashSet::new();
    for session in &run.sessions {
        if !sessions.insert(session.id) {
            let what = format!("session {} is there twice", session.id);
            problems.push(Problem::new(Promise::Recording, what));
        }
    }
    let mut ids = HashSet::new();
    for (session, call, transaction) in run.transactions() {
        for what in faults_of(run, call, transaction) {
            let what = format!("session {}: {what}", session.id);
            problems.push(Problem::new(Promise::Recording, what).of([transaction.id]));
        }
        if !ids.insert(transaction.id) {
            let problem = Problem::new(Promise::Recording, "a transaction is there twice");
            problems.push(problem.of([transaction.id]));
        }
    }
    let views = run.end.views.iter().map(|view| view.dc);
    let dcs = views.chain(run.losses.iter().map(|loss| loss.dc));
    let dcs = dcs.chain(run.cuts.iter().map(|cut| cut.dc));
    let dcs = dcs.chain(run.admissions.iter().flat_map(|admission| [admission.dc, admission.of]));
    for dc in dcs.filter(|dc| *dc >= count) {
        problems.push(Problem::new(Promise::Recording, "there is no such data center").in_dc(dc));
    }
    problems
}

fn faults_of(run: &Run, call: &Call, transaction: &Transaction) -> Vec<&'static str> {
    let mut faults = Vec::new();
    let mut claim = |holds: bool, what| {
        if !holds {
            faults.push(what);
        }
    };
    claim(transaction.dc < run.system.dc_count, "it ran at a data center that there is not");
    claim(call.end_us.is_none_or(|end_us| end_us >= call.begin_us), "it ends before it begins");
    let has_read = transaction.reads().next().is_some();
    claim(!has_read || transaction.snapshot.is_some(), "it read, and has no snapshot");
    let fits = transaction.updates().all(|(item, op, _)| op.fits(item.kind));
    claim(fits, "an operation does not fit the type of its item");
    let has_updates = transaction.updates().next().is_some();
    let is_read_only = transaction.outcome == Outcome::ReadOnly;
    claim(!(is_read_only && has_updates), "it is read-only, and updates something");
    let is_committed = matches!(transaction.outcome, Outcome::Committed { .. });
    let is_strong = transaction.strong.is_some();
    let is_fit = !is_committed || has_updates || is_strong;
    claim(is_fit, "it is committed, and updates nothing");
    let origin = if is_strong { STRONG } else { transaction.dc };
    let is_known = transaction.commit.is_none_or(|commit| commit.origin == origin);
    claim(is_known, "it was not committed where it ran");
    faults
}
