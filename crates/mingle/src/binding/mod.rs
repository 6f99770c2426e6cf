//! The binding: which engine each store is, in `mingle.toml` beside the program.
//!
//! - `embedded`, `postgres`, `redis`, `cassandra`: what can be said of a store of each engine, and
//!   `worker`: of one behind a worker;
//! - `keys`: keys and values that make no sense are named.

mod cassandra;
mod embedded;
mod keys;
mod postgres;
mod redis;
mod worker;

use std::collections::BTreeMap;
use std::fmt;

use mingle_runtime::Settings;
use mingle_store_cassandra::CassandraConfig;
use mingle_store_postgres::PostgresConfig;
use mingle_store_redis::RedisConfig;
use mingle_store_worker::WorkerConfig;
use serde::Deserialize;

pub use embedded::EmbeddedBinding;
pub use mingle_store_embedded::ConflictPairs;

use keys::Keys;

/// What a binding says. Without one every store is embedded, with one replica and no distance.
///
/// # Examples
///
/// ```
/// use mingle::Binding;
///
/// let binding = Binding::parse("[stores.inboxes]\nengine = \"embedded\"\nreplicas = 3\ndistance = \"1ms\"").unwrap();
/// assert_eq!(binding.stores["inboxes"].engine.replicas().len(), 3);
/// let error = Binding::parse("[stores.inboxes]\ndistance = \"far\"").unwrap_err();
/// assert!(error.to_string().contains("stores.inboxes.distance"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Binding {
    /// Deadlines and bounds.
    pub settings: Settings,
    /// By store.
    pub stores: BTreeMap<String, StoreBinding>,
}

/// What a binding says of one store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreBinding {
    /// What keeps its data.
    pub engine: Engine,
    /// Bodies of declared operations.
    pub operations: BTreeMap<String, String>,
}

/// What keeps a store's data, and how it is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum Engine {
    /// This process.
    Embedded(EmbeddedBinding),
    /// A PostgreSQL server, or several that replicate to each other.
    Postgres(PostgresConfig),
    /// A Redis or Valkey server.
    Redis(RedisConfig),
    /// A cluster of Cassandra.
    Cassandra(CassandraConfig),
    /// A worker beside the store, which has a binding of its own; and the names of the store's
    /// replicas, where a session is to stay at one.
    Worker(WorkerConfig, Vec<String>),
}

impl Default for Engine {
    fn default() -> Self {
        Self::Embedded(EmbeddedBinding::default())
    }
}

impl Engine {
    /// Names of the replicas at which a session can stay.
    pub fn replicas(&self) -> Vec<String> {
        match self {
            Self::Embedded(embedded) => embedded.places(),
            Self::Postgres(config) => config.servers.keys().cloned().collect(),
            Self::Cassandra(cassandra) => cassandra.replicas().to_vec(),
            Self::Worker(_, replicas) => replicas.clone(),
            Self::Redis(_) => Vec::new(),
        }
    }
}

/// What is wrong with a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingError {
    message: String,
}

impl fmt::Display for BindingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BindingError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    runtime: WrittenRuntime,
    #[serde(default)]
    stores: BTreeMap<String, toml::Table>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct WrittenRuntime {
    deadline: Option<String>,
    help_after: Option<String>,
    lease: Option<String>,
    sweep_every: Option<String>,
    steps: Option<u64>,
    memory_bytes: Option<usize>,
}

impl Binding {
    /// Reads a binding. `${NAME}` in addresses stands for a variable of the environment.
    ///
    /// # Errors
    ///
    /// What is wrong, and where.
    pub fn parse(text: &str) -> Result<Self, BindingError> {
        Self::parse_in(text, &|name| std::env::var(name).ok())
    }

    /// As [`Binding::parse`], in an environment of the caller's.
    ///
    /// # Errors
    ///
    /// As [`Binding::parse`].
    pub fn parse_in(
        text: &str,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, BindingError> {
        let written: Written =
            toml::from_str(text).map_err(|error| BindingError { message: error.to_string() })?;
        let settings = written.runtime.settings()?;
        let stores = written.stores.into_iter().map(|(name, store)| {
            let bound = bind(&name, store, environment)?;
            Ok((name, bound))
        });
        let mut stores = stores.collect::<Result<_, BindingError>>()?;
        embedded::join_hosts(&mut stores, environment)?;
        Ok(Self { settings, stores })
    }
}

impl WrittenRuntime {
    fn settings(&self) -> Result<Settings, BindingError> {
        let mut settings = Settings::default();
        let keys = Keys { path: "runtime".into(), environment: &|_| None };
        keys.durations([
            ("deadline", &self.deadline, &mut settings.deadline),
            ("help_after", &self.help_after, &mut settings.help_after),
            ("lease", &self.lease, &mut settings.lease),
            ("sweep_every", &self.sweep_every, &mut settings.sweep_every),
        ])?;
        if settings.sweep_every.is_zero() {
            return Err(keys.wrong("sweep_every", "expected more than nothing"));
        }
        if settings.lease < settings.sweep_every * 2 {
            let (lease, every) = (settings.lease, settings.sweep_every);
            let message = format!(
                "expected at least twice sweep_every, which is how often a process gives a sign of life, found {lease:?} and {every:?}"
            );
            return Err(keys.wrong("lease", message));
        }
        settings.steps_max = self.steps.unwrap_or(settings.steps_max);
        settings.memory_bytes_max = self.memory_bytes.unwrap_or(settings.memory_bytes_max);
        Ok(settings)
    }
}

fn bind(
    name: &str,
    mut written: toml::Table,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<StoreBinding, BindingError> {
    let keys = Keys { path: format!("stores.{name}"), environment };
    let operations: BTreeMap<String, String> =
        keys.take(&mut written, "operations")?.unwrap_or_default();
    let engine: Option<String> = keys.take(&mut written, "engine")?;
    if written.contains_key("worker") {
        if engine.is_some() {
            return Err(keys.wrong("engine", "the worker says it: expected none beside worker"));
        }
        if !operations.is_empty() {
            return Err(keys.wrong("operations", "the worker's binding has the bodies"));
        }
        let (config, replicas) = worker::bind(&keys, written)?;
        return Ok(StoreBinding { engine: Engine::Worker(config, replicas), operations });
    }
    let engine = match engine.as_deref() {
        None | Some("embedded") => Engine::Embedded(embedded::bind(&keys, written)?),
        Some("postgres") => Engine::Postgres(postgres::bind(&keys, written)?),
        Some("redis") => Engine::Redis(redis::bind(&keys, written)?),
        Some("cassandra") => Engine::Cassandra(cassandra::bind(&keys, written)?),
        Some(other) => {
            let expected = "expected \"embedded\", \"postgres\", \"redis\" or \"cassandra\"";
            return Err(keys.wrong("engine", format!("{expected}, found {other:?}")));
        }
    };
    Ok(StoreBinding { engine, operations })
}
