//! What checks the types of generated clients: fetched like engines, though nothing is served.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::Error;
use crate::home::Home;
use crate::tool::{output, tool};

/// What `npm` is asked for, with the digests of what may come.
const NPM_PACKAGE: &str = include_str!("checker/package.json");
const NPM_LOCK: &str = include_str!("checker/package-lock.json");

/// What `pip` is asked for.
const PIP_REQUIREMENTS: &str = include_str!("checker/requirements.txt");

/// A checker of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Checker {
    /// `tsc`, which also makes JavaScript of TypeScript; needs Node and npm.
    TypeScript,
    /// `mypy`; needs Python with `venv`.
    Mypy,
}

impl Checker {
    /// All of them. They are fetched when nothing is named, and must run where `CI=true`.
    pub const ALL: [Self; 2] = [Self::TypeScript, Self::Mypy];

    /// The name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::TypeScript => "typescript",
            Self::Mypy => "mypy",
        }
    }

    /// The folder below the home; it is there only once complete.
    fn folder(self) -> &'static str {
        match self {
            Self::TypeScript => "typescript-5.9.3",
            Self::Mypy => "mypy-1.18.2",
        }
    }

    /// Whether it is there.
    pub fn is_fetched(self, home: &Home) -> bool {
        home.path().join(self.folder()).is_dir()
    }

    /// Gets it, unless it is there; says whether it had to.
    ///
    /// # Errors
    ///
    /// If a tool is missing, a registry cannot be reached, or what came is not what was expected.
    pub fn fetch(self, home: &Home) -> Result<bool, Error> {
        if self.is_fetched(home) {
            return Ok(false);
        }
        home.complete(self.folder(), |folder| match self {
            Self::TypeScript => fetch_from_npm(folder),
            Self::Mypy => fetch_from_pip(folder),
        })?;
        Ok(true)
    }

    /// The words that its command begins with.
    ///
    /// # Errors
    ///
    /// [`Error::NotFetched`].
    pub fn command(self, home: &Home) -> Result<Vec<PathBuf>, Error> {
        if !self.is_fetched(home) {
            return Err(Error::NotFetched(self.name()));
        }
        let folder = home.path().join(self.folder());
        Ok(match self {
            Self::TypeScript => {
                vec!["node".into(), folder.join("node_modules/typescript/bin/tsc")]
            }
            Self::Mypy => vec![folder.join("bin/python"), "-m".into(), "mypy".into()],
        })
    }
}

/// Fills a folder with what the lock lists, if it has the digests that stand there.
fn fetch_from_npm(folder: &Path) -> Result<(), Error> {
    for (name, text) in [("package.json", NPM_PACKAGE), ("package-lock.json", NPM_LOCK)] {
        let path = folder.join(name);
        fs::write(&path, text).map_err(Error::of(path.display()))?;
    }
    let words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    output("npm", words, Some(folder)).map(|_| ())
}

/// Makes a folder an environment of Python's. It is not moved afterwards: what is in it is called
/// as a module, so that no script with its old path is needed.
fn fetch_from_pip(folder: &Path) -> Result<(), Error> {
    tool("python3", ["-m".as_ref(), "venv".as_ref(), folder.as_os_str()])?;
    let requirements = folder.join("requirements.txt");
    fs::write(&requirements, PIP_REQUIREMENTS).map_err(Error::of(requirements.display()))?;
    let words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"];
    let words = words.iter().map(AsRef::as_ref);
    let from = ["--requirement".as_ref(), requirements.as_os_str()];
    output(folder.join("bin/python"), words.chain(from), None).map(|_| ())
}

impl fmt::Display for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Checker {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|checker| checker.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::new(format!("no checker is called `{name}`; expected one of {names}"))
        })
    }
}
