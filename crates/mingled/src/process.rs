//! One data center as a process.
//!
//! ```text
//!   sessions (any thread) ─ calls ─►┐                     ┌─► journal thread: write, sync ─► Synced
//!   connections: a reader ─ bytes ─►│ the driver's thread ├─► connections: a writer each
//!   listener, dialers ─ streams ───►┘   Node, sessions    └─► answers
//! ```
//!
//! One thread owns the [`Node`](mingle_geo_node::Node), the sessions and the state of all connections. It
//! waits for one queue of events and never for a disk or a socket. A fault of the journal stops the
//! process: the contents of its files are not known until the next start copies what can be read.
//!
//! A process that the others refuse because another start of it is connected does not serve its clients
//! until that one is gone, and a process that was replaced stops. With [`Settings::tls`] connections between data
//! centers are encrypted, and both ends have certificates; without it the network is trusted.

mod client;
mod cluster;
mod copy;
mod driver;
mod durability;
mod machine;
mod members;
mod progress;
mod session;
mod sockets;
mod starts;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use mingle_geo::certify::Conflicts;
use mingle_geo::{Config, DcId, Key, PartitionId};
use mingle_geo_node::folder::{Fault, SEGMENT_BYTES};
use mingle_geo_node::{Limits, OpenError as NodeError, Outdated, link};
use mingle_store::World;
use mingle_store_embedded::cluster::Cluster;
use sha2::{Digest as _, Sha256};

use super::access::Tls;
use super::journal::OpenError;
use driver::{Driver, Event};

pub use copy::{CopyFault, ItemCopy, ItemState};
pub use durability::Durability;
pub use members::{Center, CenterState, ChangeError, GivenUp};
pub use progress::{HeldBack, Progress, Stage};
pub use session::{AttachError, CommitError, Committed, Found, Mark, Session, SessionError};

/// The settings of a process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder of its journal.
    pub folder: PathBuf,
    /// True for its first start; see [`JournalSettings::is_founding`](crate::JournalSettings).
    pub is_founding: bool,
    /// The cluster, a random number that all of its processes have.
    pub cluster: u128,
    /// The data center.
    pub dc: DcId,
    /// The incarnation of the data center.
    pub incarnation: u32,
    /// The number of data centers.
    pub dc_count: u8,
    /// The number of partitions.
    pub partition_count: u16,
    /// Only strong transactions write keys whose names match one of these patterns.
    pub strong_only: Vec<Vec<u8>>,
    /// The conflicts between labels of strong transactions.
    pub conflicts: Conflicts,
    /// The addresses of the data centers with lower numbers, which this one dials.
    pub peers: BTreeMap<DcId, SocketAddr>,
    /// The length of a log file of the journal.
    pub segment_bytes: u64,
    /// The bounds of the node.
    pub limits: Limits,
    /// The bounds of connections.
    pub link: link::Settings,
    /// The encryption between data centers, whose certificates have their names, such as `d1`; without it there is
    /// none.
    pub tls: Option<Arc<Tls>>,
    /// The time at which commits of new sessions are acknowledged.
    pub durability: Durability,
    /// The time for which messages of other data centers are held back, for trials on one machine.
    pub delay: Duration,
}

impl Settings {
    /// Returns the usual settings of a data center, without peers.
    pub fn new(folder: PathBuf, cluster: u128, dc: DcId, dc_count: u8) -> Self {
        Self {
            folder,
            is_founding: false,
            cluster,
            dc,
            incarnation: 0,
            dc_count,
            partition_count: 4,
            strong_only: Vec::new(),
            conflicts: Conflicts::default(),
            peers: BTreeMap::new(),
            segment_bytes: SEGMENT_BYTES,
            limits: Limits::default(),
            link: link::Settings::default(),
            tls: None,
            durability: Durability::default(),
            delay: Duration::ZERO,
        }
    }

