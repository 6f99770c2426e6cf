//! The binding: which engine each store is, in `mingle.toml` beside the program.
//!
//! - `embedded`, `postgres`, `redis`, `cassandra`, `mingled`, `worker`: the keys of a store of each engine, or
//!   of a store behind a worker; each is a feature of this crate;
//! - `keys`: reading keys; an error names the key and its value.

#[cfg(feature = "cassandra")]
mod cassandra;
#[cfg(feature = "embedded")]
mod embedded;
#[cfg_attr(not(all(feature = "cassandra", feature = "embedded")), allow(dead_code))]
mod keys;
#[cfg(feature = "mingled")]
mod mingled;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "worker")]
mod worker;

use std::collections::BTreeMap;
use std::fmt;

use mingle_runtime::Settings;
#[cfg(feature = "cassandra")]
use mingle_store_cassandra::CassandraConfig;
#[cfg(feature = "mingled")]
use mingle_store_mingled::MingledConfig;
#[cfg(feature = "postgres")]
use mingle_store_postgres::PostgresConfig;
#[cfg(feature = "redis")]
use mingle_store_redis::RedisConfig;
#[cfg(feature = "worker")]
use mingle_store_worker::WorkerConfig;
use serde::Deserialize;

#[cfg(feature = "embedded")]
pub use embedded::EmbeddedBinding;
#[cfg(feature = "embedded")]
pub use mingle_store_embedded::ConflictPairs;

use keys::Keys;

/// The content of a binding. Without one every store is embedded, with one replica and no distance.
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
    /// The bindings of the stores, by the store's name.
    pub stores: BTreeMap<String, StoreBinding>,
}

/// The part of a binding for one store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreBinding {
    /// The engine that keeps its data.
    pub engine: Engine,
    /// Bodies of declared operations.
    pub operations: BTreeMap<String, String>,
}

/// The engine that keeps a store's data, and its connection. Each engine is a feature of this crate.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Engine {
    /// No engine: nothing is bound, and this build has no embedded engine. Opening refuses it.
    Unbound,
    /// This process.
    #[cfg(feature = "embedded")]
    Embedded(EmbeddedBinding),
    /// A PostgreSQL server, or several that replicate to each other.
    #[cfg(feature = "postgres")]
    Postgres(PostgresConfig),
    /// A Redis or Valkey server.
    #[cfg(feature = "redis")]
    Redis(RedisConfig),
    /// A cluster of Cassandra.
    #[cfg(feature = "cassandra")]
    Cassandra(CassandraConfig),
    /// A data center of a cluster of `mingled`. Stores with the same binding are one engine.
    #[cfg(feature = "mingled")]
    Mingled(MingledConfig),
    /// A worker beside the store, which has a binding of its own; and the names of the store's
    /// replicas, if sessions are to stay at one replica.
    #[cfg(feature = "worker")]
    Worker(WorkerConfig, Vec<String>),
}

impl Default for Engine {
    #[cfg(feature = "embedded")]
    fn default() -> Self {
        Self::Embedded(EmbeddedBinding::default())
    }

    #[cfg(not(feature = "embedded"))]
    fn default() -> Self {
        Self::Unbound
    }
}

impl Engine {
    /// Names of the replicas at which a session can stay.
    pub fn replicas(&self) -> Vec<String> {
        match self {
            Self::Unbound => Vec::new(),
            #[cfg(feature = "embedded")]
            Self::Embedded(embedded) => embedded.places(),
            #[cfg(feature = "postgres")]
            Self::Postgres(config) => config.servers.keys().cloned().collect(),
            #[cfg(feature = "cassandra")]
            Self::Cassandra(cassandra) => cassandra.replicas().to_vec(),
            #[cfg(feature = "worker")]
            Self::Worker(_, replicas) => replicas.clone(),
            #[cfg(feature = "redis")]
            Self::Redis(_) => Vec::new(),
            #[cfg(feature = "mingled")]
            Self::Mingled(config) => config.servers.keys().cloned().collect(),
        }
    }

    /// The engine's name in a binding; `worker` for a store behind a worker.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unbound => "none",
            #[cfg(feature = "embedded")]
            Self::Embedded(_) => "embedded",
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => "postgres",
            #[cfg(feature = "redis")]
            Self::Redis(_) => "redis",
            #[cfg(feature = "cassandra")]
            Self::Cassandra(_) => "cassandra",
            #[cfg(feature = "mingled")]
            Self::Mingled(_) => "mingled",
            #[cfg(feature = "worker")]
            Self::Worker(..) => "worker",
        }
    }

    /// True if this process keeps the data.
    pub fn is_embedded(&self) -> bool {
        match self {
            #[cfg(feature = "embedded")]
            Self::Embedded(_) => true,
            _ => false,
        }
    }

    /// True if the store shares the engine of another store, which must be opened first.
    pub(crate) fn lives_with_another(&self) -> bool {
        match self {
            #[cfg(feature = "embedded")]
            Self::Embedded(embedded) => embedded.with.is_some(),
            _ => false,
        }
    }
}

