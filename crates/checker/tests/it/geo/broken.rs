//! Runs that break exactly one promise, each with a similar run that keeps it: causality, values,
//! versions and whole transactions.

use mingle_checker::geo::{Content, Op, Promise, Vector, What};

use super::script::*;

#[test]
fn a_session_sees_its_own_commits() {
    let mut store = store();
    put(&mut store, 0, COUNTER, &Op::Add(5));
    get(&mut store, 0, COUNTER);
    let mut run = settle(store);
    keeps(&run);
    let second = at(&mut run, 0, 1);
    second.snapshot = Some(Vector::ZERO);
    find(second, 0, Content::Counter(0));
    breaks(&run, &[Promise::CausalOrder], "lacks what its session had seen");
}

#[test]
fn a_session_never_sees_less_than_before() {
    let mut store = store();
    put(&mut store, 1, COUNTER, &Op::Add(5));
    store.deliver(1, 0);
    get(&mut store, 0, COUNTER);
    get(&mut store, 0, COUNTER);
    let mut run = settle(store);
    keeps(&run);
    let second = at(&mut run, 0, 1);
    second.snapshot = Some(Vector::ZERO);
    find(second, 0, Content::Counter(0));
    breaks(&run, &[Promise::CausalOrder], "expected [d1:1], found []");
}

#[test]
fn a_token_brings_what_its_session_had_seen() {
    let mut store = store();
    put(&mut store, 0, COUNTER, &Op::Add(5));
    store.join(3, 0);
    get(&mut store, 3, COUNTER);
    let mut run = settle(store);
    keeps(&run);
    let mut late = run.clone();
    let reader = at(&mut late, 3, 1);
    reader.snapshot = Some(Vector::ZERO);
    find(reader, 0, Content::Counter(0));
    breaks(&late, &[Promise::CausalOrder], "lacks what its session had seen");
    let What::Join { past_vec, .. } = &mut run.sessions[3].calls[0].what else { panic!("a join") };
    *past_vec = Vector::ZERO;
    breaks(&run, &[Promise::CausalOrder], "the token of session 0 after 1 calls");
}

#[test]
fn who_goes_on_elsewhere_sees_all_its_past() {
    let mut store = store();
    put(&mut store, 0, COUNTER, &Op::Add(5));
    store.deliver(0, 1);
    store.attach(0, 1, false);
    get(&mut store, 0, COUNTER);
    let mut run = settle(store);
    keeps(&run);
    let reader = at(&mut run, 0, 2);
    reader.snapshot = Some(Vector::ZERO);
    find(reader, 0, Content::Counter(0));
    breaks(&run, &[Promise::CausalOrder], "was told that it goes on with all its past");
}

#[test]
fn a_commit_vector_is_the_snapshot_raised_at_its_origin() {
    let mut store = store();
    store.read(0, COUNTER);
    put(&mut store, 0, COUNTER, &Op::Add(5));
    let run = settle(store);
    keeps(&run);
    let mut other_snapshot = run.clone();
    let commit = at(&mut other_snapshot, 0, 0).commit.as_mut().expect("a commit");
    commit.snap_vec = Vector::of([(2, 1)]);
    commit.commit_vec = commit.commit_vec.with(2, 1);
    let report = mingle_checker::geo::check_some(&other_snapshot, &[Promise::CausalOrder]);
    assert!(report.to_string().contains("on a snapshot that it did not read"), "{report}");
    let mut told = run.clone();
    let mut raised = run;
    let told_vec = Vector::of([(0, 9)]);
    at(&mut told, 0, 0).outcome =
        mingle_checker::geo::Outcome::Committed { commit_vec: told_vec, is_uniform: false };
    breaks_alone(&told, Promise::CausalOrder, "was told another vector");
    let commit = at(&mut raised, 0, 0).commit.as_mut().expect("a commit");
    commit.snap_vec = commit.commit_vec;
    breaks_alone(&raised, Promise::CausalOrder, "with a higher timestamp at its origin");
}

#[test]
fn each_type_shows_what_its_snapshot_holds() {
    let cases = [
        (COUNTER, Op::Add(2), Content::Counter(1)),
        (SET, Op::Insert(int(1)), Content::Set(Vec::new())),
        (LOG, Op::Append(int(1)), Content::Log(ints(&[1, 1]))),
        (MAP, Op::Put(int(1), int(2)), {
            Content::Map { entries: vec![(int(1), int(3))], counts: Vec::new() }
        }),
        (MAP, Op::Increment(int(1), 2), {
            Content::Map { entries: Vec::new(), counts: vec![(int(1), 3)] }
        }),
    ];
    for (item, op, wrong) in cases {
        let mut store = store();
        put(&mut store, 0, item, &op);
        get(&mut store, 0, item);
        let mut run = settle(store);
        keeps(&run);
        find(at(&mut run, 0, 1), 0, wrong);
        breaks(&run, &[Promise::ReturnValues], "what was read");
    }
}

