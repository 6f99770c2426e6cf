//! Running suites with and without a mistake.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::plan::Suite;
use super::tree::{folder, tree};
use super::weave::{ACTIVE, REACHED};
use crate::artifacts::Artifacts;
use crate::run::{output, root};
use crate::servers::Servers;
use crate::test::WAITING;

/// The interval at which a running suite is checked.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The longest time that a suite may take without a mistake.
const SUITE_MAX: Duration = Duration::from_mins(20);

/// A suite with a mistake counts as hanging after this time plus four times its duration without a
/// mistake.
const LONGER: Duration = Duration::from_secs(20);

/// A suite, ready to run.
pub struct Ready {
    pub name: String,
    program: PathBuf,
    arguments: &'static [&'static str],
    package: String,
    /// True if the suite may be killed once a test has failed: it leaves no process behind.
    ends_early: bool,
    variables: Vec<(String, String)>,
    /// The mistakes that the suite reaches.
    pub reaches: BTreeSet<u32>,
    /// Its duration without a mistake.
    takes: Duration,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ended {
    Well,
    Failed,
    Hangs,
}

/// Finds the program of a suite.
///
/// # Errors
///
/// When it was not built.
pub fn ready(suite: &Suite, artifacts: &Artifacts, servers: &Servers) -> Result<Ready, String> {
    let (package, target, arguments) = *suite;
    let is_program = target == "mingle-sim";
    let program = if is_program {
        artifacts.binary(target)?.to_owned()
    } else {
        artifacts.suite(package, target)?.program.clone()
    };
    // The folder of the compiler's library, which tests of macros need.
    let libraries = output(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let services = root().join("target/services");
    let mut variables = vec![
        ("LD_LIBRARY_PATH".to_owned(), libraries.trim().to_owned()),
        ("CARGO_MANIFEST_DIR".to_owned(), tree().join(package).to_string_lossy().into_owned()),
        ("MINGLE_SERVICES".to_owned(), services.to_string_lossy().into_owned()),
    ];
    let told = servers.told.iter();
    variables.extend(told.map(|(name, address)| ((*name).to_owned(), address.clone())));
    Ok(Ready {
        name: format!("{package} {target} {}", arguments.join(" ")).trim_end().to_owned(),
        program,
        arguments,
        package: package.to_owned(),
        ends_early: !WAITING.contains(&package),
        variables,
        reaches: BTreeSet::new(),
        takes: SUITE_MAX,
    })
}

impl Ready {
    /// Runs the suite without a mistake, to find the mistakes that it reaches, and its duration.
    ///
    /// # Errors
    ///
    /// When the suite fails: then its result says nothing about mistakes.
    pub fn measure(&mut self) -> Result<(), String> {
        let reached = folder().join("reached");
        let begun = Instant::now();
        // A suite that fails once for another reason, such as a busy machine, gets a second chance.
        for _ in 0..2 {
            let _ = fs::remove_file(&reached);
            let mut command = self.command();
            command.env(REACHED, &reached);
            if self.run(command, "measured", SUITE_MAX)? == Ended::Well {
                self.takes = begun.elapsed();
                let text = fs::read_to_string(&reached).unwrap_or_default();
                self.reaches = text.lines().filter_map(|line| line.parse().ok()).collect();
                return Ok(());
            }
        }
        Err(format!("{} fails without a mistake: see {}", self.name, log("measured").display()))
    }

    /// True if the suite notices a mistake: a test fails, or it hangs.
    ///
    /// # Errors
    ///
    /// When it cannot be run.
    pub fn notices(&self, mistake: u32) -> Result<bool, String> {
        let mut command = self.command();
        command.env(ACTIVE, mistake.to_string());
        let ended = self.run(command, &format!("mistake-{mistake}"), self.takes * 4 + LONGER)?;
        Ok(ended != Ended::Well)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(self.arguments).current_dir(tree().join(&self.package));
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        command.env_remove(ACTIVE).env_remove(REACHED).envs(variables);
        command
    }

    fn run(&self, mut command: Command, name: &str, at_most: Duration) -> Result<Ended, String> {
        let log = log(name);
        let fail = |error: std::io::Error| format!("{}: {error}", log.display());
        let file = File::create(&log).map_err(fail)?;
        let second = file.try_clone().map_err(fail)?;
        let child = command.stdin(Stdio::null()).stdout(file).stderr(second).spawn();
        let mut child = child.map_err(|error| format!("{}: {error}", self.program.display()))?;
        let until = Instant::now() + at_most;
        loop {
            if let Some(status) = child.try_wait().map_err(fail)? {
                return Ok(if status.success() { Ended::Well } else { Ended::Failed });
            }
            if Instant::now() > until {
                end(&mut child);
                return Ok(Ended::Hangs);
            }
            if self.ends_early && has_failed(&log) {
                end(&mut child);
                return Ok(Ended::Failed);
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

fn log(name: &str) -> PathBuf {
    folder().join(name).with_extension("log")
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// True if the log says that a test has failed.
fn has_failed(log: &Path) -> bool {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().any(|line| line.starts_with("test ") && line.ends_with(" ... FAILED"))
}
