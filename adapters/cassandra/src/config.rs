//! The configuration of a store, and the reasons why it could not be opened.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use mingle_model::Name;
use scylla::statement::{Consistency, SerialConsistency};

use crate::apart::Apart;
use crate::mapping::ObjectMapping;

/// The place of a store's data, and the way to its cluster.
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
    /// The data centers at which sessions can stay; a session that names none stays at the first.
    pub datacenters: Vec<String>,
    /// The sessions' names for the data centers, in the same order, if they differ from
    /// `datacenters`: a session stays at the replica with the same name in every store.
    pub replicas: Option<Vec<String>>,
    /// The addresses at which clients reach nodes, by the address that the node announces. The
    /// driver reaches other nodes at their announced address, at the port of `nodes`.
    pub addresses: BTreeMap<IpAddr, SocketAddr>,
    /// The keyspace of the tables; several stores with different names can share it.
    pub keyspace: String,
    /// The store's name in the tables; none stands for its name in the program.
    pub area: Option<String>,
    /// The number of copies in each data center, for a keyspace that does not exist yet.
    pub replication: BTreeMap<String, u32>,
    /// User name and password.
    pub credentials: Option<(String, String)>,
    /// Encrypts connections; needs the feature `tls`.
    pub tls: bool,
    /// Certificates of authorities in PEM, in place of the system's.
    pub root_certificates: Option<Vec<u8>>,
    /// The number of replicas that answer a read.
    pub read_consistency: Consistency,
    /// The number of replicas that confirm a write.
    pub write_consistency: Consistency,
    /// The replicas that agree on a compare-and-set.
    pub serial_consistency: SerialConsistency,
    /// The way to decide commits with a lost answer.
    pub outcomes: Outcomes,
    /// The time for which a decided outcome is kept.
    pub keep_outcomes: Duration,
    /// The longest wait for a connection.
    pub connect_timeout: Duration,
    /// The longest wait for an answer, over all tries.
    pub answer_timeout: Duration,
    /// The time after which the driver asks a second node; none stands for never.
    pub speculate_after: Option<Duration>,
    /// The expected time of a round trip.
    pub round_trip: Duration,
    /// Kinds of objects that live in tables of the application, by name.
    pub objects: BTreeMap<String, ObjectMapping>,
    /// For tests: data centers as keyspaces that receive each other's commits only on request.
    pub apart: Option<Arc<Apart>>,
}

/// The way to decide commits with a lost answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcomes {
    /// This process remembers them, and sends them again when asked: it then reports them as
    /// committed or as unknown. Costs nothing.
    #[default]
    Remembered,
    /// Each commit with an id first takes the id by compare-and-set. So any process can find the
    /// outcome, and it can be "not committed". Costs one compare-and-set for each such commit.
    Decided,
}

impl CassandraConfig {
    /// Returns the default settings for the cluster of these nodes.
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

    /// Returns the sessions' names for the data centers.
    pub fn replicas(&self) -> &[String] {
        self.replicas.as_ref().unwrap_or(&self.datacenters)
    }

    /// Returns a store's name in its tables.
    pub fn area_of(&self, store: &str) -> String {
        self.area.clone().unwrap_or_else(|| store.to_owned())
    }
}

/// Omits the credentials.
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
    /// The cluster cannot be reached, or rejects the client.
    Unavailable {
        /// The store.
        store: Name,
        /// The reason.
        reason: String,
    },
    /// The program's declaration differs from the one that the store keeps.
    Changed {
        /// The store.
        store: Name,
        /// The changed item, for example `field User.name`.
        what: String,
        /// The declaration in the store.
        kept: String,
        /// The declaration in the program.
        wanted: String,
    },
    /// A mapping does not fit the declared objects.
    Mapping {
        /// The store.
        store: Name,
        /// The object.
        object: Name,
        /// The reason.
        reason: String,
    },
    /// The body of a declared operation does not fit.
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
