//! Reading and writing programs.

use std::fs;
use std::io::Read;
use std::path::Path;

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
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = mingle_lang::syntax::line_starts(&error.as_bytes()[..at]).count() + 1;
        Failure::usage(format!("{name} is not UTF-8: see line {line}"))
    })
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
