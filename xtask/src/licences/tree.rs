//! The dependencies of the workspace, as `cargo tree` lists them.

use std::collections::BTreeSet;

use crate::run::{cargo, output};

/// A package from outside the workspace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence expression from its manifest; empty if there is none.
    pub licence: String,
    /// The address of its sources; empty if its manifest gives none.
    pub repository: String,
}

/// Runs `cargo tree` with these arguments and returns the packages from outside the workspace.
///
/// # Errors
///
/// If cargo fails.
pub fn packages(args: &[&str]) -> Result<BTreeSet<Package>, String> {
    let fixed = ["tree", "--locked", "--prefix", "none", "--format", "{p}|{l}|{r}"];
    let text = output(cargo(&fixed).args(args))?;
    Ok(text.lines().filter_map(package).collect())
}

/// Parses `name v1.2.3 (proc-macro)|MIT|https://… (*)`; none for packages of the workspace.
fn package(line: &str) -> Option<Package> {
    let line = line.strip_suffix(" (*)").unwrap_or(line);
    let mut parts = line.splitn(3, '|');
    let (id, licence) = (parts.next()?, parts.next()?);
    let mut words = id.split_whitespace();
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    let is_ours = words.any(|word| word.starts_with('(') && word != "(proc-macro)");
    let package = Package {
        name: name.into(),
        version: version.into(),
        licence: licence.trim().into(),
        repository: parts.next().unwrap_or_default().trim().into(),
    };
    (!is_ours).then_some(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let read = |line| package(line).map(|it| (it.name, it.version, it.licence, it.repository));
        let expected =
            ("syn".into(), "3.0.9".into(), "(MIT) AND ISC".into(), "https://a.example".into());
        assert_eq!(
            read("syn v3.0.9 (proc-macro)|(MIT) AND ISC|https://a.example (*)"),
            Some(expected)
        );
        let expected = ("wasi".into(), "0.11.1+snapshot".into(), String::new(), String::new());
        assert_eq!(read("wasi v0.11.1+snapshot||"), Some(expected));
        assert_eq!(read("mingle v0.1.0 (/srv/mingle)|MIT|"), None);
        assert_eq!(read(""), None);
    }
}
