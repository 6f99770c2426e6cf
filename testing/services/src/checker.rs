//! Type checkers of generated clients: fetched like engines, but without a server.

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
}

impl Checker {
    /// All checkers. They are fetched if none is named, and must run if `CI=true`.
    pub const ALL: [Self; 2] = [Self::TypeScript, Self::Mypy];

    /// Returns the name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::TypeScript => "typescript",
            Self::Mypy => "mypy",
        }
    }

    /// Returns the folder below the home; it only exists once it is complete.
    fn folder(self) -> &'static str {
        match self {
            Self::TypeScript => "typescript-5.9.3",
            Self::Mypy => "mypy-1.18.2",
        }
    }

    /// True if the checker has been fetched.
    pub fn is_fetched(self, home: &Home) -> bool {
        home.path().join(self.folder()).is_dir()
    }

    /// Fetches the checker unless it is there; returns true if it was fetched.
    ///
    /// # Errors
    ///
    /// If a tool is missing, a registry cannot be reached, or an archive differs from the expected
    /// one.
    pub fn fetch(self, home: &Home) -> Result<bool, Error> {
        if self.is_fetched(home) {
            return Ok(false);
        }
        home.complete(self.folder(), |folder| match self {
            Self::TypeScript => from_npm(folder, NPM_PACKAGE, NPM_LOCK),
            Self::Mypy => from_pip(folder, PIP_REQUIREMENTS),
        })?;
        Ok(true)
    }

    /// Returns the first words of its command.
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
