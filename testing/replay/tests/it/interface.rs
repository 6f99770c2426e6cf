//! Records, guards, witness rows, stamps, outcomes and queries.

use std::collections::BTreeSet;
use std::sync::Arc;

use mingle_model::{Level, Stamp, Type, Value};
use mingle_store::conformance::schema::{COUNT, TAGS, TEXT, at, store_schema, thing};
use mingle_store::{
    Bytes, Commit, Data, DataStore, Guard, Once, Outcome, Read, RecordKey, RecordKind, Session,
    StoreError, StoreOperation, TestWorld, Write, record,
};
use mingle_store_replay::{ReplayConfig, ReplayStore};

use crate::support::{Bench, id, row};

fn bytes(text: &str) -> Bytes {
    text.as_bytes().into()
}

fn intent(sequence: u64) -> RecordKey {
    RecordKey::of(RecordKind::Intent, id(sequence), 0)
}

#[test]
fn records_are_read_scanned_and_discarded() {
    let bench = Bench::new(Level::Causal);
    let writes = (1..=4).map(|n| Write::Record(intent(n), bytes(&n.to_string())));
    bench.write("r1", writes.collect());
    bench.write("r1", vec![Write::Discard(intent(3)), Write::Record(intent(4), bytes("new"))]);
    let scan = Read::Records { kind: RecordKind::Intent, from: intent(2).key, limit: 2 };
    let expected = vec![(intent(2).key, bytes("2")), (intent(4).key, bytes("new"))];
    assert_eq!(bench.data("r1", scan.clone()), Data::Records(expected.clone()));
    assert_eq!(bench.data("r2", scan.clone()), Data::Records(vec![]));
    bench.deliver();
    assert_eq!(bench.data("r2", scan), Data::Records(expected));
    let parked = Read::Records { kind: RecordKind::Parked, from: bytes(""), limit: 9 };
    assert_eq!(bench.data("r1", parked), Data::Records(vec![]));
    assert_eq!(bench.data("r1", Read::Record(intent(3))), Data::Record(None));
}

#[test]
fn guards_are_judged_by_what_the_replica_has() {
    let bench = Bench::new(Level::Causal);
    let floor = RecordKey::of_origin(RecordKind::Floor, id(1).origin);
    bench.write(
        "r1",
        vec![Write::Record(intent(1), bytes("x")), Write::Record(floor.clone(), record::floor(5))],
    );
    let cases = [
        (Guard::Absent(intent(1)), false),
        (Guard::Absent(intent(2)), true),
        (Guard::Below(floor.clone(), 5), false),
        (Guard::Below(floor, 6), true),
    ];
    for (guard, holds) in cases {
        let commit = |id| Commit { id, guards: vec![guard.clone()], ..Commit::default() };
        assert_eq!(bench.try_commit("r1", commit(None)).is_ok(), holds, "{guard:?} at r1");
        assert!(bench.try_commit("r2", commit(None)).is_ok(), "{guard:?} at r2");
    }
    let guarded =
        Commit { id: Some(id(1)), guards: vec![Guard::Absent(intent(2))], ..Commit::default() };
    bench.commit("r1", guarded);
    let outcome = bench.world.block_on(bench.store.outcome(id(1)));
    assert_eq!(outcome, Ok(Outcome::Committed), "a commit of guards alone");
}

#[test]
fn whoever_writes_data_must_know_all_rows() {
    let bench = Bench::new(Level::Causal);
    bench.write("r1", vec![Write::Witness(row(Some("x"), 1)), Write::Witness(row(None, 2))]);
    let commit = |known: &[u64], writes: &[Write]| Commit {
        writes: writes.to_vec(),
        known: known.iter().map(|n| id(*n)).collect::<BTreeSet<_>>(),
        ..Commit::default()
    };
    let write = Write::Add(at("x", COUNT), 1);
    let rows = vec![row(Some("x"), 1), row(None, 2)];
    for known in [&[][..], &[1], &[2]] {
        let result = bench.try_commit("r1", commit(known, std::slice::from_ref(&write)));
        assert_eq!(result, Err(StoreError::Witnessed { rows: rows.clone() }), "{known:?}");
    }
    assert_eq!(bench.data("r1", Read::Counter(at("x", COUNT))), Data::Counter(0));
    let other = bench.try_commit("r1", commit(&[], &[Write::Create(thing("y"))]));
    assert_eq!(other, Err(StoreError::Witnessed { rows: vec![row(None, 2)] }));
    bench.commit("r1", commit(&[], &[Write::Record(intent(1), bytes("no data"))]));
    bench.commit("r1", commit(&[1, 2], &[write]));
    let own = [Write::Create(thing("x")), Write::Witness(row(Some("x"), 1))];
    bench.commit("r1", commit(&[2], &own));
    let answer = bench.answer("r1", Read::Counter(at("x", COUNT)));
    assert_eq!(answer.witnesses, rows, "rows of the object and of the store");
}

#[test]
fn rows_are_scanned_by_transaction_and_forgotten_whole() {
    let bench = Bench::new(Level::Causal);
    let rows = [row(Some("b"), 1), row(None, 2), row(Some("a"), 2), row(Some("a"), 3)];
    bench.write("r1", rows.iter().cloned().map(Write::Witness).collect());
    let scan = |from, limit| Read::Witnesses { from: id(from), limit };
    let sorted = |rows: &[_]| Data::Witnesses(rows.to_vec());
    assert_eq!(bench.data("r1", scan(1, 2)), sorted(&rows[..3]), "all rows of the second");
    assert_eq!(bench.data("r1", scan(2, 1)), sorted(&rows[1..3]));
    assert_eq!(bench.data("r1", scan(1, 0)), sorted(&rows[..0]));
    bench.deliver();
    bench.write("r2", vec![Write::Forget(id(2))]);
    bench.deliver();
    for replica in ["r1", "r2", "r3"] {
        let left = [rows[0].clone(), rows[3].clone()];
        assert_eq!(bench.data(replica, scan(0, 9)), sorted(&left), "at {replica}");
    }
}

