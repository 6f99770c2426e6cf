//! A backup that a client gets from a data center.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::check::{Report, check};
use super::link::{Answer, Link};
use crate::files::sync_names;

/// A backup that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Its length in bytes.
    pub bytes: u64,
    /// Its contents as they were read back, if that was wanted.
    pub report: Option<Report>,
}

/// Makes a backup of the data center at the other end of a connection. The file has its name only once it is complete
/// and on disk, and, with `verify`, once it was read back.
///
/// # Errors
///
/// If the data center refuses it, or the file exists already, cannot be written, or is damaged.
pub fn fetch(link: &mut Link, to: &Path, verify: bool) -> Result<Fetched, String> {
    if to.exists() {
        return Err(format!("{} exists already", to.display()));
    }
    let part = part_name(to);
    let written = receive(link, &part).and_then(|bytes| {
        let report = verify.then(|| check(&part)).transpose().map_err(|error| error.to_string())?;
        let fault = |error: io::Error| format!("{}: {error}", to.display());
        fs::rename(&part, to).map_err(fault)?;
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        sync_names(Some(folder.unwrap_or(Path::new(".")))).map_err(fault)?;
        Ok(Fetched { bytes, report })
    });
    if written.is_err() {
        // It may not have been created.
        let _ = fs::remove_file(&part);
    }
    written
}

/// Returns the name of the file while it is not complete.
fn part_name(to: &Path) -> PathBuf {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    to.with_file_name(name)
}

fn receive(link: &mut Link, part: &Path) -> Result<u64, String> {
    let fault = |error: io::Error| format!("{}: {error}", part.display());
    let mut bytes = 0;
    let mut out = None;
    let mut word = "START";
    loop {
        match link.ask(&["BACKUP", word])? {
            Answer::Nil => break,
            Answer::Bytes(more) => {
                // No file is left where the server refuses the first request.
                if out.is_none() {
                    out = Some(BufWriter::new(create(part).map_err(fault)?));
                }
                bytes += more.len() as u64;
                if let Some(out) = &mut out {
                    out.write_all(&more).map_err(fault)?;
                }
            }
            Answer::Line(line) => {
                return Err(format!("the reply to BACKUP {word} is '{}'", line.escape_default()));
            }
        }
        word = "NEXT";
    }
    let Some(out) = out else { return Err("the data center has sent no backup".into()) };
    let file = out.into_inner().map_err(|error| fault(error.into_error()))?;
    file.sync_all().map_err(fault)?;
    Ok(bytes)
}

/// Creates a file that only its owner can read.
fn create(part: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    // An earlier attempt may have been interrupted.
    if let Err(error) = fs::remove_file(part)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    File::options().write(true).create_new(true).mode(0o600).open(part)
}
