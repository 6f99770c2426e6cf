//! Conditions of commits on a process's fence and floor, and their rare conflicts; combined
//! statements, reads of many names, and short paths.

use crate::support::{at, notes, open, read, server, write};
use mingle_model::{Level, Origin, Ref, RowKind, TransactionId, Value, WitnessRow};
use mingle_store::record::floor;
use mingle_store::{
    Commit, Committed, DataStore, Guard, Read, RecordKey, RecordKind, Session, StoreError,
    Transaction, Write,
};
use mingle_store_postgres::{Postgres, PostgresConfig};

const ORIGIN: Origin = Origin(0xfe);

fn record(kind: RecordKind) -> RecordKey {
    RecordKey::of_origin(kind, ORIGIN)
}

/// Begins a transaction and reads, so that its snapshot is taken.
async fn begun(store: &Postgres, sequence: u64) -> Box<dyn Transaction> {
    let mut begun = store.begin(&Session::default()).await.expect("a transaction");
    let object = format!("o{sequence}");
    begun.read(&[Read::Register(at(&object, 0))]).await.expect("it reads");
    begun
}

/// Commits like the first phase of a transaction over several stores.
async fn commit(begun: Box<dyn Transaction>, sequence: u64) -> Result<Committed, StoreError> {
    let id = TransactionId { origin: ORIGIN, sequence };
    let intent = RecordKey::of(RecordKind::Intent, id, 0);
    let guards = vec![
        Guard::Absent(record(RecordKind::Fence)),
        Guard::Below(record(RecordKind::Floor), sequence),
    ];
    let object = format!("o{sequence}");
    let writes = vec![
        Write::Assign(at(&object, 0), Value::Int(1)),
        Write::Record(intent, b"intent".as_slice().into()),
    ];
    begun.commit(Commit { id: Some(id), writes, guards, ..Commit::default() }).await
}

async fn store() -> Option<std::sync::Arc<Postgres>> {
    let url = server().await?;
    let store = open(PostgresConfig::at(url), notes(Level::Linearizable)).await;
    // All objects exist, so that no two transactions share the check of an absent row.
    for sequence in 1..=COUNT {
        let object = format!("o{sequence}");
        write(&*store, vec![Write::Assign(at(&object, 0), Value::Int(0))])
            .await
            .expect("it writes");
    }
    Some(store)
}

/// The number of concurrent transactions.
const COUNT: u64 = 8;

#[tokio::test]
async fn transactions_of_one_process_do_not_conflict() {
    let Some(store) = store().await else { return };
    let mut open = Vec::new();
    for sequence in 1..=COUNT {
        open.push((sequence, begun(&store, sequence).await));
    }
    let mut conflicts = 0;
    for (sequence, begun) in open {
        match commit(begun, sequence).await {
            Ok(_) => {}
            Err(StoreError::Conflict) => conflicts += 1,
            Err(error) => panic!("{error}"),
        }
    }
    // Intents may share a bucket of the index.
    assert!(conflicts <= 1, "{conflicts} of {COUNT} were conflicts");
}

#[tokio::test]
async fn who_is_fenced_off_meanwhile_does_not_commit() {
    for (kind, value) in [(RecordKind::Fence, floor(1)), (RecordKind::Floor, floor(COUNT))] {
        let Some(store) = store().await else { return };
        let before = begun(&store, 1).await;
        write(&*store, vec![Write::Record(record(kind), value)]).await.expect("it writes");
        assert_eq!(commit(before, 1).await, Err(StoreError::Conflict), "{kind:?}, old snapshot");
        let after = begun(&store, 2).await;
        assert_eq!(commit(after, 2).await, Err(StoreError::Conflict), "{kind:?}, new snapshot");
        // A condition that did not hold has left no trace.
        let intent =
            RecordKey::of(RecordKind::Intent, TransactionId { origin: ORIGIN, sequence: 2 }, 0);
        let left = read(&*store, &[Read::Record(intent)]).await.expect("it reads");
        assert_eq!(left[0].data, mingle_store::Data::Record(None));
        if kind == RecordKind::Fence {
            let gone = vec![Write::Discard(record(kind))];
            write(&*store, gone).await.expect("it writes");
            let begun = begun(&store, 3).await;
            commit(begun, 3).await.expect("nothing keeps it back any more");
        }
    }
}

#[tokio::test]
async fn a_fence_that_was_given_up_keeps_nobody_back() {
    let Some(store) = store().await else { return };
    let mut dropped = store.begin(&Session::default()).await.expect("a transaction");
    let fence = Write::Record(record(RecordKind::Fence), floor(1));
    dropped.flush(vec![fence]).await.expect("it flushes");
    drop(dropped);
    let mut tries = 0;
    while let Err(error) = commit(begun(&store, 1).await, 1).await {
        // The transaction is rolled back in the background.
        tries += 1;
        assert!(tries < 20, "{error}");
    }
}

#[tokio::test]
async fn a_floor_that_its_origin_raises_keeps_none_of_its_commits_back() {
    let Some(store) = store().await else { return };
    let raise = |number| vec![Write::Record(record(RecordKind::Floor), floor(number))];
    write(&*store, raise(1)).await.expect("it is announced");
    let before = begun(&store, 3).await;
    write(&*store, raise(2)).await.expect("it writes");
    commit(before, 3).await.expect("the floor is below it");
    let passed = begun(&store, 2).await;
    assert_eq!(commit(passed, 2).await, Err(StoreError::Conflict), "the floor is above it");
}

