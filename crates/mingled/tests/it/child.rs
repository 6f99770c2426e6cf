//! Child processes: this test binary again, with one test and a variable that tells it its part.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The variable that tells a child its part.
const PART: &str = "MINGLED_TEST_PART";

/// The beginning of a line for the parent, among those of the test harness.
const MARK: &str = "child: ";

/// Returns the part of this process; `None` in the parent.
pub fn part() -> Option<String> {
    std::env::var(PART).ok()
}

/// Tells the parent a line.
pub fn tell(line: &str) {
    // On a line of its own, after any output that the test harness has begun.
    println!("\n{MARK}{line}");
    std::io::stdout().flush().expect("the parent reads");
}

/// A process that is killed with the test, if not before.
pub struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    stdin: Option<ChildStdin>,
}

impl Running {
    /// Starts this test again in a process of its own, which finds `part`.
    pub fn start(part: &str) -> Self {
        Self::start_by("exec \"$@\"", part)
    }

    /// The same, through a shell script that ends with the command in its arguments.
    pub fn start_by(script: &str, part: &str) -> Self {
        let this = std::env::current_exe().expect("the test's own path");
        let thread = std::thread::current();
        let mut child = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(this)
            .args([thread.name().expect("tests have names"), "--exact", "--nocapture"])
            .arg("--test-threads=1")
            .env(PART, part)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the child starts");
        let out = child.stdout.take().expect("the output is piped");
        let stdin = child.stdin.take();
        Self { child, lines: BufReader::new(out).lines(), stdin }
    }

    /// Returns the next line that the child tells; `None` after its end.
    pub fn line(&mut self) -> Option<String> {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        lines.find_map(|line| line.strip_prefix(MARK).map(str::to_owned))
    }

    /// Sends a line.
    pub fn tell(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("it is open");
        writeln!(stdin, "{line}").expect("the child reads");
        stdin.flush().expect("the child reads");
    }

    /// Sends a line, and returns the answer.
    pub fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.line().unwrap_or_else(|| panic!("the child ended at `{line}`"))
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process with SIGKILL, and returns the lines that it had told.
    pub fn kill(mut self) -> Vec<String> {
        self.child.kill().expect("it is a child");
        self.child.wait().expect("it is a child");
        std::iter::from_fn(|| self.line()).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // By its id. It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
