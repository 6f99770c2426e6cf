//! Histories of many sessions at three servers, checked for causal convergence.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use mingle_checker::history::{Kind, Operation, Transaction};
use mingle_checker::{History, Model, Outcome, check};
use mingle_model::random::Random;
use mingle_model::{Level, Stamp, Value};
use mingle_proxy::{Delay, Proxy};
use mingle_store::{Commit, Data, DataStore, Read, Session, StoreError, Write};
use mingle_store_postgres::ReplicatedPostgres;

use crate::replicated::cluster::{Cluster, NAMES, PATIENCE};
use crate::support::{RealWorld, at, notes, unique};

const SESSIONS: u64 = 6;
const TRANSACTIONS: usize = 100;
const KEYS: usize = 6;

/// Returns the read of a key: a register for the first half of the keys, an entry of one map for
/// the others.
fn read_of(key: usize) -> Read {
    if key < KEYS / 2 {
        return Read::Register(at(&format!("k{key}"), 0));
    }
    Read::Entry(at("map", 3), Value::from(format!("{key}")))
}

fn write_of(key: usize, value: i64) -> Write {
    if key < KEYS / 2 {
        return Write::Assign(at(&format!("k{key}"), 0), Value::Int(value));
    }
    Write::Put(at("map", 3), Value::from(format!("{key}")), Value::Int(value))
}

fn operation(kind: Kind, key: usize, value: i64) -> Operation {
    let (store, level) = ("shop".into(), Level::Causal);
    Operation { kind, key: key as i64, value, store, level, version: None }
}

/// A session that sometimes moves to another server.
struct Client {
    store: Arc<ReplicatedPostgres>,
    session: i64,
    server: usize,
    after: Stamp,
    random: Random,
    next: Arc<AtomicI64>,
}

impl Client {
    fn done(&self, outcome: Outcome, operations: Vec<Operation>) -> Transaction {
        Transaction {
            id: self.next.fetch_add(1, Ordering::Relaxed),
            session: self.session,
            outcome,
            interval: None,
            commit: None,
            is_final: false,
            operations,
        }
    }

    async fn reads(&self, keys: &[usize]) -> Result<(Vec<Operation>, Stamp), StoreError> {
        let replica = Some(NAMES[self.server].into());
        let session = Session { replica, after: self.after.clone(), ..Session::default() };
        let mut open = self.store.begin(&session).await?;
        let reads: Vec<Read> = keys.iter().map(|key| read_of(*key)).collect();
        let answers = open.read(&reads).await?;
        let found = keys.iter().zip(answers).map(|(key, answer)| {
            let value = match answer.data {
                Data::Register(Some(Value::Int(value))) => value,
                Data::Register(None) => 0,
                other => panic!("a register reads as {other:?}"),
            };
            operation(Kind::Read, *key, value)
        });
        let found = found.collect();
        let stamp = open.commit(Commit::default()).await?.stamp;
        Ok((found, stamp))
    }

    /// Runs one transaction; none if it failed.
    async fn transaction(&mut self) -> Option<Transaction> {
        if self.random.below(8) == 0 {
            self.server = self.random.below(NAMES.len());
        }
        let mut left: Vec<usize> = (0..KEYS).collect();
        if self.random.below(2) == 0 {
            let keys: Vec<usize> =
                (0..=self.random.below(KEYS)).map(|_| self.random.below(KEYS)).collect();
            match self.reads(&keys).await {
                Ok((operations, stamp)) => {
                    self.after.join(&stamp);
                    return Some(self.done(Outcome::Committed, operations));
                }
                Err(error) => return self.give_up(&error).await,
            }
        }
        let (mut writes, mut operations) = (Vec::new(), Vec::new());
        for _ in 0..=self.random.below(2) {
            let key = left.swap_remove(self.random.below(left.len()));
            let value = self.next.fetch_add(1, Ordering::Relaxed);
            operations.push(operation(Kind::Write, key, value));
            writes.push(write_of(key, value));
        }
        let replica = Some(NAMES[self.server].into());
        let session = Session { replica, after: self.after.clone(), ..Session::default() };
        let open = match self.store.begin(&session).await {
            Ok(open) => open,
            Err(error) => return self.give_up(&error).await,
        };
        match open.commit(Commit { writes, ..Commit::default() }).await {
            Ok(committed) => {
                self.after.join(&committed.stamp);
                Some(self.done(Outcome::Committed, operations))
            }
            Err(StoreError::Unknown { .. }) => Some(self.done(Outcome::Unknown, operations)),
            Err(error) => self.give_up(&error).await,
        }
    }

    /// Another server will be tried.
    async fn give_up(&mut self, error: &StoreError) -> Option<Transaction> {
        let is_fine = matches!(
            error,
            StoreError::Behind { .. } | StoreError::Unavailable { .. } | StoreError::Conflict
        );
        assert!(is_fine, "{error}");
        self.server = self.random.below(NAMES.len());
        tokio::time::sleep(Duration::from_millis(2)).await;
        None
    }
}

