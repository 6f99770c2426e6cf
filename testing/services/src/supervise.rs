//! A server that ends with its test, even if the test is killed.
//!
//! A shell runs the server and reads from a pipe whose other end this process holds. When this
//! process ends, even if killed, the pipe closes; the shell then ends the server and removes its
//! folder. The shell has a process group of its own, so that a signal from the keyboard does not
//! end it too early.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::error::Error;
use crate::process::Process;
use crate::tool::Launch;

const SCRIPT: &str = include_str!("supervise.sh");

/// The shell that runs a server, and the server.
#[derive(Debug)]
pub(crate) struct Supervisor {
    shell: Child,
    /// The server itself.
    pub process: Process,
}

impl Supervisor {
    /// Runs a server. When this process has ended, the shell sends `signal` to the server, then
    /// removes `folder`, and the folder above it if that is empty.
    pub fn start(launch: &Launch, signal: &str, folder: &Path, log: &Path) -> Result<Self, Error> {
        let fail = |what: &str| format!("cannot {what} {}", launch.program.display());
        let fixed = ["sh", "-c", SCRIPT, "supervise", signal].map(OsStr::new);
        let mut command = launch.command(&[&fixed[..], &[folder.as_ref(), log.as_ref()]].concat());
        command.process_group(0).current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shell = command.spawn().map_err(Error::of(fail("run a shell for")))?;
        let mut line = String::new();
        if let Some(output) = shell.stdout.take() {
            BufReader::new(output).read_line(&mut line).map_err(Error::of(fail("run")))?;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(Ok(pid)), Some(Ok(born))) =
            (words.first().map(|word| word.parse()), words.get(1).map(|word| word.parse()))
        else {
            let status = shell.wait().map_err(Error::of(fail("run")))?;
            return Err(Error::new(format!("{}: the shell {status}", fail("run"))));
        };
        Ok(Self { shell, process: Process { pid, born } })
    }

    /// Ends the shell without affecting the server or its folder.
    pub fn dismiss(mut self) {
        if let Some(mut orders) = self.shell.stdin.take() {
            // A shell that has ended needs no order.
            let _ = orders.write_all(b"leave\n");
        }
        let _ = self.shell.wait();
    }
}
