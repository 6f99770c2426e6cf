//! Runs that break exactly one promise, each with a similar run that keeps it: the end, losses,
//! liveness, operation ids, and the recording itself.

use mingle_checker::geo::{
    Attached, Call, Claim, Content, Fault, FaultKind, Floor, Item, Op, Outcome, Promise, Run,
    Sighting, Vector, What, check,
};
use mingle_model::Origin;

use super::script::*;

const END: &[Promise] = &[Promise::EventualVisibility];

/// Returns a run with one append at each data center, all of them everywhere in the end.
fn three_lines() -> Run {
    let mut store = store();
    for client in 0..3 {
        put(&mut store, client, LOG, &Op::Append(int(client as i64 + 1)));
    }
    settle(store)
}

#[test]
fn everything_comes_to_be_everywhere() {
    let mut run = three_lines();
    keeps(&run);
    let shown = Content::Log(ints(&[1, 3]));
    for view in run.end.views.iter_mut().filter(|view| view.dc != 1) {
        view.snapshot = view.snapshot.with(1, 0);
        view.items.insert(LOG, shown.clone());
    }
    breaks(
        &run,
        END,
        "of a data center that is not lost is not visible in the end, at d0; transactions 2-1",
    );
    // Before everything has settled, this is allowed.
    run.end.is_settled = false;
    keeps(&run);
}

#[test]
fn all_data_centers_hold_the_same_in_the_end() {
    let mut run = three_lines();
    hold(&mut run, 2, LOG, Content::Log(ints(&[1, 3, 2])));
    breaks(
        &run,
        END,
        "hold different things in the end: d0 and, at d2, log 0; expected [Int(1), Int(2), Int(3)], found [Int(1), Int(3), Int(2)]",
    );
}

#[test]
fn nothing_is_there_twice_and_nothing_that_was_aborted() {
    let mut store = store();
    put(&mut store, 0, LOG, &Op::Append(int(1)));
    store.update(1, LOG, &Op::Append(int(2)), None);
    store.end(1, Outcome::Aborted);
    let run = settle(store);
    keeps(&run);
    let cases = [
        (
            vec![1, 1],
            "more often than it was appended: Int(1), at d0, log 0; expected at most 1, found 2",
        ),
        (
            vec![1, 2],
            "in the end what was read shows a transaction that is not committed, at d0, log 0; transactions 2-1",
        ),
        (vec![1, 7], "more often than it was appended: Int(7)"),
    ];
    for (lines, words) in cases {
        let mut run = run.clone();
        for dc in 0..3 {
            hold(&mut run, dc, LOG, Content::Log(ints(&lines)));
        }
        breaks(&run, END, words);
    }
}

#[test]
fn what_a_session_was_told_is_so() {
    let mut store = store();
    put(&mut store, 0, COUNTER, &Op::Add(1));
    let mut run = settle(store);
    at(&mut run, 0, 0).outcome = Outcome::Unknown;
    keeps(&run);
    at(&mut run, 0, 0).outcome = Outcome::Aborted;
    breaks(&run, END, "although its session was told it is not");
}

#[test]
fn every_data_center_and_item_is_looked_at() {
    let run = three_lines();
    let [mut dcs, mut items] = [run.clone(), run];
    dcs.end.views.pop();
    breaks(&dcs, &[Promise::Recording], "was not looked at in the end, at d2");
    items.end.views[0].items.remove(&LOG);
    breaks(&items, &[Promise::Recording], "was not looked at in the end, at d0, log 0");
}

/// Returns a run in which d0 commits, no other data center receives the commit, and d0 is lost.
fn lost() -> Run {
    let mut store = store();
    put(&mut store, 0, LOG, &Op::Append(int(1)));
    store.lose(0);
    put(&mut store, 1, LOG, &Op::Append(int(2)));
    settle(store)
}

