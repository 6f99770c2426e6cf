//! Runs of strong transactions that break exactly one promise, each with a similar run that keeps
//! it.

use std::collections::BTreeSet;

use mingle_checker::geo::{
    Action, Attached, Call, Commit, Conflicts, Content, End, Fault, FaultKind, Item, ItemKind,
    Loss, Op, Outcome, Promise, Run, Session, Strong, System, Transaction, Vector, View, What,
};
use mingle_model::{Origin, TransactionId};

use super::script::*;

const STRONG: u8 = mingle_checker::geo::STRONG;
const OTHER: Item = Item { kind: ItemKind::Register, key: 7 };

/// Strong transactions, each in a session of its own, all visible at all data centers in the end.
struct Story {
    run: Run,
    now_us: u64,
}

/// A transaction that commits at this timestamp, on a snapshot of all strong ones up to another.
struct Told {
    seen: u64,
    at: u64,
    actions: Vec<Action>,
    label: Option<(Item, &'static str)>,
}

fn read(item: Item, found: Content) -> Action {
    Action::Read { item, found }
}

fn write(value: i64) -> Action {
    Action::Update { item: REGISTER, op: Op::Write(int(value)), id: None }
}

fn add(amount: i64) -> Action {
    Action::Update { item: COUNTER, op: Op::Add(amount), id: None }
}

fn register(values: &[i64]) -> Content {
    Content::Register(ints(values))
}

impl Story {
    fn new() -> Self {
        let conflicts = Conflicts::new([("withdraw".to_owned(), "withdraw".to_owned())]);
        let system = System {
            dc_count: 3,
            losses_max: 1,
            partition_count: 1,
            conflicts,
            accounts: BTreeSet::from([COUNTER]),
            ..System::default()
        };
        Self { run: Run { system, ..Run::default() }, now_us: 0 }
    }

    fn tell(&mut self, Told { seen, at, actions, label }: Told) {
        let id = self.run.sessions.len() as u64;
        let snap_vec = Vector::of([(STRONG, seen)]);
        let commit_vec = snap_vec.with(STRONG, at);
        let has_updates = actions.iter().any(|action| matches!(action, Action::Update { .. }));
        let label = label.map(|(item, label)| (item, label.to_owned()));
        let transaction = Transaction {
            id: TransactionId { origin: Origin(u128::from(id) + 1), sequence: 1 },
            dc: (id % 3) as u8,
            strong: Some(Strong { labels: label.into_iter().collect() }),
            snapshot: Some(snap_vec),
            actions,
            outcome: Outcome::Committed { commit_vec, is_uniform: true },
            commit: has_updates.then_some(Commit { origin: STRONG, snap_vec, commit_vec }),
            commit_asked_us: Some(self.now_us + 2),
        };
        let what = What::Transaction(Box::new(transaction));
        let call = Call { begin_us: self.now_us + 1, end_us: Some(self.now_us + 10), what };
        self.run.sessions.push(Session { id, calls: vec![call] });
        self.now_us += 20;
    }

    fn plain(&mut self, seen: u64, at: u64, actions: Vec<Action>) {
        self.tell(Told { seen, at, actions, label: None });
    }

