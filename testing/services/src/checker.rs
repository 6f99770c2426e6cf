//! Type checkers of generated clients: fetched like engines, but without a server. Go is not fetched; it is
//! installed or it is not.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::Error;
use crate::home::Home;
use crate::packages::{from_npm, from_pip};

/// The packages for `npm`, with the digests of the permitted archives.
const NPM_PACKAGE: &str = include_str!("checker/package.json");
const NPM_LOCK: &str = include_str!("checker/package-lock.json");

/// The packages for `pip`.
const PIP_REQUIREMENTS: &str = include_str!("checker/requirements.txt");

/// A type checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Checker {
    /// `tsc`, which also compiles TypeScript to JavaScript; needs Node and npm.
    TypeScript,
    /// `mypy`; needs Python with `venv`.
    Mypy,
    /// The command `go`, which compiles Go and checks it.
    Go,
}

/// The place of `go` where Go was installed as its authors recommend.
const GO: &str = "/usr/local/go/bin/go";

impl Checker {
    /// All checkers.
    pub const ALL: [Self; 3] = [Self::TypeScript, Self::Mypy, Self::Go];

    /// The checkers that are fetched if none is named, and must run if `CI=true`.
    pub const REQUIRED: [Self; 2] = [Self::TypeScript, Self::Mypy];

    /// Returns the name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::TypeScript => "typescript",
            Self::Mypy => "mypy",
            Self::Go => "go",
        }
    }

    /// Returns the folder below the home, which only exists once it is complete; none if the checker is not
    /// fetched but installed.
    fn folder(self) -> Option<&'static str> {
        match self {
            Self::TypeScript => Some("typescript-5.9.3"),
            Self::Mypy => Some("mypy-1.18.2"),
            Self::Go => None,
        }
    }

    /// True if the checker has been fetched, or is installed.
    pub fn is_fetched(self, home: &Home) -> bool {
        self.folder().map_or_else(|| go().is_some(), |folder| home.path().join(folder).is_dir())
    }

    /// Fetches the checker unless it is there; returns true if it was fetched.
    ///
    /// # Errors
    ///
    /// If a tool is missing, a registry cannot be reached, or an archive differs from the expected
    /// one; if a checker that is not fetched is not installed.
    pub fn fetch(self, home: &Home) -> Result<bool, Error> {
        if self.is_fetched(home) {
            return Ok(false);
        }
        let folder = self.folder().ok_or(Error::NotInstalled(self.name()))?;
        home.complete(folder, |folder| match self {
            Self::Mypy => from_pip(folder, PIP_REQUIREMENTS),
            _ => from_npm(folder, NPM_PACKAGE, NPM_LOCK),
        })?;
        Ok(true)
    }

    /// Returns the first words of its command.
    ///
    /// # Errors
    ///
    /// [`Error::NotFetched`], [`Error::NotInstalled`].
    pub fn command(self, home: &Home) -> Result<Vec<PathBuf>, Error> {
        let Some(folder) = self.folder() else {
            return go().map(|go| vec![go]).ok_or(Error::NotInstalled(self.name()));
        };
        if !self.is_fetched(home) {
            return Err(Error::NotFetched(self.name()));
        }
        let folder = home.path().join(folder);
        Ok(match self {
            Self::Mypy => vec![folder.join("bin/python"), "-m".into(), "mypy".into()],
            _ => vec!["node".into(), folder.join("node_modules/typescript/bin/tsc")],
        })
    }
}

/// Returns the command `go`: the one in the path, or the one in its usual place.
fn go() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).map(|folder| folder.join("go"));
    places.chain([GO.into()]).find(|place| place.is_file())
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