/// Sessions at all servers, which run until all of them are done.
struct Load {
    clients: Vec<tokio::task::JoinHandle<Vec<Transaction>>>,
    next: Arc<AtomicI64>,
    done: Arc<AtomicI64>,
}

impl Load {
    fn start(store: &Arc<ReplicatedPostgres>, seed: u64) -> Self {
        let (next, done) = (Arc::new(AtomicI64::new(1)), Arc::new(AtomicI64::new(0)));
        let clients = (0..SESSIONS).map(|number| {
            let mut client = Client {
                store: Arc::clone(store),
                session: number.cast_signed(),
                server: usize::try_from(number).expect("a few") % NAMES.len(),
                after: Stamp::default(),
                random: Random::new(seed * 100 + number),
                next: Arc::clone(&next),
            };
            let all = Arc::clone(&done);
            tokio::spawn(async move {
                let mut done = Vec::new();
                let deadline = Instant::now() + PATIENCE;
                while done.len() < TRANSACTIONS {
                    assert!(Instant::now() < deadline, "a session makes no progress");
                    done.extend(client.transaction().await);
                    all.fetch_add(1, Ordering::Relaxed);
                }
                done
            })
        });
        Self { clients: clients.collect(), next, done }
    }

    /// Waits until `count` transactions were tried.
    async fn wait(&self, count: i64) {
        let deadline = Instant::now() + PATIENCE;
        while self.done.load(Ordering::Relaxed) < count {
            assert!(Instant::now() < deadline, "no progress");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits for the sessions, reads everything at every server once replication has finished, and
    /// checks the history.
    async fn judge(self, cluster: &Cluster, store: &Arc<ReplicatedPostgres>, what: &str) {
        let mut transactions = Vec::new();
        for client in self.clients {
            transactions.extend(client.await.expect("no session fails"));
        }
        let schema = store.schema().to_owned();
        cluster.emptied(&schema).await;
        for (server, session) in (0..NAMES.len()).zip(1_000..) {
            let reader = Client {
                store: Arc::clone(store),
                session,
                server,
                after: Stamp::default(),
                random: Random::new(1),
                next: Arc::clone(&self.next),
            };
            let keys: Vec<usize> = (0..KEYS).collect();
            let (operations, _) = reader.reads(&keys).await.expect("a read at rest");
            let last = reader.done(Outcome::Committed, operations);
            transactions.push(Transaction { is_final: true, ..last });
        }
        let history = History::new(transactions).unwrap_or_else(|error| panic!("{what}: {error}"));
        for model in [Model::CausalPlus, Model::Convergence] {
            let verdict = check(&history, model);
            assert!(verdict.is_satisfied(), "{what}: {verdict}");
        }
        let words = ["conflict", "duplicate key", "deadlock", "violates", "serialize", "PANIC"];
        let complaints = cluster.complaints(&words).await;
        assert!(complaints.is_empty(), "{what}: {complaints:#?}");
    }
}

async fn open(cluster: &Cluster) -> Arc<ReplicatedPostgres> {
    let config = cluster.config(&unique("history"));
    let store = ReplicatedPostgres::connect(config, notes(Level::Causal), RealWorld::make()).await;
    store.unwrap_or_else(|error| panic!("{error}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_see_causes_first_whatever_links_are_slow_or_cut() {
    let Some(cluster) = Cluster::start().await else { return };
    for seed in 1..=3 {
        let store = open(&cluster).await;
        // The first server's updates reach the third through the second long before they arrive
        // directly.
        let slow = Proxy::start(cluster.servers[0].addresses()[0], seed).await.expect("a port");
        slow.set_round_trip(Delay::new(Duration::from_millis(200), Duration::ZERO));
        cluster.reroute(2, 0, slow.address().port()).await;
        let cut = Proxy::start(cluster.servers[1].addresses()[0], seed).await.expect("a port");
        cluster.reroute(0, 1, cut.address().port()).await;
        let load = Load::start(&store, seed);
        load.wait(80).await;
        cut.down().await;
        cut.cut();
        load.wait(200).await;
        cut.up().await.expect("the port is still ours");
        load.judge(&cluster, &store, &format!("seed {seed}")).await;
        cluster.remove(store.schema()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_killed_goes_on() {
    let Some(mut cluster) = Cluster::start().await else { return };
    let store = open(&cluster).await;
    let load = Load::start(&store, 7);
    for (server, count) in [(1, 60), (0, 160)] {
        load.wait(count).await;
        cluster.servers[server].kill9().await.expect("it is killed");
        load.wait(count + 50).await;
        cluster.servers[server].restart().await.expect("it is back");
        cluster.reconnect(server).await;
    }
    load.judge(&cluster, &store, "seed 7").await;
}
