//! Files and folders, with errors that name the path.

use std::fs;
use std::io::Error;
use std::path::{Path, PathBuf};

use crate::run::Outcome;

fn fail(path: &Path) -> impl FnOnce(Error) -> String + '_ {
    move |error| format!("{}: {error}", path.display())
}

/// Reads the content of a file.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(fail(path))
}

/// Reads the text of a file.
pub fn read_text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(fail(path))
}

/// Writes a file, and the folders above it.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Outcome {
    create_above(path)?;
    fs::write(path, content).map_err(fail(path))
}

/// Copies a file without its permissions, and makes the folders above it.
pub fn copy(from: &Path, to: &Path) -> Outcome {
    write(to, read(from)?)
}

/// Copies a folder with all its content.
pub fn copy_all(from: &Path, to: &Path) -> Outcome {
    below(from)?.iter().try_for_each(|path| copy(path, &to.join(relative(from, path)?)))
}

/// Makes a folder, and the folders above it.
pub fn create(folder: &Path) -> Outcome {
    fs::create_dir_all(folder).map_err(fail(folder))
}

fn create_above(path: &Path) -> Outcome {
    path.parent().map_or(Ok(()), create)
}

/// Removes a folder with all its content, if it exists.
pub fn remove(folder: &Path) -> Outcome {
    if folder.exists() { fs::remove_dir_all(folder).map_err(fail(folder)) } else { Ok(()) }
}

/// Returns all files below a folder, in order.
pub fn below(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(fail(folder))? {
        let path = entry.map_err(fail(folder))?.path();
        if path.is_dir() {
            found.extend(below(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Returns a path relative to a folder above it, with `/` between its parts.
pub fn relative(folder: &Path, path: &Path) -> Result<String, String> {
    let rest = path.strip_prefix(folder).map_err(|error| format!("{}: {error}", path.display()))?;
    let parts = rest.iter().map(|part| part.to_string_lossy());
    Ok(parts.collect::<Vec<_>>().join("/"))
}

/// Lets all users execute a file, or enter a folder, on systems with such permissions.
#[cfg(unix)]
pub fn set_executable(path: &Path) -> Outcome {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(fail(path))
}

/// Lets all users execute a file, or enter a folder, on systems with such permissions.
#[cfg(not(unix))]
pub fn set_executable(_path: &Path) -> Outcome {
    Ok(())
}
