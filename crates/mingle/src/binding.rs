//! The binding: which engine each store is, in `mingle.toml` beside the program.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use mingle_runtime::Settings;
use mingle_store::wrap::distance::{Distance, parse_duration};
use serde::Deserialize;

/// What a binding says. Without one every store is embedded, with one replica and no distance.
///
/// # Examples
///
/// ```
/// use mingle::Binding;
///
/// let binding = Binding::parse("[stores.inboxes]\nengine = \"embedded\"\nreplicas = 3\ndistance = \"1ms\"").unwrap();
/// assert_eq!(binding.stores["inboxes"].replicas.len(), 3);
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
#[derive(Clone, Debug, PartialEq)]
pub struct StoreBinding {
    /// Names of its replicas.
    pub replicas: Vec<String>,
    /// What a round trip takes.
    pub distance: Distance,
    /// How long it takes until an update reaches the other replicas.
    pub delay: Distance,
    /// Bodies of declared operations.
    pub operations: BTreeMap<String, String>,
}

impl Default for StoreBinding {
    fn default() -> Self {
        Self {
            replicas: vec!["r1".into()],
            distance: Distance::default(),
            delay: Distance::default(),
            operations: BTreeMap::new(),
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
    stores: BTreeMap<String, WrittenStore>,
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStore {
    engine: Option<String>,
    replicas: Option<WrittenReplicas>,
    distance: Option<String>,
    delay: Option<String>,
    #[serde(default)]
    operations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenReplicas {
    Count(usize),
    Names(Vec<String>),
}

impl Binding {
    /// Reads a binding.
    ///
    /// # Errors
    ///
    /// What is wrong, and where.
    pub fn parse(text: &str) -> Result<Self, BindingError> {
        let written: Written =
            toml::from_str(text).map_err(|error| BindingError { message: error.to_string() })?;
        let settings = written.runtime.settings()?;
        let stores = written.stores.into_iter().map(|(name, store)| {
            let bound = bind(&name, store)?;
            Ok((name, bound))
        });
        Ok(Self { settings, stores: stores.collect::<Result<_, BindingError>>()? })
    }
}

impl WrittenRuntime {
    fn settings(&self) -> Result<Settings, BindingError> {
        let mut settings = Settings::default();
        for (key, text, setting) in [
            ("deadline", &self.deadline, &mut settings.deadline),
            ("help_after", &self.help_after, &mut settings.help_after),
            ("lease", &self.lease, &mut settings.lease),
            ("sweep_every", &self.sweep_every, &mut settings.sweep_every),
        ] {
            if let Some(text) = text {
                *setting = duration(&format!("runtime.{key}"), text)?;
            }
        }
        if settings.sweep_every.is_zero() {
            let message = "runtime.sweep_every: expected more than nothing".to_owned();
            return Err(BindingError { message });
        }
        if settings.lease < settings.sweep_every * 2 {
            let (lease, every) = (settings.lease, settings.sweep_every);
            return Err(BindingError {
                message: format!(
                    "runtime.lease: expected at least twice sweep_every, which is how often a process gives a sign of life, found {lease:?} and {every:?}"
                ),
            });
        }
        settings.steps_max = self.steps.unwrap_or(settings.steps_max);
        settings.memory_bytes_max = self.memory_bytes.unwrap_or(settings.memory_bytes_max);
        Ok(settings)
    }
}

fn bind(name: &str, written: WrittenStore) -> Result<StoreBinding, BindingError> {
    let engine = written.engine.as_deref().unwrap_or("embedded");
    if engine != "embedded" {
        let message = format!(
            "stores.{name}.engine: this version has the engine \"embedded\", found {engine:?}"
        );
        return Err(BindingError { message });
    }
    let mut bound = StoreBinding { operations: written.operations, ..StoreBinding::default() };
    match written.replicas {
        None => {}
        Some(WrittenReplicas::Names(names)) => bound.replicas = names,
        Some(WrittenReplicas::Count(count)) if count <= REPLICAS_MAX => {
            bound.replicas = (1..=count).map(|number| format!("r{number}")).collect();
        }
        Some(WrittenReplicas::Count(count)) => {
            let message =
                format!("stores.{name}.replicas: expected at most {REPLICAS_MAX}, found {count}");
            return Err(BindingError { message });
        }
    }
    if bound.replicas.is_empty() {
        return Err(BindingError {
            message: format!("stores.{name}.replicas: expected at least one"),
        });
    }
    if let Some(distance) = &written.distance {
        bound.distance = parse_distance(&format!("stores.{name}.distance"), distance)?;
    }
    if let Some(delay) = &written.delay {
        bound.delay = parse_distance(&format!("stores.{name}.delay"), delay)?;
    }
    Ok(bound)
}

/// A store has at most so many replicas.
const REPLICAS_MAX: usize = 64;

fn parse_distance(key: &str, text: &str) -> Result<Distance, BindingError> {
    text.parse().map_err(|error| BindingError { message: format!("{key}: {error}") })
}

fn duration(key: &str, text: &str) -> Result<Duration, BindingError> {
    parse_duration(text).map_err(|error| BindingError { message: format!("{key}: {error}") })
}
