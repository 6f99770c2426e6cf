//! The binding keys of a store in PostgreSQL.

use std::collections::BTreeMap;
use std::time::Duration;

use mingle_store_postgres::{Migrate, ObjectMapping, PostgresConfig};
use serde::Deserialize;

use super::BindingError;
use super::keys::Keys;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    url: Option<String>,
    #[serde(default)]
    servers: BTreeMap<String, String>,
    #[serde(default)]
    links: BTreeMap<String, String>,
    schema: Option<String>,
    pool: Option<usize>,
    connect_timeout: Option<String>,
    statement_timeout: Option<String>,
    lock_timeout: Option<String>,
    keep_outcomes: Option<String>,
    migrate: Option<WrittenMigrate>,
    root_certificates: Option<String>,
    round_trip: Option<String>,
    #[serde(default)]
    objects: BTreeMap<String, ObjectMapping>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenMigrate {
    Auto,
    Refuse,
}

pub fn bind(keys: &Keys<'_>, written: toml::Table) -> Result<PostgresConfig, BindingError> {
    let written: Written = keys.all(written)?;
    let mut config = match (&written.url, written.servers.is_empty()) {
        (Some(url), true) => PostgresConfig::at(keys.expanded("url", url)?),
        (None, false) => PostgresConfig::at(""),
        (Some(_), false) => {
            return Err(
                keys.wrong("url", "expected either url, of one server, or servers, of several")
            );
        }
        (None, true) => {
            let message = "expected the address of a server, or servers = { name = address, … }";
            return Err(keys.wrong("url", message));
        }
    };
    config.servers = addresses(keys, "servers", &written.servers)?;
    config.links = addresses(keys, "links", &written.links)?;
    config.schema = written.schema;
    config.pool = written.pool.unwrap_or(config.pool);
    let durations: [(&str, &Option<String>, &mut Duration); 5] = [
        ("connect_timeout", &written.connect_timeout, &mut config.connect_timeout),
        ("statement_timeout", &written.statement_timeout, &mut config.statement_timeout),
        ("lock_timeout", &written.lock_timeout, &mut config.lock_timeout),
        ("keep_outcomes", &written.keep_outcomes, &mut config.keep_outcomes),
        ("round_trip", &written.round_trip, &mut config.round_trip),
    ];
    keys.durations(durations)?;
    if let Some(WrittenMigrate::Refuse) = written.migrate {
        config.migrate = Migrate::Refuse;
    }
    config.root_certificates =
        keys.certificates("root_certificates", written.root_certificates.as_deref())?;
    config.objects = written.objects;
    Ok(config)
}

/// Addresses of servers by name.
fn addresses(
    keys: &Keys<'_>,
    key: &str,
    written: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, BindingError> {
    let expanded = |(name, url): (&String, &String)| {
        keys.check_name(key, name)?;
        Ok((name.clone(), keys.expanded(&format!("{key}.{name}"), url)?))
    };
    written.iter().map(expanded).collect()
}
