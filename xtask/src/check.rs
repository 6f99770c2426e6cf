//! What must hold before a commit.

use std::fs;
use std::path::PathBuf;

use crate::run::{Outcome, Released, cargo, root, services, step, wait, wait_seeing};
use crate::tidy::tidy;

/// Runs all tests of the workspace, and says what ran.
pub fn test() -> Outcome {
    let (mut passed, mut suites) = (0, 0);
    let engines = Engines::new()?;
    let mut command = cargo(&["test", "--workspace"]);
    let ended = wait_seeing(command.env("MINGLE_ENGINES", &engines.file), |line| {
        if let Some(count) = passed_tests(line) {
            passed += count;
            suites += usize::from(count > 0);
        }
    });
    let engines = engines.report();
    ended?;
    if passed == 0 {
        return Err("no test ran".into());
    }
    eprintln!("{passed} tests passed in {suites} suites");
    engines
}

/// The file to which each test that wants a server adds whether it had one.
struct Engines {
    file: PathBuf,
}

impl Engines {
    fn new() -> Result<Self, String> {
        let folder = root().join("target");
        let file = folder.join(format!("engines-{}.txt", std::process::id()));
        let made = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, ""));
        made.map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Self { file })
    }

    /// Prints what ran and what was skipped, engine by engine; with `CI=true` none may be missing.
    fn report(self) -> Outcome {
        let reported = services(&["report", &self.file.to_string_lossy()]);
        let removed = fs::remove_file(&self.file);
        reported.and(removed.map_err(|error| format!("{}: {error}", self.file.display())))
    }
}

/// Reads `test result: ok. 12 passed; …`.
fn passed_tests(line: &str) -> Option<usize> {
    let (_, rest) = line.strip_prefix("test result: ")?.split_once(". ")?;
    rest.split_once(" passed")?.0.parse().ok()
}

/// Runs everything, cheap steps first.
pub fn check(skip_tests: bool) -> Outcome {
    step("tidy", || tidy(false))?;
    step("format", || wait(&mut cargo(&["fmt", "--all", "--check"])))?;
    step("lints", || {
        let args = ["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"];
        wait(&mut cargo(&args))
    })?;
    if !skip_tests {
        step("tests", test)?;
    }
    step("generated programs", generated_programs)?;
    released()?;
    step("documentation", || {
        let mut command = cargo(&["doc", "--workspace", "--no-deps", "--lib"]);
        // The map of a crate names its private modules too.
        let flags = "--deny warnings --allow rustdoc::private_intra_doc_links";
        wait(command.env("RUSTDOCFLAGS", flags))
    })
}

/// What is run as it is released: the simulation and the benchmarks.
fn released() -> Outcome {
    let mut built = None;
    step("release", || Released::build().map(|released| built = Some(released)))?;
    let released = built.ok_or("nothing was built")?;
    step("simulation", || released.simulate(&["--seeds", "700", "--jobs", "2"]))?;
    step("simulation of geo", || released.simulate(&["geo", "--seeds", "600", "--jobs", "2"]))?;
    // Absolute times say more of the machine than of the compiler; how they grow does not.
    step("the compiler scales", || released.bench("compiler", &["--at-most", "2.5"]))?;
    // With bars that only a collapse misses; the benchmark itself has the real ones.
    step("tracking is cheap", || released.bench("witnesses", &["--quick"]))?;
    step("the geo core is fast", || released.bench("geo", &["--quick"]))?;
    step("a data center is lost and comes back", || {
        let fault = ["--kill", "oslo", "--at", "2s", "--back", "4s", "--seconds", "8"];
        released.bench("demo", &fault)
    })
}

/// About a minute of generated programs: more than the tests take of the same properties.
fn generated_programs() -> Outcome {
    for (targets, filter, (amount, value)) in GENERATED {
        // With the features of the whole workspace, as the tests: most of what they have built is built.
        let mut command = cargo(&["test", "--workspace"]);
        command.args(targets).args(["--", filter]);
        wait(command.env(amount, value))?;
    }
    Ok(())
}

/// The properties of generated programs: where, part of the tests' names, and how much of them.
const GENERATED: [(&[&str], &str, (&str, &str)); 3] = [
    (&["--lib", "--test", "broken"], "random_programs", ("PROPTEST_CASES", "3000")),
    (&["--test", "split"], "split_runs_end_as_plain_runs", ("MINGLE_SPLIT_SECONDS", "40")),
    (&["--test", "split"], "weaker_data_never_shows", ("MINGLE_SPLIT_SECONDS", "20")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read() {
        assert_eq!(passed_tests("test result: ok. 12 passed; 0 failed; 0 ignored"), Some(12));
        assert_eq!(passed_tests("test result: FAILED. 3 passed; 1 failed"), Some(3));
        assert_eq!(passed_tests("test a ... ok"), None);
    }
}
