//! Tests through a relay in front of a node: a commit that takes effect although its answer is
//! lost, and the order of writes and reads.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use mingle_model::{Level, RowKind, Value, WitnessRow};
use mingle_services::Engine;
use mingle_store::conformance::schema::{TEXT, at, store_schema, thing};
use mingle_store::{
    Commit, Data, DataStore, Guard, OperationId, Read, RecordKey, RecordKind, Session, StoreError,
    Write,
};
use mingle_store_cassandra::{Cassandra, CassandraConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{RwLock, Semaphore};

use crate::support::{config, connect, data, id};

/// EXECUTE and BATCH, in the native protocol.
const EXECUTE: u8 = 10;
const BATCH: u8 = 13;

/// The relay's handling of the next batch, and of statements.
struct Trap {
    /// The next batch reaches the node; its answer is dropped.
    is_set: AtomicBool,
    /// Set after that: the relay accepts no more connections.
    is_shut: AtomicBool,
    /// The first statement passes; later ones pass when the test releases them.
    holds: AtomicBool,
    go: Semaphore,
    /// The number of statements received.
    came: AtomicUsize,
    /// Batches pass when the test releases them.
    holds_batches: AtomicBool,
    go_batches: Semaphore,
    /// Batches without a release are lost, with their connections.
    loses_batches: AtomicBool,
    lost: AtomicUsize,
    /// Answers wait while the test holds this lock.
    answers: RwLock<()>,
}

impl Default for Trap {
    fn default() -> Self {
        Self {
            is_set: AtomicBool::new(false),
            is_shut: AtomicBool::new(false),
            holds: AtomicBool::new(false),
            go: Semaphore::new(1),
            came: AtomicUsize::new(0),
            holds_batches: AtomicBool::new(false),
            go_batches: Semaphore::new(0),
            loses_batches: AtomicBool::new(false),
            lost: AtomicUsize::new(0),
            answers: RwLock::new(()),
        }
    }
}

impl Trap {
    /// Waits for a release if statements are held.
    async fn pass(&self) {
        self.came.fetch_add(1, Ordering::AcqRel);
        if self.holds.load(Ordering::Acquire) {
            self.go.acquire().await.expect("nobody closes it").forget();
        }
    }

    /// Waits for a release if batches are held; an error if they are lost.
    async fn pass_batch(&self) -> std::io::Result<()> {
        if !self.holds_batches.load(Ordering::Acquire) {
            return Ok(());
        }
        if !self.loses_batches.load(Ordering::Acquire) {
            self.go_batches.acquire().await.expect("nobody closes it").forget();
        } else if let Ok(permit) = self.go_batches.try_acquire() {
            permit.forget();
        } else {
            self.lost.fetch_add(1, Ordering::AcqRel);
            return Err(std::io::ErrorKind::ConnectionReset.into());
        }
        Ok(())
    }

    fn came(&self) -> usize {
        self.came.load(Ordering::Acquire)
    }

    /// Waits until `count` statements have been received.
    async fn until_came(&self, count: usize) {
        for _ in 0..2_000 {
            if self.came() >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{} statements came, not {count}", self.came());
    }
}

/// Passes frames on to a node and back.
async fn pass(client: TcpStream, node: SocketAddr, trap: Arc<Trap>) -> std::io::Result<()> {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_node, mut to_node) = TcpStream::connect(node).await?.into_split();
    let shut = trap.clone();
    let back = tokio::spawn(async move {
        let mut bytes = vec![0; 1 << 16];
        loop {
            let count = from_node.read(&mut bytes).await?;
            if count == 0 || shut.is_shut.load(Ordering::Acquire) {
                return Ok::<(), std::io::Error>(());
            }
            let _let_go = shut.answers.read().await;
            to_client.write_all(&bytes[..count]).await?;
        }
    });
    let forth = async {
        loop {
            let mut head = [0; 9];
            from_client.read_exact(&mut head).await?;
            let length = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let mut body = vec![0; length as usize];
            from_client.read_exact(&mut body).await?;
            if head[4] == BATCH && trap.is_set.load(Ordering::Acquire) {
                trap.is_shut.store(true, Ordering::Release);
            }
            match head[4] {
                EXECUTE => trap.pass().await,
                BATCH => trap.pass_batch().await?,
                _ => {}
            }
            to_node.write_all(&[&head[..], &body].concat()).await?;
        }
    };
    let ended: std::io::Result<()> = tokio::select! {
        ended = forth => ended,
        ended = back => ended.unwrap_or(Ok(())),
    };
    ended
}

async fn relay(node: SocketAddr, trap: Arc<Trap>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port can be had");
    let address = listener.local_addr().expect("it has an address");
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            if !trap.is_shut.load(Ordering::Acquire) {
                tokio::spawn(pass(client, node, trap.clone()));
            }
        }
    });
    address
}

