//! The server's log: one error for each failure, however many statements were sent with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{self, at, client, notes, open, unique, write};
use mingle_model::{FieldType, Level, Origin, Ref, TransactionId, Type, Value};
use mingle_services::{Engine, Server};
use mingle_store::{
    Address, Commit, DataStore, Guard, Outcome, Read, RecordKey, RecordKind, Session, StoreError,
    Transaction, Write,
};
use mingle_store_postgres::{ObjectMapping, Postgres, PostgresConfig};
use tokio_postgres::Client;

/// Number of objects in one commit: more than fit into one combined statement.
const MANY: i64 = 40;

/// A server for this test alone, and its log so far.
struct Logged {
    server: Server,
    client: Client,
    seen: usize,
    marks: usize,
}

impl Logged {
    async fn start() -> Option<Self> {
        mingle_services::shared(Engine::Postgres).await?;
        // A server that this process did not start keeps its log elsewhere.
        let Ok(server) = Server::start(Engine::Postgres).await else { return None };
        server.log()?;
        let client = client(server.url()).await;
        Some(Self { server, client, seen: 0, marks: 0 })
    }

    async fn open(&self) -> Arc<Postgres> {
        open(self.config(), notes(Level::Linearizable)).await
    }

    fn config(&self) -> PostgresConfig {
        let mut config = PostgresConfig::at(self.server.url());
        config.pool = 2;
        config
    }