/// The report names the transaction that a read wrongly shows or lacks.
#[test]
fn who_is_missing_or_too_much_is_named() {
    let mut store = store();
    let first = put(&mut store, 0, LOG, &Op::Append(int(1)));
    let second = put(&mut store, 1, LOG, &Op::Append(int(2)));
    get(&mut store, 0, LOG);
    store.update(2, LOG, &Op::Append(int(3)), None);
    store.end(2, mingle_checker::geo::Outcome::Aborted);
    let run = settle(store);
    keeps(&run);
    let lines = [
        (
            vec![],
            format!(
                "lacks a transaction of its snapshot, at d0, log 0; transactions 1-2, {first:?}"
            ),
        ),
        (vec![1, 2], format!("does not hold, at d0, log 0; transactions 1-2, {second:?}")),
        (vec![1, 3], "that is not committed, at d0, log 0; transactions 1-2, 3-1".to_owned()),
    ];
    for (found, words) in lines {
        let mut run = run.clone();
        find(at(&mut run, 0, 1), 0, Content::Log(ints(&found)));
        let words =
            words.replace(&format!("{first:?}"), "1-1").replace(&format!("{second:?}"), "2-1");
        breaks(&run, &[Promise::ReturnValues], &words);
    }
}

#[test]
fn a_transaction_sees_its_own_updates() {
    let mut store = store();
    store.update(0, SET, &Op::Insert(int(1)), None);
    store.read(0, SET);
    store.update(0, SET, &Op::Remove(int(1)), None);
    store.read(0, SET);
    store.commit(0, true);
    let run = settle(store);
    keeps(&run);
    let [mut first, mut second] = [run.clone(), run];
    find(at(&mut first, 0, 0), 0, Content::Set(Vec::new()));
    breaks(&first, &[Promise::ReturnValues], "expected [Int(1)], found []");
    find(at(&mut second, 0, 0), 1, Content::Set(ints(&[1])));
    breaks(&second, &[Promise::ReturnValues], "expected [], found [Int(1)]");
}

/// A removal removes the operations that its transaction saw, and no others.
#[test]
fn what_a_removal_did_not_see_stands() {
    let mut store = store();
    put(&mut store, 0, SET, &Op::Insert(int(1)));
    store.deliver(0, 1);
    put(&mut store, 0, SET, &Op::Insert(int(1)));
    put(&mut store, 1, SET, &Op::Remove(int(1)));
    store.deliver_all();
    get(&mut store, 2, SET);
    let mut run = settle(store);
    keeps(&run);
    find(at(&mut run, 2, 0), 0, Content::Set(Vec::new()));
    breaks(&run, &[Promise::ReturnValues], "expected [Int(1)], found []");
}

#[test]
fn siblings_are_all_offered_in_order() {
    let mut store = store();
    put(&mut store, 0, REGISTER, &Op::Write(int(1)));
    put(&mut store, 1, REGISTER, &Op::Write(int(2)));
    store.deliver_all();
    assert_eq!(get(&mut store, 2, REGISTER), Content::Register(ints(&[1, 2])));
    let run = settle(store);
    keeps(&run);
    let [mut hidden, mut swapped] = [run.clone(), run];
    find(at(&mut hidden, 2, 0), 0, Content::Register(ints(&[2])));
    breaks(&hidden, &[Promise::ReturnValues], "expected [Int(1), Int(2)], found [Int(2)]");
    // The last writer is a different one.
    find(at(&mut swapped, 2, 0), 0, Content::Register(ints(&[2, 1])));
    breaks_alone(&swapped, Promise::ReturnValues, "expected [Int(1), Int(2)]");
}

/// Register reads alone break causality, independent of the vectors.
#[test]
fn registers_are_causal_without_vectors() {
    let mut store = store();
    put(&mut store, 0, REGISTER, &Op::Write(int(1)));
    put(&mut store, 0, REGISTER, &Op::Write(int(2)));
    store.deliver_all();
    get(&mut store, 1, REGISTER);
    get(&mut store, 1, REGISTER);
    let mut run = settle(store);
    keeps(&run);
    find(at(&mut run, 1, 1), 0, Content::Register(ints(&[1])));
    breaks_alone(&run, Promise::Registers, "no causal-plus order");
}

