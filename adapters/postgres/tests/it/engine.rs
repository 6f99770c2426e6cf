//! Round trips, lost answers, dropped calls, broken connections.

use std::future::Future;
use std::net::ToSocketAddrs as _;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::support::{self, at, data, notes, open, read, server, unique, write};
use mingle_model::{Level, Origin, TransactionId, Value};
use mingle_proxy::{Delay, Fault, Proxy};
use mingle_store::record::floor;
use mingle_store::{
    Commit, Data, DataStore, Outcome, Read, RecordKey, RecordKind, Session, StoreError,
    Transaction, Write,
};
use mingle_store_postgres::{Postgres, PostgresConfig};

/// Starts a proxy in front of the server; returns it with a configuration that goes through it.
async fn through_proxy() -> Option<(Proxy, PostgresConfig)> {
    let url = server().await?;
    let (before, rest) = url.split_once('@').map_or(("postgres://", &*url), |(b, r)| (b, r));
    let (address, database) = rest.split_once('/').unwrap_or((rest, "postgres"));
    let upstream = address.to_socket_addrs().expect("an address").next().expect("one");
    let proxy = Proxy::start(upstream, 7).await.expect("the proxy listens");
    let config = PostgresConfig::at(format!("{before}@{}/{database}", proxy.address()));
    Some((proxy, config))
}

async fn begin(store: &Postgres) -> Box<dyn Transaction> {
    store.begin(&Session::default()).await.expect("a transaction")
}

fn id(sequence: u64) -> TransactionId {
    TransactionId { origin: Origin(0xabc), sequence }
}

fn number(n: i64) -> Write {
    Write::Assign(at("a", 0), Value::Int(n))
}

/// Writes of one commit, whose atomicity a reader can check.
fn nth(n: i64) -> Vec<Write> {
    let text = Value::from(format!("{n}"));
    vec![
        number(n),
        Write::Add(at("a", 1), 1),
        Write::Insert(at("a", 2), text.clone()),
        Write::Put(at("a", 3), text.clone(), Value::Int(n)),
        Write::Append(at("a", 4), text),
    ]
}

fn all_reads() -> Vec<Read> {
    vec![
        Read::Counter(at("a", 1)),
        Read::SetSize(at("a", 2)),
        Read::MapSize(at("a", 3)),
        Read::LogSize(at("a", 4)),
    ]
}

/// Counts the commits of the series, and checks that all are whole.
async fn count(store: &Postgres) -> u64 {
    let answers = read(store, &all_reads()).await.expect("the reads succeed");
    let Data::Counter(sum) = answers[0].data else { panic!("no sum") };
    let count = u64::try_from(sum).expect("a count");
    for answer in &answers[1..] {
        assert_eq!(answer.data, Data::Count(count), "half a commit");
    }
    count
}