    /// Returns the lines since the last look. They end at a mark that this function writes.
    async fn lines(&mut self) -> Vec<String> {
        self.marks += 1;
        let mark = format!("mark {}", self.marks);
        self.client
            .batch_execute(&format!("DO $$ BEGIN RAISE LOG '{mark}'; END $$"))
            .await
            .expect("it is raised");
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let log = self.server.log().expect("it is ours");
            let lines: Vec<&str> = log.lines().skip(self.seen).collect();
            if let Some(end) = lines.iter().position(|line| line.ends_with(&mark)) {
                // The previous mark is followed by lines with its location.
                let is_of_mark =
                    |line: &&str| line.contains("inline_code_block") || line.contains("RAISE LOG");
                let others = lines[..end].iter().filter(|line| !is_of_mark(line));
                let found = others.map(|line| (*line).to_owned()).collect();
                self.seen += end + 1;
                return found;
            }
            assert!(Instant::now() < deadline, "the mark is not in the log: {lines:#?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Checks that since the last look there was one error with each of these texts, and no other
    /// line.
    async fn expect(&mut self, errors: &[&str]) {
        let lines = self.lines().await;
        let is_loud = |line: &&String| {
            ["ERROR:", "WARNING:", "FATAL:", "PANIC:"].iter().any(|level| line.contains(level))
        };
        let loud: Vec<&String> = lines.iter().filter(is_loud).collect();
        assert_eq!(loud.len(), errors.len(), "{errors:?} were expected: {lines:#?}");
        for (line, error) in loud.iter().zip(errors) {
            assert!(line.contains("ERROR:") && line.contains(error), "{error}: {lines:#?}");
        }
        // An error is logged with its detail, hint, context and statement.
        assert!(lines.len() <= 8 * errors.len(), "{lines:#?}");
    }
}

async fn begin(store: &Postgres) -> Box<dyn Transaction> {
    store.begin(&Session::default()).await.expect("a transaction")
}

fn number(key: i64, number: i64) -> Write {
    Write::Assign(at(&format!("n{key}"), 0), Value::Int(number))
}

fn numbers(number_: i64) -> Vec<Write> {
    (0..MANY).map(|key| number(key, number_)).collect()
}

fn commit(writes: Vec<Write>) -> Commit {
    Commit { writes, ..Commit::default() }
}

fn id(sequence: u64) -> TransactionId {
    TransactionId { origin: Origin(0x109), sequence }
}

#[tokio::test]
async fn a_conflict_is_one_error_in_the_log() {
    let Some(mut logged) = Logged::start().await else { return };
    let store = logged.open().await;
    write(&*store, numbers(0)).await.expect("a commit");
    logged.lines().await;
    // The failure is at a row that another transaction has changed since the snapshot, first in the
    // first statement of many.
    for first in [0, MANY - 1] {
        let mut late = begin(&store).await;
        let reads: Vec<Read> =
            (0..MANY).map(|key| Read::Register(at(&format!("n{key}"), 0))).collect();
        late.read(&reads).await.expect("a read");
        write(&*store, vec![number(first, 1)]).await.expect("a commit");
        let ended = late.commit(commit(numbers(2))).await;
        assert_eq!(ended.map(|_| ()), Err(StoreError::Conflict));
        logged.expect(&["could not serialize access"]).await;
        // The failed transaction has released its locks, and its connection is usable.
        write(&*store, numbers(3)).await.expect("a commit");
        logged.expect(&[]).await;
    }
}

#[tokio::test]
async fn a_write_skew_is_one_error_wherever_it_is_found() {
    let Some(mut logged) = Logged::start().await else { return };
    let store = logged.open().await;
    write(&*store, numbers(0)).await.expect("a commit");
    logged.lines().await;
    let (mut one, mut other) = (begin(&store).await, begin(&store).await);
    for (transaction, key) in [(&mut one, "n1"), (&mut other, "n2")] {
        transaction.read(&[Read::Register(at(key, 0))]).await.expect("a read");
    }
    let many =
        |skipped: i64| (0..MANY).filter(move |key| *key != skipped && key % 2 == skipped % 2);
    let first: Vec<Write> =
        many(1).chain([2]).filter(|key| *key != 1).map(|key| number(key, 1)).collect();
    one.commit(commit(first)).await.expect("a commit");
    let second: Vec<Write> = [1].into_iter().chain(many(2)).map(|key| number(key, 2)).collect();
    let ended = other.commit(commit(second)).await;
    assert_eq!(ended.map(|_| ()), Err(StoreError::Conflict));
    logged.expect(&["could not serialize access"]).await;
    write(&*store, numbers(3)).await.expect("a commit");
    logged.expect(&[]).await;
}

#[tokio::test]
async fn a_read_that_fails_is_one_error_with_all_that_follows_it() {
    let Some(mut logged) = Logged::start().await else { return };
    let store = logged.open().await;
    write(&*store, numbers(0)).await.expect("a commit");
    let schema = store.schema();
    let reads =
        [Read::Register(at("n1", 0)), Read::SetSize(at("n1", 2)), Read::LogSize(at("n1", 4))];
    support::read(&*store, &reads).await.expect("a read");
    logged.lines().await;
    logged
        .client
        .batch_execute(&format!("ALTER TABLE {schema}.\"Note\" RENAME TO gone"))
        .await
        .expect("renamed");
    let failed = support::read(&*store, &reads).await;
    assert!(failed.is_err(), "{failed:?}");
    let lines = logged.lines().await;
    let errors = lines.iter().filter(|line| line.contains("ERROR:")).count();
    assert_eq!(errors, 1, "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("is aborted")), "{lines:#?}");
}

#[tokio::test]
async fn a_constraint_or_a_guard_is_one_error() {
    let Some(mut logged) = Logged::start().await else { return };
    let name = unique("people");
    let sql = format!("CREATE TABLE {name} (id bigint PRIMARY KEY, email text NOT NULL UNIQUE)");
    logged.client.batch_execute(&sql).await.expect("the table is made");
    let mut config = logged.config();
    let mapping = ObjectMapping { table: name, key: vec!["id".into()], ..ObjectMapping::default() };
    config.objects = BTreeMap::from([("Person".into(), mapping)]);
    let fields = [("email", FieldType::Register(Type::String))];
    let schema = support::schema(Level::Linearizable, &[], &[("Person", Type::Int, &fields)]);
    let store = open(config, schema).await;
    let person = |key: i64, email: String| {
        let object = Ref::new("Person", Value::Int(key));
        Write::Assign(Address { object, field: 0 }, Value::from(email))
    };
    let people = |first: i64| {
        (first..first + MANY).map(move |key| person(key, format!("{}@x.org", key - first)))
    };
    write(&*store, people(0).collect()).await.expect("a commit");
    logged.lines().await;
    let ended = write(&*store, people(1_000).collect()).await;
    assert!(matches!(ended, Err(StoreError::Violated { .. })), "{ended:?}");
    logged.expect(&["duplicate key value violates unique constraint"]).await;
    let key = RecordKey { kind: RecordKind::Lease, key: b"k".as_slice().into() };
    let put = Write::Record(key.clone(), b"v".as_slice().into());
    write(&*store, vec![put]).await.expect("a commit");
    let guarded = Commit {
        writes: people(2_000).take(1).map(|_| person(5_000, "new@x.org".into())).collect(),
        guards: vec![Guard::Absent(key)],
        ..Commit::default()
    };
    let ended = begin(&store).await.commit(guarded).await;
    assert_eq!(ended.map(|_| ()), Err(StoreError::Conflict));
    logged.expect(&["a record is there"]).await;
}

#[tokio::test]
async fn transactions_that_meet_nobody_write_no_line() {
    let Some(mut logged) = Logged::start().await else { return };
    let store = logged.open().await;
    write(&*store, numbers(0)).await.expect("a commit");
    logged.lines().await;
    for round in 0..200_i64 {
        let mut transaction = begin(&store).await;
        transaction
            .read(&[Read::Register(at("n1", 0)), Read::LogSize(at("n1", 4))])
            .await
            .expect("a read");
        let sequence = u64::try_from(round).expect("it counts up") + 1;
        let commit = Commit { writes: numbers(round), id: Some(id(sequence)), ..Commit::default() };
        transaction.commit(commit).await.expect("a commit");
        assert_eq!(store.outcome(id(sequence)).await, Ok(Outcome::Committed));
        let mut read = begin(&store).await;
        read.read_last(&[Read::Register(at("n1", 0)), Read::SetSize(at("n1", 2))])
            .await
            .expect("a read");
        read.commit(Commit::default()).await.expect("a commit");
        drop(begin(&store).await);
    }
    let lines = logged.lines().await;
    assert!(lines.is_empty(), "{lines:#?}");
}
