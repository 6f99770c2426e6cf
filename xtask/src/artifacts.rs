//! The programs that cargo builds: test suites, and the binaries of the workspace.
//!
//! One build makes all of them, with one profile and one set of features, so nothing is compiled twice.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::run::{Outcome, cargo, output_and_progress, root};

/// A test suite that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite {
    /// The folder of its package, such as `crates/lang`.
    pub package: String,
    /// `lib`, or the name of a binary or an integration test.
    pub target: String,
    pub program: PathBuf,
}

impl Suite {
    /// Returns the name for people: the package and the target.
    pub fn name(&self) -> String {
        format!("{} {}", self.package, self.target)
    }
}

/// All programs that one build has made.
#[derive(Debug, Default)]
pub struct Artifacts {
    pub suites: Vec<Suite>,
    /// Binaries by name.
    binaries: Vec<(String, PathBuf)>,
    /// The features of each library by its package, once for each time that it was compiled.
    libraries: BTreeMap<String, Vec<String>>,
}

impl Artifacts {
    /// Builds the whole workspace: libraries, binaries and tests.
    ///
    /// # Errors
    ///
    /// When it does not build.
    pub fn build() -> Result<Self, String> {
        let format = "--message-format=json-render-diagnostics";
        let mut command = cargo(&["build", "--workspace", "--all-targets", format]);
        let told = output_and_progress(&mut command)?;
        let artifacts = Self::told(&told, &root());
        if artifacts.suites.is_empty() {
            return Err("the build made no test suite".into());
        }
        Ok(artifacts)
    }

    /// Reads the programs that cargo lists in `told`, for a workspace at `root`.
    pub fn told(told: &str, root: &Path) -> Self {
        let mut artifacts = Self::default();
        told.lines().for_each(|line| artifacts.add(line, root));
        artifacts.suites.sort_by_key(Suite::name);
        artifacts
    }

    /// Returns the path of a binary.
    ///
    /// # Errors
    ///
    /// When the build made no binary of this name.
    pub fn binary(&self, name: &str) -> Result<&Path, String> {
        let found = self.binaries.iter().find(|(known, _)| known == name);
        found.map(|(_, path)| &**path).ok_or_else(|| format!("the build made no binary {name}"))
    }

    /// Returns a suite by package and target.
    ///
    /// # Errors
    ///
    /// When the build made no such suite.
    pub fn suite(&self, package: &str, target: &str) -> Result<&Suite, String> {
        let mut suites = self.suites.iter();
        let found = suites.find(|suite| suite.package == package && suite.target == target);
        found.ok_or_else(|| format!("the build made no suite {package} {target}"))
    }

    /// Checks that each library was compiled once.
    ///
    /// # Errors
    ///
    /// Names the libraries that were compiled for two sets of features, and the sets.
    pub fn are_compiled_once(&self) -> Outcome {
        let mut twice = String::new();
        for (package, features) in self.libraries.iter().filter(|(_, times)| times.len() > 1) {
            let _ = write!(twice, "\n  {package}: [{}]", features.join("] and ["));
        }
        if twice.is_empty() {
            return Ok(());
        }
        Err(format!(
            "compiled more than once, for other features each time (testing/features/Cargo.toml asks for those that \
             all are to have):{twice}"
        ))
    }

    /// Adds a compiled library, if the message of cargo describes one.
    fn add_library(&mut self, line: &str) {
        let kind = line
            .split_once("\"target\":{")
            .and_then(|(_, target)| text_after(target, "\"kind\":["));
        let is_library = kind.is_some_and(|kind| kind == "proc-macro" || kind.ends_with("lib"));
        if !is_library || is_test(line) {
            return;
        }
        let Some(package) = text_after(line, "\"package_id\":") else { return };
        let features = line.split_once("\"features\":[").and_then(|(_, rest)| rest.split_once(']'));
        let features = features.map_or_else(String::new, |(features, _)| features.replace('"', ""));
        self.libraries.entry(package).or_default().push(features);
    }

