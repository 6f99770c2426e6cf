//! Reading and writing programs.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use mingle_lang::files::{Sources, Unreadable, load};
use mingle_lang::syntax::{Source, line_starts};
use mingle_lang::{Checked, check_source};

use crate::exit::Failure;

/// The path that means standard input.
pub const STDIN: &str = "-";

/// The largest size of a program, in bytes; the compiler counts bytes in 32 bits.
const BYTES_MAX: usize = 1 << 30;

/// Returns the name of a file for messages.
pub fn shown(path: &str) -> &str {
    if path == STDIN { "<stdin>" } else { path }
}

/// Returns the name of a program: that of its file, without the ending.
#[cfg(feature = "server")]
pub fn stem(path: &str) -> String {
    let stem = Path::new(path).file_stem().unwrap_or_default();
    if path == STDIN { "program".to_owned() } else { stem.to_string_lossy().into_owned() }
}

/// Reads the text of a program.
pub fn read(path: &str) -> Result<String, Failure> {
    let bytes = if path == STDIN {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    let name = shown(path);
    let bytes =
        bytes.map_err(|error| Failure::usage(format!("cannot read {name}: {}", reason(&error))))?;
    if bytes.len() > BYTES_MAX {
        let size = bytes.len();
        return Err(Failure::usage(format!("{name} has {size} bytes, more than {BYTES_MAX}")));
    }
    as_text(bytes).map_err(|line| Failure::usage(format!("{name} is not UTF-8: see line {line}")))
}

/// Returns the text, or the line in which it is not UTF-8.
fn as_text(bytes: Vec<u8>) -> Result<String, usize> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        line_starts(&error.as_bytes()[..at]).count() + 1
    })
}

/// The files of this machine, as imports name them.
#[derive(Debug, Default)]
pub struct Disk {
    /// The files that were looked for.
    pub tried: Vec<PathBuf>,
}

impl Sources for Disk {
    fn read(&mut self, path: &str) -> Result<String, Unreadable> {
        self.tried.push(path.into());
        read_imported(path).map_err(Unreadable)
    }

    fn identity(&mut self, path: &str) -> String {
        let whole = fs::canonicalize(path);
        whole.map_or_else(|_| path.to_owned(), |whole| whole.to_string_lossy().into_owned())
    }
}

fn read_imported(path: &str) -> Result<String, String> {
    let found = fs::metadata(path).map_err(|error| reason(&error))?;
    // Reading a pipe or a device might never end.
    if !found.is_file() {
        let what = if found.is_dir() { "a folder" } else { "not a regular file" };
        return Err(format!("it is {what}"));
    }
    if found.len() > BYTES_MAX as u64 {
        return Err(format!("it has {} bytes, more than {BYTES_MAX}", found.len()));
    }
    let bytes = fs::read(path).map_err(|error| reason(&error))?;
    as_text(bytes).map_err(|line| format!("it is not UTF-8: see line {line}"))
}

/// Reads a file for the language server, whose paths begin with a slash on every system.
pub fn read_for_editor(path: &str) -> Result<String, Unreadable> {
    read_imported(of_editor(path)).map_err(Unreadable)
}

/// Returns the paths of the programs in a folder, in order; none if it cannot be read.
pub fn programs(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(of_editor(folder)).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> =
        names.filter(|name| name.ends_with(".mingle") && !name.ends_with(".test.mingle")).collect();
    names.sort();
    names.into_iter().map(|name| format!("{}/{name}", folder.trim_end_matches('/'))).collect()
}

fn of_editor(path: &str) -> &str {
    if cfg!(windows) { path.trim_start_matches('/') } else { path }
}

/// Reads a program: its file, and the files that this imports.
pub fn program(path: &str) -> Result<Source, Failure> {
    Ok(load(&root_name(path), read(path)?, &mut Disk::default()))
}

/// Reads and checks a program.
pub fn checked(path: &str) -> Result<Checked, Failure> {
    Ok(check_source(program(path)?))
}

/// Returns the files that a program imports, also those that are missing.
pub fn imported(path: &str) -> Vec<PathBuf> {
    let mut disk = Disk::default();
    // The program's own file is reported by the command itself.
    if let Ok(text) = read(path) {
        load(&root_name(path), text, &mut disk);
    }
    disk.tried
}

/// Returns the name of a root file, with `/` between folders.
fn root_name(path: &str) -> String {
    if cfg!(windows) { shown(path).replace('\\', "/") } else { shown(path).to_owned() }
}

/// Replaces a file's text: all of it, or nothing if that fails.
pub fn replace(path: &str, text: &str) -> Result<(), Failure> {
    let fail =
        |error: std::io::Error| Failure::usage(format!("cannot write {path}: {}", reason(&error)));
    // If the path is a link, the file that it leads to is replaced.
    let target = fs::canonicalize(path).map_err(fail)?;
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let beside = target.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let written = fs::write(&beside, text)
        .and_then(|()| copy_permissions(&target, &beside))
        .and_then(|()| fs::rename(&beside, &target));
    if written.is_err() {
        // The first error is the important one.
        fs::remove_file(&beside).ok();
    }
    written.map_err(fail)
}

fn copy_permissions(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::set_permissions(to, fs::metadata(from)?.permissions())
}

/// Returns the reason of an error in words that users know.
fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".into(),
        std::io::ErrorKind::PermissionDenied => "permission denied".into(),
        std::io::ErrorKind::IsADirectory => "it is a folder".into(),
        _ => error.to_string(),
    }
}