    /// Returns a digest of the settings that all data centers share. It is not 0.
    fn digest(&self) -> u64 {
        let mut digest = Sha256::new();
        // Each part begins with its length, so that no two lists have the same bytes.
        let mut add = |part: &[u8]| {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        };
        add(&[self.dc_count]);
        add(&self.partition_count.to_be_bytes());
        let patterns: BTreeSet<&Vec<u8>> = self.strong_only.iter().collect();
        add(&(patterns.len() as u64).to_be_bytes());
        for pattern in patterns {
            add(pattern);
        }
        for (one, other) in self.conflicts.pairs() {
            add(one.as_bytes());
            add(other.as_bytes());
        }
        let bytes = digest.finalize();
        let first = bytes.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
        first.max(1)
    }

    /// Checks the settings that no other part checks.
    fn check(&self) -> Result<(), StartError> {
        let lower = (0..self.dc.0).map(DcId);
        let missing: Vec<DcId> = lower.filter(|dc| !self.peers.contains_key(dc)).collect();
        if let Some(missing) = missing.first() {
            let why = format!("{} has no address for {missing}, which it must dial", self.dc);
            return Err(StartError::Settings(why));
        }
        let mut unknown = self.peers.keys().filter(|dc| **dc >= self.dc);
        if let Some(unknown) = unknown.next() {
            let why = format!(
                "{} has an address for {unknown}, and dials only data centers with lower numbers",
                self.dc
            );
            return Err(StartError::Settings(why));
        }
        Config::new(self.dc, self.dc_count, mingle_geo::PartitionId(0), self.partition_count)
            .check()
            .map_err(|why| StartError::Settings(why.to_string()))
    }
}

/// The reason why a process cannot start.
#[derive(Debug)]
pub enum StartError {
    /// The settings do not fit together.
    Settings(String),
    /// The journal cannot be opened.
    Journal(OpenError),
    /// The node cannot be restored from its journal.
    Node(NodeError),
    /// The operating system reports an error.
    System(std::io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(why) => write!(f, "the settings are not accepted: {why}"),
            Self::Journal(why) => why.fmt(f),
            Self::Node(why) => why.fmt(f),
            Self::System(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}

/// The reason why a process stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It was asked to.
    Asked,
    /// A write or a sync failed. The process may be started again, with what can be read.
    Journal(Fault),
    /// Another data center knows more of this one than its journal does.
    Outdated(Outdated),
    /// Another process has its place.
    Replaced {
        /// The data center that says so.
        by: DcId,
        /// The reason.
        why: link::Refused,
    },
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("the process was asked to stop"),
            Self::Journal(fault) => write!(f, "the process must stop: {fault}"),
            Self::Outdated(why) => write!(f, "the process must stop: {why}"),
            Self::Replaced { by, why } => write!(f, "the process must stop: {by} says that {why}"),
        }
    }
}

/// The state of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The number of this start.
    pub boot: u32,
    /// The connected data centers.
    pub connected: Vec<DcId>,
    /// The last ends of connections and the alarms of the core, the latest at the end; at most
    /// [`NOTES_MAX`].
    pub notes: Vec<String>,
    /// The number of all notes so far.
    pub noted: u64,
    /// The data centers, in order.
    pub centers: Vec<Center>,
    /// The number of frames dropped because they were repeated or of another connection.
    pub replayed: u64,
    /// How far transactions have come here.
    pub progress: Progress,
}

/// The maximum number of notes in a [`Status`].
pub const NOTES_MAX: usize = 100;

/// A running process.
#[derive(Debug)]
pub struct Process {
    events: Sender<Event>,
    driver: Option<JoinHandle<Stopped>>,
    shared: Arc<cluster::Shared>,
    listener: Option<sockets::Listener>,
}

impl Process {
    /// Starts a data center, which accepts connections of the other ones on the listener.
    ///
    /// # Errors
    ///
    /// The reason why it cannot start.
    pub fn start(settings: Settings, listener: TcpListener) -> Result<Self, StartError> {
        settings.check()?;
        let (events, arriving) = channel();
        let (tls, dc_count) = (settings.tls.clone(), settings.dc_count);
        let driver = Driver::start(settings, events.clone(), arriving)?;
        let shared = driver.shared();
        let listener =
            sockets::listen(listener, tls, dc_count, events.clone()).map_err(StartError::System)?;
        let driver = std::thread::Builder::new().name("driver".into()).spawn(|| driver.run());
        let driver = Some(driver.map_err(StartError::System)?);
        Ok(Self { events, driver, shared, listener: Some(listener) })
    }

