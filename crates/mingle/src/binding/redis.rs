//! The binding keys of a store in Redis or Valkey.

use std::collections::BTreeMap;
use std::time::Duration;

use mingle_store_redis::{ObjectMapping, RedisConfig};
use serde::Deserialize;

use super::BindingError;
use super::keys::Keys;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    url: String,
    prefix: Option<String>,
    #[serde(default)]
    accept_loss: bool,
    #[serde(default)]
    known_durable: bool,
    connect_timeout: Option<String>,
    answer_timeout: Option<String>,
    keep_outcomes: Option<String>,
    round_trip: Option<String>,
    root_certificates: Option<String>,
    #[serde(default)]
    objects: BTreeMap<String, ObjectMapping>,
}

pub fn bind(keys: &Keys<'_>, written: toml::Table) -> Result<RedisConfig, BindingError> {
    let written: Written = keys.all(written)?;
    let mut config = RedisConfig::at(keys.expanded("url", &written.url)?);
    config.prefix = written.prefix;
    config.accept_loss = written.accept_loss;
    config.known_durable = written.known_durable;
    let durations: [(&str, &Option<String>, &mut Duration); 4] = [
        ("connect_timeout", &written.connect_timeout, &mut config.connect_timeout),
        ("answer_timeout", &written.answer_timeout, &mut config.answer_timeout),
        ("keep_outcomes", &written.keep_outcomes, &mut config.keep_outcomes),
        ("round_trip", &written.round_trip, &mut config.round_trip),
    ];
    keys.durations(durations)?;
    config.root_certificates =
        keys.certificates("root_certificates", written.root_certificates.as_deref())?;
    config.objects = written.objects;
    Ok(config)
}
