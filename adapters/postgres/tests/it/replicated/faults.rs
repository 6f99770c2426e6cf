//! Anomalies that must not be seen, however late an update arrives; and the results of concurrent
//! writers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mingle_model::{Level, Origin, Stamp, TransactionId, Value};
use mingle_proxy::{Delay, Proxy};
use mingle_store::{Commit, Committed, Data, DataStore, Outcome, Read, Session, StoreError, Write};
use mingle_store_postgres::ReplicatedPostgres;

use crate::replicated::cluster::{Cluster, NAMES};
use crate::support::{RealWorld, at, notes, unique};

async fn open(cluster: &Cluster) -> Arc<ReplicatedPostgres> {
    let config = cluster.config(&unique("faults"));
    let store = ReplicatedPostgres::connect(config, notes(Level::Causal), RealWorld::make()).await;
    store.unwrap_or_else(|error| panic!("{error}"))
}

/// Returns a session of a server that has seen these updates.
fn seen_at(server: usize, after: Stamp) -> Session {
    Session { after, ..Session::at(NAMES[server]) }
}

async fn write(store: &dyn DataStore, server: usize, writes: Vec<Write>) -> Committed {
    let open = store.begin(&Session::at(NAMES[server])).await.expect("a transaction");
    open.commit(Commit { writes, ..Commit::default() }).await.expect("a commit")
}

async fn read(store: &dyn DataStore, server: usize, reads: &[Read]) -> Vec<Data> {
    let mut open = store.begin(&Session::at(NAMES[server])).await.expect("a transaction");
    let answers = open.read(reads).await.expect("a read");
    answers.into_iter().map(|answer| answer.data).collect()
}

