//! The embedded engine's causal replicas as the specification: after the same writes, apart and
//! together, every server's reads equal those of its replica.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mingle_model::random::Random;
use mingle_model::{Level, Ref, Time, Value};
use mingle_store::{BoxFuture, Commit, Data, DataStore, Read, Session, World, Write};
use mingle_store_embedded::{Embedded, EmbeddedConfig};
use mingle_store_postgres::ReplicatedPostgres;

use crate::replicated::cluster::{Cluster, NAMES};
use crate::support::{RealWorld, at, notes, unique};

/// A world whose time passes only on demand.
struct Still {
    real: Arc<dyn World>,
    seconds: AtomicU64,
}

impl World for Still {
    fn now(&self) -> Time {
        self.real.now()
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.seconds.load(Ordering::Relaxed))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.real.sleep(duration)
    }

    fn random(&self) -> u64 {
        self.real.random()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.real.spawn(task);
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        self.real.run_blocking(work)
    }
}

const OBJECTS: [&str; 2] = ["a", "b"];

fn object(key: &str) -> Ref {
    Ref::new("Note", Value::from(key))
}

fn any_write(random: &mut Random, serial: i64) -> Write {
    let key = OBJECTS[random.below(2)];
    let element = Value::from(format!("{}", random.below(3)));
    match random.below(14) {
        0 => Write::Create(object(key)),
        1 => Write::Delete(object(key)),
        2 | 3 => Write::Assign(at(key, 0), Value::Int(serial)),
        4 | 5 => Write::Add(at(key, 1), i128::from(serial)),
        6 | 7 => Write::Insert(at(key, 2), element),
        8 => Write::Remove(at(key, 2), element),
        9 => Write::Put(at(key, 3), element, Value::Int(serial)),
        10 => Write::Erase(at(key, 3), element),
        11 | 12 => Write::Append(at(key, 4), Value::Int(serial).to_string().as_str().into()),
        _ => Write::Clear(at(key, u16::try_from(2 + random.below(3)).expect("a field"))),
    }
}

fn all_reads() -> Vec<Read> {
    let of = |key: &str| {
        let mut reads = vec![
            Read::Exists(object(key)),
            Read::Register(at(key, 0)),
            Read::Counter(at(key, 1)),
            Read::Elements(at(key, 2)),
            Read::SetSize(at(key, 2)),
            Read::Entries(at(key, 3)),
            Read::MapSize(at(key, 3)),
            Read::LogLast(at(key, 4), u64::MAX),
            Read::LogLast(at(key, 4), 2),
            Read::LogSlice { address: at(key, 4), from: 1, count: 2 },
            Read::LogSize(at(key, 4)),
        ];
        for element in ["0", "1", "2"].map(Value::from) {
            reads.push(Read::Contains(at(key, 2), element.clone()));
            reads.push(Read::Entry(at(key, 3), element));
        }
        reads
    };
    OBJECTS.into_iter().flat_map(of).collect()
}

/// Commits writes at a replica, of which the first are flushed before, and returns the reads in
/// between.
async fn commit(
    store: &dyn DataStore,
    replica: usize,
    writes: &[Write],
    flushed: usize,
) -> Vec<Data> {
    let mut open = store.begin(&Session::at(NAMES[replica])).await.expect("a transaction");
    let (first, last) = writes.split_at(flushed);
    let mut between = Vec::new();
    if !first.is_empty() {
        open.flush(first.to_vec()).await.expect("a flush");
        let answers = open.read(&all_reads()).await.expect("a read");
        between = answers.into_iter().map(|answer| answer.data).collect();
    }
    open.commit(Commit { writes: last.to_vec(), ..Commit::default() }).await.expect("a commit");
    between
}

async fn read(store: &dyn DataStore, replica: usize) -> Vec<Data> {
    let mut open = store.begin(&Session::at(NAMES[replica])).await.expect("a transaction");
    let answers = open.read(&all_reads()).await.expect("a read");
    answers.into_iter().map(|answer| answer.data).collect()
}

fn compare(found: &[Data], expected: &[Data], what: &str) {
    for ((read, found), expected) in all_reads().iter().zip(found).zip(expected) {
        assert_eq!(found, expected, "{what}: {read:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_read_as_embedded_replicas_do() {
    let Some(cluster) = Cluster::start().await else { return };
    for seed in 1..=6u64 {
        let mut random = Random::new(seed);
        let name = unique("alike");
        let config = cluster.config(&name);
        let servers =
            ReplicatedPostgres::connect(config, notes(Level::Causal), RealWorld::make()).await;
        let servers = servers.unwrap_or_else(|error| panic!("{error}"));
        cluster.hold(&name).await;
        let world = Arc::new(Still { real: RealWorld::make(), seconds: AtomicU64::new(0) });
        let mut config = EmbeddedConfig::in_memory();
        config.replicas = NAMES.map(Into::into).to_vec();
        config.delay = Duration::from_secs(1);
        let replicas = Embedded::open(config, notes(Level::Causal), world.clone());
        let replicas = replicas.unwrap_or_else(|error| panic!("{error}"));
        for serial in 1..=60 {
            let replica = random.below(3);
            let writes: Vec<Write> =
                (0..=random.below(5)).map(|_| any_write(&mut random, serial)).collect();
            let flushed = if random.below(3) == 0 { random.below(writes.len() + 1) } else { 0 };
            let what = format!("seed {seed}, after {serial} commits, {writes:?} at {replica}");
            let found = commit(&*servers, replica, &writes, flushed).await;
            let expected = commit(&*replicas, replica, &writes, flushed).await;
            compare(&found, &expected, &format!("{what}, {flushed} of them flushed"));
            compare(&read(&*servers, replica).await, &read(&*replicas, replica).await, &what);
            if random.below(4) == 0 {
                cluster.arrived(&name).await;
                for server in 0..NAMES.len() {
                    cluster.drain(&name, server, None).await;
                }
                world.seconds.fetch_add(2, Ordering::Relaxed);
                for replica in 0..NAMES.len() {
                    let what = format!("{what}, delivered, read at {replica}");
                    let expected = read(&*replicas, replica).await;
                    compare(&read(&*servers, replica).await, &expected, &what);
                }
            }
        }
        cluster.remove(&name).await;
    }
}