/// A store behind a relay, and the same store without a relay.
struct Bench {
    trap: Arc<Trap>,
    store: Arc<Cassandra>,
    direct: Arc<Cassandra>,
}

impl Bench {
    async fn open() -> Option<Self> {
        Self::open_for(Duration::from_secs(2)).await
    }

    /// Opens the stores as in [`Bench::open`], with this answer timeout; one statement may take
    /// half of it.
    async fn open_for(answer_timeout: Duration) -> Option<Self> {
        let server = mingle_services::shared(Engine::Cassandra).await?;
        let plain = CassandraConfig { datacenters: vec!["dc1".into()], ..config(server.url()) };
        let node: SocketAddr = plain.nodes[0].parse().expect("an address");
        let trap = Arc::new(Trap::default());
        let relayed = relay(node, trap.clone()).await;
        let through = CassandraConfig {
            nodes: vec![relayed.to_string()],
            addresses: [(node.ip(), relayed)].into(),
            answer_timeout,
            ..plain.clone()
        };
        let schema = || store_schema(Level::Eventual);
        let direct = connect(plain, schema()).await.expect("the node is there");
        let store = connect(through, schema()).await.expect("the relay lets it in");
        Some(Self { trap, store, direct })
    }

    /// Commits so that the first batch takes effect, its answer is lost, and no new connection is
    /// accepted.
    async fn commit_in_vain(&self, commit: Commit) -> StoreError {
        let open = self.store.begin(&Session::at("dc1")).await.expect("it begins");
        self.trap.is_set.store(true, Ordering::Release);
        let error = open.commit(commit).await.expect_err("nobody tells");
        assert!(self.trap.is_shut.load(Ordering::Acquire), "no batch was sent: {error}");
        error
    }

