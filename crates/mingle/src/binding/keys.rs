//! Reading keys, so that an error names the path of the wrong key.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use mingle_store::wrap::distance::{Distance, parse_duration};
use serde::de::DeserializeOwned;

use super::BindingError;

/// The largest length of a name, in bytes.
const NAME_BYTES_MAX: usize = 63;

/// The first characters of a certificate in PEM.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// The keys of one table.
pub struct Keys<'a> {
    /// The table's path, such as `stores.accounts`.
    pub path: String,
    /// Looks up variables of the environment.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
}

impl Keys<'_> {
    /// Creates the error for this key of the table.
    pub fn wrong(&self, key: &str, message: impl fmt::Display) -> BindingError {
        BindingError { message: format!("{}.{key}: {message}", self.path) }
    }

    /// Takes a key out of the table, if it is there.
    pub fn take<T: DeserializeOwned>(
        &self,
        table: &mut toml::Table,
        key: &str,
    ) -> Result<Option<T>, BindingError> {
        let value = table.remove(key).map(toml::Value::try_into);
        value.transpose().map_err(|error| self.wrong(key, error.message().trim()))
    }

    /// The whole table, of which no key may be unknown.
    pub fn all<T: DeserializeOwned>(&self, table: toml::Table) -> Result<T, BindingError> {
        table.try_into().map_err(|error| BindingError {
            message: format!("{}: {}", self.path, error.message().trim()),
        })
    }

    /// A distance such as `85ms±10ms`.
    pub fn distance(&self, key: &str, text: &str) -> Result<Distance, BindingError> {
        text.parse().map_err(|error| self.wrong(key, error))
    }

    /// A duration such as `10s`.
    pub fn duration(&self, key: &str, text: &str) -> Result<Duration, BindingError> {
        parse_duration(text).map_err(|error| self.wrong(key, error))
    }

    /// Durations by key, where they are given.
    pub fn durations<'t>(
        &self,
        written: impl IntoIterator<Item = (&'t str, &'t Option<String>, &'t mut Duration)>,
    ) -> Result<(), BindingError> {
        for (key, text, setting) in written {
            if let Some(text) = text {
                *setting = self.duration(key, text)?;
            }
        }
        Ok(())
    }

    /// A name of a replica, a server or a data center: letters, digits, `_`, `-` and `.`.
    pub fn check_name(&self, key: &str, name: &str) -> Result<(), BindingError> {
        let allowed = |found: char| found.is_alphanumeric() || matches!(found, '_' | '-' | '.');
        let is_good = name.chars().next().is_some_and(char::is_alphanumeric)
            && name.chars().all(allowed)
            && name.len() <= NAME_BYTES_MAX;
        if is_good {
            return Ok(());
        }
        let message = format!(
            "expected a name of at most {NAME_BYTES_MAX} letters, digits, _, - and ., found {name:?}"
        );
        Err(self.wrong(key, message))
    }

    /// Checks that all names are valid and distinct.
    pub fn check_names<'n>(
        &self,
        key: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<(), BindingError> {
        let mut known = BTreeSet::new();
        for name in names {
            self.check_name(key, name)?;
            if !known.insert(name) {
                return Err(self.wrong(key, format!("{name} is there twice")));
            }
        }
        Ok(())
    }

    /// Certificates in a file, if one is given.
    pub fn certificates(
        &self,
        key: &str,
        name: Option<&str>,
    ) -> Result<Option<Vec<u8>>, BindingError> {
        let read = self.file(key, name)?;
        let is_pem = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(CERTIFICATE);
        match (&read, name) {
            (Some(bytes), Some(name)) if !is_pem(bytes) => {
                Err(self.wrong(key, format!("{name} has no certificate in PEM")))
            }
            _ => Ok(read),
        }
    }

    /// Returns the content of the file of this name, if one is given.
    pub fn file(&self, key: &str, name: Option<&str>) -> Result<Option<Vec<u8>>, BindingError> {
        let Some(name) = name else { return Ok(None) };
        let read = std::fs::read(self.expanded(key, name)?);
        read.map(Some).map_err(|error| self.wrong(key, format!("cannot read {name}: {error}")))
    }

    /// Replaces each `${NAME}` in a text by the variable of the environment, so that secrets need not
    /// stand in files.
    pub fn expanded(&self, key: &str, text: &str) -> Result<String, BindingError> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, after)) = after.split_once('}') else {
                return Err(self.wrong(key, "expected } after ${"));
            };
            let value = (self.environment)(name).ok_or_else(|| {
                self.wrong(key, format!("the environment has no variable {name:?}"))
            })?;
            expanded.push_str(before);
            expanded.push_str(&value);
            rest = after;
        }
        Ok(expanded + rest)
    }
}