#[test]
fn what_was_acknowledged_as_uniform_survives() {
    let run = lost();
    keeps(&run);
    let [mut durable, mut barrier, mut claimed, mut sighted] =
        [run.clone(), run.clone(), run.clone(), run];
    acknowledge(at(&mut durable, 0, 0));
    breaks(
        &durable,
        &[Promise::Uniformity],
        "session 0 was told at 10 us that it is uniform, at d1; transactions 1-1",
    );
    let told = |is_uniform| Call {
        begin_us: 20,
        end_us: Some(30),
        what: What::Barrier { dc: 0, is_uniform },
    };
    barrier.sessions[0].calls.push(told(false));
    keeps(&barrier);
    barrier.sessions[0].calls.push(told(true));
    breaks(&barrier, &[Promise::Uniformity], "session 0 was told at 30 us");
    let mut claim = |at| {
        let uniform_vec = Vector::of([(0, at)]);
        claimed.claims = vec![Claim { dc: 0, partition: 0, at_us: 5, uniform_vec }];
        claimed.clone()
    };
    keeps(&claim(0));
    breaks(&claim(1), &[Promise::Uniformity], "partition 0 of d0 said at 5 us that it is uniform");
    let transaction = at(&mut sighted, 0, 0).id;
    sighted.sightings = vec![Sighting { dc: 2, transaction, at_us: 15 }];
    breaks(&sighted, &[Promise::Uniformity], "d2 had shown it");
}

/// If more data centers are lost than allowed, their transactions have no promise.
#[test]
fn no_more_is_promised_than_f_losses() {
    let mut run = lost();
    acknowledge(at(&mut run, 0, 0));
    run.system.losses_max = 0;
    keeps(&run);
}

#[test]
fn what_was_read_elsewhere_survives() {
    let mut store = store();
    put(&mut store, 0, COUNTER, &Op::Add(1));
    store.deliver(0, 1);
    get(&mut store, 1, COUNTER);
    store.lose(0);
    let mut run = settle(store);
    keeps(&run);
    for view in &mut run.end.views {
        view.snapshot = Vector::ZERO;
        view.items.insert(COUNTER, Content::Counter(0));
    }
    breaks(&run, &[Promise::Uniformity], "d1 had it in a snapshot, at d1; transactions 1-1, 2-1");
}

#[test]
fn who_goes_on_with_loss_is_told_what_is_lost() {
    let mut store = store();
    put(&mut store, 0, COUNTER, &Op::Add(1));
    store.deliver(0, 1);
    let second = put(&mut store, 0, COUNTER, &Op::Add(2));
    store.lose(0);
    store.attach(0, 1, true);
    get(&mut store, 0, COUNTER);
    let run = settle(store);
    keeps(&run);
    let answer = |run: &mut Run, change: &dyn Fn(&mut Vec<_>, &mut bool)| {
        let What::Attach { answer: Attached::WithLoss { lost, is_complete, .. }, .. } =
            &mut run.sessions[0].calls[2].what
        else {
            panic!("an attach with loss");
        };
        change(lost, is_complete);
    };
    let [mut silent, mut open, mut unknown, mut wrong] =
        [run.clone(), run.clone(), run.clone(), run];
    // The session asked for its outcome again, and the answer came too late to be recorded.
    at(&mut unknown, 0, 1).outcome = Outcome::Unknown;
    keeps(&unknown);
    answer(&mut silent, &|lost, _| {
        assert_eq!(lost[..], [second]);
        lost.clear();
    });
    breaks(&silent, &[Promise::Uniformity], "was not told of all its transactions that are lost");
    answer(&mut open, &|lost, is_complete| {
        lost.clear();
        *is_complete = false;
    });
    keeps(&open);
    let first = at(&mut wrong, 0, 0).id;
    answer(&mut wrong, &|lost, _| lost.push(first));
    breaks(&wrong, &[Promise::Uniformity], "was told that a transaction is lost which is not");
}