#[test]
fn a_session_waits_for_what_it_has_seen() {
    let bench = Bench::new(Level::Causal);
    let seen = bench.write("r1", vec![Write::Create(thing("x"))]).stamp;
    assert_eq!(seen, Stamp::from_iter([("r1".into(), 1)]));
    let session = Session { after: seen.clone(), ..Session::at("r2") };
    let read = || {
        let mut transaction = bench.begin(&session);
        bench.world.block_on(transaction.read(&[Read::Exists(thing("x"))]))
    };
    let behind = StoreError::Behind { store: "suite".into(), replica: "r2".into() };
    assert_eq!(read(), Err(behind.clone()));
    let commit = bench.begin(&session).commit(Commit::default());
    assert_eq!(bench.world.block_on(commit), Err(behind));
    assert_eq!(bench.world.block_on(bench.store.everywhere()), Ok(Stamp::default()));
    bench.cuts.cut("r1", "r3");
    bench.deliver();
    assert_eq!(read().expect("it has come")[0].data, Data::Bool(true));
    assert_eq!(bench.world.block_on(bench.store.everywhere()), Ok(Stamp::default()));
    bench.cuts.heal();
    assert_eq!(bench.world.block_on(bench.store.everywhere()), Ok(seen.clone()));
    let later = bench.write("r2", vec![Write::Create(thing("y"))]).stamp;
    assert!(later.covers(&seen) && later.of("r2") == 1, "{later:?}");
    let eventual = Bench::new(Level::Eventual);
    let committed = eventual.write("r1", vec![Write::Create(thing("x"))]);
    assert!(committed.stamp.is_empty(), "an eventual store does not count");
}

#[test]
fn what_was_said_to_be_not_committed_never_is() {
    let bench = Bench::new(Level::Causal);
    let commit =
        || Commit { id: Some(id(1)), writes: vec![Write::Create(thing("x"))], ..Commit::default() };
    let ask = || bench.world.block_on(bench.store.outcome(id(1)));
    assert_eq!(ask(), Ok(Outcome::NotCommitted));
    let late = bench.try_commit("r2", commit());
    assert!(matches!(late, Err(StoreError::Refused { .. })), "{late:?}");
    assert_eq!(ask(), Ok(Outcome::NotCommitted));
}

fn size_of(body: &str) -> Result<Arc<dyn DataStore>, StoreError> {
    let operation = StoreOperation {
        is_command: false,
        parameters: vec![("key".into(), Type::String)],
        result: Some(Type::Int),
        body: Some(body.into()),
        builtin: None,
    };
    let mut schema = store_schema(Level::Causal);
    schema.operations.insert("tagged".into(), operation);
    ReplayStore::open(ReplayConfig::new(2, Once::ById), schema, TestWorld::new(1))
}

#[test]
fn a_size_is_strong_and_other_bodies_are_refused() {
    let world = TestWorld::new(1);
    let store = size_of("builtin:size Thing.tags").expect("it opens");
    let mut reader = world.block_on(store.begin(&Session::at("r2"))).expect("it begins");
    world.block_on(reader.flush(vec![])).expect("it flushes");
    for (replica, tag) in [("r1", "a"), ("r2", "b")] {
        let begun = world.block_on(store.begin(&Session::at(replica))).expect("it begins");
        let writes = vec![Write::Insert(at("x", TAGS), Value::from(tag))];
        let commit = Commit { writes, ..Commit::default() };
        world.block_on(begun.commit(commit)).expect("it commits");
    }
    let mut reader = world.block_on(store.begin(&Session::at("r2"))).expect("it begins");
    let query = Read::Query { operation: "tagged".into(), arguments: vec![Value::from("x")] };
    let own = vec![Write::Insert(at("x", TAGS), Value::from("c"))];
    world.block_on(reader.flush(own)).expect("it flushes");
    let found = world.block_on(reader.read(&[query])).expect("it reads");
    assert_eq!(found[0].data, Data::Result(Value::Int(3)));
    for body in ["builtin:size Thing.text", "builtin:size Thing", "builtin:keys Thing", "", "sql"] {
        let error = size_of(body).err().expect(body).to_string();
        assert!(error.contains("builtin:size KIND.FIELD"), "{body}: {error}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let world = TestWorld::new(1);
    let twice = ReplayConfig {
        replicas: vec!["a".into(), "a".into()],
        ..ReplayConfig::new(1, Once::Never)
    };
    let cases = [
        (ReplayConfig::new(0, Once::ById), Level::Causal, "it needs 1 to 64 replicas"),
        (twice, Level::Causal, "two replicas have one name"),
        (ReplayConfig::new(2, Once::Serial), Level::Causal, "not serial"),
        (ReplayConfig::new(2, Once::ById), Level::Linearizable, "causal or eventual"),
        (ReplayConfig::new(2, Once::ById).with_floor_suffices(), Level::Eventual, "one replica"),
    ];
    for (config, level, part) in cases {
        let opened = ReplayStore::open(config, store_schema(level), world.clone());
        let error = opened.err().expect(part).to_string();
        assert!(error.contains(part), "{error}");
    }
    let bench = Bench::new(Level::Causal);
    let read = [Read::Counter(at("x", TEXT))];
    let found = bench.world.block_on(bench.begin(&Session::at("r1")).read(&read));
    assert!(matches!(found, Err(StoreError::Refused { .. })), "{found:?}");
}
