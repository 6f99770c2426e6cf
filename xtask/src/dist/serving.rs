//! A served program, for tests of clients.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use super::Dist;

/// A server on a free port of this machine. It ends when it is dropped.
pub struct Served {
    child: Child,
    /// The URL of the server.
    pub url: String,
    /// Kept open: the server may print to it.
    output: BufReader<ChildStdout>,
}

impl Served {
    /// Serves a program, with stores in memory or beside it.
    ///
    /// # Errors
    ///
    /// If the server ends before it listens.
    pub fn start(dist: &Dist, program: &Path) -> Result<Self, String> {
        let fail = |error: std::io::Error| format!("mingle serve: {error}");
        let mut command = dist.command();
        command.arg("serve").arg(program).args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut child = command.stdin(Stdio::null()).spawn().map_err(fail)?;
        let output = child.stdout.take().ok_or("the server has no output")?;
        let mut served = Self { child, url: String::new(), output: BufReader::new(output) };
        let mut line = String::new();
        while served.output.read_line(&mut line).map_err(fail)? > 0 {
            if let Some(url) = line.trim().strip_prefix("listening on ") {
                served.url = url.to_owned();
                return Ok(served);
            }
            line.clear();
        }
        Err("the server ended before it listened".into())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // No test depends on the way in which the server ends.
        self.child.kill().and_then(|()| self.child.wait()).ok();
    }
}