#[tokio::test]
async fn one_round_trip_each_whatever_the_batch() {
    const ROUND_TRIP: Duration = Duration::from_millis(400);
    let Some((proxy, config)) = through_proxy().await else { return };
    let store = open(config, notes(Level::Linearizable)).await;
    let key = |n: usize| format!("k{n}");
    let batch: Vec<Read> = (0..100)
        .flat_map(|n| {
            let (key, text) = (key(n), Value::from("x"));
            [
                Read::Register(at(&key, 0)),
                Read::Counter(at(&key, 1)),
                Read::Contains(at(&key, 2), text.clone()),
                Read::Entries(at(&key, 3)),
                Read::LogLast(at(&key, 4), 3),
            ]
        })
        .collect();
    let writes: Vec<Write> =
        (0..20).flat_map(|n| [number(n), Write::Add(at(&key(1), 1), 1)]).collect();
    let commit =
        |sequence| Commit { id: Some(id(sequence)), writes: writes.clone(), ..Commit::default() };
    // Uses the minimum of several rounds: other load on the machine only adds to a time.
    let mut least: Vec<(&'static str, Duration)> = Vec::new();
    for round in 0..5u64 {
        // The first round prepares the statements of the only connection.
        let is_warm = round > 0;
        proxy.set_round_trip(if is_warm {
            Delay::new(ROUND_TRIP, Duration::ZERO)
        } else {
            Delay::default()
        });
        let mut took = Vec::new();
        let mut watch = Instant::now();
        let mut lap = |what: &'static str| {
            took.push((what, watch.elapsed()));
            watch = Instant::now();
        };
        let mut open = begin(&store).await;
        lap("begin");
        open.read(&batch).await.expect("a read");
        lap("read");
        open.flush(writes.clone()).await.expect("a flush");
        lap("flush");
        open.commit(commit(2 * round + 1)).await.expect("a commit");
        lap("commit");
        let mut reader = begin(&store).await;
        reader.read(&batch[..1]).await.expect("a read");
        lap("read");
        reader.commit(Commit::default()).await.expect("the end of a reader");
        lap("commit");
        begin(&store).await.commit(commit(2 * round + 2)).await.expect("a blind commit");
        lap("commit");
        begin(&store).await.commit(Commit::default()).await.expect("nothing");
        lap("begin");
        if is_warm && least.is_empty() {
            least = took;
        } else if is_warm {
            least.iter_mut().zip(took).for_each(|(least, took)| least.1 = least.1.min(took.1));
        }
    }
    assert_eq!(least.len(), 8);
    for (what, time) in least {
        let trips = time.as_secs_f64() / ROUND_TRIP.as_secs_f64();
        let expected = if what == "begin" { 0.0..0.5 } else { 0.95..1.9 };
        assert!(expected.contains(&trips), "{what} took {trips:.2} round trips");
    }
}

#[tokio::test]
async fn an_answer_that_was_lost_is_known_by_its_outcome() {
    let Some((proxy, config)) = through_proxy().await else { return };
    let store = open(config, notes(Level::Linearizable)).await;
    write(&*store, nth(0)).await.expect("a commit");
    for (sequence, fault) in (1..).zip([Fault::LoseAnswer, Fault::CutRequest, Fault::LoseAnswer]) {
        let before = count(&store).await;
        let mut open = begin(&store).await;
        open.read(&all_reads()).await.expect("a read");
        proxy.once_containing(b"COMMIT", fault);
        let commit = Commit {
            id: Some(id(sequence)),
            writes: nth(sequence.cast_signed()),
            ..Commit::default()
        };
        let lost = open.commit(commit.clone()).await;
        let store_name = store.capabilities().store.clone();
        let unknown = StoreError::Unknown { store: store_name, id: Some(id(sequence)) };
        assert_eq!(lost, Err(unknown), "{fault:?}");
        let outcome = store.outcome(id(sequence)).await.expect("an outcome");
        let after = count(&store).await;
        let expected = if after > before { Outcome::Committed } else { Outcome::NotCommitted };
        assert_eq!(outcome, expected, "{fault:?}");
        // The server answers each statement, and may be cut off before it reaches `COMMIT`.
        assert!(fault == Fault::LoseAnswer || outcome == Outcome::NotCommitted, "{fault:?}");
        let again = begin(&store).await.commit(commit).await;
        assert!(again.is_err(), "an id took effect twice: {again:?}");
        assert_eq!(count(&store).await, after, "an id takes effect once");
    }
}