    /// Adds a program, if the message of cargo describes one.
    fn add(&mut self, line: &str, root: &Path) {
        self.add_library(line);
        let Some(program) = text_after(line, "\"executable\":") else { return };
        let Some(manifest) = text_after(line, "\"manifest_path\":") else { return };
        let Some((_, target)) = line.split_once("\"target\":{") else { return };
        let (Some(kind), Some(name)) =
            (text_after(target, "\"kind\":["), text_after(target, "\"name\":"))
        else {
            return;
        };
        let folder = Path::new(&manifest).parent().unwrap_or(root);
        let package = folder.strip_prefix(root).unwrap_or(folder).to_string_lossy().into_owned();
        let program = PathBuf::from(program);
        if is_test(line) {
            let is_library = kind != "bin" && kind != "test";
            let target = if is_library { "lib".to_owned() } else { name };
            self.suites.push(Suite { package, target, program });
        } else if kind == "bin" {
            self.binaries.push((name, program));
        }
    }
}

/// True if a message of cargo describes a test.
fn is_test(line: &str) -> bool {
    line.split_once("\"profile\":{")
        .and_then(|(_, profile)| profile.split_once('}'))
        .is_some_and(|(profile, _)| profile.contains("\"test\":true"))
}

/// Returns the JSON string that follows a text.
fn text_after(line: &str, before: &str) -> Option<String> {
    let (_, rest) = line.split_once(before)?;
    let mut text = String::new();
    let mut letters = rest.strip_prefix('"')?.chars();
    loop {
        match letters.next()? {
            '"' => return Some(text),
            // Paths contain only these two escapes.
            '\\' => text.push(letters.next()?),
            letter => text.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: &str, name: &str, test: bool, program: &str) -> String {
        format!(
            "{{\"reason\":\"compiler-artifact\",\"manifest_path\":\"/w/adapters/redis/Cargo.toml\",\
             \"target\":{{\"kind\":[\"{kind}\"],\"crate_types\":[\"x\"],\"name\":\"{name}\",\"test\":true}},\
             \"profile\":{{\"opt_level\":\"0\",\"test\":{test}}},\"executable\":{program},\"fresh\":false}}"
        )
    }

    #[test]
    fn programs_are_read_from_messages() {
        let mut artifacts = Artifacts::default();
        for line in [
            line("lib", "mingle_store_redis", true, "\"/w/target/debug/deps/a\""),
            line("test", "it", true, "\"/w/target/debug/deps/it \\\"1\\\"\""),
            line("bin", "mingle", false, "\"/w/target/debug/mingle\""),
            line("lib", "mingle_store_redis", false, "null"),
            "{\"reason\":\"build-finished\",\"success\":true}".to_owned(),
        ] {
            artifacts.add(&line, Path::new("/w"));
        }
        let names: Vec<String> = artifacts.suites.iter().map(Suite::name).collect();
        assert_eq!(names, ["adapters/redis lib", "adapters/redis it"]);
        assert_eq!(artifacts.suites[1].program, Path::new("/w/target/debug/deps/it \"1\""));
        assert_eq!(artifacts.binary("mingle"), Ok(Path::new("/w/target/debug/mingle")));
        assert!(artifacts.binary("other").is_err() && artifacts.suite("a", "b").is_err());
    }

    #[test]
    fn libraries_that_were_compiled_for_two_sets_of_features_are_named() {
        let compiled = |package: &str, kind: &str, features: &str, test: bool| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"package_id\":\"{package}\",\"target\":{{\"kind\":[\"{kind}\"],\
                 \"name\":\"x\"}},\"profile\":{{\"test\":{test}}},\"features\":[{features}],\"executable\":null}}"
            )
        };
        let mut artifacts = Artifacts::default();
        for line in [
            compiled("one@1", "lib", "", false),
            compiled("one@1", "lib", "", true),
            compiled("one@2", "rlib", "", false),
            compiled("two@1", "custom-build", "", false),
            compiled("two@1", "proc-macro", "\"a\"", false),
        ] {
            artifacts.add(&line, Path::new("/w"));
        }
        assert_eq!(artifacts.are_compiled_once(), Ok(()));
        artifacts.add(&compiled("two@1", "proc-macro", "\"a\",\"b\"", false), Path::new("/w"));
        let twice = artifacts.are_compiled_once().expect_err("it was compiled twice");
        assert!(twice.contains("two@1: [a] and [a,b]") && !twice.contains("one"), "{twice}");
    }
}
