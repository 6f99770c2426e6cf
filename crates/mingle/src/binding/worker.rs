//! What can be said of a store behind a worker.

use std::time::Duration;

use mingle_store_worker::WorkerConfig;
use serde::Deserialize;

use super::BindingError;
use super::keys::Keys;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    worker: String,
    token: Option<String>,
    root_certificates: Option<String>,
    connect_timeout: Option<String>,
    answer_timeout: Option<String>,
    round_trip: Option<String>,
    #[serde(default)]
    replicas: Vec<String>,
}

pub fn bind(
    keys: &Keys<'_>,
    written: toml::Table,
) -> Result<(WorkerConfig, Vec<String>), BindingError> {
    let written: Written = keys.all(written)?;
    let mut config = WorkerConfig::at(keys.expanded("worker", &written.worker)?);
    config.token = written.token.map(|token| keys.expanded("token", &token)).transpose()?;
    let durations: [(&str, &Option<String>, &mut Duration); 3] = [
        ("connect_timeout", &written.connect_timeout, &mut config.connect_timeout),
        ("answer_timeout", &written.answer_timeout, &mut config.answer_timeout),
        ("round_trip", &written.round_trip, &mut config.round_trip),
    ];
    keys.durations(durations)?;
    config.root_certificates =
        keys.file("root_certificates", written.root_certificates.as_deref())?;
    Ok((config, written.replicas))
}
