//! A server that ends with its test, however that ends.
//!
//! A shell runs the server and reads from a pipe whose other end we hold. When we are gone, killed
//! or not, the pipe closes; the shell then ends the server and removes its folder. It has a process
//! group of its own, so that what ends us from the keyboard does not end it too early.

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
    /// Runs a server. `signal` is what the shell ends it with when we are gone; then it removes
    /// `folder`, and the folder above it if that is empty.
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

    /// Lets the shell go without a word to the server or its folder.
    pub fn dismiss(mut self) {
        if let Some(mut orders) = self.shell.stdin.take() {
            // A shell that is gone needs no order.
            let _ = orders.write_all(b"leave\n");
        }
        let _ = self.shell.wait();
    }
}
