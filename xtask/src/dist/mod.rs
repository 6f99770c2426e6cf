//! `cargo xtask dist`: everything that a release consists of, in `target/dist`.
//!
//! Each artefact is a row of [`ARTEFACTS`]: the function that makes it, its tests, and the tools
//! that both need. An artefact whose tool is missing fails, unless `--skip-missing` is given; then
//! the last lines list the skipped ones. Artefacts are put together and tested in
//! `target/dist-work`.

mod clients;
mod command;
mod container;
mod crates;
mod debian;
mod editor;
mod elf;
mod files;
mod notices;
mod service;
mod serving;
mod sha256;
mod shells;
mod zip;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Outcome, root, step};

/// The version of the release, which is the version of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A part of the release.
struct Artefact {
    name: &'static str,
    make: fn(&Dist) -> Outcome,
    /// The tools that make it.
    needs: &'static [&'static str],
    /// Its tests: a name, the tools that the test needs, and the function.
    tests: &'static [Test],
}

type Test = (&'static str, &'static [&'static str], fn(&Dist) -> Outcome);

const ARTEFACTS: [Artefact; 13] = [
    Artefact {
        name: "the command",
        make: command::make,
        needs: &[],
        tests: &[("the command runs", &[], command::test)],
    },
    Artefact {
        name: "the server",
        make: command::make_server,
        needs: &[],
        tests: &[("the server answers a client, and stops", &["kill"], service::test)],
    },
    Artefact {
        name: "completions and manual pages",
        make: shells::make,
        needs: &[],
        tests: &[
            ("bash completes", &["bash"], shells::test_bash),
            ("zsh completes", &["zsh"], shells::test_zsh),
            ("fish completes", &["fish"], shells::test_fish),
            ("the manual is shown", &["man"], shells::test_manual),
        ],
    },
    Artefact {
        name: "licences of what is in the commands",
        make: notices::make,
        needs: &[],
        tests: &[("every dependency has its licence", &[], notices::test)],
    },
    Artefact {
        name: "the Debian package",
        make: debian::make,
        needs: &["dpkg-deb"],
        tests: &[("the Debian package unpacks and runs", &["dpkg-deb"], debian::test)],
    },
    Artefact {
        name: "the Debian package of the server",
        make: service::make_debian,
        needs: &["dpkg-deb"],
        tests: &[
            (
                "the Debian package of the server unpacks and runs",
                &["dpkg-deb"],
                service::test_debian,
            ),
            (
                "the unit of the server is sound",
                &["dpkg-deb", "systemd-analyze"],
                service::test_unit,
            ),
        ],
    },
    Artefact {
        name: "the container file",
        make: container::make,
        needs: &[],
        tests: &[("the container has what it needs", &[], container::test)],
    },
    Artefact {
        name: "the container file of the server",
        make: container::make_server,
        needs: &[],
        tests: &[("the container of the server has what it needs", &[], container::test_server)],
    },
    Artefact {
        name: "the Python runtime",
        make: clients::python::make,
        needs: &[],
        tests: &[("a Python client calls", &["python3"], clients::python::test)],
    },
    Artefact {
        name: "the TypeScript runtime",
        make: clients::typescript::make,
        needs: &["node", "npm"],
        tests: &[("a TypeScript client calls", &["node", "npm"], clients::typescript::test)],
    },
    Artefact {
        name: "the Go runtime",
        make: clients::go::make,
        needs: &[],
        tests: &[("a Go client calls", &["go"], clients::go::test)],
    },
    Artefact {
        name: "the extension for VS Code",
        make: editor::make,
        needs: &["node", "npm"],
        tests: &[("the extension unpacks and loads", &["node", "python3"], editor::test)],
    },
    Artefact {
        name: "the crates' packages",
        make: crates::make,
        needs: &[],
        tests: &[("the crates compile from their packages", &["tar"], crates::test)],
    },
];

/// The folders of a release.
struct Dist {
    /// The folder of the artefacts.
    folder: PathBuf,
    /// The folder in which artefacts are put together and tested.
    work: PathBuf,
    skipped: RefCell<Vec<String>>,
}

/// Makes a release. Arguments: `--test` tests every artefact and packages the crates with
/// verification; `--publish-dry-run` only does everything that publishing does except the upload;
/// `--skip-missing` skips the parts that need a tool that is not installed.
///
/// # Errors
///
/// If an artefact cannot be made, or does not work.
pub fn dist(args: &[&str]) -> Outcome {
    let known = ["--test", "--skip-missing", "--publish-dry-run"];
    if let Some(unknown) = args.iter().find(|arg| !known.contains(arg)) {
        return Err(format!("expected some of {}, found `{unknown}`", known.join(", ")));
    }
    if args.contains(&"--publish-dry-run") {
        return step("publishing, but for the upload", crates::publish_dry_run);
    }
    let is_tested = args.contains(&"--test");
    let skip_missing = args.contains(&"--skip-missing");
    if !skip_missing {
        all_installed(is_tested)?;
    }
    let dist = Dist::new()?;
    for artefact in &ARTEFACTS {
        if !dist.has(artefact.needs, artefact.name) {
            continue;
        }
        step(artefact.name, || (artefact.make)(&dist))?;
        for (name, needs, test) in artefact.tests.iter().filter(|_| is_tested) {
            if dist.has(needs, name) {
                step(name, || test(&dist))?;
            }
        }
    }
    step("checksums", || dist.write_checksums())?;
    dist.report()
}

impl Dist {
    fn new() -> Result<Self, String> {
        let target = target()?;
        let (folder, work) = (target.join("dist"), target.join("dist-work"));
        for path in [&folder, &work] {
            files::remove(path)?;
            files::create(path)?;
        }
        Ok(Self { folder, work, skipped: RefCell::default() })
    }

    /// True if all of these tools are installed. If one is missing, that is noted for the report.
    fn has(&self, tools: &[&str], what: &str) -> bool {
        let missing = missing(tools);
        if let Some(missing) = &missing {
            let why = format!("{what}: needs what is not installed: {missing}");
            eprintln!("==> skipped: {why}");
            self.skipped.borrow_mut().push(why);
        }
        missing.is_none()
    }

    /// Returns the `mingle` command of the release.
    fn command(&self) -> Command {
        Command::new(self.binary())
    }

    fn binary(&self) -> PathBuf {
        self.folder.join("mingle").with_extension(std::env::consts::EXE_EXTENSION)
    }

    /// Returns the place of `mingled`.
    fn server(&self) -> PathBuf {
        self.folder.join("mingled").with_extension(std::env::consts::EXE_EXTENSION)
    }

    /// Makes an empty folder below `work`.
    fn workshop(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.work.join(name);
        files::remove(&path)?;
        files::create(&path)?;
        Ok(path)
    }

    /// Writes `SHA256SUMS` in the format of `sha256sum --check`.
    fn write_checksums(&self) -> Outcome {
        let mut text = String::new();
        for path in files::below(&self.folder)? {
            let name = files::relative(&self.folder, &path)?;
            let digest = sha256::hex(&sha256::digest(&files::read(&path)?));
            text.extend([format!("{digest}  {name}\n")]);
        }
        files::write(&self.folder.join("SHA256SUMS"), text)
    }

    /// Prints the artefacts that were made, and the parts that were skipped.
    fn report(&self) -> Outcome {
        for path in files::below(&self.folder)? {
            let (name, size) = (files::relative(&self.folder, &path)?, files::read(&path)?.len());
            if !name.contains('/') {
                eprintln!("{size:>12}  {name}");
            }
        }
        let skipped = self.skipped.borrow();
        for why in skipped.iter() {
            eprintln!("skipped: {why}");
        }
        eprintln!("the artefacts are in {}", self.folder.display());
        Ok(())
    }
}

/// Returns the folder that cargo builds into: this program is in the folder of a profile in it.
fn target() -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let target = here.parent().and_then(Path::parent);
    target.map(Path::to_path_buf).ok_or_else(|| format!("{} has no folder", here.display()))
}

/// Fails, before anything is built, if a required tool is not installed.
fn all_installed(is_tested: bool) -> Outcome {
    let mut problems = Vec::new();
    for Artefact { name, needs, tests, .. } in &ARTEFACTS {
        let tests = tests.iter().filter(|_| is_tested).map(|(name, needs, _)| (name, needs));
        for (what, tools) in std::iter::once((name, needs)).chain(tests) {
            problems.extend(missing(tools).map(|missing| format!("{what} needs {missing}")));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    let problems = problems.join("\n  ");
    Err(format!("not everything is installed; `--skip-missing` goes on without:\n  {problems}"))
}

/// Returns those of these tools that are not installed; none if all are.
fn missing(tools: &[&str]) -> Option<String> {
    let missing: Vec<&str> = tools.iter().copied().filter(|tool| !is_installed(tool)).collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}

/// True if a tool is on the `PATH`.
fn is_installed(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path);
    folders.any(|folder| folder.join(tool).is_file())
}

/// Returns a path of the repository.
fn source(path: &str) -> PathBuf {
    root().join(path)
}

/// Returns the error of a test, unless `found` contains `expected`.
fn expect(found: &str, expected: &str) -> Outcome {
    let is_there = found.contains(expected);
    is_there.then_some(()).ok_or_else(|| format!("expected `{expected}`, found:\n{found}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_installed_is_named() {
        assert_eq!(missing(&[]), None);
        let found = missing(&["no-such-tool-of-mingle", "cargo", "another-one-of-mingle"]);
        assert_eq!(found.as_deref(), Some("no-such-tool-of-mingle, another-one-of-mingle"));
    }

    #[test]
    fn unknown_options_are_refused() {
        assert!(dist(&["--tset"]).is_err_and(|why| why.contains("found `--tset`")));
    }
}
