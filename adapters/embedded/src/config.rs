//! The configuration of a store of this engine, and the errors of opening one.

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mingle_model::Name;
use mingle_store::Once;

use crate::geo::GeoConfig;

/// The links over which replicas send updates: a simulation cuts links, and mends them again.
///
/// It is asked often, and must neither take long nor call the store. Only updates use links: the
/// process that holds all replicas answers queries, guards and outcomes whether or not any are down.
pub trait Links: Send + Sync {
    /// True if updates of replica `from` reach replica `to` now.
    fn is_up(&self, from: &str, to: &str) -> bool;
}

/// [`Links`] that a configuration shares with the test that cuts them. It equals only itself.
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

/// The place of a store's rows, and its replicas.
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
    /// Time until an update reaches the other replicas.
    pub delay: Duration,
    /// Largest deviation from `delay`, drawn for each update and replica.
    pub jitter: Duration,
    /// The way in which a later phase takes effect once: [`Once::Serial`], or at a replicated level also
    /// [`Once::Home`], as if the replicas could not agree: each judges guards by its own data.
    pub once: Once,
    /// Holds updates up while a link is down; `None` if all links are always up.
    pub links: Option<LinkTable>,
    /// Data centers in place of replicas: a causal store that is the core of `mingle-geo`. Then
    /// `replicas`, `delay` and `once` have no effect, and `links` are the links between data centers.
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

    /// Sets the number of replicas, named `r1`, `r2` and so on.
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

/// The reason why a store could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The configuration makes no sense.
    Config {
        /// The store.
        store: Name,
        /// The reason.
        reason: String,
    },
    /// Another process, or another store of this one, has the folder open.
    Locked {
        /// The store.
        store: Name,
        /// The folder of the store.
        folder: PathBuf,
    },
    /// The disk failed, or its content is no store.
    Storage {
        /// The store.
        store: Name,
        /// Its file.
        path: PathBuf,
        /// The error of the disk.
        reason: String,
    },
    /// The folder of the stores cannot be read.
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The error of the disk.
        reason: String,
    },
    /// The program's declaration differs from the stored one.
    Changed {
        /// The store.
        store: Name,
        /// The changed item, such as `field User.name`.
        what: String,
        /// The stored declaration.
        kept: String,
        /// The program's declaration.
        wanted: String,
    },
    /// A declared operation has a body that this engine does not understand.
    Operation {
        /// The store.
        store: Name,
        /// The operation.
        operation: Name,
        /// The reason.
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
