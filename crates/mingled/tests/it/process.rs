//! Data centers as processes.

mod copied;
mod faults;
mod killed;
mod places;
mod pools;
mod served;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use mingle_geo::{DcId, Key, Kind, Op, Refusal};
use mingled::process::{CommitError, Process, Session, SessionError, Settings};

const CLUSTER: u128 = 0x5eed;

/// The time after which a condition that must come is missed.
const PATIENCE: Duration = Duration::from_mins(1);

fn settings(folder: &Path, dc: u8, dc_count: u8, is_founding: bool) -> Settings {
    Settings {
        is_founding,
        partition_count: 3,
        strong_only: vec![b"strong-*".to_vec()],
        segment_bytes: 64 << 10,
        ..Settings::new(folder.to_owned(), CLUSTER, DcId(dc), dc_count)
    }
}

/// Waits until a condition holds.
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(10));
    }
}

fn counter(name: &str) -> Key {
    Key::new(Kind::Counter, name)
}

/// Reads a counter in a transaction of its own.
fn value(session: &Session, name: &str) -> Result<i128, SessionError> {
    let states = session.read(vec![counter(name)])?;
    session.rollback()?;
    Ok(states[0].as_counter().expect("it is a counter").value())
}

/// Adds to counters in one causal transaction.
fn add(session: &Session, names: &[&str], amount: i64) -> Result<(), CommitError> {
    for name in names {
        session.write(counter(name), Op::Add(amount)).map_err(CommitError::Session)?;
    }
    session.commit().map(|_| ())
}

/// Takes one from a counter in a strong transaction, unless it is 0; returns true if it took one. Runs
/// again after a conflict.
fn take(session: &Session, name: &str) -> Result<bool, CommitError> {
    loop {
        session.begin_strong().map_err(CommitError::Session)?;
        let states = session.read(vec![counter(name)]).map_err(CommitError::Session)?;
        let is_left = states[0].as_counter().expect("it is a counter").value() > 0;
        if is_left {
            session.write(counter(name), Op::Add(-1)).map_err(CommitError::Session)?;
        }
        match session.commit() {
            Ok(_) => return Ok(is_left),
            Err(CommitError::Aborted(Refusal::Conflict { .. } | Refusal::Aborted)) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Data centers within this process.
struct Cluster {
    folders: tempfile::TempDir,
    processes: BTreeMap<u8, Process>,
    addresses: BTreeMap<DcId, SocketAddr>,
}

impl Cluster {
    /// Founds a cluster, and waits until all data centers are connected.
    fn new(count: u8) -> Self {
        let folders = tempfile::tempdir().expect("a folder");
        let mut cluster = Self { folders, processes: BTreeMap::new(), addresses: BTreeMap::new() };
        for dc in 0..count {
            let settings = settings(&cluster.folder(dc), dc, count, true);
            cluster.start(dc, settings);
        }
        cluster.connected();
        cluster
    }

    fn folder(&self, dc: u8) -> std::path::PathBuf {
        self.folders.path().join(format!("d{dc}"))
    }

    fn start(&mut self, dc: u8, settings: Settings) {
        let process = self.started(dc, settings);
        self.processes.insert(dc, process);
    }

    /// Starts a process with the addresses of the data centers below it.
    fn started(&mut self, dc: u8, settings: Settings) -> Process {
        let known = self.addresses.get(&DcId(dc)).filter(|_| !self.processes.contains_key(&dc));
        let listener = match known {
            Some(address) => TcpListener::bind(address),
            None => TcpListener::bind("127.0.0.1:0"),
        };
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        self.addresses.entry(DcId(dc)).or_insert(address);
        let peers = self.addresses.range(..DcId(dc)).map(|(dc, address)| (*dc, *address)).collect();
        Process::start(Settings { peers, ..settings }, listener)
            .unwrap_or_else(|error| panic!("d{dc}: {error}"))
    }

    fn connected(&self) {
        let others = self.processes.len() - 1;
        until("all are connected", || {
            self.processes.values().all(|process| {
                process.status().is_some_and(|status| status.connected.len() == others)
            })
        });
    }
}

#[test]
fn sessions_of_three_data_centers_commit_and_converge() {
    let cluster = Cluster::new(3);
    let sessions: Vec<Session> = cluster.processes.values().map(Process::session).collect();
    add(&sessions[0], &["strong-stock"], 1).expect_err("only strong transactions write it");
    sessions[0].begin_strong().expect("no transaction runs");
    sessions[0].write(counter("strong-stock"), Op::Add(10)).expect("it is a counter");
    sessions[0].commit().expect("no other one writes it");
    for (number, session) in sessions.iter().enumerate() {
        for _ in 0..20 {
            add(session, &["visits", &format!("own-{number}"), "a", "b"], 1).expect("it commits");
            // A session sees its own writes.
        }
        assert_eq!(value(session, &format!("own-{number}")), Ok(20));
    }
    let mut taken = 0;
    while sessions.iter().any(|session| {
        let took = take(session, "strong-stock").expect("it has an outcome");
        taken += u32::from(took);
        took
    }) {}
    assert_eq!(taken, 10, "each is taken once");
    for session in &sessions {
        session.barrier().expect("all are up");
        until("they converge", || {
            ["visits", "a", "b"].iter().all(|name| value(session, name) == Ok(60))
        });
        assert_eq!(value(session, "strong-stock"), Ok(0));
    }
    drop(sessions);
    for process in cluster.processes.into_values() {
        assert_eq!(process.stop(), mingled::process::Stopped::Asked);
    }
}

#[test]
fn calls_that_do_not_fit_and_calls_after_the_end_have_errors_of_their_own() {
    let mut cluster = Cluster::new(1);
    let process = cluster.processes.remove(&0).expect("it runs");
    let session = process.session();
    let refused = session.write(counter("a"), Op::Clear);
    assert!(refused.unwrap_err().to_string().contains("does not fit the key's type"));
    let refused = session.ask().unwrap_err().to_string();
    assert!(refused.contains("nothing to ask for"), "{refused}");
    add(&session, &["a"], 5).expect("one data center is enough for itself");
    process.stop();
    let refused = value(&session, "a").unwrap_err();
    assert_eq!(refused, SessionError::Stopped);
    cluster.start(0, settings(&cluster.folder(0), 0, 1, false));
    let session = cluster.processes[&0].session();
    // A new session sees the writes of others once the partitions have told each other.
    until("the write is there", || value(&session, "a") == Ok(5));
    assert_eq!(cluster.processes[&0].status().map(|status| status.boot), Some(2));
}
