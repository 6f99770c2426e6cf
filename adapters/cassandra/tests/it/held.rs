//! A reader that requests an answer and does not poll for it, for example a branch that a `select!`
//! leaves for a while, blocks no other reader.

use std::time::Duration;

use futures_util::FutureExt;
use mingle_model::{Level, Name, RowKind, Value, WitnessRow};
use mingle_services::Engine;
use mingle_store::conformance::schema::{NUMBER, at, store_schema};
use mingle_store::{
    Commit, Data, DataStore, OperationId, Read, RecordKey, RecordKind, Session, Write,
};
use mingle_store_cassandra::Cassandra;

use crate::support::{config, connect, data, id, write};

/// More than the time of a read, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Checks that other readers get an answer while two readers of the same item do not poll for
/// theirs.
async fn others_are_answered(store: &Cassandra, read: Read) -> Data {
    let mut open = store.begin(&Session::at("dc1")).await.expect("it begins");
    let reads = [read.clone()];
    let mut held = open.read(&reads);
    assert!((&mut held).now_or_never().is_none(), "no answer can be there yet");
    let mut next = store.begin(&Session::at("dc1")).await.expect("it begins");
    let mut waiting = next.read(&reads);
    assert!((&mut waiting).now_or_never().is_none());
    let answer = tokio::time::timeout(PATIENCE, data(store, "dc1", read)).await;
    let answer = answer.expect("it does not wait for those who do not look");
    for held in [held, waiting] {
        let later = held.await.expect("it is answered as well").remove(0).data;
        assert_eq!(later, answer);
    }
    answer
}

#[tokio::test]
async fn nobody_waits_for_the_first_look_of_another() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let store = connect(config(server.url()), store_schema(Level::Eventual)).await.unwrap();
    others_are_answered(&store, Read::Register(at("x", NUMBER))).await;
}

#[tokio::test]
async fn nobody_waits_for_another_to_read_the_rows_of_the_whole_store() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let store = connect(config(server.url()), store_schema(Level::Eventual)).await.unwrap();
    let row = WitnessRow {
        object: None,
        id: id(1),
        kind: RowKind::Write,
        intent: Name::from("elsewhere"),
        stores: vec![Name::from("elsewhere")],
        seen: Vec::new(),
    };
    write(&store, "dc1", vec![Write::Witness(row)]).await.expect("it is written");
    others_are_answered(&store, Read::Register(at("x", NUMBER))).await;
}

#[tokio::test]
async fn nobody_waits_for_another_to_write_what_is_on_its_way() {
    let Some(server) = mingle_services::shared(Engine::Cassandra).await else { return };
    let store = connect(config(server.url()), store_schema(Level::Eventual)).await.unwrap();
    let key = RecordKey::of(RecordKind::Witness, id(1), 0);
    let operation = Commit {
        writes: vec![
            Write::Assign(at("x", NUMBER), Value::from(1)),
            Write::Record(key.clone(), b"witness"[..].into()),
        ],
        operation: Some(OperationId { id: id(1), phase: 1 }),
        time: 1_000_000,
        ..Commit::default()
    };
    let open = store.begin(&Session::at("dc1")).await.expect("it begins");
    open.commit(operation).await.expect("it is acknowledged");
    let found = others_are_answered(&store, Read::Record(key)).await;
    assert_eq!(found, Data::Record(Some(b"witness"[..].into())));
}