#[tokio::test]
async fn a_row_that_is_changed_twice_has_both_changes() {
    let Some(store) = store().await else { return };
    let mut transaction = begun(&store, 1).await;
    let other = [Read::Register(at("o2", 0))];
    transaction.read(&other).await.expect("it reads");
    let set = |object, value| Write::Assign(at(object, 0), Value::Int(value));
    let id = TransactionId { origin: ORIGIN, sequence: 1 };
    let writes = vec![set("o1", 1), set("o2", 2), set("o1", 3)];
    let committed = transaction.commit(Commit { id: Some(id), writes, ..Commit::default() });
    let version = committed.await.expect("it commits").version;
    let reads = ["o1", "o2"].map(|object| Read::Register(at(object, 0)));
    let found = read(&*store, &reads).await.expect("it reads");
    let values: Vec<_> = found.iter().map(|answer| answer.data.clone()).collect();
    let expected = [3, 2].map(|value| mingle_store::Data::Register(Some(Value::Int(value))));
    assert_eq!(values, expected);
    assert!(found.iter().all(|answer| answer.version == version), "both say when");
}

#[tokio::test]
async fn many_rows_are_found_and_removed_by_name_as_few_are() {
    const MANY: u64 = 200;
    let Some(store) = store().await else { return };
    let name = |number| format!("many{number}");
    let intent =
        |sequence| RecordKey::of(RecordKind::Intent, TransactionId { origin: ORIGIN, sequence }, 0);
    let put = |number: u64| {
        let bytes = number.to_be_bytes();
        let assigned = Write::Assign(at(&name(number), 0), Value::Int(number as i64));
        [assigned, Write::Record(intent(number), bytes.as_slice().into())]
    };
    write(&*store, (0..MANY).flat_map(put).collect()).await.expect("it writes");
    // Every second of the requested ones is missing.
    let asked = || (0..2 * MANY).step_by(2);
    let registers: Vec<Read> = asked().map(|number| Read::Register(at(&name(number), 0))).collect();
    let records: Vec<Read> = asked().map(|number| Read::Record(intent(number))).collect();
    let found = read(&*store, &registers).await.expect("it reads");
    for (number, answer) in asked().zip(found) {
        let value = (number < MANY).then_some(Value::Int(number as i64));
        assert_eq!(answer.data, mingle_store::Data::Register(value), "{number}");
    }
    let there = async || {
        let found = read(&*store, &records).await.expect("it reads");
        let is_there = |data: &mingle_store::Data| *data != mingle_store::Data::Record(None);
        found.iter().filter(|answer| is_there(&answer.data)).count() as u64
    };
    assert_eq!(there().await, MANY / 2);
    let gone = asked().map(|number| Write::Discard(intent(number))).collect();
    write(&*store, gone).await.expect("it writes");
    assert_eq!(there().await, 0);
    let kept = read(&*store, &[Read::Record(intent(1))]).await.expect("it reads");
    assert_ne!(kept[0].data, mingle_store::Data::Record(None), "nobody has named it");
}

#[tokio::test]
async fn an_object_alone_is_answered_as_among_others() {
    let Some(url) = server().await else { return };
    let store = open(PostgresConfig::at(url), notes(Level::Linearizable)).await;
    let row = |object: Option<Ref>, sequence| WitnessRow {
        object,
        id: TransactionId { origin: ORIGIN, sequence },
        kind: RowKind::Write,
        intent: "shop".into(),
        stores: vec!["other".into()],
        seen: Vec::new(),
    };
    let object = |key: &str| at(key, 0).object;
    let same = |key: &str| {
        let at = |field| at(key, field);
        vec![
            Read::Exists(object(key)),
            Read::Register(at(0)),
            Read::Counter(at(1)),
            Read::LogSize(at(4)),
            Read::Register(at(0)),
        ]
    };
    let check = async |state: &str| {
        for key in ["a", "b", "never"] {
            let alone = read(&*store, &same(key)).await.expect("a read");
            let among = [same(key), vec![Read::SetSize(at("c", 2))]].concat();
            let mut among = read(&*store, &among).await.expect("a read");
            among.pop();
            assert_eq!(alone, among, "{key}, {state}");
            for (one, expected) in same(key).into_iter().zip(among) {
                assert_eq!(read(&*store, &[one]).await.expect("a read"), [expected], "{state}");
            }
        }
    };
    check("nothing there").await;
    write(&*store, vec![Write::Create(object("b"))]).await.expect("a write");
    let text = Value::from("line");
    let writes = vec![
        Write::Assign(at("a", 0), Value::Int(7)),
        Write::Add(at("a", 1), 1),
        Write::Append(at("a", 4), text.clone()),
        Write::Insert(at("c", 2), text),
    ];
    write(&*store, writes).await.expect("a write");
    check("some written").await;
    let rows = [row(Some(object("a")), 1), row(None, 2), row(Some(object("c")), 3)];
    let known = rows.iter().map(|row| row.id).collect();
    write(&*store, rows.into_iter().map(Write::Witness).collect()).await.expect("a write");
    check("with witness rows").await;
    let alone = read(&*store, &[Read::Register(at("a", 0))]).await.expect("a read");
    let met: Vec<u64> = alone[0].witnesses.iter().map(|row| row.id.sequence).collect();
    assert_eq!(met, [1, 2]);
    let commit = Commit { writes: vec![Write::Delete(object("a"))], known, ..Commit::default() };
    let open = store.begin(&Session::default()).await.expect("a transaction");
    open.commit(commit).await.expect("a commit that knows the rows");
    check("deleted").await;
    let wrong = read(&*store, &[Read::Counter(at("a", 0))]).await;
    assert!(matches!(wrong, Err(StoreError::Refused { .. })), "{wrong:?}");
}