#[tokio::test]
async fn a_commit_that_took_effect_unheard_is_committed() {
    let Some((proxy, config)) = through_proxy().await else { return };
    let direct = open(
        PostgresConfig { url: server().await.expect("it was there"), ..config.clone() },
        notes(Level::Linearizable),
    );
    let direct = direct.await;
    let own = direct.schema();
    let store = open(PostgresConfig { schema: Some(own), ..config }, notes(Level::Linearizable));
    let store = store.await;
    // All statements are prepared by now, and are sent without waiting.
    let first = Commit { id: Some(id(2)), writes: nth(0), ..Commit::default() };
    begin(&store).await.commit(first).await.expect("a commit");
    let open = begin(&store).await;
    proxy.set_delays(Delay::default(), Delay::new(Duration::from_mins(1), Duration::ZERO));
    let commit = Commit { id: Some(id(1)), writes: nth(1), ..Commit::default() };
    let commit = tokio::spawn(open.commit(commit));
    let deadline = Instant::now() + Duration::from_secs(20);
    while count(&direct).await < 2 {
        assert!(Instant::now() < deadline, "the commit does not take effect");
    }
    proxy.cut();
    let lost = commit.await.expect("no panic");
    assert!(matches!(lost, Err(StoreError::Unknown { .. })), "it gave {lost:?}");
    proxy.set_delays(Delay::default(), Delay::default());
    assert_eq!(store.outcome(id(1)).await, Ok(Outcome::Committed));
    assert_eq!(count(&store).await, 2);
}

#[tokio::test]
async fn what_cannot_be_reached_is_unavailable_and_comes_back() {
    let Some((proxy, config)) = through_proxy().await else { return };
    let store = open(config, notes(Level::Linearizable)).await;
    write(&*store, nth(0)).await.expect("a commit");
    let is_unavailable = |error: &StoreError| matches!(error, StoreError::Unavailable { .. });
    let mut open = begin(&store).await;
    open.read(&all_reads()).await.expect("a read");
    proxy.down().await;
    proxy.cut();
    let error = open.read(&all_reads()).await.expect_err("a dead connection");
    assert!(is_unavailable(&error), "{error}");
    let again = open.commit(Commit { writes: nth(1), ..Commit::default() }).await;
    assert!(again.is_err_and(|error| is_unavailable(&error)), "a commit after it");
    let error = write(&*store, nth(1)).await.expect_err("no server");
    assert!(is_unavailable(&error), "{error}");
    proxy.up().await.expect("the proxy listens again");
    write(&*store, nth(1)).await.expect("a commit");
    assert_eq!(count(&store).await, 2);
}

/// Polls a future at most `polls` times; returns none and drops it if it has not ended by then.
async fn at_most<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_call_can_be_given_up_anywhere() {
    const POOL: usize = 3;
    let Some(url) = server().await else { return };
    let mut config = PostgresConfig::at(url);
    config.pool = POOL;
    let store = open(config, notes(Level::Linearizable)).await;
    write(&*store, nth(0)).await.expect("a commit");
    let mut committed = count(&store).await;
    for call in ["read", "flush", "commit"] {
        for polls in 0..400 {
            let mut open = begin(&store).await;
            let is_done = match call {
                "read" => at_most(polls, open.read(&all_reads())).await.is_some(),
                "flush" => {
                    at_most(polls, open.flush(nth(polls.cast_signed() as i64))).await.is_some()
                }
                _ => {
                    open.flush(vec![Write::Append(at("b", 4), Value::from("x"))])
                        .await
                        .expect("a flush");
                    let commit = Commit {
                        writes: nth(polls.cast_signed() as i64 + 1_000),
                        ..Commit::default()
                    };
                    let commit = open.commit(commit);
                    open = begin(&store).await;
                    at_most(polls, commit).await.is_some()
                }
            };
            if call != "commit" {
                let later = at_most(1_000_000, open.read(&all_reads())).await.expect("an answer");
                assert_eq!(later.is_ok(), is_done || polls == 0, "{call} after {polls} polls");
            }
            drop(open);
            until("connections are lost", || store.connections().1 == POOL).await;
            let now = count(&store).await;
            assert!(now == committed || (call == "commit" && now == committed + 1), "{call}");
            committed = now;
            if is_done {
                break;
            }
            assert!(polls < 399, "{call} does not end");
        }
    }
    let Data::Count(lines) = data(&*store, Read::LogSize(at("b", 4))).await else {
        panic!("no size")
    };
    assert_eq!(lines + 1, committed, "what was flushed goes with what was committed");
}

