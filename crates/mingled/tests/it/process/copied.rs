//! Copies of all items while sessions write, and processes that are restored from them.

use std::collections::BTreeMap;
use std::io::Write as _;

use mingle_geo::types::Counter;
use mingle_geo::{DcId, Key, Kind, Op};
use mingle_model::Value;
use mingled::backup::{Backup, Founding, check, restore};
use mingled::process::{Process, Settings};

use super::{CLUSTER, Cluster, add, counter, until, value};

/// Writes a backup of a process to a file.
fn made(process: &Process, file: &std::path::Path) {
    let mut backup = Backup::new(process.copy().expect("it serves"), CLUSTER, 1_000_000);
    let mut out = std::fs::File::create(file).expect("room");
    while let Some(bytes) = backup.next_bytes().expect("it goes on") {
        out.write_all(&bytes).expect("room");
    }
}

fn of_kinds() -> Vec<(Key, Vec<Op>)> {
    let key = |kind, name: &str| Key::new(kind, name);
    let float = Value::from(f64::NEG_INFINITY);
    vec![
        (key(Kind::Register, "a"), vec![Op::Write(Value::from("text"))]),
        (key(Kind::Register, "erased"), vec![Op::Write(Value::Int(1)), Op::Erase]),
        (key(Kind::Counter, "a"), vec![Op::Add(i64::MAX), Op::Add(i64::MAX)]),
        (key(Kind::Set, "a"), vec![Op::Insert(float.clone()), Op::Insert(Value::Int(i64::MIN))]),
        (
            key(Kind::Map, "a"),
            vec![Op::Put(Value::Int(1), float), Op::Increment(Value::Int(2), -5)],
        ),
        (key(Kind::Log, "a"), vec![Op::Append(Value::NONE), Op::Append(Value::from("z"))]),
    ]
}

#[test]
fn items_of_all_kinds_are_the_same_in_a_restored_process() {
    let mut cluster = Cluster::new(1);
    let process = cluster.processes.remove(&0).expect("it runs");
    let session = process.session();
    for (key, ops) in of_kinds() {
        for op in ops {
            session.write(key.clone(), op).expect("it fits");
        }
        session.commit().expect("it commits");
    }
    let keys: Vec<Key> = of_kinds().into_iter().map(|(key, _)| key).collect();
    let before = session.read(keys.clone()).expect("they are here");
    session.rollback().expect("it has only read");
    let file = cluster.folders.path().join("backup");
    made(&process, &file);
    process.stop();
    let report = check(&file).expect("it is complete");
    assert_eq!((report.totals.items, report.types["counters of programs"]), (5, 1));

    let founding = Founding {
        journal: cluster.folders.path().join("restored"),
        cluster: 9,
        dc: DcId(1),
        dc_count: 2,
        partition_count: 8,
    };
    restore(&file, &founding).expect("it is restored");
    // The other data center begins with the same items.
    let other =
        Founding { journal: cluster.folders.path().join("other"), dc: DcId(0), ..founding.clone() };
    restore(&file, &other).expect("it is restored");
    let refused = restore(&file, &other).unwrap_err().to_string();
    assert!(refused.contains("exists already"), "{refused}");
    for wrong in [
        Founding { dc: DcId(2), ..other.clone() },
        Founding { dc_count: 8, ..other.clone() },
        Founding { partition_count: 0, ..other.clone() },
    ] {
        let refused = restore(&file, &wrong).unwrap_err().to_string();
        assert!(refused.starts_with("the settings are not accepted: "), "{refused}");
    }
    let mut restored = Cluster {
        folders: cluster.folders,
        processes: BTreeMap::new(),
        addresses: BTreeMap::new(),
    };
    for of in [&other, &founding] {
        let settings =
            Settings { partition_count: 8, ..Settings::new(of.journal.clone(), 9, of.dc, 2) };
        restored.start(of.dc.0, settings);
    }
    restored.connected();
    for process in restored.processes.values() {
        let session = process.session();
        let after = session.read(keys.clone()).expect("they are here");
        session.rollback().expect("it has only read");
        for (key, (before, after)) in keys.iter().zip(before.iter().zip(&after)) {
            let same = [
                before.as_register().map(|it| it.value())
                    == after.as_register().map(|it| it.value()),
                before.as_counter().map(Counter::value) == after.as_counter().map(Counter::value),
                before.as_set() == after.as_set(),
                before.as_map() == after.as_map(),
                before.as_log() == after.as_log(),
            ];
            assert_eq!(same, [true; 5], "{key:?}: {before:?} and {after:?}");
        }
    }
    // A removal takes what the backup had, at both.
    let [one, other] = [0, 1].map(|dc| restored.processes[&dc].session());
    one.write(counter("a"), Op::Reset).expect("it fits");
    one.commit().expect("it commits");
    other.write(counter("a"), Op::Add(3)).expect("it fits");
    other.commit().expect("it commits");
    for session in [&one, &other] {
        until("they converge", || value(session, "a") == Ok(3));
    }
}

#[test]
fn a_copy_stays_at_its_vector_while_sessions_write() {
    let cluster = Cluster::new(1);
    let process = &cluster.processes[&0];
    let session = process.session();
    for number in 0..2_000 {
        session.write(counter(&format!("{number}")), Op::Add(1)).expect("it fits");
        if number % 100 == 99 {
            session.commit().expect("it commits");
        }
    }
    let mut copy = process.copy().expect("it serves");
    let (mut items, mut parts) = (Vec::new(), 0);
    while let Some(part) = copy.part().expect("it goes on") {
        add(&session, &["1", "1999", "new"], 1).expect("it commits");
        parts += 1;
        items.extend(part);
    }
    assert!(parts > 3, "{parts}");
    assert_eq!(items.len(), 2_000);
    assert!(items.iter().all(|(_, state)| state.as_counter().map(Counter::value) == Some(1)));
    // Another copy ends one that is not complete.
    let mut first = process.copy().expect("it serves");
    let _second = process.copy().expect("it serves");
    assert!(first.part().unwrap_err().to_string().contains("is not held any more"));
}
