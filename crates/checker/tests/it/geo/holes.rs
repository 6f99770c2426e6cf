//! Snapshots that reach a transaction's timestamp and do not hold it, as they arise when partitions
//! know different transactions: the checker's meaning of the types equals that of the store's
//! states, on any vectors.

use mingle_checker::geo::{
    Action, Call, Commit, Content, Item, Op, OpId, Outcome, Promise, Run, Session, System,
    Transaction, Vector, What, check_some,
};
use mingle_geo::types::Recent;
use mingle_geo::{Cause, DcId, State, Timestamp, Version};
use mingle_model::random::Random;
use mingle_model::{Origin, TransactionId};

use super::random::{SMALL, identified, items, op};
use super::translate;

/// An operation in a transaction of its own.
struct Sent {
    commit: Commit,
    op: mingle_geo::Op,
    id: Option<OpId>,
}

impl Sent {
    fn version(&self) -> Version {
        let (timestamp, origin) = self.commit.version();
        Version { timestamp: Timestamp(timestamp), origin: DcId(origin), index: 0 }
    }
}

/// Returns the state of the item at a snapshot, from the operations in it, in the order of
/// versions.
fn state(item: Item, sent: &[Sent], snapshot: &Vector) -> State {
    let mut state = (*translate::nothing(item)).clone();
    for one in sent.iter().filter(|one| snapshot.covers(&one.commit.commit_vec)) {
        let seen = translate::vector(&one.commit.snap_vec);
        let cause = Cause { version: one.version(), seen };
        state.apply(&cause, &one.op, one.id.as_ref().map(translate::id).as_ref());
    }
    state
}

/// Returns the form in which an operation is sent.
fn measured(item: Item, sent: &[Sent], snapshot: &Vector, op: &Op) -> mingle_geo::Op {
    let ids: Vec<_> = sent.iter().map(|one| one.id.as_ref().map(translate::id)).collect();
    let reached =
        |(_, one): &(usize, &Sent)| one.commit.timestamp() <= snapshot.get(one.commit.origin);
    let recent: Vec<Recent<'_>> = sent
        .iter()
        .enumerate()
        .filter(reached)
        .map(|(place, one)| Recent {
            version: one.version(),
            op: &one.op,
            id: ids[place].as_ref(),
            is_held: snapshot.covers(&one.commit.commit_vec),
        })
        .collect();
    let at = translate::vector(snapshot);
    state(item, sent, snapshot).measured(&translate::op(op), &at, &recent)
}

/// Returns a snapshot with random entries up to now.
fn any_snapshot(random: &mut Random, now: u64) -> Vector {
    Vector::of((0..3).map(|dc| (dc, random.below(now as usize) as u64)))
}

/// Returns a transaction in a session of its own.
fn session(
    number: u64,
    dc: u8,
    snapshot: Vector,
    action: Action,
    commit: Option<Commit>,
) -> Session {
    let outcome = match commit {
        Some(Commit { commit_vec, .. }) => Outcome::Committed { commit_vec, is_uniform: false },
        None => Outcome::ReadOnly,
    };
    let transaction = Transaction {
        id: TransactionId { origin: Origin(number.into()), sequence: 1 },
        dc,
        strong: None,
        snapshot: commit.is_none().then_some(snapshot),
        actions: vec![action],
        outcome,
        commit,
        commit_asked_us: None,
    };
    let what = What::Transaction(Box::new(transaction));
    Session { id: number, calls: vec![Call { begin_us: number, end_us: Some(number), what }] }
}

fn play(seed: u64, item: Item, with_ids: bool) {
    let mut random = Random::new(seed);
    let (mut sent, mut sessions): (Vec<Sent>, Vec<Session>) = (Vec::new(), Vec::new());
    for now in 1..24 {
        let dc = random.below(3) as u8;
        let snapshot = any_snapshot(&mut random, now);
        if random.one_in(3) {
            let found: Content = translate::content(&state(item, &sent, &snapshot));
            sessions.push(session(now, dc, snapshot, Action::Read { item, found }, None));
            continue;
        }
        let (op, id) = if with_ids && random.one_in(2) {
            let (op, id) = identified(&mut random, item);
            (op, Some(id))
        } else {
            (op(&mut random, item, now as i64), None)
        };
        let commit_vec = snapshot.with(dc, now);
        let commit = Commit { origin: dc, snap_vec: snapshot, commit_vec };
        let travelling = measured(item, &sent, &snapshot, &op);
        sent.push(Sent { commit, op: travelling, id });
        sessions.push(session(now, dc, snapshot, Action::Update { item, op, id }, Some(commit)));
    }
    let system = System { dc_count: 3, losses_max: 1, partition_count: 1, ..System::default() };
    let run = Run { system, sessions, ..Run::default() };
    let report = check_some(&run, &[Promise::ReturnValues, Promise::CausalOrder]);
    assert!(report.is_kept(), "seed {seed}: {report}\n{sent}", sent = lines(&run));
}

fn lines(run: &Run) -> String {
    let lines = run.transactions().map(|(_, _, transaction)| {
        let vectors = transaction.commit.map(|commit| (commit.snap_vec, commit.commit_vec));
        let shown = match vectors {
            Some((snap_vec, commit_vec)) => format!("{snap_vec} {commit_vec}"),
            None => transaction.snapshot.unwrap_or_default().to_string(),
        };
        format!("{shown} {:?}\n", transaction.actions)
    });
    lines.collect()
}

/// Seeds that once found a fault.
const FOUND: [u64; 2] = [1_290, 13_545];

#[test]
fn any_snapshot_shows_what_it_holds() {
    for seed in (0..2_000).chain(FOUND) {
        for item in items(&SMALL) {
            play(seed, item, false);
        }
    }
}

#[test]
fn any_snapshot_shows_of_repeated_operations_one() {
    for seed in (0..2_000).chain(FOUND) {
        for item in items(&SMALL) {
            play(seed, item, true);
        }
    }
}