/// Session order includes tokens even without vectors.
#[test]
fn registers_are_causal_across_tokens() {
    let mut store = store();
    put(&mut store, 0, REGISTER, &Op::Write(int(1)));
    store.join(3, 0);
    get(&mut store, 3, REGISTER);
    let mut run = settle(store);
    keeps(&run);
    find(at(&mut run, 3, 1), 0, Content::Register(Vec::new()));
    breaks_alone(&run, Promise::Registers, "no causal-plus order");
    // Without the token the run is correct.
    run.sessions[3].calls.remove(0);
    let report = mingle_checker::geo::check_some(&run, &[Promise::Registers]);
    assert!(report.is_kept(), "{report}");
}

/// Writes have one order of versions, and a reader sees the other.
#[test]
fn registers_converge_in_the_order_of_versions() {
    let mut store = store();
    put(&mut store, 0, REGISTER, &Op::Write(int(1)));
    put(&mut store, 1, REGISTER, &Op::Write(int(2)));
    store.deliver_all();
    get(&mut store, 0, REGISTER);
    get(&mut store, 1, REGISTER);
    let mut run = settle(store);
    keeps(&run);
    find(at(&mut run, 1, 1), 0, Content::Register(ints(&[2, 1])));
    breaks_alone(&run, Promise::Registers, "no causal-plus order");
}

#[test]
fn a_timestamp_is_above_all_that_was_seen() {
    let mut store = store();
    put(&mut store, 0, COUNTER, &Op::Add(1));
    put(&mut store, 0, COUNTER, &Op::Add(1));
    store.deliver_all();
    put(&mut store, 1, COUNTER, &Op::Add(1));
    let mut run = settle(store);
    keeps(&run);
    // Simulates a clock of d1 that is behind and is never advanced.
    let low = Vector::of([(0, 2), (1, 1)]);
    let transaction = at(&mut run, 1, 0);
    transaction.commit.as_mut().expect("a commit").commit_vec = low;
    transaction.outcome =
        mingle_checker::geo::Outcome::Committed { commit_vec: low, is_uniform: false };
    breaks(&run, &[Promise::VersionOrder], "expected more than 2, found 1");
}

#[test]
fn no_two_transactions_have_one_timestamp() {
    let mut store = store();
    put(&mut store, 0, COUNTER, &Op::Add(1));
    put(&mut store, 3, COUNTER, &Op::Add(1));
    let mut run = settle(store);
    keeps(&run);
    let same = at(&mut run, 0, 0).clone();
    let other = at(&mut run, 3, 0);
    (other.commit, other.outcome) = (same.commit, same.outcome);
    breaks(&run, &[Promise::VersionOrder], "one timestamp at one origin");
}

#[test]
fn a_transaction_is_seen_whole_or_not_at_all() {
    let mut store = store();
    store.update(0, LOG, &Op::Append(int(1)), None);
    store.update(0, OTHER_LOG, &Op::Append(int(2)), None);
    store.update(0, REGISTER, &Op::Write(int(3)), None);
    store.commit(0, true);
    store.deliver_all();
    for item in [LOG, OTHER_LOG, REGISTER] {
        store.read(1, item);
    }
    store.commit(1, true);
    let run = settle(store);
    keeps(&run);
    let [mut log, mut register, mut end] = [run.clone(), run.clone(), run];
    find(at(&mut log, 1, 0), 1, Content::Log(Vec::new()));
    breaks(
        &log,
        &[Promise::ReturnValues, Promise::Atomicity],
        "is seen at register 0, and not here",
    );
    find(at(&mut register, 1, 0), 2, Content::Register(Vec::new()));
    breaks_alone(&register, Promise::Atomicity, "all of it or nothing");
    for dc in 0..3 {
        hold(&mut end, dc, LOG, Content::Log(Vec::new()));
    }
    breaks(&end, &[Promise::Atomicity, Promise::EventualVisibility], "log 0; transactions 1-1");
}

/// With two registers only, the model without vectors finds it as well.
#[test]
fn a_register_that_is_a_version_behind_is_a_fracture() {
    let other = mingle_checker::geo::Item { key: 9, ..REGISTER };
    let mut store = store();
    for value in [1, 2] {
        store.update(0, REGISTER, &Op::Write(int(value)), None);
        store.update(0, other, &Op::Write(int(value)), None);
        store.commit(0, true);
    }
    store.deliver_all();
    store.read(1, REGISTER);
    store.read(1, other);
    store.commit(1, true);
    let mut run = store.settle(&[REGISTER, other]);
    keeps(&run);
    find(at(&mut run, 1, 0), 1, Content::Register(ints(&[1])));
    breaks_alone(&run, Promise::Atomicity, "no read-atomic order");
}
