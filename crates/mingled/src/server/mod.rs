//! A server for clients of Redis.
//!
//! ```text
//!   listener ─► a thread for each connection: bytes ─► Decoder ─► requests ─► Client ─► replies
//!                                                                    │
//!                                     a Session of the process ◄─────┘
//! ```
//!
//! A connection has a [`Session`](crate::process::Session) of its own, so it sees its own writes and
//! never older data than before. Requests may be pipelined: causal ones that are independent of each other
//! run together ([`batch`]), all others one after another. A causal command is one transaction, which
//! reads at one snapshot and commits. A strong command runs again after a
//! conflict, at most [`RUNS_MAX`] times.
//!
//! Everything that a client can make grow has a bound with an error of its own: connections, arguments
//! and requests ([`Settings`]), queued commands ([`QUEUE_MAX`]), watched items ([`WATCHED_MAX`]).

mod acl;
mod admin;
mod backup;
mod batch;
mod centers;
mod client;
mod connection;
mod execute;
mod failure;
mod info;
mod names;
mod session;
mod slow;
mod status;
mod token;
mod transaction;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use mingle_geo::DcId;
use mingle_geo::certify::Label;

use crate::access::{Audit, Tls, Users};
use crate::process::{self, Durability, Process};
use crate::resp::{Limits, Protocol, Reply};

pub use status::StatusPage;
pub use token::Tokens;

/// The maximum number of runs of a strong transaction that conflicts with others.
pub const RUNS_MAX: usize = 8;

/// The maximum number of commands between `MULTI` and `EXEC`.
pub const QUEUE_MAX: usize = 10_000;

/// The maximum number of watched items of a connection.
pub const WATCHED_MAX: usize = 10_000;

/// The pause of the listener after an error, such as too many open files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// The maximum time for the requests that have come when a server stops.
pub const DRAIN: Duration = Duration::from_secs(5);

/// The interval at which a server that stops looks for the end of its connections.
const DRAIN_LOOK: Duration = Duration::from_millis(5);

/// The time in which a connection that wakes the listener is made.
const WAKE: Duration = Duration::from_secs(2);

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The data center.
    pub dc: DcId,
    /// The number of data centers.
    pub dc_count: u8,
    /// The number of partitions.
    pub partition_count: u16,
    /// Writes of keys that match one of these patterns are strong.
    pub strong_only: Vec<Vec<u8>>,
    /// The cluster's number.
    pub cluster: u128,
    /// The labels of strong transactions that may be used.
    pub labels: BTreeSet<Label>,
    /// The time at which commits of new connections are acknowledged.
    pub durability: Durability,
    /// The users; without them everyone is `default` and may do everything.
    pub users: Option<Arc<Users>>,
    /// The encryption of connections; without it there is none.
    pub tls: Option<Arc<Tls>>,
    /// The log of what concerns security.
    pub audit: Arc<Audit>,
    /// The settings of tokens; without them there are none.
    pub tokens: Option<Tokens>,
    /// The maximum number of connections.
    pub connections_max: usize,
    /// The bounds of requests.
    pub limits: Limits,
    /// The time after which a connection without requests is closed; `None` if it is not.
    pub idle: Option<Duration>,
    /// The time in which a request must be complete once it has begun.
    pub request: Duration,
    /// The time in which a client must take a piece of a reply.
    pub write: Duration,
    /// Requests that take at least this time are kept for `SLOWLOG`; `None` if none are.
    pub slow: Option<Duration>,
}

/// The usual time after which a request is slow.
pub const SLOW: Duration = Duration::from_millis(10);

impl Settings {
    /// Returns the usual settings for a process with these settings.
    pub fn new(of: &process::Settings) -> Self {
        Self {
            dc: of.dc,
            dc_count: of.dc_count,
            partition_count: of.partition_count,
            strong_only: of.strong_only.clone(),
            cluster: of.cluster,
            labels: of.conflicts.labels().cloned().collect(),
            durability: of.durability,
            users: None,
            tls: None,
            audit: Arc::default(),
            tokens: None,
            connections_max: 1_000,
            limits: Limits::default(),
            idle: None,
            request: Duration::from_secs(30),
            write: Duration::from_secs(30),
            slow: Some(SLOW),
        }
    }
}

/// The description of a connection, for `CLIENT INFO`.
#[derive(Clone, Debug)]
struct Described {
    id: u64,
    address: SocketAddr,
    name: String,
    library: String,
    version: String,
    protocol: Protocol,
    /// The user, or no text before a password was given.
    user: String,
    since: Instant,
    command: &'static str,
}

/// A connection, as the server sees it.
#[derive(Debug)]
struct Connected {
    stream: TcpStream,
    described: Arc<Mutex<Described>>,
    thread: Option<JoinHandle<()>>,
}

/// The parts of a server that all connections use.
#[derive(Debug)]
struct Shared {
    settings: Settings,
    process: Arc<Process>,
    address: SocketAddr,
    started: Instant,
    is_over: AtomicBool,
    connections: Mutex<BTreeMap<u64, Connected>>,
    accepted: AtomicU64,
    refused: AtomicU64,
    requests: AtomicU64,
    slow: slow::SlowLog,
    audit: Arc<Audit>,
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, BTreeMap<u64, Connected>> {
        lock(&self.connections)
    }

