//! The runtimes of generated clients as packages.

pub mod go;
pub mod python;
pub mod typescript;

use std::path::Path;

use super::{Dist, files, source};
use crate::run::{Outcome, output};

/// Returns the address of the repository from the workspace's manifest.
///
/// # Errors
///
/// If there is none.
pub fn repository() -> Result<String, String> {
    let manifest = files::read_text(&source("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("repository = \""));
    let address = line.and_then(|rest| rest.strip_suffix('"'));
    address.map(str::to_owned).ok_or_else(|| "Cargo.toml has no repository".into())
}

/// Writes a client of the example `bank.mingle` that imports the package.
fn write_client(dist: &Dist, language: &str, to: &Path) -> Outcome {
    let mut command = dist.command();
    command.args(["gen", language, "--runtime", "import"]).arg(source("examples/bank.mingle"));
    files::write(to, output(&mut command)?)
}

/// Copies the example `bank.mingle` to a folder, in which it can keep its stores.
fn copy_program(folder: &Path) -> Result<std::path::PathBuf, String> {
    let program = folder.join("bank.mingle");
    files::copy(&source("examples/bank.mingle"), &program)?;
    Ok(program)
}
