//! A copy of the working tree, in which mistakes are planted, with a build of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::plan::{Crate, package};
use crate::artifacts::Artifacts;
use crate::run::{Outcome, cargo, output, root};

/// Returns the folder of all files that this task makes.
pub fn folder() -> PathBuf {
    root().join("target/mutants")
}

/// Returns the folder of the copy.
pub fn tree() -> PathBuf {
    folder().join("tree")
}

/// Makes the copy equal to the working tree. Unchanged files are not touched, and so not built
/// again.
///
/// # Errors
///
/// When git does not list the files, or a file cannot be copied.
pub fn copy() -> Outcome {
    let mut listed = Command::new("git");
    let listed = listed.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    for path in output(listed.current_dir(root()))?.lines() {
        let (from, to) = (root().join(path), tree().join(path));
        match fs::read(&from) {
            Ok(bytes) => write(&to, &bytes)?,
            // The file is removed, but git still lists it.
            Err(_) => {
                let _ = fs::remove_file(&to);
            }
        }
    }
    Ok(())
}

/// Writes a file, unless it has these bytes.
pub fn write(path: &Path, bytes: &[u8]) -> Outcome {
    let fail = |error: std::io::Error| format!("{}: {error}", path.display());
    if fs::read(path).is_ok_and(|found| found == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(fail)?;
    }
    fs::write(path, bytes).map_err(fail)
}

/// The result of a build.
pub enum Built {
    Well(Artifacts),
    /// The places of errors in the copy: file, line and column.
    Failed(Vec<(String, usize, usize)>),
}

/// Builds the suites of a crate within the copy.
///
/// # Errors
///
/// When the build fails, and no error names a place.
pub fn build(planned: &Crate) -> Result<Built, String> {
    // With the features of all third-party crates, the builds of all crates share their compiled
    // dependencies.
    let mut packages = vec!["mingle-features".to_owned(), package(planned.folder)];
    packages.extend(planned.suites.iter().map(|(folder, ..)| package(folder)));
    if !planned.servers.is_empty() {
        packages.push("mingle-services".into());
        if planned.folder.starts_with("crates/") {
            // Its tests have each engine among their features, as a build of the workspace has.
            packages.push("mingle".into());
        }
    }
    packages.sort();
    packages.dedup();
    let mut command = cargo(&["build", "--message-format=json-render-diagnostics"]);
    command.args(["--lib", "--bins", "--tests"]);
    for package in &packages {
        command.args(["--package", package]);
    }
    command.current_dir(tree()).env("CARGO_TARGET_DIR", folder().join("build"));
    let ended = command.stdin(Stdio::null()).output();
    let ended = ended.map_err(|error| format!("cargo build: {error}"))?;
    if ended.status.success() {
        let told = String::from_utf8_lossy(&ended.stdout);
        return Ok(Built::Well(Artifacts::told(&told, &tree())));
    }
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    let places = places(&told);
    if places.is_empty() { Err(told) } else { Ok(Built::Failed(places)) }
}

/// Returns the places of errors, not of warnings.
fn places(told: &str) -> Vec<(String, usize, usize)> {
    let (mut is_error, mut found) = (false, Vec::new());
    for line in told.lines() {
        if line.starts_with("error") || line.starts_with("warning") {
            is_error = line.starts_with("error");
        } else if let Some(place) = line.trim_start().strip_prefix("--> ")
            && std::mem::take(&mut is_error)
        {
            let mut parts = place.rsplitn(3, ':');
            let mut number = || parts.next().and_then(|part| part.parse().ok());
            if let (Some(column), Some(line)) = (number(), number())
                && let Some(file) = parts.next()
            {
                found.push((file.to_owned(), line, column));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_errors_are_read() {
        let told = "warning: unused\n  --> a.rs:1:2\n\nerror[E0308]: mismatched types\n   --> b/c.rs:30:4\n    |\n\
                    note: because\n   --> d.rs:5:6\nerror: could not compile `x`\n";
        assert_eq!(places(told), [("b/c.rs".to_owned(), 30, 4)]);
    }
}