    /// Removes connections that have ended.
    fn reap(&self) {
        let mut connections = self.connections();
        let is_over = |it: &Connected| it.thread.as_ref().is_some_and(JoinHandle::is_finished);
        let over = connections.iter().filter(|(_, it)| is_over(it)).map(|(id, _)| *id);
        for id in over.collect::<Vec<_>>() {
            connections.remove(&id);
        }
    }
}

/// Locks data that is valid after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running server.
///
/// # Examples
///
/// ```
/// use std::io::{Read as _, Write as _};
/// use std::net::{TcpListener, TcpStream};
/// use std::sync::Arc;
///
/// use mingle_geo::DcId;
/// use mingled::process::{Process, Settings};
/// use mingled::server::{self, Server};
///
/// let folder = tempfile::tempdir()?;
/// let settings = Settings {
///     is_founding: true,
///     ..Settings::new(folder.path().join("data"), 1, DcId(0), 1)
/// };
/// let clients = server::Settings::new(&settings);
/// let process = Process::start(settings, TcpListener::bind("127.0.0.1:0")?)?;
/// let server = Server::start(clients, Arc::new(process), TcpListener::bind("127.0.0.1:0")?)?;
///
/// let mut client = TcpStream::connect(server.address())?;
/// client.write_all(b"SET a 1\r\nINCR a\r\nQUIT\r\n")?;
/// let mut replies = String::new();
/// client.read_to_string(&mut replies)?;
/// assert_eq!(replies, "+OK\r\n:2\r\n+OK\r\n");
/// server.stop();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts to accept clients.
    ///
    /// # Errors
    ///
    /// If the operating system gives no thread.
    pub fn start(
        settings: Settings,
        process: Arc<Process>,
        listener: TcpListener,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            audit: settings.audit.clone(),
            settings,
            process,
            address: listener.local_addr()?,
            started: Instant::now(),
            is_over: AtomicBool::new(false),
            connections: Mutex::default(),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            slow: slow::SlowLog::default(),
        });
        let of = shared.clone();
        let accept = move || accept_all(&of, &listener);
        let listener = Some(Builder::new().name("clients".into()).spawn(accept)?);
        Ok(Self { shared, listener })
    }

    /// Returns the address at which it accepts clients.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// Closes all connections, and waits until their threads have ended. Requests that have come are completed,
    /// and their clients get the replies, for at most [`DRAIN`]; transactions that are open are given up.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        let mut address = self.shared.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        // A connection wakes the listener. If there can be none, it ends with the process.
        if let Some(listener) = self.listener.take()
            && TcpStream::connect_timeout(&address, WAKE).is_ok()
        {
            // A panic was printed where it happened.
            let _ = listener.join();
        }
        let connections = std::mem::take(&mut *self.shared.connections());
        let close = |how: Shutdown| {
            for connected in connections.values() {
                // The client may have closed it.
                let _ = connected.stream.shutdown(how);
            }
        };
        // A thread that waits for a request sees the end.
        close(Shutdown::Read);
        let until = Instant::now() + DRAIN;
        let runs = |it: &Connected| it.thread.as_ref().is_some_and(|it| !it.is_finished());
        while connections.values().any(runs) && Instant::now() < until {
            std::thread::sleep(DRAIN_LOOK);
        }
        close(Shutdown::Both);
        for connected in connections.into_values() {
            let _ = connected.thread.map(JoinHandle::join);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn accept_all(shared: &Arc<Shared>, listener: &TcpListener) {
    for stream in listener.incoming() {
        if shared.is_over.load(Ordering::Acquire) {
            return;
        }
        match stream.and_then(|stream| Ok((stream.peer_addr()?, stream))) {
            Ok((address, stream)) => accept(shared, address, stream),
            // Too many open files, for example.
            Err(_) => std::thread::sleep(ACCEPT_AGAIN),
        }
    }
}

fn accept(shared: &Arc<Shared>, address: SocketAddr, mut stream: TcpStream) {
    shared.reap();
    let most = shared.settings.connections_max;
    if shared.connections().len() >= most {
        shared.refused.fetch_add(1, Ordering::Relaxed);
        let text = format!("ERR max number of clients reached: at most {most} are accepted");
        // The kernel takes so few bytes at once.
        let _ = stream.write_all(&Reply::Error(text).encoded(Protocol::Two));
        return;
    }
    let id = shared.accepted.fetch_add(1, Ordering::Relaxed) + 1;
    let described = Arc::new(Mutex::new(Described {
        id,
        address,
        name: String::new(),
        library: String::new(),
        version: String::new(),
        protocol: Protocol::Two,
        user: String::new(),
        since: Instant::now(),
        command: "NULL",
    }));
    let Ok(own) = stream.try_clone() else { return };
    let (of, of_client) = (shared.clone(), described.clone());
    // The thread begins once its connection is in the table.
    let mut connections = shared.connections();
    let serve = move || connection::serve(&of, &of_client, own);
    if let Ok(thread) = Builder::new().name(format!("client {id}")).spawn(serve) {
        let thread = Some(thread);
        connections.insert(id, Connected { stream, described, thread });
    }
}