#[tokio::test]
async fn whoever_finds_no_connection_in_time_is_told() {
    let Some(url) = server().await else { return };
    let mut config = PostgresConfig::at(url);
    config.pool = 1;
    config.connect_timeout = Duration::from_millis(300);
    let store = open(config, notes(Level::Linearizable)).await;
    let mut first = begin(&store).await;
    first.read(&all_reads()).await.expect("a read");
    let error = read(&*store, &all_reads()).await.expect_err("no connection");
    assert!(error.to_string().contains("all 1 connections were in use"), "{error}");
    drop(first);
    read(&*store, &all_reads()).await.expect("a connection again");
}

#[tokio::test]
async fn outcomes_wait_for_commits_on_their_way() {
    let Some(url) = server().await else { return };
    let mut config = PostgresConfig::at(&url);
    let own = unique("outcomes");
    config.schema = Some(own.clone());
    config.lock_timeout = Duration::from_millis(200);
    let store = open(config, notes(Level::Linearizable)).await;
    let other = support::client(&url).await;
    let bytes = [id(1).origin.0.to_be_bytes().as_slice(), &1u64.to_be_bytes()].concat();
    other.batch_execute("BEGIN").await.expect("a transaction");
    let insert = format!("INSERT INTO {own}.mingle_outcomes VALUES ($1, true)");
    other.execute(&insert, &[&bytes]).await.expect("a row");
    assert_eq!(store.outcome(id(1)).await, Ok(Outcome::Unknown), "on its way");
    other.batch_execute("ROLLBACK").await.expect("a rollback");
    assert_eq!(store.outcome(id(1)).await, Ok(Outcome::NotCommitted), "rolled back");
}

#[tokio::test]
async fn old_outcomes_go_with_the_floor_and_are_not_guessed() {
    let Some(url) = server().await else { return };
    let own = unique("outcomes");
    let mut config = PostgresConfig::at(&url);
    config.schema = Some(own.clone());
    let store = open(config, notes(Level::Linearizable)).await;
    let commit = |sequence| Commit {
        id: Some(id(sequence)),
        writes: vec![Write::Add(at("a", 1), 1)],
        ..Commit::default()
    };
    for sequence in [1, 2, 4] {
        begin(&store).await.commit(commit(sequence)).await.expect("a commit");
    }
    let other = support::client(&url).await;
    let age = format!("UPDATE {own}.mingle_outcomes SET at = at - interval '1 day'");
    other.batch_execute(&age).await.expect("an update");
    begin(&store).await.commit(commit(3)).await.expect("a late one");
    let raise = |to| {
        let key = RecordKey::of_origin(RecordKind::Floor, id(1).origin);
        vec![Write::Record(key, floor(to))]
    };
    write(&*store, raise(3)).await.expect("a floor");
    let left = format!("SELECT count(*) FROM {own}.mingle_outcomes");
    let deadline = Instant::now() + Duration::from_secs(20);
    while other.query_one(&left, &[]).await.expect("a count").get::<_, i64>(0) > 2 {
        assert!(Instant::now() < deadline, "old outcomes stay");
    }
    let expected = [
        (1, Outcome::Unknown),
        (2, Outcome::Unknown),
        // The outcome is not old.
        (3, Outcome::Committed),
        // The outcome is above the floor.
        (4, Outcome::Committed),
        (5, Outcome::NotCommitted),
    ];
    for (sequence, outcome) in expected {
        assert_eq!(store.outcome(id(sequence)).await, Ok(outcome), "of {sequence}");
    }
    let late = begin(&store).await.commit(commit(1)).await;
    assert!(late.is_err(), "an id whose row is gone took effect again: {late:?}");
    assert_eq!(data(&*store, Read::Counter(at("a", 1))).await, Data::Counter(4));
}

