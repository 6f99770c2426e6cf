//! Runs jobs side by side: jobs that wait for servers in two lanes, jobs that compute in a third.
//!
//! Each lane runs one job at a time, the longest first; a lane without jobs takes them from the
//! others. A job is a program with arguments. Its output goes to a file, and is shown if the job
//! fails.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::run::root;

/// The time limit of a job, in seconds; a job that takes longer is killed and has failed.
const SECONDS_MAX: u64 = 1800;

/// The interval at which a running job is checked.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The lane that a job runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Jobs that wait for servers or other processes most of the time.
    Waits,
    /// Jobs that keep the processors busy.
    Computes,
}

/// A program to run.
pub struct Job {
    pub name: String,
    pub lane: Lane,
    pub command: Command,
    /// Jobs of higher weight begin earlier.
    pub weight: u32,
}

/// The result of one job.
#[derive(Debug)]
pub struct Ended {
    pub name: String,
    /// True if it ended successfully.
    pub is_well: bool,
    /// All of its output.
    pub output: String,
    pub seconds: f64,
}

impl Ended {
    /// Returns the numbers of tests that passed and failed, if the job prints them as test suites
    /// do.
    pub fn tests(&self) -> (usize, usize) {
        let counts = self.output.lines().filter_map(tests_in);
        counts.fold((0, 0), |(passed, failed), (more, worse)| (passed + more, failed + worse))
    }
}

/// Reads `test result: ok. 12 passed; 0 failed; …`.
fn tests_in(line: &str) -> Option<(usize, usize)> {
    let (_, rest) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let (passed, rest) = rest.split_once(" passed; ")?;
    Some((passed.parse().ok()?, rest.split_once(" failed")?.0.parse().ok()?))
}

/// Jobs that have not begun, by lane.
struct Queues {
    waits: VecDeque<Job>,
    computes: VecDeque<Job>,
}

impl Queues {
    fn next(&mut self, lane: Lane) -> Option<Job> {
        let (own, other) = match lane {
            Lane::Waits => (&mut self.waits, &mut self.computes),
            Lane::Computes => (&mut self.computes, &mut self.waits),
        };
        own.pop_front().or_else(|| other.pop_front())
    }
}

/// Runs all jobs, shows each as it ends, and returns their results.
///
/// # Errors
///
/// When the folder of the logs cannot be made.
pub fn run(mut jobs: Vec<Job>) -> Result<Vec<Ended>, String> {
    let logs = root().join("target/suites");
    std::fs::create_dir_all(&logs).map_err(|error| format!("{}: {error}", logs.display()))?;
    // The sort is stable: jobs of one weight keep their order.
    jobs.sort_by_key(|job| std::cmp::Reverse(job.weight));
    let (waits, computes) = jobs.into_iter().partition(|job| job.lane == Lane::Waits);
    let queues = Mutex::new(Queues { waits, computes });
    let ended = Mutex::new(Vec::new());
    let lane = |lane| {
        loop {
            let next = queues.lock().unwrap_or_else(PoisonError::into_inner).next(lane);
            let Some(job) = next else { return };
            let job = run_one(job, &logs);
            // The lock keeps reports whole: one lane does not print into another's report.
            let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            show(&job);
            ended.push(job);
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| lane(Lane::Waits));
        scope.spawn(|| lane(Lane::Waits));
        lane(Lane::Computes);
    });
    Ok(ended.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn show(job: &Ended) {
    let (passed, failed) = job.tests();
    let tests = if passed + failed == 0 { String::new() } else { format!(", {passed} tests") };
    if job.is_well {
        eprintln!("    ok      {} ({:.1} s{tests})", job.name, job.seconds);
    } else {
        eprintln!("{}", job.output);
        eprintln!("    FAILED  {} ({:.1} s, {failed} of its tests failed)", job.name, job.seconds);
    }
}

fn run_one(job: Job, logs: &Path) -> Ended {
    let begun = Instant::now();
    let file = job.name.replace(|letter: char| !letter.is_alphanumeric(), "-");
    let log = logs.join(file).with_extension("log");
    let ended = run_into(job.command, &log);
    let mut output = std::fs::read(&log)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let is_well = match ended {
        Ok(status) if status.success() => true,
        Ok(status) => {
            output = format!("{output}it ended with {status}\n");
            false
        }
        Err(why) => {
            output.push_str(&why);
            false
        }
    };
    Ended { name: job.name, is_well, output, seconds: begun.elapsed().as_secs_f64() }
}

fn run_into(mut command: Command, log: &PathBuf) -> Result<ExitStatus, String> {
    let fail = |error: std::io::Error| format!("{}: {error}\n", log.display());
    let file = File::create(log).map_err(fail)?;
    let second = file.try_clone().map_err(fail)?;
    let command = command.stdin(Stdio::null()).stdout(file).stderr(second);
    let mut child = command
        .spawn()
        .map_err(|error| format!("{}: {error}\n", Path::new(command.get_program()).display()))?;
    bounded(&mut child)
}

fn bounded(child: &mut Child) -> Result<ExitStatus, String> {
    let until = Instant::now() + Duration::from_secs(SECONDS_MAX);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Err(error) => return Err(format!("it cannot be waited for: {error}\n")),
            Ok(None) if Instant::now() > until => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it did not end within {SECONDS_MAX} s, and was killed\n"));
            }
            Ok(None) => thread::sleep(LOOK_EVERY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read() {
        let line = "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured";
        assert_eq!(tests_in(line), Some((12, 0)));
        assert_eq!(tests_in("test result: FAILED. 3 passed; 1 failed; 0 ignored"), Some((3, 1)));
        assert_eq!(tests_in("test a ... ok"), None);
    }

    fn job(name: &str, lane: Lane, arguments: &[&str], weight: u32) -> Job {
        // Cargo exists on every machine that runs this test.
        let mut command = Command::new(env!("CARGO"));
        command.args(arguments);
        Job { name: name.to_owned(), lane, command, weight }
    }

    #[test]
    fn all_jobs_end_and_those_that_fail_are_told() {
        let jobs = vec![
            job("xtask-test version", Lane::Computes, &["--version"], 0),
            job("xtask-test nonsense", Lane::Waits, &["--no-such-flag"], 0),
            job("xtask-test again", Lane::Computes, &["--version"], 1),
        ];
        let mut ended = run(jobs).expect("the logs have a folder");
        ended.sort_by(|one, other| one.name.cmp(&other.name));
        let well: Vec<bool> = ended.iter().map(|job| job.is_well).collect();
        assert_eq!(well, [true, false, true]);
        assert!(ended[1].output.contains("--no-such-flag"), "{}", ended[1].output);
        assert!(ended[0].output.starts_with("cargo "), "{}", ended[0].output);
    }

    #[test]
    fn a_lane_without_jobs_takes_from_the_other() {
        let computes = ["heavy", "light"].map(|name| job(name, Lane::Computes, &[], 0)).into();
        let mut queues = Queues { waits: VecDeque::new(), computes };
        assert_eq!(queues.next(Lane::Waits).map(|job| job.name).as_deref(), Some("heavy"));
        assert_eq!(queues.next(Lane::Computes).map(|job| job.name).as_deref(), Some("light"));
        assert!(queues.next(Lane::Waits).is_none());
    }
}
