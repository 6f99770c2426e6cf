//! The licences of all packages that are compiled into the commands, with their texts, because those
//! licences require passing them on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{Dist, expect, files, source};
use crate::licences::tree::{self, Package};
use crate::run::Outcome;

/// The name of the list among the artefacts.
pub const FILE: &str = "THIRD-PARTY-LICENCES.txt";

/// The packages that the commands consist of on this platform. Macros run when it is compiled and
/// are no part of it; listing them too does no harm.
const TREE: [&str; 6] = ["--package", "mingle-cli", "--package", "mingled", "--edges", "normal"];

/// The prefixes of the names of files with licences.
const NAMES: [&str; 7] =
    ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE", "PATENTS"];

/// Writes the list.
pub fn make(dist: &Dist) -> Outcome {
    let packages = tree::packages(&TREE)?;
    let (mut list, mut texts) = (String::new(), BTreeMap::<String, BTreeSet<String>>::new());
    let mut without = Vec::new();
    for package in &packages {
        let Package { name, version, licence, repository } = package;
        list.extend([format!("- {name} {version}: {licence}\n  {repository}\n")]);
        let found = texts_of(package)?;
        if found.is_empty() {
            without.push(package);
        }
        for text in found {
            texts.entry(text).or_default().insert(format!("{name} {version}"));
        }
    }
    let mut text = format!(
        "The commands `mingle` and `mingled` contain these packages, under these licences. Their texts follow.\n\n{list}"
    );
    for package in without {
        let stated = standard_text(package)?;
        texts.entry(stated).or_default().insert(format!("{} {}", package.name, package.version));
    }
    for (licence, users) in &texts {
        let users = users.iter().map(|user| format!("  {user}\n"));
        let users: String = users.collect();
        let line = "=".repeat(80);
        text.extend([format!(
            "\n{line}\nThe text that these packages come with:\n\n{users}\n{licence}\n"
        )]);
    }
    eprintln!("    {} packages, {} texts, {} bytes", packages.len(), texts.len(), text.len());
    files::write(&dist.folder.join(FILE), text)
}

/// Looks for every package, and for texts that must be there.
pub fn test(dist: &Dist) -> Outcome {
    let text = files::read_text(&dist.folder.join(FILE))?;
    for package in tree::packages(&TREE)? {
        let Package { name, version, licence, .. } = package;
        expect(&text, &format!("- {name} {version}: {licence}\n"))?;
        expect(&text, &format!("\n  {name} {version}\n"))?;
    }
    let texts =
        ["Permission is hereby granted, free of charge", "Apache License", "UNICODE LICENSE V3"];
    texts.iter().try_for_each(|part| expect(&text, part))
}

/// Returns the texts that a package comes with, in its folder or in its folder for licences.
fn texts_of(package: &Package) -> Result<Vec<String>, String> {
    let folder = folder_of(package)?;
    let mut found = Vec::new();
    for path in files::below(&folder)? {
        let name = files::relative(&folder, &path)?.to_uppercase();
        let parts: Vec<&str> = name.split('/').collect();
        let is_licence = match parts.as_slice() {
            [file] => NAMES.iter().any(|start| file.starts_with(start)) && !has_code(file),
            [folder, _] => ["LICENSES", "LICENSE"].contains(folder),
            _ => false,
        };
        if is_licence {
            let text = String::from_utf8_lossy(&files::read(&path)?).replace("\r\n", "\n");
            found.push(text.trim_end().trim_start_matches(['\n', '\u{feff}']).to_owned());
        }
    }
    Ok(found)
}

fn has_code(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ext| ext == "RS" || ext == "PY")
}

/// Returns the folder in which cargo keeps the sources of a package.
fn folder_of(package: &Package) -> Result<PathBuf, String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let default = || std::env::home_dir().map(|home| home.join(".cargo"));
    let home = home.or_else(default).ok_or("neither CARGO_HOME nor a home folder is set")?;
    let name = format!("{}-{}", package.name, package.version);
    let sources = home.join("registry/src");
    let registries = std::fs::read_dir(&sources);
    let registries = registries.map_err(|error| format!("{}: {error}", sources.display()))?;
    let mut places = registries.filter_map(|entry| Some(entry.ok()?.path().join(&name)));
    let found = places.find(|path| path.is_dir());
    found.ok_or_else(|| format!("{name}: its sources are not below {}", sources.display()))
}

/// Returns the licence text for a package without one: our own copy of one of the licences that it
/// names, with the package's authors in place of ours.
fn standard_text(package: &Package) -> Result<String, String> {
    let manifest = files::read_text(&folder_of(package)?.join("Cargo.toml"))?;
    let authors = authors(&manifest);
    let stated = format!("The package has no text of its licence. It states `{}`", package.licence);
    if package.licence.contains("MIT") {
        let text = files::read_text(&source("LICENSE-MIT"))?;
        let line = |line: &str| {
            let is_ours = line.starts_with("Copyright");
            if is_ours { format!("Copyright (c) {authors}") } else { line.to_owned() }
        };
        let lines = text.lines().map(line);
        return Ok(format!("{stated}.\n\n{}", lines.collect::<Vec<_>>().join("\n")));
    }
    if package.licence.contains("Apache-2.0") {
        let text = files::read_text(&source("LICENSE-APACHE"))?;
        return Ok(format!("{stated}, by {authors}.\n\n{text}"));
    }
    Err(format!("{} {}: no text of its licence is known", package.name, package.version))
}

/// Returns the authors that a manifest states.
fn authors(manifest: &str) -> String {
    let list = manifest.split_once("\nauthors = [").and_then(|(_, rest)| rest.split_once(']'));
    let list = list.map_or("", |(list, _)| list);
    let names: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    if names.is_empty() { "its authors".into() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authors_are_read() {
        assert_eq!(
            authors("[package]\nauthors = [\n    \"A <a@b>\",\n    \"B\",\n]\n"),
            "A <a@b>, B"
        );
        assert_eq!(authors("[package]\nauthors = [\"A\"]\n"), "A");
        assert_eq!(authors("[package]\n"), "its authors");
    }
}
