//! The binding keys of a store in a cluster of `mingled`.

use std::collections::BTreeMap;
use std::time::Duration;

use mingle_store_mingled::MingledConfig;
use serde::Deserialize;

use super::BindingError;
use super::keys::Keys;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    address: Option<String>,
    #[serde(default)]
    servers: BTreeMap<String, String>,
    cluster: Option<String>,
    connect_timeout: Option<String>,
    answer_timeout: Option<String>,
    round_trip: Option<String>,
}

pub fn bind(keys: &Keys<'_>, written: toml::Table) -> Result<MingledConfig, BindingError> {
    let written: Written = keys.all(written)?;
    let mut config = match (&written.address, written.servers.is_empty()) {
        (Some(address), true) => MingledConfig::at(keys.expanded("address", address)?),
        (None, false) => {
            let servers = written.servers.iter();
            let servers = servers
                .map(|(name, address)| Ok((name, keys.expanded("servers", address)?)))
                .collect::<Result<Vec<_>, BindingError>>()?;
            MingledConfig::of(servers.into_iter().map(|(name, address)| (name.as_str(), address)))
        }
        (Some(_), false) => {
            let why = "expected either address, of one data center, or servers, of several";
            return Err(keys.wrong("address", why));
        }
        (None, true) => {
            let why = "expected the address of a data center, or servers = { d0 = address, … }";
            return Err(keys.wrong("address", why));
        }
    };
    let key = if written.address.is_some() { "address" } else { "servers" };
    config.check_address().map_err(|why| keys.wrong(key, why))?;
    if let Some(text) = &written.cluster {
        let text = keys.expanded("cluster", text)?;
        let number = u128::from_str_radix(&text, 16).map_err(|_| {
            let expected = "expected the cluster's number, up to 32 hexadecimal digits";
            keys.wrong("cluster", format!("{expected}, found {text:?}"))
        });
        config.cluster = Some(number?);
    }
    let durations: [(&str, &Option<String>, &mut Duration); 3] = [
        ("connect_timeout", &written.connect_timeout, &mut config.connect_timeout),
        ("answer_timeout", &written.answer_timeout, &mut config.answer_timeout),
        ("round_trip", &written.round_trip, &mut config.round_trip),
    ];
    keys.durations(durations)?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use crate::binding::{Binding, Engine};

    #[test]
    fn what_cannot_be_right_is_named_by_its_key() {
        let parse = |text: &str| {
            Binding::parse(&format!("[stores.bank]\nengine = \"mingled\"\n{text}"))
                .map_err(|error| error.to_string())
        };
        let good = "address = \"localhost:6398\"";
        let bound =
            parse(&format!("{good}\ncluster = \"5f\"\nanswer_timeout = \"3s\"")).expect("good");
        let Engine::Mingled(config) = &bound.stores["bank"].engine else { panic!("{bound:?}") };
        assert_eq!((&*config.address, config.cluster), ("localhost:6398", Some(0x5f)));
        assert_eq!(config.answer_timeout.as_secs(), 3);
        let several = parse("servers = { d1 = \"b:2\", d0 = \"a:1\" }").expect("good");
        let Engine::Mingled(config) = &several.stores["bank"].engine else { panic!("{several:?}") };
        let found: Vec<_> = config.addresses().collect();
        assert_eq!(found, [(Some("d0".into()), "a:1"), (Some("d1".into()), "b:2")]);
        assert_eq!(several.stores["bank"].engine.replicas(), ["d0", "d1"]);
        assert!(bound.stores["bank"].engine.replicas().is_empty(), "one data center is one copy");
        for (text, expected) in [
            ("", "stores.bank.address: expected the address of a data center, or servers = {"),
            ("servers = { d0 = \"oslo\" }", "stores.bank.servers: expected HOST:PORT"),
            ("address = \"a:1\"\nservers = { d0 = \"a:1\" }", "expected either address, of one"),
            ("address = \"oslo\"", "stores.bank.address: expected HOST:PORT"),
            ("address = \"oslo:0\"", "found \"oslo:0\""),
            ("address = \"a:1\"\ncluster = \"xyz\"", "stores.bank.cluster: expected the cluster's"),
            ("address = \"a:1\"\nround_trip = \"far\"", "stores.bank.round_trip: "),
            ("address = \"a:1\"\nurl = \"x\"", "stores.bank: unknown field `url`"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(expected), "{error}");
        }
    }
}
