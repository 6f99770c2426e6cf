//! The listener for Mingle's programs.
//!
//! A connection has a thread and at most one transaction, which ends with the connection. A commit that has
//! begun is completed even if its program has gone away; the program asks for the outcome by its id.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use mingle_model::Name;
use mingle_store::DataStore as _;
use mingle_store_embedded::{GeoStore, OpenError};
use mingle_store_mingled::limits::MESSAGE_BYTES_MAX;
use mingle_store_mingled::schema::{digest, schemas};
use mingle_store_mingled::wire::{HELLO, Hello, PROTOCOL, Program, Welcome, decode, framed};
use serde::Serialize;

use super::conversation::Conversation;
use super::{Stores, StoresError};

/// The maximum number of connections of programs.
pub const CONNECTIONS_MAX: usize = 1_000;

/// The maximum number of programs, or versions of them, whose stores are open.
pub const PROGRAMS_MAX: usize = 100;

/// The time in which a program must take an answer.
const WRITE: Duration = Duration::from_secs(30);

/// The pause of the listener after an error, such as too many open files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// The time in which a connection that wakes the listener is made.
const WAKE: Duration = Duration::from_secs(2);

/// The open stores of a program, in its order.
pub type Opened = Arc<Vec<Arc<GeoStore>>>;

/// A connection, as the listener sees it.
type Connected = (TcpStream, Option<JoinHandle<()>>);

struct Shared {
    stores: Stores,
    programs: Mutex<BTreeMap<[u8; 32], Opened>>,
    connections: Mutex<BTreeMap<u64, Connected>>,
    next: AtomicU64,
    is_over: AtomicBool,
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
/// use mingled::stores::{ProgramListener, Stores};
///
/// let folder = tempfile::tempdir()?;
/// let settings = Settings {
///     is_founding: true,
///     ..Settings::new(folder.path().join("data"), 1, DcId(0), 1)
/// };
/// let process = Process::start(settings.clone(), TcpListener::bind("127.0.0.1:0")?)?;
/// let stores = Stores::start(&settings, &process)?;
/// let listener = ProgramListener::start(stores, TcpListener::bind("127.0.0.1:0")?)?;
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
    pub fn start(stores: Stores, listener: TcpListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            stores,
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
        for (stream, _) in connections.values() {
            // The program may have closed it.
            let _ = stream.shutdown(Shutdown::Both);
        }
        for (_, thread) in connections.into_values() {
            let _ = thread.map(JoinHandle::join);
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
    connections.retain(|_, (_, thread)| thread.as_ref().is_some_and(|it| !it.is_finished()));
    if connections.len() >= CONNECTIONS_MAX {
        let reason = format!("it has {CONNECTIONS_MAX} connections of programs, and takes no more");
        // The kernel takes so few bytes at once.
        let _ = stream.write_all(&framed(&Welcome::Refused { reason, may_come: true }));
        return;
    }
    let number = shared.next.fetch_add(1, Ordering::Relaxed);
    let (of, Ok(own)) = (shared.clone(), stream.try_clone()) else { return };
    let serve = move || {
        let mut connection = Connection { shared: of, stream: own };
        // An error is the end of the connection.
        let _ = connection.serve();
        let _ = connection.stream.shutdown(Shutdown::Both);
    };
    if let Ok(thread) = Builder::new().name(format!("program {number}")).spawn(serve) {
        connections.insert(number, (stream, Some(thread)));
    }
}

/// A connection of a program.
struct Connection {
    shared: Arc<Shared>,
    stream: TcpStream,
}

impl Connection {
    fn serve(&mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        self.stream.set_write_timeout(Some(WRITE))?;
        let mut hello = [0; HELLO.len()];
        self.stream.read_exact(&mut hello)?;
        if hello != *HELLO {
            let text =
                b"-ERR this is the listener for Mingle's programs, not for clients of Redis\r\n";
            return self.stream.write_all(text);
        }
        let stores = match self.greet()? {
            Ok(stores) => stores,
            Err(refused) => return self.send(&refused),
        };
        let capabilities = stores.iter().map(|store| store.capabilities().clone()).collect();
        let (cluster, datacenter) = self.place();
        self.send(&Welcome::Known { cluster, datacenter, stores: capabilities })?;
        let mut conversation = Conversation::new(stores);
        loop {
            let frame = self.receive()?;
            let request = decode(&frame).ok_or(io::ErrorKind::InvalidData)?;
            let world = self.shared.stores.world();
            if let Some(answered) = world.wait_for(conversation.answer(request)) {
                self.send(&answered)?;
            }
        }
    }

    /// Returns the number of the cluster and the name of the data center.
    fn place(&self) -> (u128, Name) {
        let stores = &self.shared.stores;
        (stores.cluster(), stores.datacenter().to_string().into())
    }

    /// Returns the stores of the program; an error is the answer that refuses it.
    fn greet(&mut self) -> io::Result<Result<Opened, Welcome>> {
        let refused = |reason| Ok(Err(Welcome::Refused { reason, may_come: false }));
        let frame = self.receive()?;
        let hello = decode::<Hello>(&frame).filter(|hello| hello.protocol == PROTOCOL);
        let Some(Hello { program, cluster: wanted, .. }) = hello else {
            return refused(format!("it speaks only version {PROTOCOL} of the protocol"));
        };
        let (cluster, datacenter) = self.place();
        if let Some(wanted) = wanted.filter(|wanted| *wanted != cluster) {
            return refused(format!(
                "it is of cluster {cluster:032x}, and the program expects {wanted:032x}"
            ));
        }
        let known = lock(&self.shared.programs).get(&program).cloned();
        if let Some(stores) = known {
            return Ok(Ok(stores));
        }
        self.send(&Welcome::Unknown { cluster, datacenter })?;
        let frame = self.receive()?;
        if digest(&frame) != program {
            return refused("the declarations are not those of the digest".into());
        }
        let Some(declared) = decode::<Program>(&frame) else {
            return refused("the declarations are of another version of the protocol".into());
        };
        let schemas = match schemas(declared) {
            Ok(schemas) => schemas,
            Err(reason) => return refused(reason),
        };
        // One program after another: two connections of one program get the same stores.
        let mut programs = lock(&self.shared.programs);
        if let Some(stores) = programs.get(&program) {
            return Ok(Ok(stores.clone()));
        }
        if programs.len() >= PROGRAMS_MAX {
            programs.retain(|_, stores| Arc::strong_count(stores) > 1);
        }
        if programs.len() >= PROGRAMS_MAX {
            let reason =
                format!("it has the stores of {PROGRAMS_MAX} programs open, and takes no more");
            return Ok(Err(Welcome::Refused { reason, may_come: true }));
        }
        match self.shared.stores.open(schemas) {
            Ok(stores) => {
                let stores = Arc::new(stores);
                programs.insert(program, stores.clone());
                Ok(Ok(stores))
            }
            Err(error) => {
                let may_come = matches!(error, StoresError::Open(OpenError::Storage { .. }));
                Ok(Err(Welcome::Refused { reason: error.to_string(), may_come }))
            }
        }
    }

    fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.stream.write_all(&framed(message))
    }

    fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > MESSAGE_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // Memory is taken as the bytes arrive.
        let mut frame = Vec::new();
        (&self.stream).take(length as u64).read_to_end(&mut frame)?;
        if frame.len() < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(frame)
    }
}
