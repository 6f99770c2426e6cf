//! How a store is set up, and why it could not be opened.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use mingle_model::Name;
use scylla::statement::{Consistency, SerialConsistency};

use crate::apart::Apart;
use crate::mapping::ObjectMapping;

/// Where a store keeps its data, and how the cluster is reached.
///
/// # Examples
///
/// ```
/// use mingle_store_cassandra::CassandraConfig;
///
/// let mut config = CassandraConfig::at(["10.0.0.1:9042"], ["oslo", "rome"]);
/// config.replication = [("oslo".into(), 3), ("rome".into(), 3)].into();
/// assert_eq!(config.keyspace, "mingle");
/// assert_eq!(config.area_of("inboxes"), "inboxes");
/// ```
#[derive(Clone)]
pub struct CassandraConfig {
    /// Some nodes, `host:port`; the driver finds the others.
    pub nodes: Vec<String>,
    /// The data centers at which sessions can stay; those that name none stay at the first.
    pub datacenters: Vec<String>,
    /// What sessions call the data centers, in the same order, where that is not their names: a
    /// session stays at the replica of its name in every store.
    pub replicas: Option<Vec<String>>,
    /// Where clients reach nodes that tell another address, by what they tell. The driver takes the
    /// others for where they say, at the port of `nodes`.
    pub addresses: BTreeMap<IpAddr, SocketAddr>,
    /// Where the tables are; stores of several names can share them.
    pub keyspace: String,
    /// What the store is called there; none is its name.
    pub area: Option<String>,
    /// How many copies each data center has, for a keyspace that is not there yet.
    pub replication: BTreeMap<String, u32>,
    /// Who we are, and how we prove it.
    pub credentials: Option<(String, String)>,
    /// Encrypts connections; needs the feature `tls`.
    pub tls: bool,
    /// Certificates of authorities in PEM, in place of the system's.
    pub root_certificates: Option<Vec<u8>>,
    /// How many replicas answer a read.
    pub read_consistency: Consistency,
    /// How many replicas confirm a write.
    pub write_consistency: Consistency,
    /// Whose replicas agree on what is compared and set.
    pub serial_consistency: SerialConsistency,
    /// What is known of commits whose answer was lost.
    pub outcomes: Outcomes,
    /// How long a decided outcome is kept.
    pub keep_outcomes: Duration,
    /// How long to wait for a connection.
    pub connect_timeout: Duration,
    /// How long to wait for an answer, all tries together.
    pub answer_timeout: Duration,
    /// After how long the driver asks a second node; none is never.
    pub speculate_after: Option<Duration>,
    /// What a round trip is expected to take.
    pub round_trip: Duration,
    /// Kinds of objects that live in tables that were there before, by name.
    pub objects: BTreeMap<String, ObjectMapping>,
    /// For tests: data centers as keyspaces that hear of each other when told to.
    pub apart: Option<Arc<Apart>>,
}

/// What is known of commits whose answer was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcomes {
    /// This process remembers them, and sends them again when asked: it then says that they were
    /// committed, or that nobody knows. Costs nothing.
    #[default]
    Remembered,
    /// Each commit with an id first takes the id by compare-and-set, so that any process can tell,
    /// and "not committed" can be said. Costs one compare-and-set for each such commit.
    Decided,
}

impl CassandraConfig {
    /// The usual settings for the cluster of these nodes.
    pub fn at<N: Into<String>, D: Into<String>>(
        nodes: impl IntoIterator<Item = N>,
        datacenters: impl IntoIterator<Item = D>,
    ) -> Self {
        Self {
            nodes: nodes.into_iter().map(Into::into).collect(),
            datacenters: datacenters.into_iter().map(Into::into).collect(),
            replicas: None,
            addresses: BTreeMap::new(),
            keyspace: "mingle".to_owned(),
            area: None,
            replication: BTreeMap::new(),
            credentials: None,
            tls: false,
            root_certificates: None,
            read_consistency: Consistency::LocalQuorum,
            write_consistency: Consistency::LocalQuorum,
            serial_consistency: SerialConsistency::Serial,
            outcomes: Outcomes::Remembered,
            keep_outcomes: Duration::from_hours(24),
            connect_timeout: Duration::from_secs(5),
            answer_timeout: Duration::from_secs(30),
            speculate_after: None,
            round_trip: Duration::from_millis(2),
            objects: BTreeMap::new(),
            apart: None,
        }
    }

    /// What sessions call the data centers.
    pub fn replicas(&self) -> &[String] {
        self.replicas.as_ref().unwrap_or(&self.datacenters)
    }

    /// What a store is called in its tables.
    pub fn area_of(&self, store: &str) -> String {
        self.area.clone().unwrap_or_else(|| store.to_owned())
    }
}

/// Without the credentials.
impl fmt::Debug for CassandraConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CassandraConfig")
            .field("nodes", &self.nodes)
            .field("datacenters", &self.datacenters)
            .field("keyspace", &self.keyspace)
            .field("area", &self.area)
            .finish_non_exhaustive()
    }
}

impl PartialEq for CassandraConfig {
    fn eq(&self, other: &Self) -> bool {
        let apart = |config: &Self| config.apart.as_ref().map(Arc::as_ptr);
        let text = |config: &Self| format!("{config:?}");
        let settings = |config: &Self| {
            (
                (config.replication.clone(), config.replicas.clone(), config.addresses.clone()),
                config.credentials.clone(),
                (config.tls, config.root_certificates.clone()),
                (config.read_consistency, config.write_consistency, config.serial_consistency),
                (config.outcomes, config.keep_outcomes),
                (config.connect_timeout, config.answer_timeout),
                (config.speculate_after, config.round_trip),
                config.objects.clone(),
            )
        };
        text(self) == text(other)
            && settings(self) == settings(other)
            && apart(self) == apart(other)
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
    /// The cluster cannot be reached, or lets us not in.
    Unavailable {
        /// Which store.
        store: Name,
        /// Why.
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
    /// A mapping does not fit what is declared.
    Mapping {
        /// Which store.
        store: Name,
        /// Which object.
        object: Name,
        /// Why.
        reason: String,
    },
    /// The body of a declared operation does not fit.
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
            Self::Unavailable { store, reason } => {
                write!(f, "store {store}: cannot reach Cassandra: {reason}")
            }
            Self::Changed { store, what, kept, wanted } => {
                write!(f, "store {store} keeps {what} as `{kept}`, but the program says `{wanted}`")
            }
            Self::Mapping { store, object, reason } => {
                write!(f, "store {store}: object {object}: {reason}")
            }
            Self::Operation { store, operation, reason } => {
                write!(f, "store {store}: operation {operation}: {reason}")
            }
        }
    }
}

impl std::error::Error for OpenError {}
