//! The definitions of UniStore §3, checked literally by brute force, on small random runs that are
//! sound or damaged at random.

use std::collections::BTreeMap;

use mingle_checker::geo::{
    Action, Attached, Content, Item, Outcome, Promise, Run, Transaction, Vector, What, check,
    check_some,
};
use mingle_model::random::Random;

use super::random::{SMALL, Shape, run};

/// A transaction, with its direct predecessors by sessions and tokens.
struct Node<'r> {
    transaction: &'r Transaction,
    after: Vec<usize>,
}

impl Node<'_> {
    fn snapshot(&self) -> Option<Vector> {
        let commit = self.transaction.commit.map(|commit| commit.snap_vec);
        commit.or(self.transaction.snapshot)
    }

    /// True if its session knows that it took place.
    fn is_known(&self) -> bool {
        self.transaction.outcome != Outcome::Unknown && self.transaction.outcome != Outcome::Aborted
    }
}

/// A part of a session's past: a transaction, or the vector of a token.
#[derive(Clone, Copy)]
enum Past {
    Transaction(usize),
    Token(u64, usize),
}

/// Returns the transactions, with their order by sessions and tokens. A session that continues with
/// loss starts a new past: its order after the earlier part is unknown.
fn nodes(run: &Run) -> Vec<Node<'_>> {
    let mut all: Vec<Node<'_>> = Vec::new();
    // For each session, the past before each of its calls.
    let mut before: BTreeMap<(u64, usize), Vec<Past>> = BTreeMap::new();
    let mut pasts = Vec::new();
    for session in &run.sessions {
        let mut past = Vec::new();
        for (place, call) in session.calls.iter().enumerate() {
            before.insert((session.id, place), past.clone());
            match &call.what {
                What::Transaction(transaction) => {
                    pasts.push(past.clone());
                    past.push(Past::Transaction(all.len()));
                    all.push(Node { transaction, after: Vec::new() });
                }
                What::Attach { answer: Attached::WithLoss { .. }, .. } => past.clear(),
                What::Join { session: from, call_count, .. } => {
                    past.push(Past::Token(*from, *call_count));
                }
                _ => {}
            }
        }
        before.insert((session.id, session.calls.len()), past);
    }
    for (node, past) in all.iter_mut().zip(pasts) {
        let mut left = past;
        while let Some(one) = left.pop() {
            match one {
                Past::Transaction(place) => node.after.push(place),
                Past::Token(session, count) => left.extend(&before[&(session, count)]),
            }
        }
    }
    all
}

/// Checks causality preservation: an order that is transitive, irreflexive, and includes session
/// order.
fn is_causal(run: &Run) -> bool {
    let nodes = nodes(run);
    let is_before = |a: &Node<'_>, b: &Node<'_>| match (a.transaction.commit, b.snapshot()) {
        (Some(commit), Some(snapshot)) => snapshot.covers(&commit.commit_vec),
        _ => false,
    };
    let is_irreflexive = nodes.iter().all(|node| !is_before(node, node));
    let is_transitive = nodes.iter().all(|b| {
        let later: Vec<_> = nodes.iter().filter(|c| is_before(b, c)).collect();
        let mut earlier = nodes.iter().filter(|a| is_before(a, b));
        earlier.all(|a| later.iter().all(|c| is_before(a, c)))
    });
    let has_sessions = nodes.iter().all(|later| {
        later.snapshot().is_none()
            || later.after.iter().map(|place| &nodes[*place]).filter(|node| node.is_known()).all(
                |earlier| {
                    let is_kept = earlier.transaction.commit.is_none() || is_before(earlier, later);
                    let sees = |node: &&Node<'_>| is_before(node, earlier);
                    is_kept && nodes.iter().filter(sees).all(|node| is_before(node, later))
                },
            )
    });
    is_irreflexive && is_transitive && has_sessions
}

const SHAPE: Shape = Shape { steps: 60, delivers: 2, ..SMALL };

fn transactions(run: &mut Run) -> Vec<&mut Transaction> {
    let calls = run.sessions.iter_mut().flat_map(|session| &mut session.calls);
    let transactions = calls.filter_map(|call| match &mut call.what {
        What::Transaction(transaction) => Some(&mut **transaction),
        _ => None,
    });
    transactions.collect()
}

/// Changes one entry of a vector by one, or to 0.
fn damage(random: &mut Random, vector: &mut Vector) {
    let column = random.below(3) as u8;
    let entry = vector.get(column);
    let changed = match random.below(3) {
        0 => 0,
        1 => entry + 1,
        _ => entry.saturating_sub(1),
    };
    *vector = vector.with(column, changed);
}

#[test]
fn what_is_not_causal_by_definition_is_found() {
    let (mut broken, mut sound) = (0, 0);
    for seed in 0..2_000 {
        let mut random = Random::new(seed ^ 0xb407e);
        let mut run = run(seed, &SHAPE);
        assert!(is_causal(&run), "seed {seed}");
        let mut all = transactions(&mut run);
        for _ in 0..=random.below(2) {
            let count = all.len();
            let transaction = &mut *all[random.below(count)];
            match (&mut transaction.commit, random.below(3)) {
                (Some(commit), 0) => damage(&mut random, &mut commit.commit_vec),
                (Some(commit), 1) => damage(&mut random, &mut commit.snap_vec),
                _ => {
                    if let Some(snapshot) = &mut transaction.snapshot {
                        damage(&mut random, snapshot);
                    }
                }
            }
        }
        let promises = [Promise::CausalOrder, Promise::VersionOrder];
        let report = check_some(&run, &promises);
        if is_causal(&run) {
            sound += 1;
        } else {
            broken += 1;
            assert!(!report.is_kept(), "seed {seed}");
        }
    }
    assert!(broken > 200 && sound > 200, "{broken} broken, {sound} sound");
}

/// A random read gets the content of some other read of the item: this is wrong unless both are
/// equal, since the run was sound.
#[test]
fn every_value_that_is_not_that_of_its_snapshot_is_found() {
    let (mut broken, mut same) = (0, 0);
    for seed in 0..1_500 {
        let mut random = Random::new(seed ^ 0xb407e);
        let mut run = run(seed, &SHAPE);
        let mut found: BTreeMap<Item, Vec<Content>> = BTreeMap::new();
        for (_, _, transaction) in run.transactions() {
            for (item, content) in transaction.reads() {
                found.entry(item).or_default().push(content.clone());
            }
        }
        for view in &run.end.views {
            for (item, content) in &view.items {
                found.entry(*item).or_default().push(content.clone());
            }
        }
        let mut all = transactions(&mut run);
        let actions = all.iter_mut().flat_map(|transaction| transaction.actions.iter_mut());
        let mut reads: Vec<_> = actions
            .filter_map(|action| match action {
                Action::Read { item, found } => Some((*item, found)),
                Action::Update { .. } => None,
            })
            .collect();
        if reads.is_empty() {
            continue;
        }
        let place = random.below(reads.len());
        let (item, content) = &mut reads[place];
        let other = random.pick(&found[item]).clone();
        let is_same = **content == other;
        **content = other;
        let report = check_some(&run, &[Promise::ReturnValues]);
        assert_eq!(report.is_kept(), is_same, "seed {seed}: {report}");
        if is_same {
            same += 1;
            assert!(check(&run).is_kept());
        } else {
            broken += 1;
        }
    }
    assert!(broken > 200 && same > 200, "{broken} broken, {same} the same");
}
