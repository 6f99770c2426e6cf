//! What can be said of a store that is kept in this process.

use mingle_store::wrap::distance::Distance;
use serde::Deserialize;

use super::BindingError;
use super::keys::Keys;

/// A store has at most so many replicas.
const REPLICAS_MAX: usize = 64;

/// A store of the embedded engine.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddedBinding {
    /// Names of its replicas.
    pub replicas: Vec<String>,
    /// What a round trip takes.
    pub distance: Distance,
    /// How long it takes until an update reaches the other replicas.
    pub delay: Distance,
}

impl Default for EmbeddedBinding {
    fn default() -> Self {
        Self {
            replicas: vec!["r1".into()],
            distance: Distance::default(),
            delay: Distance::default(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    replicas: Option<WrittenReplicas>,
    distance: Option<String>,
    delay: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "replicas: expected a number, or a list of names")]
enum WrittenReplicas {
    Count(usize),
    Names(Vec<String>),
}

pub fn bind(keys: &Keys<'_>, written: toml::Table) -> Result<EmbeddedBinding, BindingError> {
    let written: Written = keys.all(written)?;
    let mut bound = EmbeddedBinding::default();
    match written.replicas {
        None => {}
        Some(WrittenReplicas::Names(names)) => bound.replicas = names,
        Some(WrittenReplicas::Count(count)) if count <= REPLICAS_MAX => {
            bound.replicas = (1..=count).map(|number| format!("r{number}")).collect();
        }
        Some(WrittenReplicas::Count(count)) => {
            let message = format!("expected at most {REPLICAS_MAX}, found {count}");
            return Err(keys.wrong("replicas", message));
        }
    }
    if bound.replicas.is_empty() {
        return Err(keys.wrong("replicas", "expected at least one"));
    }
    if let Some(distance) = &written.distance {
        bound.distance = keys.distance("distance", distance)?;
    }
    if let Some(delay) = &written.delay {
        bound.delay = keys.distance("delay", delay)?;
    }
    Ok(bound)
}
