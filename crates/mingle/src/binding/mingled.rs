//! The binding keys of a store in a cluster of `mingled`.

use std::collections::BTreeMap;
use std::time::Duration;

use mingle_store_mingled::{Credentials, Identity, MingledConfig, Password, TlsConfig};
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
    user: Option<String>,
    password: Option<String>,
    password_file: Option<String>,
    #[serde(default)]
    tls: bool,
    root_certificates: Option<String>,
    server_name: Option<String>,
    client_certificate: Option<String>,
    client_key: Option<String>,
    #[serde(default)]
    plain_text: bool,
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
    config.plain_text = written.plain_text;
    config.credentials = credentials(keys, &written)?;
    config.tls = tls(keys, &written)?;
    config.check().map_err(|wrong| keys.wrong(wrong.key, wrong.reason))?;
    Ok(config)
}

/// Returns the user and the password, if they are given.
fn credentials(keys: &Keys<'_>, written: &Written) -> Result<Option<Credentials>, BindingError> {
    let password = match (&written.password, &written.password_file) {
        (None, None) => None,
        (Some(text), None) => Some(Password::Text(keys.expanded("password", text)?)),
        (None, Some(file)) => Some(Password::File(keys.expanded("password_file", file)?.into())),
        (Some(_), Some(_)) => {
            return Err(keys.wrong("password", "expected either password or password_file"));
        }
    };
    match (&written.user, password) {
        (None, None) => Ok(None),
        (Some(user), Some(password)) => {
            Ok(Some(Credentials::new(keys.expanded("user", user)?, password)))
        }
        (Some(_), None) => Err(keys.wrong("user", "expected a password or password_file too")),
        (None, Some(_)) => Err(keys.wrong("password", "expected a user too")),
    }
}

/// Returns the settings of TLS, if it is on.
fn tls(keys: &Keys<'_>, written: &Written) -> Result<Option<TlsConfig>, BindingError> {
    if !written.tls {
        let of_tls = [
            ("root_certificates", &written.root_certificates),
            ("server_name", &written.server_name),
            ("client_certificate", &written.client_certificate),
            ("client_key", &written.client_key),
        ];
        return match of_tls.iter().find(|(_, value)| value.is_some()) {
            Some((key, _)) => Err(keys.wrong(key, "expected tls = true too")),
            None => Ok(None),
        };
    }
    if written.plain_text {
        return Err(keys.wrong("plain_text", "expected either tls or plain_text"));
    }
    let root_certificates =
        keys.certificates("root_certificates", written.root_certificates.as_deref())?;
    let name = written.server_name.as_deref();
    let server_name = name.map(|name| keys.expanded("server_name", name)).transpose()?;
    let certificate =
        keys.certificates("client_certificate", written.client_certificate.as_deref())?;
    let identity = match (certificate, keys.file("client_key", written.client_key.as_deref())?) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
        (Some(_), None) => {
            return Err(keys.wrong("client_certificate", "expected a client_key too"));
        }
        (None, Some(_)) => {
            return Err(keys.wrong("client_key", "expected a client_certificate too"));
        }
    };
    Ok(Some(TlsConfig { root_certificates, server_name, identity }))
}

#[cfg(test)]
mod tests {
    use mingle_store_mingled::{Credentials, Password};

    use crate::binding::{Binding, Engine};

    fn parse(text: &str) -> Result<Binding, String> {
        let text = format!("[stores.bank]\nengine = \"mingled\"\n{text}");
        Binding::parse(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_binding_says_where_the_data_centers_are_and_as_which_user() {
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
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("password");
        std::fs::write(&file, "secret\n").expect("room");
        let guarded = format!(
            "address = \"a:1\"\ntls = true\nserver_name = \"mingled\"\nuser = \"me\"\npassword_file = {file:?}"
        );
        let guarded = parse(&guarded).expect("good");
        let Engine::Mingled(config) = &guarded.stores["bank"].engine else { panic!("{guarded:?}") };
        let tls = config.tls.as_ref().expect("it is on");
        assert_eq!(tls.server_name.as_deref(), Some("mingled"));
        let credentials = config.credentials.as_ref().expect("there is a user");
        assert_eq!(credentials, &Credentials::new("me", Password::File(file)));
        parse("address = \"a:1\"\nuser = \"me\"\npassword = \"x\"\nplain_text = true")
            .expect("good");
    }

    #[test]
    fn what_cannot_be_right_is_named_by_its_key() {
        for (text, expected) in [
            ("", "stores.bank.address: expected the address of a data center, or servers = {"),
            ("servers = { d0 = \"oslo\" }", "stores.bank.servers: expected HOST:PORT"),
            ("address = \"a:1\"\nservers = { d0 = \"a:1\" }", "expected either address, of one"),
            ("address = \"oslo\"", "stores.bank.address: expected HOST:PORT"),
            ("address = \"oslo:0\"", "found \"oslo:0\""),
            ("address = \"a:1\"\ncluster = \"xyz\"", "stores.bank.cluster: expected the cluster's"),
            ("address = \"a:1\"\nround_trip = \"far\"", "stores.bank.round_trip: "),
            ("address = \"a:1\"\nurl = \"x\"", "stores.bank: unknown field `url`"),
            ("address = \"a:1\"\nuser = \"me\"", "stores.bank.user: expected a password or"),
            ("address = \"a:1\"\npassword = \"x\"", "stores.bank.password: expected a user too"),
            (
                "address = \"a:1\"\npassword = \"x\"\npassword_file = \"f\"",
                "password: expected either",
            ),
            (
                "address = \"localhost:1\"\nuser = \"me\"\npassword_file = \"/none/such\"",
                "stores.bank.password_file: cannot read /none/such: ",
            ),
            (
                "address = \"a:1\"\nuser = \"\"\npassword = \"x\"",
                "bank.user: expected a name of 1 to",
            ),
            (
                "address = \"a:1\"\nuser = \"me\"\npassword = \"x\"",
                "stores.bank.tls: the password would cross the network to a:1 as it is",
            ),
            ("address = \"a:1\"\nserver_name = \"b\"", "bank.server_name: expected tls = true too"),
            (
                "address = \"a:1\"\ntls = true\nplain_text = true",
                "expected either tls or plain_text",
            ),
            (
                "address = \"a:1\"\ntls = true\nserver_name = \"a b\"",
                "bank.server_name: expected a name",
            ),
            (
                "address = \"a:1\"\ntls = true\nroot_certificates = \"/none/such\"",
                "stores.bank.root_certificates: cannot read /none/such: ",
            ),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(expected), "{error}");
        }
    }
}
