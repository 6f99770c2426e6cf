//! A phase that ran on both sides of a partition took effect once.

use mingle_model::{Level, Value};
use mingle_store::conformance::schema::{COUNT, LINES, TAGS, at, thing};
use mingle_store::{
    Commit, Data, Guard, Read, RecordKey, RecordKind, Session, StoreError, Write, record,
};

use crate::support::{Bench, id, operation};

const REPLICAS: [&str; 3] = ["r1", "r2", "r3"];

fn witness(sequence: u64) -> RecordKey {
    RecordKey::of(RecordKind::Witness, id(sequence), 0)
}

fn floor() -> RecordKey {
    RecordKey::of_origin(RecordKind::Floor, id(1).origin)
}

/// Returns a later phase as the runtime commits it.
fn phase(sequence: u64) -> Commit {
    Commit {
        id: Some(id(sequence)),
        writes: vec![
            Write::Add(at("x", COUNT), 1 << sequence),
            Write::Append(at("x", LINES), Value::Int(sequence as i64)),
            Write::Insert(at("x", TAGS), Value::Int(sequence as i64)),
            Write::Record(witness(sequence), [1].as_slice().into()),
        ],
        guards: vec![Guard::Absent(witness(sequence)), Guard::Below(floor(), sequence)],
        operation: Some(operation(sequence)),
        ..Commit::default()
    }
}

fn check_once(bench: &Bench, sequences: &[i64]) {
    for replica in REPLICAS {
        let sum = sequences.iter().map(|n| 1i128 << n).sum();
        assert_eq!(bench.data(replica, Read::Counter(at("x", COUNT))), Data::Counter(sum));
        let lines = bench.data(replica, Read::LogLast(at("x", LINES), 9));
        let expected = sequences.iter().map(|n| Value::Int(*n)).collect();
        assert_eq!(lines, Data::Values(expected), "at {replica}");
    }
}

#[test]
fn both_sides_of_a_partition_run_a_phase() {
    for level in [Level::Causal, Level::Eventual] {
        let bench = Bench::new(level);
        bench.write("r1", vec![Write::Create(thing("y"))]);
        bench.cuts.cut("r1", "r2");
        bench.cuts.cut("r3", "r2");
        for sequence in [1, 2] {
            bench.commit("r1", phase(sequence));
            bench.commit("r2", phase(sequence));
            bench.deliver();
            let again = bench.try_commit("r3", phase(sequence));
            assert_eq!(again, Err(StoreError::Conflict), "its commit witness is there");
        }
        check_once(&bench, &[1, 2]);
        bench.cuts.heal();
        check_once(&bench, &[1, 2]);
        // A replica that saw one copy removes the copy that counts, even if that is another one.
        bench.write("r3", vec![Write::Delete(thing("x"))]);
        bench.deliver();
        check_once(&bench, &[]);
    }
}

#[test]
fn a_copy_arrives_after_the_floor_was_raised() {
    for level in [Level::Causal, Level::Eventual] {
        let bench = Bench::new(level);
        bench.commit("r1", phase(1));
        bench.cuts.cut("r1", "r2");
        bench.cuts.cut("r3", "r2");
        bench.deliver();
        bench.commit("r2", phase(1));
        let raised = bench.write("r1", vec![Write::Record(floor(), record::floor(1))]);
        bench.deliver();
        let late = bench.try_commit("r3", phase(1));
        assert_eq!(late, Err(StoreError::Conflict), "the floor is there");
        // The late copy reaches the other replicas, and the floor reaches the late replica.
        bench.cuts.heal();
        check_once(&bench, &[1]);
        let discard = vec![Write::Discard(witness(1)), Write::Forget(id(1))];
        let mut sweep = bench.begin(&Session { after: raised.stamp.clone(), ..Session::at("r2") });
        let read = [Read::Record(floor())];
        let found = bench.world.block_on(sweep.read(&read)).expect("the floor has come");
        assert_eq!(found[0].data, Data::Record(Some(record::floor(1))));
        drop(sweep);
        bench.write("r3", discard);
        bench.deliver();
        check_once(&bench, &[1]);
        let gone = bench.data("r2", Read::Record(witness(1)));
        assert_eq!(gone, Data::Record(None), "the witness of either copy is discarded");
    }
}
