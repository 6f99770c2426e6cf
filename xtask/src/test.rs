//! All tests of the workspace: suites side by side, over servers that are started once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::artifacts::{Artifacts, Suite};
use crate::lanes::{self, Ended, Job, Lane};
use crate::run::{Outcome, cargo, output, root};
use crate::servers::Servers;

/// Packages whose tests wait for servers, or for processes that they start.
pub const WAITING: [&str; 6] = [
    "crates/cli",
    "crates/server",
    "testing/services",
    "adapters/cassandra",
    "adapters/postgres",
    "adapters/redis",
];

/// The suites that take long, the longest first: they begin before others.
const LONG: [&str; 8] = [
    "adapters/postgres it",
    "testing/sim it",
    "crates/mingle it",
    "adapters/embedded it",
    "adapters/cassandra it",
    "crates/geo it",
    "crates/cli it",
    "crates/runtime it",
];

/// Runs the suites whose names contain one of `names`, or all suites if there are none.
///
/// # Errors
///
/// When something does not build, a test fails, or no test ran.
pub fn test(names: &[&str]) -> Outcome {
    let artifacts = Artifacts::build()?;
    let mut jobs = Jobs::new(&artifacts)?;
    jobs.add_tests(&artifacts, names)?;
    jobs.run()
}

/// The jobs, and the state that they share.
pub struct Jobs {
    all: Vec<Job>,
    servers: Servers,
    engines: Engines,
    libraries: String,
}

impl Jobs {
    /// Starts the servers that suites share.
    ///
    /// # Errors
    ///
    /// When a server that was fetched does not start.
    pub fn new(artifacts: &Artifacts) -> Result<Self, String> {
        let services = artifacts.binary("mingle-services")?;
        // The folder of the compiler's library, which tests of macros need.
        let libraries = output(Command::new("rustc").args(["--print", "target-libdir"]))?;
        Ok(Self {
            all: Vec::new(),
            servers: Servers::start(services)?,
            engines: Engines::new(services)?,
            libraries: libraries.trim().to_owned(),
        })
    }

    /// Adds the suites whose names contain one of `names`, and the examples of the documentation.
    ///
    /// # Errors
    ///
    /// When there is no such suite.
    pub fn add_tests(&mut self, artifacts: &Artifacts, names: &[&str]) -> Outcome {
        const EXAMPLES: &str = "examples of the documentation";
        let is_wanted =
            |name: &str| names.is_empty() || names.iter().any(|part| name.contains(part));
        for suite in &artifacts.suites {
            if is_wanted(&suite.name()) {
                self.add_suite(suite, &suite.name(), &[], &[]);
            }
        }
        if is_wanted(EXAMPLES) {
            self.add(EXAMPLES, cargo(&["test", "--workspace", "--doc"]), Lane::Computes, 50);
        }
        self.engines.all_must_run = names.is_empty();
        if self.all.is_empty() {
            return Err(format!("no suite has {} in its name", names.join(" or ")));
        }
        Ok(())
    }

    /// Adds a suite under a name, with arguments and variables of the environment.
    pub fn add_suite(
        &mut self,
        suite: &Suite,
        name: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) {
        let package = &*suite.package;
        let lane = if WAITING.contains(&package) { Lane::Waits } else { Lane::Computes };
        let place = LONG.iter().position(|long| *long == suite.name());
        let weight = place.map_or(0, |place| (LONG.len() - place) as u32);
        let mut command = Command::new(&suite.program);
        command.args(arguments).current_dir(root().join(package));
        // A variable that cargo would set for the tests.
        command.env("CARGO_MANIFEST_DIR", root().join(package));
        command.env("LD_LIBRARY_PATH", &self.libraries);
        command.envs(variables.iter().copied());
        self.add(name, command, lane, weight);
    }

    /// Adds a program.
    pub fn add(&mut self, name: &str, mut command: Command, lane: Lane, weight: u32) {
        command.env("MINGLE_ENGINES", &self.engines.file);
        let told = self.servers.told.iter();
        command.envs(told.map(|(variable, address)| (*variable, address)));
        self.all.push(Job { name: name.to_owned(), lane, command, weight });
    }

    /// Runs all jobs, and reports the engines that the tests had.
    ///
    /// # Errors
    ///
    /// When a job fails, or no test ran.
    pub fn run(self) -> Outcome {
        let begun = Instant::now();
        let ended = lanes::run(self.all)?;
        let engines = self.engines.report();
        drop(self.servers);
        let counts = ended.iter().map(Ended::tests);
        let (passed, failed) = counts.fold((0, 0), |all, job| (all.0 + job.0, all.1 + job.1));
        let suites = ended.iter().filter(|job| job.tests() != (0, 0)).count();
        eprintln!("{suites} suites ended in {:.1} s", begun.elapsed().as_secs_f64());
        println!("{passed} passed, {failed} failed");
        let broken: Vec<&str> =
            ended.iter().filter(|job| !job.is_well).map(|job| &*job.name).collect();
        if !broken.is_empty() {
            return Err(format!("failed: {}", broken.join(", ")));
        }
        if passed == 0 {
            return Err("no test ran".into());
        }
        engines
    }
}

/// The file to which each test that needs a server adds whether it had one.
struct Engines {
    services: PathBuf,
    file: PathBuf,
    /// True if with `CI=true` no engine may be missing, because all tests run.
    all_must_run: bool,
}

impl Engines {
    fn new(services: &Path) -> Result<Self, String> {
        let folder = root().join("target");
        let file = folder.join(format!("engines-{}.txt", std::process::id()));
        let made = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, ""));
        made.map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Self { services: services.to_path_buf(), file, all_must_run: false })
    }

    /// Prints the engines that ran and those that were skipped; with `CI=true` none may be missing.
    fn report(&self) -> Outcome {
        let mut report = Command::new(&self.services);
        if !self.all_must_run {
            report.env_remove("CI");
        }
        let reported = crate::run::wait(report.arg("report").arg(&self.file).current_dir(root()));
        let removed = fs::remove_file(&self.file);
        reported.and(removed.map_err(|error| format!("{}: {error}", self.file.display())))
    }
}