/// A commit was not answered, and its session continued with loss. Then the session learned of the
/// commit, and accepted its loss again.
#[test]
fn what_is_learned_after_a_loss_counts_from_then_on() {
    let mut store = store();
    put(&mut store, 1, LOG, &Op::Append(int(1)));
    store.deliver(1, 0);
    let id = put(&mut store, 0, COUNTER, &Op::Add(2));
    store.lose(0);
    store.attach(0, 1, true);
    let mut run = settle(store);
    let unanswered = at(&mut run, 0, 0);
    (unanswered.outcome, unanswered.snapshot) = (Outcome::Unknown, None);
    let commit_vec = unanswered.commit.expect("it committed").commit_vec;
    let calls = &mut run.sessions[0].calls;
    let mut first = calls[1].clone();
    first.what = What::Attach {
        dc: 1,
        answer: Attached::WithLoss { lost: vec![], is_complete: true, past_vec: Vector::ZERO },
    };
    let learned = Call { what: What::Learned { id, commit_vec }, ..first.clone() };
    calls.splice(1..1, [first, learned]);
    keeps(&run);
    let mut untold = run.clone();
    let What::Attach { answer: Attached::WithLoss { lost, .. }, .. } =
        &mut untold.sessions[0].calls[3].what
    else {
        panic!("an attach with loss");
    };
    assert_eq!(lost[..], [id]);
    lost.clear();
    breaks(&untold, &[Promise::Uniformity], "was not told of all its transactions that are lost");
    run.sessions[0].calls.remove(2);
    breaks(&run, &[Promise::Uniformity], "goes on with more than it had seen");
}

/// Returns a run with one commit, answered at `end_us`.
fn slow(end_us: Option<u64>, faults: Vec<Fault>) -> Run {
    let mut store = store();
    store.now_us = 1_000_000;
    put(&mut store, 0, COUNTER, &Op::Add(1));
    let mut run = settle(store);
    run.end.at_us = 20_000_000;
    run.sessions[0].calls[0].end_us = end_us;
    run.faults = faults;
    run
}

#[test]
fn commits_go_on() {
    keeps(&slow(Some(5_900_000), Vec::new()));
    let stalled = slow(Some(6_100_000), Vec::new());
    breaks(&stalled, &[Promise::Liveness], "nothing was committed from 1000000 to 6100000 us");
    // The data center served another client meanwhile.
    let mut served = stalled;
    let mut other = served.sessions[0].calls[0].clone();
    (other.begin_us, other.end_us) = (3_000_000, Some(3_100_000));
    let What::Transaction(transaction) = &mut other.what else { panic!("a transaction") };
    transaction.id.origin = Origin(9);
    transaction.commit_asked_us = Some(3_000_000);
    transaction.commit = None;
    transaction.outcome =
        Outcome::Committed { commit_vec: Vector::of([(0, 2)]), is_uniform: false };
    served.sessions[3].calls.push(other);
    let report = mingle_checker::geo::check_some(&served, &[Promise::Liveness]);
    assert!(report.is_kept(), "{report}");
}

#[test]
fn only_what_can_hold_commits_up_is_to_blame() {
    let kinds = [
        (FaultKind::Down { dc: 0, partition: 0 }, true),
        (FaultKind::Disk { dc: 0, partition: 0 }, true),
        (FaultKind::Clock { dc: 0, partition: 0 }, true),
        (FaultKind::Clients { dc: 0 }, true),
        (FaultKind::Other { name: "a stop".to_owned(), dcs: vec![0] }, true),
        (FaultKind::Link { from: 0, to: 0 }, true),
        (FaultKind::Down { dc: 1, partition: 0 }, false),
        (FaultKind::Link { from: 0, to: 1 }, false),
        (FaultKind::Noise, false),
    ];
    for (kind, is_to_blame) in kinds {
        let fault = Fault { kind, begin_us: 1_500_000, end_us: 2_500_000 };
        let run = slow(Some(6_500_000), vec![fault.clone()]);
        if is_to_blame {
            keeps(&run);
            // The fault excuses no more than its duration and five seconds.
            breaks(
                &slow(Some(7_600_000), vec![fault]),
                &[Promise::Liveness],
                "from 2500000 to 7600000",
            );
        } else {
            breaks(&run, &[Promise::Liveness], "no fault is to blame");
        }
    }
}

