//! Which engines ran and which were skipped.
//!
//! The test harness keeps what passing tests print to itself. So each test also adds a line to the
//! file that `MINGLE_ENGINES` names, and `cargo xtask test` has them summed up.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use crate::engine::Engine;
use crate::error::Error;

/// The variable that names the file.
const FILE: &str = "MINGLE_ENGINES";

/// Whether what is skipped counts as a failure.
pub fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|ci| ci == "true")
}

/// The line of a test that ran; tests run in threads of their name.
pub(crate) fn ran(engine: Engine) -> String {
    let thread = std::thread::current();
    format!("engine {engine}: ran {}", thread.name().unwrap_or("in a thread without name"))
}

/// The line of a test that did not.
pub(crate) fn skipped(engine: Engine) -> String {
    format!("engine {engine}: SKIPPED, {}", why(engine))
}

/// Why an engine is skipped, and what to do.
fn why(engine: Engine) -> String {
    format!("not fetched: run cargo xtask services fetch {engine}")
}

/// Prints a line, and adds it to the file if there is one.
pub(crate) fn note(line: &str) {
    eprintln!("{line}");
    let Some(path) = std::env::var_os(FILE) else { return };
    let file = OpenOptions::new().append(true).create(true).open(&path);
    // One write, so that lines of several processes do not mix.
    let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Sums up the lines of a file, one line for each engine, and whether all is well: with `must_run`,
/// only if each of [`Engine::REQUIRED`] ran and none was skipped.
///
/// # Errors
///
/// If the file is there and cannot be read.
pub fn report(file: &Path, must_run: bool) -> Result<(String, bool), Error> {
    let text = match std::fs::read_to_string(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        other => other.map_err(Error::of(file.display()))?,
    };
    Ok(sum(&text, must_run))
}

fn sum(lines: &str, must_run: bool) -> (String, bool) {
    let (mut report, mut is_well) = (String::new(), true);
    for engine in Engine::ALL {
        let of_kind = |what: String| lines.lines().filter(move |line| line.starts_with(&what));
        // A test may ask for several servers.
        let ran = of_kind(format!("engine {engine}: ran ")).collect::<BTreeSet<_>>().len();
        let skipped = of_kind(format!("engine {engine}: SKIPPED")).count();
        let is_required = Engine::REQUIRED.contains(&engine);
        is_well &= !must_run || !is_required || (ran > 0 && skipped == 0);
        let line = match (ran, skipped) {
            (0, 0) => format!("engine {engine}: no test asked for it"),
            (ran, 0) => format!("engine {engine}: ran in {ran} tests"),
            (0, times) => format!("engine {engine}: SKIPPED {times} times, {}", why(engine)),
            (ran, times) => {
                format!(
                    "engine {engine}: ran in {ran} tests, SKIPPED {times} times, {}",
                    why(engine)
                )
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
        let lines = [
            ran(Engine::Postgres),
            ran(Engine::Postgres),
            format!("{} too", ran(Engine::Postgres)),
            skipped(Engine::Redis),
        ];
        let (report, is_well) = sum(&lines.join("\n"), false);
        let redis =
            "engine redis: SKIPPED 1 times, not fetched: run cargo xtask services fetch redis";
        assert!(
            report.starts_with(&format!("engine postgres: ran in 2 tests\n{redis}\n")),
            "{report}"
        );
        assert!(is_well);
    }

    #[test]
    fn what_must_run_is_missed() {
        let all = Engine::REQUIRED.map(ran).join("\n");
        assert!(sum(&all, true).1);
        for missed in Engine::REQUIRED {
            let others = Engine::REQUIRED.into_iter().filter(|engine| *engine != missed);
            let mut lines: Vec<String> = others.map(ran).collect();
            assert!(!sum(&lines.join("\n"), true).1, "{missed} did not run");
            lines.extend([ran(missed), skipped(missed)]);
            assert!(!sum(&lines.join("\n"), true).1, "{missed} ran here and was skipped there");
        }
    }
}
