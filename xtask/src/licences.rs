//! Licences and duplicate versions of the workspace's dependencies.
//!
//! The list `xtask/licences.txt` gives the licences that a dependency may have, and the
//! dependencies that exist in several versions, with the reason. The list may only shrink: an entry
//! that the workspace does not need is an error too.

pub mod spdx;
pub mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::run::{Outcome, root};
use spdx::Expression;
use tree::Package;

const LIST: &str = "xtask/licences.txt";

/// Every dependency, on every platform and with all features.
const EVERYTHING: [&str; 6] =
    ["--workspace", "--all-features", "--target", "all", "--edges", "normal,build,dev"];

/// Checks licences and duplicates.
///
/// # Errors
///
/// If a dependency has a licence that is not allowed, if a duplicate is not listed, or if the list
/// has an entry that is not needed any more.
pub fn licences() -> Outcome {
    let text = fs::read_to_string(root().join(LIST)).map_err(|error| format!("{LIST}: {error}"))?;
    let list = List::parse(&text)?;
    let packages = tree::packages(&EVERYTHING)?;
    if packages.is_empty() {
        return Err("`cargo tree` lists no dependency".into());
    }
    let mut problems = list.check_licences(&packages);
    problems.extend(list.check_duplicates(&packages));
    if problems.is_empty() {
        let several = list.duplicates.len();
        let (count, allowed) = (packages.len(), list.allowed.len());
        eprintln!(
            "{count} packages under {allowed} allowed licences; {several} in several versions"
        );
        return Ok(());
    }
    for problem in &problems {
        eprintln!("{problem}");
    }
    Err(format!("{} problems with licences or duplicate versions", problems.len()))
}

/// The content of `xtask/licences.txt`.
#[derive(Debug, Default)]
struct List {
    allowed: BTreeSet<String>,
    /// The versions of each name, each as its [`compatible`] part.
    duplicates: BTreeMap<String, BTreeSet<String>>,
}

impl List {
    fn parse(text: &str) -> Result<Self, String> {
        let mut list = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            list.read(line).map_err(|why| format!("{LIST}:{}: {why}", index + 1))?;
        }
        Ok(list)
    }

    /// Reads `allow MIT` or `several syn 2, 3: REASON`.
    fn read(&mut self, line: &str) -> Result<(), String> {
        let shape = "expected `allow LICENCE` or `several NAME VERSION, VERSION: REASON`";
        let (word, rest) = line.split_once(' ').ok_or(shape)?;
        let is_new = match word {
            "allow" => self.allowed.insert(rest.trim().into()),
            "several" => {
                let (rest, reason) = rest.split_once(':').ok_or("expected a colon and a reason")?;
                let (name, versions) = rest.trim().split_once(' ').ok_or(shape)?;
                if reason.trim().is_empty() {
                    return Err(format!("expected why `{name}` is there in several versions"));
                }
                let versions = versions.split(',').map(|version| version.trim().into());
                self.duplicates.insert(name.into(), versions.collect()).is_none()
            }
            _ => return Err(shape.into()),
        };
        is_new.then_some(()).ok_or_else(|| format!("listed twice: {line}"))
    }

    fn check_licences(&self, packages: &BTreeSet<Package>) -> Vec<String> {
        let (mut problems, mut named) = (Vec::new(), BTreeSet::new());
        for Package { name, version, licence, .. } in packages {
            if licence.is_empty() {
                problems.push(format!("{name} {version}: its manifest states no licence"));
                continue;
            }
            match Expression::parse(licence) {
                Err(why) => problems.push(format!("{name} {version}: `{licence}`: {why}")),
                Ok(expression) => {
                    named.extend(expression.names().into_iter().map(str::to_owned));
                    if !expression.allows(&self.allowed) {
                        problems.push(format!(
                            "{name} {version}: `{licence}` cannot be satisfied by the licences that \
                             {LIST} allows: use another package, or allow it there"
                        ));
                    }
                }
            }
        }
        let stale = self.allowed.difference(&named);
        problems
            .extend(stale.map(|name| format!("{LIST}: no dependency has `{name}`: take it out")));
        problems
    }

    fn check_duplicates(&self, packages: &BTreeSet<Package>) -> Vec<String> {
        let found = duplicates(packages);
        let mut problems = Vec::new();
        for (name, versions) in &found {
            let none = BTreeSet::new();
            let listed = self.duplicates.get(name).unwrap_or(&none);
            let new = versions.difference(listed).count() > 0;
            if new {
                problems.push(format!(
                    "{name}: there in the versions {}, and {LIST} has {}: bring them together (`cargo tree \
                     --invert {name}@VERSION` says who needs which), or list them with the reason",
                    joined(versions),
                    if listed.is_empty() { "none".into() } else { joined(listed) },
                ));
            }
        }
        for (name, versions) in &self.duplicates {
            let there = found.get(name).cloned().unwrap_or_default();
            let gone: BTreeSet<String> = versions.difference(&there).cloned().collect();
            if !gone.is_empty() {
                let gone = joined(&gone);
                problems.push(format!(
                    "{LIST}: `{name}` is not there as {gone} beside others: take it out"
                ));
            }
        }
        problems
    }
}

