//! The listener for Mingle's programs.
//!
//! A connection has a thread and at most one transaction, which ends with the connection. A commit that has
//! begun is completed even if its program has gone away; the program asks for the outcome by its id.
//!
//! A connection is a stranger until it has signed in: at most [`SIGN_IN_WITHIN`](super::SIGN_IN_WITHIN), with one small
//! message, and beside at most [`STRANGERS_MAX`](super::STRANGERS_MAX) others. For one more the oldest is closed, so
//! that strangers do not keep out programs, which sign in at once.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use mingle_store::StoreSchema;
use mingle_store_embedded::{GeoStore, OpenError};
use mingle_store_mingled::wire::{Welcome, framed};
use rustix::net::sockopt;

use super::connection::serve;
use super::sign_in::ProgramSettings;
use super::{Stores, StoresError};

/// The maximum number of connections of programs.
pub const CONNECTIONS_MAX: usize = 1_000;

/// The maximum number of programs, or versions of them, whose stores are open.
pub const PROGRAMS_MAX: usize = 100;

/// The pause of the listener after an error, such as too many open files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// The time in which a connection that wakes the listener is made.
const WAKE: Duration = Duration::from_secs(2);

/// The time after which the machine of a silent program is asked for a sign of life, then the time between the
/// questions, and their number.
const ALIVE: (Duration, Duration, u32) = (Duration::from_mins(1), Duration::from_secs(10), 6);

/// The open stores of a program, in its order.
pub type Opened = Arc<Vec<Arc<GeoStore>>>;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// It has not signed in.
    Stranger,
    /// It has signed in, or there are no users.
    Known,
    /// It has not signed in, and is closed for others.
    Dropped,
}

/// The state of a connection, which its thread and the listener share.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing(Arc<AtomicU8>);

impl Standing {
    /// Sets another state, if this is the state; returns true if it was.
    pub(super) fn turn(&self, from: State, to: State) -> bool {
        let (from, to) = (from as u8, to as u8);
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// True if this is the state.
    pub(super) fn is(&self, state: State) -> bool {
        self.0.load(Ordering::Acquire) == state as u8
    }
}

/// A connection, as the listener sees it.
struct Connected {
    stream: TcpStream,
    standing: Standing,
    thread: JoinHandle<()>,
}

/// The parts of a listener that all connections use.
pub(super) struct Shared {
    pub(super) stores: Stores,
    pub(super) settings: ProgramSettings,
    programs: Mutex<BTreeMap<[u8; 32], Opened>>,
    connections: Mutex<BTreeMap<u64, Connected>>,
    next: AtomicU64,
    is_over: AtomicBool,
}

impl Shared {
    /// Returns the stores of a program that are open.
    pub(super) fn known(&self, program: &[u8; 32]) -> Option<Opened> {
        lock(&self.programs).get(program).cloned()
    }

    /// Opens the stores of a program; an error is the answer that refuses it.
    pub(super) fn open(
        &self,
        program: [u8; 32],
        schemas: Vec<StoreSchema>,
    ) -> Result<Opened, Welcome> {
        // One program after another: two connections of one program get the same stores.
        let mut programs = lock(&self.programs);
        if let Some(stores) = programs.get(&program) {
            return Ok(stores.clone());
        }
        if programs.len() >= PROGRAMS_MAX {
            programs.retain(|_, stores| Arc::strong_count(stores) > 1);
        }
        if programs.len() >= PROGRAMS_MAX {
            let reason =
                format!("it has the stores of {PROGRAMS_MAX} programs open, and takes no more");
            return Err(Welcome::Refused { reason, may_come: true });
        }
        match self.stores.open(schemas) {
            Ok(stores) => {
                let stores = Arc::new(stores);
                programs.insert(program, stores.clone());
                Ok(stores)
            }
            Err(error) => {
                let may_come = matches!(
                    error,
                    StoresError::Open(OpenError::Storage { .. }) | StoresError::Indexes(_)
                );
                Err(Welcome::Refused { reason: error.to_string(), may_come })
            }
        }
    }
}

/// A running listener for programs.
///
/// # Examples
///
/// ```
/// use std::net::TcpListener;
/// use std::sync::Arc;
///
/// use mingle_geo::DcId;
/// use mingled::process::{Process, Settings};
/// use mingled::stores::{ProgramListener, ProgramSettings, Stores};
///
/// let folder = tempfile::tempdir()?;
/// let settings = Settings {
///     is_founding: true,
///     ..Settings::new(folder.path().join("data"), 1, DcId(0), 1)
/// };
/// let process = Process::start(settings.clone(), TcpListener::bind("127.0.0.1:0")?)?;
/// let stores = Stores::start(&settings, &process)?;
/// let socket = TcpListener::bind("127.0.0.1:0")?;
/// let listener = ProgramListener::start(stores, ProgramSettings::default(), socket)?;
/// // A binding of a program names it: engine = "mingled", address = "127.0.0.1:…".
/// assert!(listener.address().ip().is_loopback());
/// listener.stop();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ProgramListener {
    shared: Arc<Shared>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl ProgramListener {
    /// Starts to accept programs.
    ///
    /// # Errors
    ///
    /// If the operating system gives no thread.
    pub fn start(
        stores: Stores,
        settings: ProgramSettings,
        listener: TcpListener,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            stores,
            settings,
            programs: Mutex::default(),
            connections: Mutex::default(),
            next: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let of = shared.clone();
        let accept = move || accept_all(&of, &listener);
        let thread = Some(Builder::new().name("programs".into()).spawn(accept)?);
        Ok(Self { shared, address, thread })
    }

    /// Returns the address at which it accepts programs.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes all connections, and waits until their threads have ended. A request that runs is completed,
    /// and its program gets no answer.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        // A connection wakes the listener. If there can be none, it ends with the process.
        if let Some(thread) = self.thread.take()
            && TcpStream::connect_timeout(&address, WAKE).is_ok()
        {
            // A panic was printed where it happened.
            let _ = thread.join();
        }
        let connections = std::mem::take(&mut *lock(&self.shared.connections));
        for connected in connections.values() {
            // The program may have closed it.
            let _ = connected.stream.shutdown(Shutdown::Both);
        }
        for connected in connections.into_values() {
            let _ = connected.thread.join();
        }
    }
}