    /// Waits until an assignment has taken effect.
    async fn until_assigned(&self, value: &str) {
        let there = Data::Register(Some(Value::from(value)));
        for _ in 0..100 {
            if data(&self.direct, "dc1", Read::Register(at("one", TEXT))).await == there {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it did not take effect");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_once_is_not_said_to_be_unsent_since_no_connection_can_be_had_again() {
    let Some(bench) = Bench::open().await else { return };
    let writes = vec![Write::Assign(at("one", TEXT), Value::from("there"))];
    let commit = Commit { id: Some(id(1)), writes, ..Commit::default() };
    let error = bench.commit_in_vain(commit).await;
    assert!(matches!(error, StoreError::Unknown { .. }), "{error:?}");
    bench.until_assigned("there").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commit_witness_of_an_operation_comes_after_all_that_it_did() {
    let Some(bench) = Bench::open().await else { return };
    let witness = RecordKey::of(RecordKind::Witness, id(2), 0);
    let writes = vec![
        Write::Record(witness.clone(), b"it was here".as_slice().into()),
        Write::Assign(at("one", TEXT), Value::from("done")),
    ];
    let operation = Some(OperationId { id: id(2), phase: 1 });
    let commit = |time| Commit { operation, time, writes: writes.clone(), ..Commit::default() };
    let time = bench.direct.time();
    let error = bench.commit_in_vain(commit(time)).await;
    assert!(matches!(error, StoreError::Unknown { .. }), "{error:?}");
    bench.until_assigned("done").await;
    let read = || Read::Record(witness.clone());
    assert_eq!(data(&bench.direct, "dc1", read()).await, Data::Record(None));

    // A process that finds the intent repeats the operation, and writes the commit witness.
    let copy = bench.direct.begin(&Session::at("dc1")).await.expect("it begins");
    copy.commit(commit(time)).await.expect("it commits");
    let Data::Record(Some(_)) = data(&bench.direct, "dc1", read()).await else {
        panic!("there is no commit witness")
    };
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_told_that_a_transaction_was_here_sees_what_it_did() {
    let Some(bench) = Bench::open().await else { return };
    let witness = RecordKey::of(RecordKind::Witness, id(3), 0);
    let mut open = bench.store.begin(&Session::at("dc1")).await.expect("it begins");
    let before = bench.trap.came();
    bench.trap.holds.store(true, Ordering::Release);
    let asked = [Read::Register(at("one", TEXT)), Read::Record(witness.clone())];
    let reading = tokio::spawn(async move { open.read(&asked).await });
    // One statement has gone to the node, and the next one is held.
    bench.trap.until_came(before + 2).await;
    let writes = vec![
        Write::Record(witness, b"it was here".as_slice().into()),
        Write::Assign(at("one", TEXT), Value::from("done")),
    ];
    crate::support::write(&bench.direct, "dc1", writes).await.expect("it is written");
    bench.trap.go.add_permits(100);
    let answers = reading.await.expect("it ends").expect("it is answered");
    let seen: Vec<Data> = answers.into_iter().map(|answer| answer.data).collect();
    let done = Data::Register(Some(Value::from("done")));
    let is_told = matches!(seen[1], Data::Record(Some(_)));
    assert!(!is_told || seen[0] == done, "data was read before what tells of it: {seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_a_commit_witness_but_who_reads_it() {
    let Some(bench) = Bench::open().await else { return };
    let witness = RecordKey::of(RecordKind::Witness, id(4), 0);
    let writes = vec![
        Write::Record(witness.clone(), b"it was here".as_slice().into()),
        Write::Assign(at("one", TEXT), Value::from("done")),
    ];
    let operation = Some(OperationId { id: id(4), phase: 1 });
    let time = bench.store.time();
    let open = bench.store.begin(&Session::at("dc1")).await.expect("it begins");
    bench.trap.holds_batches.store(true, Ordering::Release);
    bench.trap.go_batches.add_permits(1);
    open.commit(Commit { operation, time, writes, ..Commit::default() }).await.expect("it commits");
    let read = || Read::Record(witness.clone());
    let done = Data::Register(Some(Value::from("done")));
    assert_eq!(data(&bench.direct, "dc1", Read::Register(at("one", TEXT))).await, done);
    assert_eq!(data(&bench.direct, "dc1", read()).await, Data::Record(None), "it came before");

    bench.trap.go_batches.add_permits(100);
    let there = Data::Record(Some(b"it was here".as_slice().into()));
    assert_eq!(data(&bench.store, "dc1", read()).await, there, "whoever reads it waits for it");
    assert_eq!(data(&bench.direct, "dc1", read()).await, there, "it was said to be there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_witness_that_is_lost_again_and_again_is_written_in_the_end() {
    // More than the tries of one request before it gives up: 2 s, with pauses of 20 ms, 40 ms and
    // so on.
    const LOST: usize = 10;
    let Some(bench) = Bench::open().await else { return };
    let (trap, witness) = (&bench.trap, RecordKey::of(RecordKind::Witness, id(6), 0));
    let writes = vec![
        Write::Record(witness.clone(), b"it was here".as_slice().into()),
        Write::Assign(at("one", TEXT), Value::from("done")),
    ];
    let operation = Some(OperationId { id: id(6), phase: 1 });
    let time = bench.store.time();
    let open = bench.store.begin(&Session::at("dc1")).await.expect("it begins");
    trap.go_batches.add_permits(1);
    trap.loses_batches.store(true, Ordering::Release);
    trap.holds_batches.store(true, Ordering::Release);
    open.commit(Commit { operation, time, writes, ..Commit::default() }).await.expect("it commits");
    let mut is_there = false;
    for _ in 0..1_200 {
        if trap.lost.load(Ordering::Acquire) >= LOST {
            trap.holds_batches.store(false, Ordering::Release);
        }
        let read = Read::Record(witness.clone());
        is_there = data(&bench.direct, "dc1", read).await != Data::Record(None);
        if is_there {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let lost = trap.lost.load(Ordering::Acquire);
    assert!(is_there, "nobody tried any more after {lost} were lost");
    assert!(lost >= LOST, "it came before: {lost} were lost");
}

/// Returns another transaction's witness row on an object, or on the whole store.
fn witness_row(key: Option<&str>, sequence: u64) -> WitnessRow {
    WitnessRow {
        object: key.map(thing),
        id: id(sequence),
        kind: RowKind::Write,
        intent: "elsewhere".into(),
        stores: vec!["elsewhere".into()],
        seen: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_while_somebody_is_answered_asks_with_all_others() {
    const LATER: usize = 4;
    let Some(bench) = Bench::open_for(Duration::from_mins(1)).await else { return };
    let trap = &bench.trap;
    // Another process has commands, and this store knows it.
    let known = witness_row(None, 8);
    let writes = vec![Write::Witness(known.clone())];
    crate::support::write(&bench.direct, "dc1", writes).await.expect("it is written");
    data(&bench.store, "dc1", Read::Register(at("one", TEXT))).await;
    let (before, held) = (trap.came(), trap.answers.write().await);
    let read = |key: String| {
        let store = Arc::clone(&bench.store);
        tokio::spawn(async move {
            let mut open = store.begin(&Session::at("dc1")).await.expect("it begins");
            let read = [Read::Register(at(&key, TEXT))];
            open.read(&read).await.expect("it reads").remove(0).witnesses
        })
    };
    // The statements for its object, and for the rows of the whole store.
    let first = read("first".into());
    trap.until_came(before + 2).await;
    let row = witness_row(None, 9);
    let writes = vec![Write::Witness(row.clone())];
    crate::support::write(&bench.direct, "dc1", writes).await.expect("it is written");
    let later: Vec<_> = (0..LATER).map(|number| read(format!("later {number}"))).collect();
    trap.until_came(before + 2 + LATER).await;
    drop(held);
    first.await.expect("it is answered");
    for answered in later {
        assert_eq!(answered.await.expect("it is answered"), [known.clone(), row.clone()]);
    }
    assert_eq!(trap.came(), before + 2 + LATER + 1, "the later ones asked together");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_asks_nothing_anew_while_its_reads_are_fresh() {
    let Some(bench) = Bench::open().await else { return };
    let floor = RecordKey::of_origin(RecordKind::Floor, id(5).origin);
    for (round, fresh_until) in [None, Some(Duration::ZERO), Some(Duration::MAX)].iter().enumerate()
    {
        let key = format!("of round {round}");
        let mut open = bench.store.begin(&Session::at("dc1")).await.expect("it begins");
        open.read(&[Read::Register(at(&key, TEXT))]).await.expect("it reads");
        let writes = vec![Write::Witness(witness_row(Some(&key), 3))];
        crate::support::write(&bench.direct, "dc1", writes).await.expect("it is written");
        let before = bench.trap.came();
        let commit = Commit {
            operation: Some(OperationId { id: id(5), phase: 1 }),
            time: bench.store.time(),
            writes: vec![Write::Assign(at(&key, TEXT), Value::from("done"))],
            guards: vec![Guard::Below(floor.clone(), 5)],
            fresh_until: *fresh_until,
            ..Commit::default()
        };
        let committed = open.commit(commit).await;
        let asked = bench.trap.came() - before;
        if *fresh_until == Some(Duration::MAX) {
            committed.expect("nobody asks who else was there");
            assert_eq!(asked, 0, "statements");
        } else {
            let rows = vec![witness_row(Some(&key), 3)];
            assert_eq!(committed.map(|_| ()), Err(StoreError::Witnessed { rows }));
            assert!(asked > 0, "it asks");
        }
    }
}