#[test]
fn nobody_is_stuck_in_the_end() {
    let mut run = three_lines();
    run.end.at_us = 20_000_000;
    let call = |begin_us, what| Call { begin_us, end_us: None, what };
    let waits = || What::Attach { dc: 1, answer: Attached::Failed };
    run.sessions[3].calls = vec![call(16_000_000, waits())];
    keeps(&run);
    run.sessions[3].calls = vec![call(3_000_000, waits())];
    breaks(&run, &[Promise::Liveness], "session 3 is stuck in an attach");
    run.sessions[3].calls = vec![call(3_000_000, What::Barrier { dc: 0, is_uniform: false })];
    breaks(&run, &[Promise::Liveness], "session 3 is stuck in a barrier");
}

/// Returns a run with the same operation by helpers at two data centers that do not see each other.
fn helped(item: Item, op: &Op) -> Run {
    let mut store = store();
    for client in [0, 1] {
        store.update(client, item, op, Some(id(1)));
        store.commit(client, true);
    }
    store.deliver_all();
    get(&mut store, 2, item);
    settle(store)
}

#[test]
fn of_operations_with_one_id_one_counts() {
    let cases = [
        (COUNTER, Op::Add(5), Content::Counter(10)),
        (LOG, Op::Append(int(1)), Content::Log(ints(&[1, 1]))),
        (REGISTER, Op::Write(int(1)), Content::Register(ints(&[1, 1]))),
    ];
    for (item, op, twice) in cases {
        let mut run = helped(item, &op);
        keeps(&run);
        find(at(&mut run, 2, 0), 0, twice);
        let words = "counts more than once, at d2";
        breaks(&run, &[Promise::OperationIds], words);
    }
}

/// Two resets each saw a different run of one addition and not the other reset: the store may
/// remove the addition twice, and no other sum is allowed.
#[test]
fn what_is_open_by_design_is_bounded() {
    let mut store = store();
    for client in [0, 1] {
        store.update(client, COUNTER, &Op::Add(5), Some(id(1)));
        store.commit(client, true);
        put(&mut store, client, COUNTER, &Op::Reset);
    }
    put(&mut store, 2, COUNTER, &Op::Add(100));
    store.deliver_all();
    get(&mut store, 2, COUNTER);
    let run = settle(store);
    keeps(&run);
    for (sum, is_kept) in [(95, true), (100, true), (90, false), (105, false), (0, false)] {
        let mut run = run.clone();
        find(at(&mut run, 2, 1), 0, Content::Counter(sum));
        if is_kept {
            keeps(&run);
        } else {
            breaks(&run, &[Promise::ReturnValues], "expected [100]");
        }
    }
}

#[test]
fn below_a_floor_nothing_is_accepted() {
    let mut run = helped(COUNTER, &Op::Add(5));
    let floor = |dc, sequence, at| Floor { dc, partition: 0, origin: Origin(500), sequence, at };
    // Floors raised after the operation, above its timestamp, or elsewhere.
    run.floors = vec![floor(0, 1, 1), floor(0, 0, 0), floor(2, 1, 0)];
    keeps(&run);
    run.floors = vec![floor(0, 1, 0)];
    breaks(
        &run,
        &[Promise::OperationIds],
        "was accepted below the floor of its id 1f4-1/2/0, at d0, counter 0; transactions 1-1",
    );
}

#[test]
fn a_recording_is_checked_first() {
    let run = three_lines();
    type Change = fn(&mut Run);
    let cases: [(Change, &str); 7] = [
        (|run| run.system.dc_count = 8, "this one has 8"),
        (|run| run.sessions[1].id = 0, "session 0 is there twice"),
        (|run| at(run, 1, 0).id = at(run, 0, 0).id, "a transaction is there twice"),
        (|run| at(run, 1, 0).dc = 5, "at a data center that there is not"),
        (|run| at(run, 1, 0).outcome = Outcome::ReadOnly, "it is read-only, and updates something"),
        (|run| run.sessions[1].calls[0].end_us = Some(0), "it ends before it begins"),
        (
            |run| at(run, 1, 0).commit.as_mut().expect("a commit").origin = 2,
            "not committed where it ran",
        ),
    ];
    for (change, words) in cases {
        let mut run = run.clone();
        run.sessions[1].calls[0].begin_us = 1;
        change(&mut run);
        breaks(&run, &[Promise::Recording], words);
    }
    assert_eq!(check(&run).counts.committed, 3);
}
