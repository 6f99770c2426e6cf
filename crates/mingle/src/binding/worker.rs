//! The binding keys of a store behind a worker.

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
    config.check_url().map_err(|why| keys.wrong("worker", why))?;
    config.token = written.token.map(|token| keys.expanded("token", &token)).transpose()?;
    if config.token.as_ref().is_some_and(|token| !token.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        return Err(keys.wrong("token", "expected visible ASCII characters"));
    }
    keys.check_names("replicas", written.replicas.iter().map(String::as_str))?;
    let durations: [(&str, &Option<String>, &mut Duration); 3] = [
        ("connect_timeout", &written.connect_timeout, &mut config.connect_timeout),
        ("answer_timeout", &written.answer_timeout, &mut config.answer_timeout),
        ("round_trip", &written.round_trip, &mut config.round_trip),
    ];
    keys.durations(durations)?;
    config.root_certificates =
        keys.certificates("root_certificates", written.root_certificates.as_deref())?;
    Ok((config, written.replicas))
}

#[cfg(test)]
mod tests {
    use crate::binding::Binding;

    #[test]
    fn what_cannot_be_right_is_named_by_its_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, "no certificate").expect("it is written");
        let file = file.display();
        let good = "worker = \"https://bank.example.com:8443\"";
        let check = |text: &str| {
            let parsed = Binding::parse(&format!("[stores.bank]\n{text}"));
            parsed.map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(check(&format!("{good}\ntoken = \"a-b\"\nreplicas = [\"oslo\"]")), Ok(()));
        for url in [
            "bank.example.com",
            "ftp://bank",
            "http://",
            "http://:80",
            "http://bank:99999",
            "http://bank:0",
            "http://bank:",
            "http://me@bank",
            "http://bank/path",
            "http://bank?x",
            "http://bank#x",
            "http://b ank",
        ] {
            let error = check(&format!("worker = {url:?}")).expect_err(url);
            assert!(error.starts_with("stores.bank.worker: expected http://HOST:PORT"), "{error}");
            assert!(error.contains(url), "{error}");
        }
        for (more, expected) in [
            ("token = \"a b\"", "stores.bank.token: expected visible"),
            ("replicas = [\"a\", \"a\"]", "stores.bank.replicas: a is there twice"),
            ("replicas = [\"\"]", "stores.bank.replicas: expected a name"),
            ("root_certificates = \"none.pem\"", "stores.bank.root_certificates: cannot read"),
            (&format!("root_certificates = \"{file}\""), "has no certificate in PEM"),
            ("url = \"x\"", "stores.bank: unknown field `url`"),
        ] {
            let error = check(&format!("{good}\n{more}")).expect_err(more);
            assert!(error.contains(expected), "{error}");
        }
    }
}
