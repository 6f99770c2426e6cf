//! The extension for VS Code, bundled into one file and packed by `vsce`, which must give no
//! warning.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::clients::repository;
use super::{Dist, VERSION, expect, files, source};
use crate::run::{Outcome, output, wait};

/// The packages that `npm` installs; the lock file has their digests.
const PACKAGE: &str = include_str!("tools/package.json");
const LOCK: &str = include_str!("tools/package-lock.json");

/// Bundles the extension and collects the licences of the bundled packages.
const BUNDLE: &str = include_str!("tools/bundle.mjs");

/// Loads the extension without an editor.
const LOAD: &str = include_str!("tools/load.cjs");

/// Returns the folder with the tools of npm; they are installed on the first call.
///
/// # Errors
///
/// If they cannot be installed, or differ from the lock file.
pub fn tools(dist: &Dist) -> Result<PathBuf, String> {
    let folder = dist.work.join("tools");
    if folder.join("node_modules/.package-lock.json").is_file() {
        return Ok(folder);
    }
    files::write(&folder.join("package.json"), PACKAGE)?;
    files::write(&folder.join("package-lock.json"), LOCK)?;
    // No script of a package is run.
    let words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    wait(Command::new("npm").args(words).current_dir(&folder))?;
    Ok(folder)
}

/// Builds the extension and packs it.
pub fn make(dist: &Dist) -> Outcome {
    let tools = tools(dist)?;
    let (folder, from) = (dist.workshop("vscode")?, source("editors/vscode"));
    for path in files::below(&from)? {
        let name = files::relative(&from, &path)?;
        if !name.starts_with("node_modules/") && name != "extension.js" {
            files::copy(&path, &folder.join(name))?;
        }
    }
    let manifest = files::read_text(&from.join("package.json"))?;
    for expected in
        [format!("\"version\": \"{VERSION}\""), format!("\"url\": \"{}\"", repository()?)]
    {
        expect(&manifest, &expected)?;
    }
    files::write(&folder.join("LICENSE.txt"), licence()?)?;
    let script = tools.join("bundle.mjs");
    files::write(&script, BUNDLE)?;
    wait(Command::new("node").arg(&script).arg(from.join("extension.js")).arg(&folder))?;
    let mut pack = Command::new("node");
    pack.arg(tools.join("node_modules/@vscode/vsce/vsce")).args([
        "package",
        "--no-dependencies",
        "--out",
    ]);
    pack.arg(path(dist)).current_dir(&folder).stdin(Stdio::null());
    let packed = pack.output().map_err(|error| format!("vsce: {error}"))?;
    let said = String::from_utf8_lossy(&[packed.stdout, packed.stderr].concat()).into_owned();
    let is_quiet = !said.to_lowercase().contains("warning");
    (packed.status.success() && is_quiet).then_some(()).ok_or(said)
}

/// Unpacks the extension and loads it.
pub fn test(dist: &Dist) -> Outcome {
    let folder = dist.workshop("vscode-tried")?;
    let mut unpack = Command::new("python3");
    wait(unpack.args(["-m", "zipfile", "-e"]).arg(path(dist)).arg(&folder))?;
    for name in ["LICENSE.txt", "THIRD-PARTY-NOTICES.txt", "syntaxes/mingle.tmLanguage.json"] {
        files::read(&folder.join("extension").join(name))?;
    }
    files::write(&folder.join("load.cjs"), LOAD)?;
    let mut load = Command::new("node");
    let main = folder.join("extension/extension.js");
    expect(&output(load.arg(folder.join("load.cjs")).arg(main))?, "activate, deactivate")
}

fn path(dist: &Dist) -> PathBuf {
    dist.folder.join(format!("mingle-vscode-{VERSION}.vsix"))
}

fn licence() -> Result<String, String> {
    let mit = files::read_text(&source("LICENSE-MIT"))?;
    let apache = files::read_text(&source("LICENSE-APACHE"))?;
    Ok(format!(
        "Licensed under either of these, at your option.\n\n{mit}\n{}\n\n{apache}",
        "=".repeat(80)
    ))
}