#[tokio::test]
async fn sql_reads_what_programs_write() {
    let Some(url) = server().await else { return };
    let own = unique("readable");
    let mut config = PostgresConfig::at(&url);
    config.schema = Some(own.clone());
    let store = open(config, notes(Level::Snapshot)).await;
    let committed = write(&*store, nth(7)).await.expect("a commit");
    let answer = read(&*store, &[Read::Register(at("a", 0))]).await.expect("a read");
    assert_eq!(answer[0].version, committed.version, "the version of a commit");
    let sql = format!(
        "SELECT n.number, n.count::text, t.mingle_element, m.mingle_entry, m.mingle_value, \
         l.mingle_line FROM {own}.\"Note\" AS n \
         JOIN {own}.\"Note.tags\" AS t USING (key) JOIN {own}.\"Note.marks\" AS m USING (key) \
         JOIN {own}.\"Note.lines\" AS l USING (key) WHERE n.mingle_exists AND key = 'a'"
    );
    let row = support::client(&url).await.query_one(&sql, &[]).await.expect("one row");
    let texts: Vec<String> = [1, 2, 3, 5].map(|index| row.get(index)).to_vec();
    assert_eq!(texts, ["1", "7", "7", "7"]);
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(4)), (7, 7));
}

const ACCOUNTS: i64 = 6;

fn account(n: i64) -> mingle_store::Address {
    at(&format!("account {}", n % ACCOUNTS), 0)
}

fn balance(n: i64, amount: i64) -> Write {
    Write::Assign(account(n), Value::Int(amount))
}

async fn transfers(level: Level) {
    const TASKS: i64 = 8;
    let Some(url) = server().await else { return };
    let store = open(PostgresConfig::at(url), notes(level)).await;
    write(&*store, (0..ACCOUNTS).map(|n| balance(n, 100)).collect()).await.expect("accounts");
    let of = |data: &Data| match data {
        Data::Register(Some(Value::Int(amount))) => *amount,
        other => panic!("a balance is {other:?}"),
    };
    let run = |task: i64, store: Arc<Postgres>| async move {
        let mut done = 0;
        for round in 0..25 {
            let (from, to) = (task + round, task + round * 3 + 1);
            if (to - from) % ACCOUNTS == 0 {
                continue;
            }
            loop {
                let mut open = begin(&store).await;
                let reads = [Read::Register(account(from)), Read::Register(account(to))];
                let moved = match open.read(&reads).await {
                    Err(StoreError::Conflict) => continue,
                    Err(error) => panic!("{error}"),
                    Ok(answers) => (of(&answers[0].data), of(&answers[1].data)),
                };
                let writes = vec![
                    balance(from, moved.0 - 1),
                    balance(to, moved.1 + 1),
                    Write::Add(at("transfers", 1), 1),
                ];
                match open.commit(Commit { writes, ..Commit::default() }).await {
                    Ok(_) => break,
                    Err(StoreError::Conflict) => {
                        tokio::time::sleep(Duration::from_millis((task.unsigned_abs() % 5) + 1))
                            .await;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            done += 1;
        }
        done
    };
    let tasks: Vec<_> =
        (0..TASKS).map(|task| tokio::spawn(run(task, Arc::clone(&store)))).collect();
    let mut done = 0;
    while !tasks.iter().all(tokio::task::JoinHandle::is_finished) {
        let reads: Vec<Read> = (0..ACCOUNTS).map(|n| Read::Register(account(n))).collect();
        match read(&*store, &reads).await {
            Ok(answers) => {
                let total: i64 = answers.iter().map(|answer| of(&answer.data)).sum();
                assert_eq!(total, ACCOUNTS * 100, "the total, meanwhile");
            }
            Err(StoreError::Conflict) => {}
            Err(error) => panic!("{error}"),
        }
    }
    for task in tasks {
        done += task.await.expect("no task panics");
    }
    let found = data(&*store, Read::Counter(at("transfers", 1))).await;
    assert_eq!(found, Data::Counter(done), "no update is lost");
    assert!(done > 100, "only {done} transfers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfers_keep_the_total_at_linearizable() {
    transfers(Level::Linearizable).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transfers_keep_the_total_at_snapshot() {
    transfers(Level::Snapshot).await;
}
