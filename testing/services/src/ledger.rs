//! The record of engines, checkers and libraries that ran, and of those that were skipped.
//!
//! The test harness hides the output of passing tests. Each test therefore also adds a line to the
//! file that `MINGLE_ENGINES` names, and `cargo xtask test` summarizes them.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use crate::checker::Checker;
use crate::engine::Engine;
use crate::error::Error;
use crate::library::Library;

/// The variable that names the file.
const FILE: &str = "MINGLE_ENGINES";

/// True if skipped tests count as failures.
pub fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|ci| ci == "true")
}

/// The subject of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// A server.
    Engine(Engine),
    /// A type checker.
    Checker(Checker),
    /// A client library.
    Library(Library),
}

impl About {
    /// Returns all subjects.
    fn all() -> impl Iterator<Item = Self> {
        let engines = Engine::ALL.map(Self::Engine).into_iter();
        let checkers = engines.chain(Checker::ALL.map(Self::Checker));
        checkers.chain(Library::ALL.map(Self::Library))
    }

    /// True if it must run if `CI=true`.
    pub(crate) fn is_required(self) -> bool {
        match self {
            Self::Engine(engine) => Engine::REQUIRED.contains(&engine),
            Self::Checker(checker) => Checker::REQUIRED.contains(&checker),
            Self::Library(_) => true,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Engine(engine) => engine.name(),
            Self::Checker(checker) => checker.name(),
            Self::Library(library) => library.name(),
        }
    }

    /// Returns the reason why it is skipped, and the remedy.
    fn why(self) -> String {
        if self == Self::Checker(Checker::Go) {
            return "not installed: see https://go.dev/doc/install".to_owned();
        }
        format!("not fetched: run cargo xtask services fetch {}", self.name())
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(engine) => write!(f, "engine {engine}"),
            Self::Checker(checker) => write!(f, "checker {checker}"),
            Self::Library(library) => write!(f, "library {library}"),
        }
    }
}

/// Returns the line of a test that ran; a test's thread has the test's name.
pub(crate) fn ran(about: About) -> String {
    let thread = std::thread::current();
    format!("{about}: ran {}", thread.name().unwrap_or("in a thread without name"))
}

/// Returns the line of a skipped test.
pub(crate) fn skipped(about: About) -> String {
    format!("{about}: SKIPPED, {}", about.why())
}

/// Prints a line, and appends it to the file if there is one.
pub(crate) fn note(line: &str) {
    eprintln!("{line}");
    let Some(path) = std::env::var_os(FILE) else { return };
    let file = OpenOptions::new().append(true).create(true).open(&path);
    // One write, so that lines of several processes do not mix.
    let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Summarizes the lines of a file, one line for each engine, checker and library, and
/// returns true if all is well: with `must_run`, each of them must have run (of engines, those of
/// [`Engine::REQUIRED`]), and none may
/// have been skipped.
///
/// # Errors
///
/// If the file exists and cannot be read.
pub fn report(file: &Path, must_run: bool) -> Result<(String, bool), Error> {
    let text = match std::fs::read_to_string(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        other => other.map_err(Error::of(file.display()))?,
    };
    Ok(sum(&text, must_run))
}

fn sum(lines: &str, must_run: bool) -> (String, bool) {
    let (mut report, mut is_well) = (String::new(), true);
    for about in About::all() {
        let of_kind = |what: String| lines.lines().filter(move |line| line.starts_with(&what));
        // A test may use several servers.
        let ran = of_kind(format!("{about}: ran ")).collect::<BTreeSet<_>>().len();
        let skipped = of_kind(format!("{about}: SKIPPED")).count();
        is_well &= !must_run || !about.is_required() || (ran > 0 && skipped == 0);
        let line = match (ran, skipped) {
            (0, 0) => format!("{about}: no test asked for it"),
            (ran, 0) => format!("{about}: ran in {ran} tests"),
            (0, times) => format!("{about}: SKIPPED {times} times, {}", about.why()),
            (ran, times) => {
                format!("{about}: ran in {ran} tests, SKIPPED {times} times, {}", about.why())
            }
        };
        report.push_str(&line);
        report.push('\n');
    }
    (report, is_well)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ran_is_summed_up() {
        let postgres = About::Engine(Engine::Postgres);
        let lines = [
            ran(postgres),
            ran(postgres),
            format!("{} too", ran(postgres)),
            skipped(About::Engine(Engine::Redis)),
            skipped(About::Checker(Checker::Mypy)),
        ];
        let (report, is_well) = sum(&lines.join("\n"), false);
        let redis =
            "engine redis: SKIPPED 1 times, not fetched: run cargo xtask services fetch redis";
        assert!(
            report.starts_with(&format!("engine postgres: ran in 2 tests\n{redis}\n")),
            "{report}"
        );
        let mypy =
            "checker mypy: SKIPPED 1 times, not fetched: run cargo xtask services fetch mypy\n";
        assert!(report.contains(mypy), "{report}");
        assert!(is_well);
    }

    #[test]
    fn what_must_run_is_missed() {
        let required: Vec<About> = About::all().filter(|about| about.is_required()).collect();
        assert!(required.contains(&About::Checker(Checker::TypeScript)));
        let all = required.iter().copied().map(ran).collect::<Vec<_>>().join("\n");
        assert!(sum(&all, true).1);
        for missed in required.iter().copied() {
            let others = required.iter().copied().filter(|about| *about != missed);
            let mut lines: Vec<String> = others.map(ran).collect();
            assert!(!sum(&lines.join("\n"), true).1, "{missed} did not run");
            lines.extend([ran(missed), skipped(missed)]);
            assert!(!sum(&lines.join("\n"), true).1, "{missed} ran here and was skipped there");
        }
    }
}
