//! The command from end to end: its output and its exit code.

mod check;
mod check_history;
mod crash;
mod datacenters;
mod disk;
mod doctor;
mod explain;
mod files;
mod fmt;
mod generate;
mod init;
mod init_cassandra;
mod init_redis;
mod lsp;
mod migrate;
mod new;
mod postgres;
mod recover;
mod repl;
mod run;
mod schemas;
mod serve;
mod test;
pub mod tutorial;
mod usage;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The result of a call.
pub struct Run {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The exit code; none if a signal ended the process.
    pub code: Option<i32>,
}

/// Runs the command in a folder.
pub fn mingle(folder: &Path, args: &[&str]) -> Run {
    mingle_with(folder, args, "")
}

/// Runs the command in a folder with something on standard input.
pub fn mingle_with(folder: &Path, args: &[&str], stdin: &str) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mingle"))
        .args(args)
        .current_dir(folder)
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // The command may end without reading all of its input.
    child.stdin.take().expect("it is piped").write_all(stdin.as_bytes()).ok();
    let output = child.wait_with_output().expect("the command ends");
    Run {
        stdout: String::from_utf8(output.stdout).expect("UTF-8 on standard output"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8 on standard error"),
        code: output.status.code(),
    }
}

/// Returns the complete answer of a server to a request.
pub fn exchange(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_mins(1))).expect("it is no zero");
    stream.write_all(request.as_bytes()).expect("it listens");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    text
}

/// Returns the complete answer of a server to a call, with these headers of the request, each with its line end.
pub fn call(address: &str, transaction: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    let request = format!(
        "POST /v1/transactions/{transaction} HTTP/1.1\r\nhost: localhost\r\n\
         connection: close\r\ncontent-type: application/json\r\n{headers}\
         content-length: {length}\r\n\r\n{body}"
    );
    exchange(address, &request)
}

/// Makes a folder with files in it.
pub fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder for the test");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("it is made");
        std::fs::write(path, text).expect("the file is written");
    }
    folder
}

/// A program without diagnostics, in the format of `mingle fmt`.
pub const GOOD: &str = "\
store inboxes: causal;

object User in inboxes {
    key name: string;
    inbox: log<string>;
}

transaction send(to: ref User, text: string) {
    to.inbox.append(text);
}
";

/// A program with an error in line 9.
pub const BAD: &str = "\
store inboxes: causal;

object User in inboxes {
    key name: string;
    inbox: log<string>;
}

transaction send(to: ref User, text: string) {
    to.inbx.append(text);
}
";
