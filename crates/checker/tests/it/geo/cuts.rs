//! Data centers that were given up, and data centers admitted again.

use mingle_checker::geo::{
    Action, Admission, Call, Claim, Commit, Content, Cut, End, Loss, Op, Outcome, Promise, Run,
    Session, System, Transaction, Vector, View, What,
};
use mingle_model::{Origin, TransactionId};

use super::script::{REGISTER, breaks, breaks_alone, int, keeps};

/// The cut of the first data center.
const CUT: u64 = 10;

/// Returns a session with one transaction at a data center.
fn session(id: u64, dc: u8, commit: Option<Commit>, read: Option<(Vector, i64)>) -> Session {
    let outcome = commit.map_or(Outcome::ReadOnly, |Commit { commit_vec, .. }| {
        Outcome::Committed { commit_vec, is_uniform: false }
    });
    let action = match read {
        Some((_, value)) => Action::Read { item: REGISTER, found: registers(value) },
        None => Action::Update { item: REGISTER, op: Op::Write(int(id as i64)), id: None },
    };
    let transaction = Transaction {
        id: TransactionId { origin: Origin(id.into()), sequence: 1 },
        dc,
        strong: None,
        snapshot: read.map(|(snapshot, _)| snapshot),
        actions: vec![action],
        outcome,
        commit,
        commit_asked_us: None,
    };
    let what = What::Transaction(Box::new(transaction));
    Session { id, calls: vec![Call { begin_us: id, end_us: Some(id), what }] }
}

/// Returns a session that writes its number into the register.
fn writer(id: u64, dc: u8, snap_vec: Vector, at: u64) -> Session {
    let commit = Commit { origin: dc, snap_vec, commit_vec: snap_vec.with(dc, at) };
    session(id, dc, Some(commit), None)
}

fn reader(id: u64, dc: u8, snapshot: Vector, value: i64) -> Session {
    session(id, dc, None, Some((snapshot, value)))
}

fn registers(value: i64) -> Content {
    Content::Register(vec![int(value)])
}

fn view(dc: u8, snapshot: Vector, value: i64) -> View {
    View { dc, snapshot, items: [(REGISTER, registers(value))].into() }
}

/// Returns a run in which the cut of the first of three data centers keeps one of its transactions
/// and drops another.
fn given_up() -> Run {
    let end = Vector::of([(0, CUT), (1, 9), (2, 9)]);
    Run {
        system: System { dc_count: 3, losses_max: 1, partition_count: 1, ..System::default() },
        sessions: vec![
            writer(1, 0, Vector::ZERO, 5),
            writer(2, 0, Vector::of([(0, 5)]), 20),
            // A session at the data center itself sees it until the loss.
            reader(3, 0, Vector::of([(0, 25)]), 2),
            reader(4, 1, Vector::of([(0, CUT), (1, 7)]), 1),
        ],
        losses: vec![Loss { dc: 0, at_us: 30 }],
        cuts: vec![Cut { dc: 0, at: CUT }],
        claims: vec![Claim { dc: 1, partition: 0, at_us: 40, uniform_vec: end }],
        end: End { at_us: 100, is_settled: true, views: vec![view(1, end, 1), view(2, end, 1)] },
        ..Run::default()
    }
}

/// Returns the same run, with the data center admitted again, as the fourth, and writing.
fn admitted() -> Run {
    let mut run = given_up();
    run.system.dc_count = 4;
    run.admissions.push(Admission { dc: 3, of: 0, at_us: Some(50) });
    run.sessions.push(writer(5, 3, Vector::of([(0, CUT), (1, 7)]), 12));
    let end = Vector::of([(0, CUT), (1, 19), (2, 19), (3, 19)]);
    run.end.views = [1, 2, 3].map(|dc| view(dc, end, 5)).into();
    run
}

fn is_broken(run: &Run, words: &str) {
    breaks_alone(run, Promise::Uniformity, words);
}

#[test]
fn what_a_cut_leaves_is_everywhere_and_the_rest_is_gone() {
    keeps(&given_up());
    // A cut at 0 keeps no transaction.
    let mut run = given_up();
    run.cuts[0].at = 0;
    run.sessions.remove(0);
    run.sessions[0] = writer(2, 0, Vector::ZERO, 20);
    run.sessions[2] = writer(4, 1, Vector::ZERO, 3);
    run.claims.clear();
    let end = Vector::of([(1, 9), (2, 9)]);
    run.end.views = [1, 2].map(|dc| view(dc, end, 4)).into();
    keeps(&run);
}

#[test]
fn nobody_else_reads_what_is_above_a_cut() {
    let mut run = given_up();
    run.sessions[3] = reader(4, 1, Vector::of([(0, 20), (1, 7)]), 2);
    is_broken(&run, "what lies above the cut of d0 is shown");
    let mut run = given_up();
    run.sessions[3] = writer(4, 1, Vector::of([(0, CUT + 1)]), 30);
    is_broken(&run, "what lies above the cut of d0 is shown");
}

#[test]
fn nobody_shows_what_is_above_a_cut_in_the_end() {
    let mut run = given_up();
    run.end.views[1].snapshot = Vector::of([(0, CUT + 1), (1, 9), (2, 9)]);
    is_broken(&run, "what lies above the cut of d0 is shown");
}

#[test]
fn nobody_says_of_what_is_above_a_cut_that_it_is_uniform() {
    let mut run = given_up();
    run.claims[0].uniform_vec = Vector::of([(0, CUT + 1)]);
    is_broken(&run, "more of d0 is uniform than its cut left");
}

#[test]
fn what_is_below_a_cut_is_not_gone() {
    let mut run = given_up();
    run.end.views[1].snapshot = Vector::of([(0, 4), (1, 9), (2, 9)]);
    is_broken(&run, "a transaction is gone that lies below the cut of d0");
    // Until the system has come to rest, the transaction may still be in transit.
    run.end.is_settled = false;
    keeps(&run);
}

#[test]
fn one_that_is_admitted_again_is_as_good_as_any() {
    keeps(&admitted());
    let mut run = admitted();
    run.end.views.pop();
    breaks(&run, &[Promise::Recording], "was not looked at in the end");
    let mut run = admitted();
    run.end.views[0].snapshot = Vector::of([(0, CUT), (1, 19), (2, 19), (3, 11)]);
    let words = "a transaction of a data center that is not lost is not visible in the end";
    breaks_alone(&run, Promise::EventualVisibility, words);
}

#[test]
fn one_that_is_admitted_again_has_no_more_of_what_it_was_than_others() {
    let mut run = admitted();
    run.end.views[2].snapshot = Vector::of([(0, 20), (1, 19), (2, 19), (3, 19)]);
    is_broken(&run, "what lies above the cut of d0 is shown");
    let mut run = admitted();
    run.sessions.push(reader(6, 3, Vector::of([(0, 20), (1, 7), (3, 12)]), 2));
    is_broken(&run, "what lies above the cut of d0 is shown");
    let mut run = admitted();
    run.end.views[2].snapshot = Vector::of([(0, 4), (1, 19), (2, 19), (3, 19)]);
    is_broken(&run, "a transaction is gone that lies below the cut of d0");
}

#[test]
fn one_that_never_was_admitted_is_not_looked_for() {
    let mut run = given_up();
    run.system.dc_count = 4;
    run.admissions.push(Admission { dc: 3, of: 0, at_us: None });
    keeps(&run);
    run.admissions[0].at_us = Some(50);
    breaks(&run, &[Promise::Recording], "was not looked at in the end");
    run.admissions[0].dc = 4;
    breaks_alone(&run, Promise::Recording, "there is no such data center");
}
