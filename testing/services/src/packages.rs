//! Packages from the registries of `npm`, `pip` and Maven, in a folder of their own.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::tool::{digest, output, tool};

/// Fills a folder with the packages of a lock file, if they have its digests.
///
/// # Errors
///
/// As for [`output`].
pub(crate) fn from_npm(folder: &Path, package: &str, lock: &str) -> Result<(), Error> {
    for (name, text) in [("package.json", package), ("package-lock.json", lock)] {
        let path = folder.join(name);
        fs::write(&path, text).map_err(Error::of(path.display()))?;
    }
    let words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    output("npm", words, Some(folder)).map(|_| ())
}

/// Creates a Python environment in a folder. The folder is renamed afterwards, so its packages are
/// called as modules: the environment's scripts contain the old path.
///
/// # Errors
///
/// As for [`output`].
pub(crate) fn from_pip(folder: &Path, requirements: &str) -> Result<(), Error> {
    tool("python3", ["-m".as_ref(), "venv".as_ref(), folder.as_os_str()])?;
    let path = folder.join("requirements.txt");
    fs::write(&path, requirements).map_err(Error::of(path.display()))?;
    let words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"];
    let words = words.iter().map(AsRef::as_ref);
    let from = ["--requirement".as_ref(), path.as_os_str()];
    output(folder.join("bin/python"), words.chain(from), None).map(|_| ())
}

/// Fills a folder with the archives on which a Maven project depends. `expected` is their digest:
/// SHA-256 of one line with name and digest for each archive, in the order of names.
///
/// # Errors
///
/// As for [`output`], and if the archives have another digest.
pub(crate) fn from_maven(folder: &Path, project: &str, expected: &str) -> Result<(), Error> {
    let pom = folder.join("pom.xml");
    fs::write(&pom, project).map_err(Error::of(pom.display()))?;
    let to = format!("-DoutputDirectory={}", folder.display());
    let from = format!("-f{}", pom.display());
    let goal = "dependency:copy-dependencies";
    tool("mvn", ["-q", "-B", "-C", &from, goal, "-DincludeScope=runtime", &to])?;
    let mut lines = Vec::new();
    for archive in archives(folder)? {
        let name = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = fs::read(&archive).map_err(Error::of(archive.display()))?;
        lines.push(format!("{name} {}", digest(&bytes)));
    }
    let found = digest(lines.join("\n").as_bytes());
    if found != expected {
        let what = format!("the archives have the digest {found}, expected {expected}");
        return Err(Error::new(what));
    }
    Ok(())
}

/// Returns the Java archives in a folder, in the order of their names.
///
/// # Errors
///
/// If the folder cannot be read.
pub(crate) fn archives(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(folder).map_err(Error::of(folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut archives: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "jar")).collect();
    archives.sort();
    Ok(archives)
}

/// Returns the Java that the user has set, or the one in the path.
pub(crate) fn java() -> PathBuf {
    let home = std::env::var_os("JAVA_HOME").filter(|home| !home.is_empty());
    home.map_or_else(|| "java".into(), |home| PathBuf::from(home).join("bin/java"))
}
