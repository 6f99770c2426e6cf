//! Calls of `mvn`, `tar` and other commands.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::home::unprivileged;

/// Runs a tool to its end and returns its output.
///
/// # Errors
///
/// If the tool is not installed or fails; the text ends with the tool's complaint.
pub fn output<A: AsRef<OsStr>>(
    name: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = A>,
    folder: Option<&Path>,
) -> Result<String, Error> {
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::null()).env("LC_ALL", "C");
    if let Some(folder) = folder {
        command.current_dir(folder);
    }
    run(&mut command)
}

/// Runs a tool to its end.
///
/// # Errors
///
/// As for [`output`].
pub fn tool<A: AsRef<OsStr>>(
    name: &str,
    arguments: impl IntoIterator<Item = A>,
) -> Result<(), Error> {
    output(name, arguments, None).map(|_| ())
}

/// Runs a command to its end and returns its output.
fn run(command: &mut Command) -> Result<String, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::new(format!("`{name}` is needed, and is not installed")),
        _ => Error::new(format!("cannot run `{name}`: {error}")),
    })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let complaint = format!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    Err(Error::new(format!("`{name}` ended with {}{}", output.status, ending(&complaint))))
}

/// Returns the last lines of a text, indented, for the end of an error.
pub(crate) fn ending(text: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    last.iter().fold(String::new(), |all, line| format!("{all}\n    {}", line.trim_end()))
}

/// Checks that a file has the recorded digest (SHA-256, in hexadecimal).
///
/// # Errors
///
/// If it cannot be read or has another digest.
pub fn verify(file: &Path, expected: &str) -> Result<(), Error> {
    let bytes = std::fs::read(file).map_err(Error::of(file.display()))?;
    let found = digest(&bytes);
    if found == expected {
        return Ok(());
    }
    let (shown, size) = (file.display(), bytes.len());
    let what = format!("{shown} ({size} bytes) has the digest {found}, expected {expected}");
    Err(Error::new(what))
}

/// Returns the SHA-256 of these bytes, in hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |all, byte| format!("{all}{byte:02x}"))
}

/// The command of a server: the program, its arguments, and its environment besides `PATH`.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(&'static str, OsString)>,
}

impl Launch {
    /// Returns the command itself, for the user that runs the servers. `wrapper` comes before it.
    pub fn command(&self, wrapper: &[&OsStr]) -> Command {
        let mut words = wrapper.iter().copied().map(OsStr::to_owned);
        let words = words.by_ref().chain([self.program.clone().into_os_string()]);
        let mut words = words.chain(self.arguments.iter().cloned());
        let mut command = Command::new(words.next().unwrap_or_default());
        // The user's settings for these programs would otherwise affect the tests.
        command.args(words).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("LC_ALL", "C").env("TZ", "UTC").envs(self.environment.iter().cloned());
        unprivileged(&mut command);
        command
    }

    /// Runs the command to its end.
    pub fn finish(&self) -> Result<(), Error> {
        run(&mut self.command(&[])).map(|_| ())
    }
}