    /// Gives up a data center that is lost. The others agree on a cut: its transactions up to there stay,
    /// and nothing above is accepted any more, even if it comes back. A data center that is connected is
    /// given up only if `is_forced`. A change that another process has begun is waited for.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be given up, or is not yet.
    pub fn fence(&self, dc: DcId, is_forced: bool) -> Result<GivenUp, ChangeError> {
        let (answer, answers) = channel();
        let sent = self.events.send(Event::Fence(dc, is_forced, answer));
        sent.map_err(|_| ChangeError::Stopped)?;
        answers.recv().map_err(|_| ChangeError::Stopped)?
    }

    /// Admits a data center that was given up, and returns its next incarnation. Its process must start
    /// with an empty folder and this [incarnation](Settings::incarnation); it copies the data of another
    /// data center, and serves then.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be admitted, or is not yet.
    pub fn admit(&self, dc: DcId) -> Result<u32, ChangeError> {
        let (answer, answers) = channel();
        let sent = self.events.send(Event::Admit(dc, answer));
        sent.map_err(|_| ChangeError::Stopped)?;
        answers.recv().map_err(|_| ChangeError::Stopped)?
    }

    /// Opens a session that continues where others have been: at this data center, once all that they
    /// read or wrote is here.
    ///
    /// # Errors
    ///
    /// If part of that is lost, or has not arrived in time.
    pub fn attach(&self, marks: &[Mark]) -> Result<Session, AttachError> {
        let session = self.session();
        session.attach(marks).map(|()| session)
    }

    /// Opens a session at this data center.
    pub fn session(&self) -> Session {
        Session::open(self.events.clone())
    }

    /// Returns a function that opens sessions at this data center, as [`session`](Self::session) does.
    /// It does not keep the process.
    pub fn sessions(&self) -> Box<dyn Fn() -> Session + Send + Sync> {
        let events = self.events.clone();
        Box::new(move || Session::open(events.clone()))
    }

    /// Returns the data centers as Mingle's stores use them, at this one.
    pub fn cluster(&self, world: Arc<dyn World>) -> Arc<dyn Cluster> {
        Arc::new(cluster::Local::new(self.events.clone(), self.shared.clone(), world))
    }

    /// Returns the state of the process; `None` if it has stopped.
    pub fn status(&self) -> Option<Status> {
        let (answer, answers) = channel();
        self.events.send(Event::Status(answer)).ok()?;
        answers.recv().ok()
    }

    /// Returns the keys of items of a partition that follow `after`, in their order; `None` begins. The
    /// answer has at most `count` keys, and an empty one is the last. Items that do not exist any more
    /// may be among them.
    ///
    /// # Errors
    ///
    /// If the process has stopped.
    pub fn keys(
        &self,
        partition: PartitionId,
        after: Option<Key>,
        count: usize,
    ) -> Result<Vec<Key>, SessionError> {
        let (answer, answers) = channel();
        let names = driver::Names { partition, after, count };
        self.events.send(Event::Names(names, answer)).map_err(|_| SessionError::Stopped)?;
        answers.recv().map_err(|_| SessionError::Stopped)
    }

    /// True if the process has stopped by itself. [`stop`](Self::stop) returns the reason.
    pub fn has_stopped(&self) -> bool {
        self.driver.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops the process. Records that are not safe are synced first.
    pub fn stop(mut self) -> Stopped {
        // It may have stopped already.
        let _ = self.events.send(Event::Stop);
        self.wait()
    }

    /// Waits until the process stops by itself.
    pub fn join(mut self) -> Stopped {
        self.wait()
    }

    fn wait(&mut self) -> Stopped {
        let driver = self.driver.take().map(JoinHandle::join);
        self.listener = None;
        match driver {
            Some(Ok(stopped)) => stopped,
            // The panic was printed where it happened.
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Stopped::Asked,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.take() {
            // It may have stopped already; a panic was printed where it happened.
            let _ = self.events.send(Event::Stop);
            let _ = driver.join();
        }
    }
}
