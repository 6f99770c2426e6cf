//! The binding keys of a store in Cassandra.

use std::collections::BTreeMap;
use std::time::Duration;

use mingle_store_cassandra::{
    CassandraConfig, Consistency, ObjectMapping, Outcomes, SerialConsistency,
};
use serde::Deserialize;

use super::BindingError;
use super::keys::Keys;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    nodes: Vec<String>,
    datacenters: Vec<String>,
    replicas: Option<Vec<String>>,
    #[serde(default)]
    addresses: BTreeMap<String, String>,
    keyspace: Option<String>,
    area: Option<String>,
    #[serde(default)]
    replication: BTreeMap<String, u32>,
    user: Option<String>,
    password: Option<String>,
    #[serde(default)]
    tls: bool,
    root_certificates: Option<String>,
    read_consistency: Option<String>,
    write_consistency: Option<String>,
    serial_consistency: Option<String>,
    outcomes: Option<String>,
    keep_outcomes: Option<String>,
    connect_timeout: Option<String>,
    answer_timeout: Option<String>,
    speculate_after: Option<String>,
    round_trip: Option<String>,
    #[serde(default)]
    objects: BTreeMap<String, ObjectMapping>,
}

/// The consistencies that reads and writes may have, by name.
const CONSISTENCIES: [(&str, Consistency); 9] = [
    ("one", Consistency::One),
    ("two", Consistency::Two),
    ("three", Consistency::Three),
    ("quorum", Consistency::Quorum),
    ("all", Consistency::All),
    ("local_one", Consistency::LocalOne),
    ("local_quorum", Consistency::LocalQuorum),
    ("each_quorum", Consistency::EachQuorum),
    ("any", Consistency::Any),
];

pub fn bind(keys: &Keys<'_>, written: toml::Table) -> Result<CassandraConfig, BindingError> {
    let written: Written = keys.all(written)?;
    let expanded = |node: &String| keys.expanded("nodes", node);
    let nodes: Vec<String> = written.nodes.iter().map(expanded).collect::<Result<_, _>>()?;
    let mut config = CassandraConfig::at(nodes, written.datacenters);
    keys.check_names("datacenters", config.datacenters.iter().map(String::as_str))?;
    let replicas = written.replicas.iter().flatten();
    keys.check_names("replicas", replicas.map(String::as_str))?;
    config.replicas = written.replicas;
    for (told, reached) in &written.addresses {
        let wrong = |expected: &str, found: &str| {
            keys.wrong("addresses", format!("expected {expected}, found {found:?}"))
        };
        let told = told.parse().map_err(|_| wrong("an IP address", told))?;
        let reached = reached.parse().map_err(|_| wrong("IP:PORT", reached))?;
        config.addresses.insert(told, reached);
    }
    config.keyspace = written.keyspace.unwrap_or(config.keyspace);
    config.area = written.area;
    config.replication = written.replication;
    config.tls = written.tls;
    config.root_certificates =
        keys.certificates("root_certificates", written.root_certificates.as_deref())?;
    config.credentials = match (written.user, written.password) {
        (Some(user), Some(password)) => {
            Some((keys.expanded("user", &user)?, keys.expanded("password", &password)?))
        }
        (None, None) => None,
        (Some(_), None) => return Err(keys.wrong("user", "expected a password too")),
        (None, Some(_)) => return Err(keys.wrong("password", "expected a user too")),
    };
    let reads = &CONSISTENCIES[..8];
    let read = ("read_consistency", &written.read_consistency);
    config.read_consistency = one_of(keys, read, reads)?.unwrap_or(config.read_consistency);
    let write = ("write_consistency", &written.write_consistency);
    config.write_consistency =
        one_of(keys, write, &CONSISTENCIES)?.unwrap_or(config.write_consistency);
    let serial =
        [("serial", SerialConsistency::Serial), ("local_serial", SerialConsistency::LocalSerial)];
    let written_serial = ("serial_consistency", &written.serial_consistency);
    config.serial_consistency =
        one_of(keys, written_serial, &serial)?.unwrap_or(config.serial_consistency);
    let outcomes = [("remembered", Outcomes::Remembered), ("decided", Outcomes::Decided)];
    let written_outcomes = ("outcomes", &written.outcomes);
    config.outcomes = one_of(keys, written_outcomes, &outcomes)?.unwrap_or_default();
    let durations: [(&str, &Option<String>, &mut Duration); 4] = [
        ("connect_timeout", &written.connect_timeout, &mut config.connect_timeout),
        ("answer_timeout", &written.answer_timeout, &mut config.answer_timeout),
        ("keep_outcomes", &written.keep_outcomes, &mut config.keep_outcomes),
        ("round_trip", &written.round_trip, &mut config.round_trip),
    ];
    keys.durations(durations)?;
    let speculate = written.speculate_after.as_deref();
    config.speculate_after =
        speculate.map(|text| keys.duration("speculate_after", text)).transpose()?;
    config.objects = written.objects;
    Ok(config)
}

/// Returns the meaning of a word; none if no word is given.
fn one_of<T: Copy>(
    keys: &Keys<'_>,
    (key, written): (&str, &Option<String>),
    known: &[(&str, T)],
) -> Result<Option<T>, BindingError> {
    let Some(written) = written else { return Ok(None) };
    let found = known.iter().find(|(name, _)| name == written).map(|(_, value)| *value);
    found.map(Some).ok_or_else(|| {
        let names: Vec<String> = known.iter().map(|(name, _)| format!("{name:?}")).collect();
        keys.wrong(key, format!("expected one of {}, found {written:?}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use crate::binding::{Binding, Engine};

    fn parse(more: &str) -> Result<Engine, String> {
        let text = format!(
            "[stores.feed]\nengine = \"cassandra\"\nnodes = [\"${{HOST}}:9042\"]\n\
             datacenters = [\"oslo\", \"rome\"]\n{more}"
        );
        let environment = |name: &str| (name == "HOST").then(|| "10.0.0.1".to_owned());
        let parsed = Binding::parse_in(&text, &environment).map_err(|error| error.to_string())?;
        Ok(parsed.stores["feed"].engine.clone())
    }

    #[test]
    fn settings_are_read_and_mistakes_are_named() {
        let engine = parse(
            "replicas = [\"north\", \"south\"]\nwrite_consistency = \"each_quorum\"\n\
             outcomes = \"decided\"\nanswer_timeout = \"3s\"\n\
             addresses = { \"10.0.0.1\" = \"127.0.0.1:9043\" }",
        );
        let Ok(engine @ Engine::Cassandra(_)) = engine else { panic!("{engine:?}") };
        assert_eq!(engine.replicas(), ["north", "south"]);
        let Engine::Cassandra(config) = engine else { unreachable!("it was matched") };
        assert_eq!(config.nodes, ["10.0.0.1:9042"]);
        assert_eq!(config.answer_timeout.as_secs(), 3);
        for (more, expected) in [
            ("read_consistency = \"any\"", "read_consistency: expected one of \"one\""),
            ("outcomes = \"guessed\"", "outcomes: expected one of \"remembered\", \"decided\""),
            ("user = \"me\"", "user: expected a password too"),
            ("addresses = { \"host\" = \"1.2.3.4:5\" }", "expected an IP address"),
            ("nonsense = 1", "nonsense"),
        ] {
            let refused = parse(more).expect_err("it makes no sense");
            assert!(refused.contains("stores.feed") && refused.contains(expected), "{refused}");
        }
    }
}
