//! Client libraries of Redis in other languages: fetched like engines, to use a server unchanged.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use crate::error::Error;
use crate::home::Home;
use crate::packages::{archives, from_maven, from_npm, from_pip, java};

/// The packages for `npm`, with the digests of the permitted archives.
const NPM_PACKAGE: &str = include_str!("library/package.json");
const NPM_LOCK: &str = include_str!("library/package-lock.json");

/// The packages for `pip`.
const PIP_REQUIREMENTS: &str = include_str!("library/requirements.txt");

/// The Maven project that depends on Jedis, and the digest of its archives.
const POM: &str = include_str!("library/jedis.pom.xml");
const ARCHIVES_SHA256: &str = "7cfbdfb43d3260d7421126229aba02f7c7af3f5b49b7c36779a54d3bde9f5825";

/// A client library of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Library {
    /// node-redis; needs Node and npm.
    NodeRedis,
    /// redis-py; needs Python with `venv`.
    RedisPy,
    /// Jedis; needs Java and Maven.
    Jedis,
}

impl Library {
    /// All libraries. They are fetched if none is named, and must run if `CI=true`.
    pub const ALL: [Self; 3] = [Self::NodeRedis, Self::RedisPy, Self::Jedis];

    /// Returns the name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::NodeRedis => "node-redis",
            Self::RedisPy => "redis-py",
            Self::Jedis => "jedis",
        }
    }

    /// Returns the folder below the home; it only exists once it is complete.
    fn folder(self) -> &'static str {
        match self {
            Self::NodeRedis => "node-redis-5.10.0",
            Self::RedisPy => "redis-py-7.1.0",
            Self::Jedis => "jedis-7.1.0",
        }
    }

    /// True if the library has been fetched.
    pub fn is_fetched(self, home: &Home) -> bool {
        home.path().join(self.folder()).is_dir()
    }

    /// Fetches the library unless it is there; returns true if it was fetched.
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
            Self::NodeRedis => from_npm(folder, NPM_PACKAGE, NPM_LOCK),
            Self::RedisPy => from_pip(folder, PIP_REQUIREMENTS),
            Self::Jedis => from_maven(folder, POM, ARCHIVES_SHA256),
        })?;
        Ok(true)
    }

    /// Returns the command that runs a program in the library's language: the script or, for Java,
    /// the source file follows as its argument.
    ///
    /// # Errors
    ///
    /// [`Error::NotFetched`], or if the folder of the library cannot be read.
    pub fn command(self, home: &Home) -> Result<Command, Error> {
        if !self.is_fetched(home) {
            return Err(Error::NotFetched(self.name()));
        }
        let folder = home.path().join(self.folder());
        Ok(match self {
            Self::NodeRedis => node(&folder),
            Self::RedisPy => Command::new(folder.join("bin/python")),
            Self::Jedis => {
                let class_path = std::env::join_paths(archives(&folder)?)
                    .map_err(|error| Error::new(format!("{}: {error}", folder.display())))?;
                let mut command = Command::new(java());
                command.arg("--class-path").arg(class_path);
                command
            }
        })
    }
}

/// Returns Node with the packages of a folder, for scripts of any folder that call `require`.
fn node(folder: &Path) -> Command {
    let mut command = Command::new("node");
    command.env("NODE_PATH", folder.join("node_modules"));
    command
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Library {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|library| library.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::new(format!("no library is called `{name}`; expected one of {names}"))
        })
    }
}