impl Drop for ProgramListener {
    fn drop(&mut self) {
        self.end();
    }
}

/// Locks data that is valid after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept_all(shared: &Arc<Shared>, listener: &TcpListener) {
    for stream in listener.incoming() {
        if shared.is_over.load(Ordering::Acquire) {
            return;
        }
        match stream {
            Ok(stream) => accept(shared, stream),
            // Too many open files, for example.
            Err(_) => std::thread::sleep(ACCEPT_AGAIN),
        }
    }
}

fn accept(shared: &Arc<Shared>, mut stream: TcpStream) {
    let mut connections = lock(&shared.connections);
    connections.retain(|_, connected| !connected.thread.is_finished());
    if connections.len() >= CONNECTIONS_MAX {
        let reason = format!("it has {CONNECTIONS_MAX} connections of programs, and takes no more");
        // A program that expects TLS sees the end only.
        if shared.settings.tls.is_none() {
            // The kernel takes so few bytes at once.
            let _ = stream.write_all(&framed(&Welcome::Refused { reason, may_come: true }));
        }
        return;
    }
    make_room(&connections, shared.settings.strangers_max);
    let number = shared.next.fetch_add(1, Ordering::Relaxed);
    let standing = Standing::default();
    let (of, own, Ok(tcp)) = (shared.clone(), standing.clone(), stream.try_clone()) else { return };
    let serve = move || {
        let Ok(other) = tcp.try_clone() else { return };
        // Without signs of life the end of a silent machine is seen later.
        let _ = keep_alive(&tcp);
        // An error is the end of the connection.
        let _ = serve(of, own, tcp);
        // The table of connections has the stream, too.
        let _ = other.shutdown(Shutdown::Both);
    };
    if let Ok(thread) = Builder::new().name(format!("program {number}")).spawn(serve) {
        connections.insert(number, Connected { stream, standing, thread });
    }
}

/// Closes the oldest connections that have not signed in, so that with one more there are at most so many.
fn make_room(connections: &BTreeMap<u64, Connected>, strangers_max: usize) {
    let strangers: Vec<&Connected> =
        connections.values().filter(|it| it.standing.is(State::Stranger)).collect();
    let surplus = (strangers.len() + 1).saturating_sub(strangers_max);
    for oldest in strangers.into_iter().take(surplus) {
        if oldest.standing.turn(State::Stranger, State::Dropped) {
            // Its thread sees the end, and tells the reason. The sender may have closed it.
            let _ = oldest.stream.shutdown(Shutdown::Read);
        }
    }
}

/// Lets the end of a connection be seen whose other machine has gone away without a word.
fn keep_alive(tcp: &TcpStream) -> io::Result<()> {
    let (idle, between, count) = ALIVE;
    sockopt::set_socket_keepalive(tcp, true)?;
    sockopt::set_tcp_keepidle(tcp, idle)?;
    sockopt::set_tcp_keepintvl(tcp, between)?;
    sockopt::set_tcp_keepcnt(tcp, count)?;
    Ok(())
}