/// An error in a binding.
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
    /// A [`BindingError`] that says which key is wrong, and why.
    pub fn parse(text: &str) -> Result<Self, BindingError> {
        Self::parse_in(text, &|name| std::env::var(name).ok())
    }

    /// As [`Binding::parse`], with an environment that the caller supplies.
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
        #[cfg_attr(not(feature = "embedded"), allow(unused_mut))]
        let mut stores = stores.collect::<Result<_, BindingError>>()?;
        #[cfg(feature = "embedded")]
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

// Without any engine there is nothing to bind.
#[cfg_attr(
    not(any(
        feature = "cassandra",
        feature = "embedded",
        feature = "mingled",
        feature = "postgres",
        feature = "redis"
    )),
    allow(unreachable_code, unused_variables)
)]
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
        return Ok(StoreBinding { engine: bind_worker(&keys, written)?, operations });
    }
    check_renamed(&keys, engine.as_deref(), &written)?;
    let engine = match engine.as_deref() {
        #[cfg(feature = "embedded")]
        None | Some("embedded") => Engine::Embedded(embedded::bind(&keys, written)?),
        #[cfg(feature = "postgres")]
        Some("postgres") => Engine::Postgres(postgres::bind(&keys, written)?),
        #[cfg(feature = "redis")]
        Some("redis") => Engine::Redis(redis::bind(&keys, written)?),
        #[cfg(feature = "cassandra")]
        Some("cassandra") => Engine::Cassandra(cassandra::bind(&keys, written)?),
        #[cfg(feature = "mingled")]
        Some("mingled") => Engine::Mingled(mingled::bind(&keys, written)?),
        other => return Err(keys.wrong("engine", no_engine(other.unwrap_or("embedded")))),
    };
    Ok(StoreBinding { engine, operations })
}

/// Refuses `renamed_from` outside a folder: only there the binding renames a store; for other engines
/// it says directly where the data is.
fn check_renamed(
    keys: &Keys<'_>,
    engine: Option<&str>,
    written: &toml::Table,
) -> Result<(), BindingError> {
    let from = written.get("renamed_from").and_then(toml::Value::as_str).unwrap_or("NAME");
    let instead = match engine {
        Some("postgres") => format!("schema = \"mingle_{from}\""),
        Some("redis") => format!("prefix = \"mingle:{from}:\""),
        Some("cassandra") => format!("area = \"{from}\""),
        _ => return Ok(()),
    };
    if !written.contains_key("renamed_from") {
        return Ok(());
    }
    Err(keys.wrong("renamed_from", format!("the data stay where they are: write `{instead}`")))
}

/// Explains why an engine's name cannot be used: it is unknown, or this build lacks the engine.
fn no_engine(name: &str) -> String {
    const ENGINES: [&str; 5] = ["embedded", "postgres", "redis", "cassandra", "mingled"];
    if ENGINES.contains(&name) {
        return lacking(name);
    }
    let expected = "expected \"embedded\", \"postgres\", \"redis\", \"cassandra\" or \"mingled\"";
    format!("{expected}, found {name:?}")
}

/// Names the feature that adds an engine which this build lacks.
fn lacking(name: &str) -> String {
    format!("this build of Mingle lacks {name}: build it with the feature {name:?}")
}

#[cfg(feature = "worker")]
fn bind_worker(keys: &Keys<'_>, written: toml::Table) -> Result<Engine, BindingError> {
    let (config, replicas) = worker::bind(keys, written)?;
    Ok(Engine::Worker(config, replicas))
}

#[cfg(not(feature = "worker"))]
fn bind_worker(keys: &Keys<'_>, _: toml::Table) -> Result<Engine, BindingError> {
    Err(keys.wrong("worker", lacking("worker")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_of_a_server_is_not_renamed_but_told_where_its_data_are() {
        for (engine, expected) in [
            ("postgres", "schema = \"mingle_old\""),
            ("redis", "prefix = \"mingle:old:\""),
            ("cassandra", "area = \"old\""),
        ] {
            let table = toml::Table::from_iter([("renamed_from".into(), "old".into())]);
            let keys = Keys { path: "stores.new".into(), environment: &|_| None };
            let error = check_renamed(&keys, Some(engine), &table).unwrap_err().to_string();
            assert!(
                error.contains("stores.new.renamed_from") && error.contains(expected),
                "{error}"
            );
            assert!(check_renamed(&keys, Some(engine), &toml::Table::new()).is_ok());
        }
    }

    #[test]
    fn an_engine_that_is_none_or_that_this_build_lacks_is_named() {
        assert!(no_engine("oracle").ends_with("or \"mingled\", found \"oracle\""));
        let lacking = "this build of Mingle lacks redis: build it with the feature \"redis\"";
        assert_eq!(no_engine("redis"), lacking);
    }
}
