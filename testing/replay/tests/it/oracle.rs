//! This store and the embedded engine give the same answers to the same calls.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mingle_model::random::Random;
use mingle_model::{Level, TransactionId, Value};
use mingle_store::conformance::schema::{
    COUNT, LINES, MARKS, NUMBER, TAGS, TEXT, at, store_schema, thing,
};
use mingle_store::{
    Answer, Commit, Committed, DataStore, Guard, Once, Outcome, Read, RecordKey, RecordKind,
    Session, StoreError, TestWorld, World, Write, record,
};
use mingle_store_embedded::{Embedded, EmbeddedConfig};
use mingle_store_replay::{Links, ReplayConfig, ReplayStore};

use crate::support::{Cuts, DELAY, id, row};

const KEYS: [&str; 2] = ["a", "ab"];
const REPLICAS: [&str; 3] = ["r1", "r2", "r3"];

impl mingle_store_embedded::config::Links for Cuts {
    fn is_up(&self, from: &str, to: &str) -> bool {
        Links::is_up(self, from, to)
    }
}

fn record_key(random: &mut Random) -> RecordKey {
    match random.below(3) {
        0 => RecordKey::of_origin(RecordKind::Floor, id(0).origin),
        _ => RecordKey::of(RecordKind::Intent, id(random.below(3) as u64), 0),
    }
}

fn random_write(random: &mut Random) -> Write {
    let key = *random.pick(&KEYS);
    let text = Value::from(format!("t{}", random.below(3)));
    let number = Value::Int(random.below(100) as i64);
    let sequence = random.below(4) as u64;
    match random.below(19) {
        0 => Write::Create(thing(key)),
        1 => Write::Delete(thing(key)),
        2 => Write::Assign(at(key, TEXT), text),
        3 => Write::Assign(at(key, NUMBER), number),
        4 => Write::Add(at(key, COUNT), random.below(100) as i128 - 50),
        5 | 6 => Write::Insert(at(key, TAGS), text),
        7 => Write::Remove(at(key, TAGS), text),
        8 | 9 => Write::Put(at(key, MARKS), text, number),
        10 => Write::Erase(at(key, MARKS), text),
        11 | 12 => Write::Append(at(key, LINES), text),
        13 => Write::Clear(at(key, *random.pick(&[TAGS, MARKS, LINES]))),
        14 => Write::Witness(row(Some(key), sequence)),
        15 => Write::Witness(row(None, sequence)),
        16 => Write::Forget(id(sequence)),
        17 => Write::Discard(record_key(random)),
        _ => Write::Record(record_key(random), record::floor(sequence)),
    }
}

fn random_commit(random: &mut Random, step: u64) -> Commit {
    let writes = (0..random.below(4)).map(|_| random_write(random)).collect();
    let guards = (0..random.below(5) / 3).map(|_| match random.below(2) {
        0 => Guard::Absent(record_key(random)),
        _ => Guard::Below(record_key(random), random.below(4) as u64),
    });
    let guards = guards.collect();
    let knows_all = random.below(4) > 0;
    let known: BTreeSet<TransactionId> =
        (0..4).filter(|_| knows_all || random.one_in(2)).map(id).collect();
    let id = random.one_in(3).then(|| id(100 + step));
    Commit { id, writes, guards, known, ..Commit::default() }
}

fn reads() -> Vec<Read> {
    let objects = KEYS.into_iter().flat_map(|key| {
        [
            Read::Exists(thing(key)),
            Read::Register(at(key, TEXT)),
            Read::Register(at(key, NUMBER)),
            Read::Counter(at(key, COUNT)),
            Read::Elements(at(key, TAGS)),
            Read::Entries(at(key, MARKS)),
            Read::SetSize(at(key, TAGS)),
            Read::LogLast(at(key, LINES), 100),
        ]
    });
    let kinds = [RecordKind::Intent, RecordKind::Floor];
    let scans = kinds.map(|kind| Read::Records { kind, from: Arc::from([]), limit: 2 });
    objects.chain(scans).chain([Read::Witnesses { from: id(1), limit: 2 }]).collect()
}