fn number(n: i64) -> Data {
    Data::Register(Some(Value::Int(n)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_waits_for_a_cause_that_comes_another_way() {
    let Some(cluster) = Cluster::start().await else { return };
    let store = open(&cluster).await;
    let schema = store.schema().to_owned();
    let link = Proxy::start(cluster.servers[0].addresses()[0], 1).await.expect("a port");
    // A worker with the new address starts at once, and a connection that it opens before the link
    // is down stays.
    link.down().await;
    cluster.reroute(2, 0, link.address().port()).await;
    let cause = write(&*store, 0, vec![Write::Assign(at("cause", 0), Value::Int(1))]).await;
    let after = cause.stamp.clone();
    let session = seen_at(1, after.clone());
    let deadline = Instant::now() + crate::replicated::cluster::PATIENCE;
    loop {
        let open = store.begin(&session).await.expect("a transaction");
        let writes = vec![Write::Assign(at("effect", 0), Value::Int(1))];
        match open.commit(Commit { writes, ..Commit::default() }).await {
            Ok(_) => break,
            Err(StoreError::Behind { .. }) => {
                assert!(Instant::now() < deadline, "the cause does not come");
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
    // The effect has arrived, and waits for its cause.
    let waiting =
        "SELECT own <> 3 OR (SELECT count(*) = 1 FROM @.mingle_inbox) FROM @.mingle_state";
    cluster.wait(&schema, waiting).await;
    let both = [Read::Register(at("cause", 0)), Read::Register(at("effect", 0))];
    let nothing = vec![Data::Register(None), Data::Register(None)];
    assert_eq!(read(&*store, 2, &both).await, nothing, "an effect without its cause");
    let moved = seen_at(2, after);
    let mut open = store.begin(&moved).await.expect("a transaction");
    let behind = StoreError::Behind { store: "shop".into(), replica: NAMES[2].into() };
    assert_eq!(open.read(&both).await, Err(behind), "a session that has seen the cause");
    assert_eq!(store.everywhere().await.expect("somebody answers").of("r1"), 0);
    link.up().await.expect("the port is still ours");
    cluster.applied(&schema).await;
    assert_eq!(read(&*store, 2, &both).await, vec![number(1), number(1)], "both in the end");
    cluster.emptied(&schema).await;
    assert_eq!(store.everywhere().await.expect("somebody answers").of("r1"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_writers_of_one_object_converge() {
    const EACH: i64 = 60;
    let Some(cluster) = Cluster::start().await else { return };
    let store = open(&cluster).await;
    let writers = (0..6usize).map(|writer| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for n in 0..EACH {
                let tag = Value::from(format!("{}", (n + writer as i64) % 5));
                let mut writes = vec![
                    Write::Assign(at("o", 0), Value::Int(n * 10 + writer as i64)),
                    Write::Add(at("o", 1), 1),
                    Write::Put(at("o", 3), tag.clone(), Value::Int(n)),
                    Write::Append(at("o", 4), Value::from(format!("{writer}.{n}"))),
                ];
                writes.push(if n % 3 == 0 {
                    Write::Remove(at("o", 2), tag)
                } else {
                    Write::Insert(at("o", 2), tag)
                });
                write(&*store, writer % 3, writes).await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("no writer fails");
    }
    cluster.applied(store.schema()).await;
    let reads = [
        Read::Register(at("o", 0)),
        Read::Counter(at("o", 1)),
        Read::Elements(at("o", 2)),
        Read::Entries(at("o", 3)),
        Read::LogLast(at("o", 4), u64::MAX),
        Read::LogSize(at("o", 4)),
    ];
    let first = read(&*store, 0, &reads).await;
    assert_eq!(first[1], Data::Counter(i128::from(EACH) * 6));
    assert_eq!(first[5], Data::Count(6 * EACH as u64));
    for server in 1..3 {
        assert_eq!(read(&*store, server, &reads).await, first, "at server {server}");
    }
    cluster.emptied(store.schema()).await;
    let complaints = cluster.complaints(&["ERROR", "conflict", "deadlock"]).await;
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_away_only_delays() {
    let Some(mut cluster) = Cluster::start().await else { return };
    let store = open(&cluster).await;
    let schema = store.schema().to_owned();
    let id = |sequence| TransactionId { origin: Origin(5), sequence };
    let commit = |sequence| Commit {
        id: Some(id(sequence)),
        writes: vec![Write::Add(at("o", 1), 1)],
        ..Commit::default()
    };
    cluster.servers[2].kill9().await.expect("it is killed");
    let at_first = store.begin(&Session::at(NAMES[0])).await.expect("a transaction");
    let stamp = at_first.commit(commit(1)).await.expect("a commit").stamp;
    assert_eq!(stamp.of("r1"), 1);
    // All servers are asked, and one has it; an outcome that the answering servers do not have may
    // be at the other.
    assert_eq!(store.outcome(id(1)).await, Ok(Outcome::Committed));
    assert_eq!(store.outcome(id(2)).await, Ok(Outcome::Unknown));
    let away = store.begin(&Session::at(NAMES[2])).await.expect("a transaction");
    let error = away.commit(commit(3)).await.expect_err("it is away");
    assert!(
        matches!(&error, StoreError::Unavailable { reason, .. } if reason.contains("r3")),
        "{error}"
    );
    // A process that starts now does without it.
    let config = cluster.config(&schema);
    let other = ReplicatedPostgres::connect(config, notes(Level::Causal), RealWorld::make()).await;
    let other = other.unwrap_or_else(|error| panic!("{error}"));
    write(&*other, 1, vec![Write::Add(at("o", 1), 10)]).await;
    let error = other.begin(&Session::at(NAMES[2])).await.map(|_| ()).expect_err("it is away");
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    cluster.servers[2].restart().await.expect("it is back");
    cluster.reconnect(2).await;
    cluster.applied(&schema).await;
    assert_eq!(store.outcome(id(2)).await, Ok(Outcome::NotCommitted));
    assert_eq!(store.outcome(id(1)).await, Ok(Outcome::Committed));
    for store in [&store, &other] {
        assert_eq!(read(&**store, 2, &[Read::Counter(at("o", 1))]).await, [Data::Counter(11)]);
    }
    let late = store.begin(&Session::at(NAMES[2])).await.expect("a transaction");
    let error = late.commit(commit(2)).await.expect_err("it was said that it is not committed");
    assert!(matches!(error, StoreError::Refused { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_takes_what_was_added_beside_another() {
    let Some(cluster) = Cluster::start().await else { return };
    let store = open(&cluster).await;
    let delete = || Write::Delete(at("o", 1).object);
    let both = vec![Write::Add(at("o", 1), 5), delete(), Write::Add(at("o", 1), 3)];
    write(&*store, 0, both).await;
    cluster.applied(store.schema()).await;
    let sum = [Read::Counter(at("o", 1))];
    for server in 0..3 {
        assert_eq!(read(&*store, server, &sum).await, [Data::Counter(3)], "at server {server}");
    }
    write(&*store, 1, vec![delete()]).await;
    cluster.applied(store.schema()).await;
    for server in 0..3 {
        assert_eq!(read(&*store, server, &sum).await, [Data::Counter(0)], "at server {server}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_round_trip_each_and_none_for_the_end_of_reads() {
    const ROUND_TRIP: Duration = Duration::from_millis(400);
    let Some(cluster) = Cluster::start().await else { return };
    let proxy = Proxy::start(cluster.servers[0].addresses()[0], 1).await.expect("a port");
    let mut config = cluster.config(&unique("faults"));
    let own = cluster.servers[0].addresses()[0].to_string();
    let far = cluster.servers[0].url().replace(&own, &proxy.address().to_string());
    config.links = config.servers.clone();
    config.servers.insert(NAMES[0].to_owned(), far);
    let store = ReplicatedPostgres::connect(config, notes(Level::Causal), RealWorld::make()).await;
    let store = store.unwrap_or_else(|error| panic!("{error}"));
    let batch: Vec<Read> = (0..50)
        .flat_map(|n| [Read::Register(at(&format!("k{n}"), 0)), Read::Entries(at("m", 3))])
        .collect();
    let writes: Vec<Write> =
        (0..20).map(|n| Write::Assign(at(&format!("k{n}"), 0), Value::Int(n))).collect();
    // Uses the minimum of several rounds: one may open another connection, which takes round trips
    // of its own, and other load on the machine adds to a time.
    let mut least: Vec<(&'static str, f64, Duration)> = Vec::new();
    for is_warm in [false, true, true, true, true, true] {
        // The first round prepares the statements.
        let delay = if is_warm { ROUND_TRIP } else { Duration::ZERO };
        proxy.set_round_trip(Delay::new(delay, Duration::ZERO));
        let session = Session::at(NAMES[0]);
        let commit = || Commit { writes: writes.clone(), ..Commit::default() };
        let mut took = Vec::new();
        let mut watch = Instant::now();
        let mut lap = |what: &'static str, trips: f64| {
            took.push((what, trips, watch.elapsed()));
            watch = Instant::now();
        };
        let open = store.begin(&session).await.expect("a transaction");
        open.commit(commit()).await.expect("a commit");
        lap("a blind commit", 1.0);
        let mut open = store.begin(&session).await.expect("a transaction");
        lap("a begin", 0.0);
        open.read(&batch).await.expect("a read");
        lap("a batch", 1.0);
        open.flush(writes.clone()).await.expect("a flush");
        lap("a flush", 0.0);
        open.commit(commit()).await.expect("a commit");
        lap("a commit", 1.0);
        let mut open = store.begin(&session).await.expect("a transaction");
        open.read(&batch).await.expect("a read");
        lap("another batch", 1.0);
        open.commit(Commit::default()).await.expect("an end");
        lap("the end of reads", 0.0);
        if is_warm && least.is_empty() {
            least = took;
        } else if is_warm {
            least.iter_mut().zip(took).for_each(|(least, took)| least.2 = least.2.min(took.2));
        }
    }
    assert_eq!(least.len(), 7);
    for (what, expected, time) in least {
        let trips = time.as_secs_f64() / ROUND_TRIP.as_secs_f64();
        let is_fine = trips >= expected - 0.05 && trips < expected + 0.9;
        assert!(is_fine, "{what} took {trips:.2} round trips, not {expected}");
    }
}
