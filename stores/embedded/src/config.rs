//! How a store of this engine is set up, and why it could not be opened.

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mingle_model::Name;
use mingle_store::Once;

use crate::geo::GeoConfig;

/// Which replicas updates can reach: a simulation cuts links, and mends them again.
///
/// It is asked often, and must neither take long nor call the store. Only updates use links: the
/// process that holds all replicas answers queries, guards and outcomes whether or not any are down.
pub trait Links: Send + Sync {
    /// Whether updates of replica `from` reach replica `to` now.
    fn is_up(&self, from: &str, to: &str) -> bool;
}

/// [`Links`] that a configuration shares with whoever cuts them. It equals only itself.
#[derive(Clone)]
pub struct LinkTable(Arc<dyn Links>);

impl LinkTable {
    /// Shares `links`.
    pub fn new(links: Arc<dyn Links>) -> Self {
        Self(links)
    }
}

impl Deref for LinkTable {
    type Target = dyn Links;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for LinkTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkTable")
    }
}

impl PartialEq for LinkTable {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for LinkTable {}

/// Where a store keeps its rows, and how many replicas it has.
///
/// # Examples
///
/// ```
/// use mingle_store_embedded::EmbeddedConfig;
///
/// let config = EmbeddedConfig::in_memory().with_replicas(3);
/// assert_eq!(config.replicas, ["r1".into(), "r2".into(), "r3".into()]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddedConfig {
    /// The folder that the program's stores share, each with a file of its own,
    /// `<store>.redb`; made if it is missing. None keeps everything in memory.
    pub folder: Option<PathBuf>,
    /// Names of the replicas; one at least, and one at most at a serializable level.
    pub replicas: Vec<Name>,
    /// How long it takes until an update reaches the other replicas.
    pub delay: Duration,
    /// At most how much longer or shorter that takes, drawn for each update and replica.
    pub jitter: Duration,
    /// How a later phase takes effect once: [`Once::Serial`], or at a replicated level also
    /// [`Once::Home`], as if the replicas could not agree: each judges guards by what it has itself.
    pub once: Once,
    /// Holds updates up while a link is down; none where all links are always up.
    pub links: Option<LinkTable>,
    /// Data centers in place of replicas: a causal store that is the core of `mingle-geo`. Then
    /// `replicas`, `delay` and `once` are of no matter, and links are those between data centers.
    pub geo: Option<GeoConfig>,
}

impl EmbeddedConfig {
    /// One replica, in memory.
    pub fn in_memory() -> Self {
        Self {
            folder: None,
            replicas: vec!["r1".into()],
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            once: Once::Serial,
            links: None,
            geo: None,
        }
    }

    /// One replica, kept in `folder`.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()), ..Self::in_memory() }
    }

    /// So many replicas, named `r1`, `r2` and so on.
    #[must_use]
    pub fn with_replicas(mut self, count: usize) -> Self {
        self.replicas = (1..=count).map(|n| format!("r{n}").into()).collect();
        self
    }

    /// Updates reach other replicas after `delay`, give or take `jitter`.
    #[must_use]
    pub fn with_delay(mut self, delay: Duration, jitter: Duration) -> Self {
        self.delay = delay;
        self.jitter = jitter;
        self
    }

    /// Data centers in place of replicas.
    #[must_use]
    pub fn with_geo(mut self, geo: GeoConfig) -> Self {
        self.geo = Some(geo);
        self
    }

    /// A later phase takes effect once in this way.
    #[must_use]
    pub fn with_once(mut self, once: Once) -> Self {
        self.once = once;
        self
    }

    /// An update that is due is held up while the link from its origin is down.
    #[must_use]
    pub fn with_links(mut self, links: Arc<dyn Links>) -> Self {
        self.links = Some(LinkTable::new(links));
        self
    }
}

/// Why a store could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The configuration makes no sense.
    Config {
        /// Which store.
        store: Name,
        /// Why.
        reason: String,
    },
    /// Another process, or another store of this one, has the folder open.
    Locked {
        /// Which store.
        store: Name,
        /// Its folder.
        folder: PathBuf,
    },
    /// The disk failed, or what it holds is no store.
    Storage {
        /// Which store.
        store: Name,
        /// Its file.
        path: PathBuf,
        /// What the disk said.
        reason: String,
    },
    /// The folder of the stores cannot be read.
    Folder {
        /// Which folder.
        folder: PathBuf,
        /// What the disk said.
        reason: String,
    },
    /// The program declares otherwise what the store keeps.
    Changed {
        /// Which store.
        store: Name,
        /// What was changed, such as `field User.name`.
        what: String,
        /// What it was.
        kept: String,
        /// What the program says.
        wanted: String,
    },
    /// A declared operation has a body that this engine does not understand.
    Operation {
        /// Which store.
        store: Name,
        /// Which operation.
        operation: Name,
        /// Why.
        reason: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config { store, reason } => write!(f, "store {store}: {reason}"),
            Self::Locked { store, folder } => write!(
                f,
                "store {store}: the folder {} is in use by another process",
                folder.display()
            ),
            Self::Storage { store, path, reason } => {
                write!(f, "store {store}: cannot open {}: {reason}", path.display())
            }
            Self::Folder { folder, reason } => {
                write!(f, "cannot read the folder {}: {reason}", folder.display())
            }
            Self::Changed { store, what, kept, wanted } => {
                write!(f, "store {store} keeps {what} as `{kept}`, but the program says `{wanted}`")
            }
            Self::Operation { store, operation, reason } => {
                write!(f, "store {store}: operation {operation}: {reason}")
            }
        }
    }
}

impl std::error::Error for OpenError {}