fn joined(versions: &BTreeSet<String>) -> String {
    versions.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Returns the packages that exist in several versions.
fn duplicates(packages: &BTreeSet<Package>) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages {
        found.entry(package.name.clone()).or_default().insert(compatible(&package.version));
    }
    found.retain(|_, versions| versions.len() > 1);
    found
}

/// Returns the part of a version up to the first number that is not zero. Cargo keeps one of the
/// versions that agree in this part.
fn compatible(version: &str) -> String {
    let mut parts = Vec::new();
    for part in version.split(['.', '-', '+']).take(3) {
        parts.push(part);
        if part != "0" {
            break;
        }
    }
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, licence: &str) -> Package {
        let [name, version, licence] = [name, version, licence].map(str::to_owned);
        Package { name, version, licence, repository: String::new() }
    }

    #[test]
    fn licences_are_held_against_the_list() {
        let list = List::parse("# licences\nallow MIT\nallow ISC\n").expect("it is a list");
        let check =
            |licence| list.check_licences(&[package("a", "1.0.0", licence)].into()).join("\n");
        assert_eq!(check("MIT AND ISC"), "");
        assert!(check("MIT").contains("no dependency has `ISC`"));
        assert!(check("GPL-2.0-only AND MIT AND ISC").contains("a 1.0.0: `GPL-2.0-only"));
        assert!(check("").contains("states no licence"));
        assert!(check("MIT OR").contains("found the end"));
    }

    #[test]
    fn duplicates_are_held_against_the_list() {
        let list = List::parse("several a 0.1, 0.2: b needs the old one").expect("it is a list");
        let check = |versions: &[&str]| {
            let packages = versions.iter().map(|version| package("a", version, "MIT"));
            list.check_duplicates(&packages.collect()).join("\n")
        };
        assert_eq!(check(&["0.1.3", "0.2.0"]), "");
        assert!(check(&["0.1.3"]).contains("is not there as 0.1, 0.2 beside others"));
        assert!(check(&["0.1.3", "0.2.0", "1.0.0"]).contains("in the versions 0.1, 0.2, 1"));
        assert_eq!(check(&["0.1.3", "0.3.0"]).lines().count(), 2);
    }

    #[test]
    fn versions_are_compatible_up_to_the_first_number() {
        for (version, expected) in
            [("1.2.3", "1"), ("0.22.1", "0.22"), ("0.0.7", "0.0.7"), ("0.11.1+wasi", "0.11")]
        {
            assert_eq!(compatible(version), expected);
        }
    }

    #[test]
    fn lists_with_mistakes_are_refused() {
        for text in [
            "allow",
            "deny MIT",
            "several a 1, 2",
            "several a: why",
            "several a 1, 2:",
            "allow A\nallow A",
        ] {
            assert!(List::parse(text).is_err(), "{text}");
        }
    }
}