    fn settle(mut self, items: &[(Item, Content)]) -> Run {
        let snapshot = Vector::of([(STRONG, 1_000)]);
        let view = |dc| View { dc, snapshot, items: items.iter().cloned().collect() };
        let views = (0..3).map(view).collect();
        self.run.end = End { at_us: self.now_us + 1_000_000, is_settled: true, views };
        self.run
    }
}

/// Returns a run with two conflicting transactions, the second on a snapshot of strong ones up to
/// `seen`.
fn writers(seen: u64) -> Run {
    let mut story = Story::new();
    story.plain(0, 10, vec![write(1)]);
    story.plain(seen, 20, vec![write(2)]);
    let last = if seen < 10 { register(&[1, 2]) } else { register(&[2]) };
    story.settle(&[(REGISTER, last)])
}

#[test]
fn one_of_two_that_conflict_has_seen_the_other() {
    keeps(&writers(10));
    breaks(&writers(9), &[Promise::ConflictOrder], "a snapshot that holds [strong:10]");
}

#[test]
fn a_snapshot_holds_all_of_what_conflicts_not_its_strong_entry_alone() {
    let mut run = writers(10);
    // The first had seen a transaction of d1.
    let first = at(&mut run, 0, 0);
    let snap_vec = Vector::of([(1, 5)]);
    let commit_vec = snap_vec.with(STRONG, 10);
    first.snapshot = Some(snap_vec);
    first.commit = Some(Commit { origin: STRONG, snap_vec, commit_vec });
    first.outcome = Outcome::Committed { commit_vec, is_uniform: true };
    breaks_alone(&run, Promise::ConflictOrder, "a snapshot that holds [d1:5 strong:10]");
}

#[test]
fn readers_conflict_with_writers_and_not_with_each_other() {
    let run = |found: Content| {
        let mut story = Story::new();
        story.plain(0, 10, vec![read(REGISTER, register(&[]))]);
        story.plain(0, 20, vec![read(REGISTER, register(&[]))]);
        story.plain(20, 30, vec![write(1)]);
        story.plain(if found == register(&[1]) { 30 } else { 20 }, 40, vec![read(REGISTER, found)]);
        story.settle(&[(REGISTER, register(&[1]))])
    };
    keeps(&run(register(&[1])));
    let promises = [Promise::ConflictOrder, Promise::StrictSerializability];
    breaks(&run(register(&[])), &promises, "neither has the other in its snapshot");
}

#[test]
fn labels_conflict_as_declared() {
    let run = |labels: [Option<&'static str>; 2]| {
        let mut story = Story::new();
        for (at, label) in [10, 20].into_iter().zip(labels) {
            let label = label.map(|label| (COUNTER, label));
            story.tell(Told { seen: 0, at, actions: vec![add(1)], label });
        }
        story.settle(&[(COUNTER, Content::Counter(2))])
    };
    keeps(&run([Some("withdraw"), Some("deposit")]));
    breaks(&run([Some("withdraw"), Some("withdraw")]), &[Promise::ConflictOrder], "counter 0");
    // A use without a label conflicts with all.
    breaks(&run([Some("deposit"), None]), &[Promise::ConflictOrder], "counter 0");
}

#[test]
fn a_strong_read_shows_what_lower_timestamps_wrote_whatever_snapshots_say() {
    let mut run = {
        let mut story = Story::new();
        story.plain(0, 10, vec![write(1)]);
        story.plain(10, 20, vec![read(REGISTER, register(&[1]))]);
        story.settle(&[(REGISTER, register(&[1]))])
    };
    keeps(&run);
    find(at(&mut run, 1, 0), 0, register(&[]));
    breaks_alone(&run, Promise::StrictSerializability, "read something else");
    // If causal transactions write too, the reads of strong ones depend on more than strong
    // timestamps.
    let other = at(&mut run, 0, 0);
    other.strong = None;
    other.commit = None;
    other.outcome = Outcome::Aborted;
    let report = mingle_checker::geo::check_some(&run, &[Promise::StrictSerializability]);
    assert!(report.is_kept(), "{report}");
}

/// Timestamp inversion: both transactions fit their snapshots, but their order contradicts real
/// time.
#[test]
fn who_begins_after_another_was_acknowledged_comes_after_it() {
    let run = |is_late: bool| {
        let mut story = Story::new();
        story.plain(0, 20, vec![read(REGISTER, register(&[]))]);
        story.plain(0, 10, vec![write(1)]);
        let mut run = story.settle(&[(REGISTER, register(&[1]))]);
        if !is_late {
            // The two transactions overlap.
            run.sessions[1].calls[0].begin_us = 5;
        }
        run
    };
    let is_broken = |run: &Run| {
        let report = mingle_checker::geo::check_some(run, &[Promise::StrictSerializability]);
        report.to_string().contains("that was acknowledged before it began")
    };
    assert!(is_broken(&run(true)) && !is_broken(&run(false)));
    let mut unrelated = run(true);
    let Action::Update { item, .. } = &mut at(&mut unrelated, 1, 0).actions[0] else { panic!() };
    *item = OTHER;
    assert!(!is_broken(&unrelated));
}

/// A transaction comes after the greatest timestamp among those acknowledged before it began, in
/// any order of the acknowledgements.
#[test]
fn who_begins_late_comes_after_the_greatest_timestamp_that_was_acknowledged() {
    let run = |ends_us: [u64; 2], begin_us: u64, at: u64| {
        let mut story = Story::new();
        story.plain(0, 20, vec![read(REGISTER, register(&[]))]);
        story.plain(0, 10, vec![read(REGISTER, register(&[]))]);
        story.plain(0, at, vec![write(1)]);
        let mut run = story.settle(&[(REGISTER, register(&[1]))]);
        for (session, (begin_us, end_us)) in
            [(1, ends_us[0]), (1, ends_us[1]), (begin_us, begin_us + 10)].into_iter().enumerate()
        {
            let call = &mut run.sessions[session].calls[0];
            (call.begin_us, call.end_us) = (begin_us, Some(end_us));
        }
        run
    };
    let is_broken = |run: &Run| {
        let report = mingle_checker::geo::check_some(run, &[Promise::StrictSerializability]);
        report.to_string().contains("that was acknowledged before it began")
    };
    for ends_us in [[30, 40], [40, 30], [30, 30]] {
        assert!(is_broken(&run(ends_us, 50, 15)), "{ends_us:?}");
        assert!(!is_broken(&run(ends_us, 50, 25)), "{ends_us:?}: it comes after both");
        assert!(!is_broken(&run(ends_us, 20, 15)), "{ends_us:?}: it overlaps both");
    }
    // It began at the time of the other's acknowledgement, not after it.
    assert!(!is_broken(&run([50, 40], 50, 15)));
    assert!(is_broken(&run([49, 60], 50, 15)));
}

#[test]
fn no_account_is_overdrawn() {
    let run = |taken: i64| {
        let mut story = Story::new();
        story.plain(0, 10, vec![add(5)]);
        let actions = vec![read(COUNTER, Content::Counter(5)), add(-taken)];
        story.tell(Told { seen: 10, at: 20, actions, label: Some((COUNTER, "withdraw")) });
        let left = Content::Counter(i128::from(5 - taken));
        story.plain(20, 30, vec![read(COUNTER, left.clone())]);
        story.settle(&[(COUNTER, left)])
    };
    keeps(&run(5));
    breaks(&run(6), &[Promise::Invariants], "expected 0 or more, found Counter(-1)");
}

#[test]
fn what_a_strong_commit_acknowledged_is_there_in_the_end() {
    let mut run = writers(10);
    for view in &mut run.end.views {
        view.snapshot = Vector::of([(STRONG, 15)]);
        view.items.insert(REGISTER, register(&[1]));
    }
    breaks(&run, &[Promise::EventualVisibility], "a strong transaction is not visible in the end");
}

/// An acknowledgement includes the transactions of a lost data center that it had seen.
#[test]
fn a_strong_commit_survives_with_its_causal_past() {
    let mut story = Story::new();
    story.plain(0, 1_000, vec![write(1)]);
    let mut run = story.settle(&[(REGISTER, register(&[1])), (COUNTER, Content::Counter(0))]);
    let (snap_vec, lost_vec) = (Vector::of([(2, 5)]), Vector::of([(2, 5)]));
    let strong = at(&mut run, 0, 0);
    let commit_vec = snap_vec.with(STRONG, 1_000);
    strong.snapshot = Some(snap_vec);
    strong.commit = Some(Commit { origin: STRONG, snap_vec, commit_vec });
    strong.outcome = Outcome::Committed { commit_vec, is_uniform: true };
    let causal = Transaction {
        id: TransactionId { origin: Origin(50), sequence: 1 },
        dc: 2,
        strong: None,
        snapshot: None,
        actions: vec![add(1)],
        outcome: Outcome::Committed { commit_vec: lost_vec, is_uniform: false },
        commit: Some(Commit { origin: 2, snap_vec: Vector::ZERO, commit_vec: lost_vec }),
        commit_asked_us: None,
    };
    let what = What::Transaction(Box::new(causal));
    let call = Call { begin_us: 0, end_us: Some(1), what };
    run.sessions.push(Session { id: 50, calls: vec![call] });
    run.losses.push(Loss { dc: 2, at_us: 100 });
    run.end.views.retain(|view| view.dc != 2);
    let mut kept = run.clone();
    for view in &mut kept.end.views {
        view.snapshot = view.snapshot.with(2, 5);
        view.items.insert(COUNTER, Content::Counter(1));
    }
    keeps(&kept);
    breaks_alone(&run, Promise::Uniformity, "was told at 10 us that it is uniform");
}

#[test]
fn a_strong_transaction_waits_no_longer_than_a_majority_needs() {
    let run = |faults: &[FaultKind]| {
        let mut run = writers(10);
        run.sessions[0].calls[0].end_us = Some(30_000_000);
        run.end.at_us = 31_000_000;
        let faults = faults.iter().cloned();
        run.faults = faults.map(|kind| Fault { kind, begin_us: 0, end_us: 25_000_000 }).collect();
        run
    };
    let words = "although a majority works";
    breaks_alone(&run(&[]), Promise::Liveness, words);
    // Its session is at d0: d0 and d1 are connected.
    breaks_alone(&run(&[FaultKind::Link { from: 0, to: 2 }]), Promise::Liveness, words);
    breaks_alone(&run(&[FaultKind::Down { dc: 2, partition: 0 }]), Promise::Liveness, words);
    for faults in [
        vec![FaultKind::Down { dc: 0, partition: 0 }],
        vec![FaultKind::Link { from: 0, to: 2 }, FaultKind::Down { dc: 1, partition: 0 }],
    ] {
        let report = mingle_checker::geo::check_some(&run(&faults), &[Promise::Liveness]);
        assert!(report.is_kept(), "{report}");
    }
    // After its session has moved, d0 gets no request until the session is back.
    let moved = |back_us: u64| {
        let mut run = run(&[]);
        for (dc, at_us) in [(1, 5_000_000), (0, back_us)] {
            let what = What::Attach { dc, answer: Attached::Resumed };
            let call = Call { begin_us: at_us - 1, end_us: Some(at_us), what };
            run.sessions[0].calls.push(call);
        }
        mingle_checker::geo::check_some(&run, &[Promise::Liveness])
    };
    assert!(moved(25_000_000).is_kept(), "{}", moved(25_000_000));
    let report = moved(8_000_000);
    assert!(report.to_string().contains(words), "{report}");
}