/// Removes versions, which each store counts separately, and sorts rows, which have no order.
fn without_versions(answers: Vec<Answer>) -> Vec<Answer> {
    let strip = |mut answer: Answer| {
        answer.version = mingle_model::Version(0);
        answer.witnesses.sort();
        answer
    };
    answers.into_iter().map(strip).collect()
}

/// The result of a call, with the parts on which both stores must agree.
type Given = Result<(Vec<Answer>, Committed), StoreError>;

async fn run(store: &dyn DataStore, session: &Session, flush: &[Write], commit: &Commit) -> Given {
    let mut transaction = store.begin(session).await?;
    if !flush.is_empty() {
        transaction.flush(flush.to_vec()).await?;
    }
    let answers = without_versions(transaction.read(&reads()).await?);
    let committed = transaction.commit(commit.clone()).await?;
    Ok((answers, Committed { version: mingle_model::Version(0), ..committed }))
}

fn comparable(given: Given) -> Given {
    given.map_err(|error| match error {
        StoreError::Witnessed { mut rows } => {
            rows.sort();
            StoreError::Witnessed { rows }
        }
        // Each store has its own wording.
        StoreError::Refused { store, .. } => StoreError::Refused { store, reason: String::new() },
        other => other,
    })
}

fn check(level: Level, seed: u64) -> usize {
    let (world, cuts) = (TestWorld::new(seed), Arc::new(Cuts::default()));
    let schema = store_schema(level);
    let replay = ReplayConfig::new(3, Once::Home).with_delay(DELAY, Duration::ZERO);
    let replay = ReplayStore::open(replay.with_links(cuts.clone()), schema.clone(), world.clone());
    let embedded = EmbeddedConfig::in_memory()
        .with_replicas(3)
        .with_delay(DELAY, Duration::ZERO)
        .with_once(Once::Home)
        .with_links(cuts.clone());
    let embedded = Embedded::open(embedded, schema, world.clone());
    let stores = [replay.expect("it opens"), embedded.expect("it opens")];
    let mut random = Random::new(seed);
    let mut errors = 0;
    let mut after = mingle_model::Stamp::default();
    for step in 0..80 {
        let mut session = Session::at(*random.pick(&REPLICAS));
        if random.one_in(4) {
            session.after = after.clone();
        }
        let commit = random_commit(&mut random, step);
        let flush: Vec<Write> =
            (0..random.below(4) / 2).map(|_| random_write(&mut random)).collect();
        let [one, other] = stores
            .each_ref()
            .map(|s| comparable(world.block_on(run(&**s, &session, &flush, &commit))));
        let what = format!("{level} seed {seed} step {step}: {session:?} {flush:?} {commit:?}");
        if let (Ok((one, _)), Ok((other, _))) = (&one, &other) {
            for ((read, one), other) in reads().iter().zip(one).zip(other) {
                assert_eq!(one, other, "{read:?} in {what}");
            }
        }
        assert_eq!(one, other, "{what}");
        match one {
            Ok((_, committed)) if random.one_in(2) => after = committed.stamp,
            Ok(_) => {}
            Err(_) => errors += 1,
        }
        let [one, other] = stores.each_ref().map(|store| world.block_on(store.everywhere()));
        assert_eq!(one, other, "{what}");
        let asked = id(100 + random.below(80) as u64);
        let [one, other] = stores.each_ref().map(|store| world.block_on(store.outcome(asked)));
        assert_eq!(one, other, "{what}");
        assert!(matches!(one, Ok(Outcome::Committed | Outcome::NotCommitted)), "{what}");
        match random.below(8) {
            0 => cuts.cut(random.pick::<&str>(&REPLICAS), random.pick::<&str>(&REPLICAS)),
            1 => cuts.heal(),
            _ => world.advance(Duration::from_millis(random.below(30) as u64)),
        }
    }
    assert!(world.elapsed() > DELAY, "{level} seed {seed}: nothing was ever delivered");
    errors
}

#[test]
fn both_stores_answer_alike() {
    for level in [Level::Causal, Level::Eventual] {
        let errors: usize = (0..60).map(|seed| check(level, seed)).sum();
        assert!(errors > 300, "{errors} calls were refused: what of guards and rows?");
    }
}
