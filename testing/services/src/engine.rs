//! The engines, and those that must run.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use crate::error::Error;
use crate::home::Home;
use crate::server::{Options, Place};
use crate::tool::Launch;
use crate::{cassandra, postgres, redis};

/// A database that tests use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Engine {
    /// PostgreSQL: one server.
    Postgres,
    /// Redis, or Valkey if the distribution has that instead: one server.
    Redis,
    /// Cassandra: three nodes in three data centers.
    Cassandra,
}

impl Engine {
    /// All engines.
    pub const ALL: [Self; 3] = [Self::Postgres, Self::Redis, Self::Cassandra];

    /// The engines that are fetched if none is named, and that must run if `CI=true`: those with
    /// tests.
    pub const REQUIRED: [Self; 3] = Self::ALL;

    /// Returns the name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Redis => "redis",
            Self::Cassandra => "cassandra",
        }
    }

    /// Returns the environment variable with the address of an existing server: `postgres://…`,
    /// `redis://…`, `host:port,…`.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Postgres => "MINGLE_POSTGRES",
            Self::Redis => "MINGLE_REDIS",
            Self::Cassandra => "MINGLE_CASSANDRA",
        }
    }

    /// Returns the address from the environment.
    pub fn told(self) -> Option<String> {
        std::env::var(self.variable()).ok().filter(|address| !address.is_empty())
    }

    /// Returns the folder of the fetched files, below the home; it only exists once it is complete.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Postgres => postgres::FOLDER,
            Self::Redis => redis::FOLDER,
            Self::Cassandra => cassandra::FOLDER,
        }
    }

    /// True if the files have been fetched.
    pub fn is_fetched(self, home: &Home) -> bool {
        home.path().join(self.folder()).is_dir()
    }

    /// Fetches the files unless they are there; returns true if they were fetched.
    ///
    /// # Errors
    ///
    /// If a tool is missing, a registry cannot be reached, or an archive differs from the expected
    /// one.
    pub fn fetch(self, home: &Home) -> Result<bool, Error> {
        if self.is_fetched(home) {
            return Ok(false);
        }
        let finish = |folder: &Path| match self {
            Self::Postgres => postgres::fetch(folder),
            Self::Redis => redis::fetch(folder),
            Self::Cassandra => cassandra::fetch(folder),
        };
        home.complete(self.folder(), finish)?;
        Ok(true)
    }

    /// Creates the data folder of a new server.
    pub(crate) fn prepare(
        self,
        home: &Home,
        place: &Place,
        options: &Options,
    ) -> Result<(), Error> {
        match self {
            Self::Postgres => postgres::prepare(&home.path().join(self.folder()), place),
            Self::Redis => redis::prepare(place),
            Self::Cassandra => cassandra::prepare(place, options),
        }
    }

    /// Returns the command that runs a server.
    pub(crate) fn launch(self, home: &Home, place: &Place, options: &Options) -> Launch {
        let files = home.path().join(self.folder());
        match self {
            Self::Postgres => postgres::launch(&files, place, options),
            Self::Redis => redis::launch(&files, place, options),
            Self::Cassandra => cassandra::launch(&files, place, options),
        }
    }

    /// True if the server with this process id answers.
    pub(crate) fn is_ready(self, place: &Place, pid: i32) -> bool {
        match self {
            Self::Postgres => postgres::is_ready(place, pid),
            Self::Redis => redis::is_ready(place, pid),
            Self::Cassandra => cassandra::is_ready(place),
        }
    }

    /// Returns the address for clients.
    pub(crate) fn url(self, places: &[Place]) -> String {
        let addresses: Vec<String> = places.iter().map(|place| place.address.to_string()).collect();
        let addresses = addresses.join(",");
        match self {
            Self::Postgres => format!("postgres://postgres@{addresses}/postgres"),
            Self::Redis => format!("redis://{addresses}"),
            Self::Cassandra => addresses,
        }
    }

    /// Returns the maximum time until a server must answer.
    pub(crate) fn patience(self) -> Duration {
        match self {
            Self::Postgres | Self::Redis => Duration::from_mins(1),
            Self::Cassandra => Duration::from_mins(5),
        }
    }

    /// Returns the hosts at which the processes of one server listen.
    pub(crate) fn hosts(self) -> &'static [Ipv4Addr] {
        match self {
            Self::Postgres | Self::Redis => &[Ipv4Addr::LOCALHOST],
            Self::Cassandra => &cassandra::HOSTS,
        }
    }

    /// Removes the remains of a dead server outside of its folder.
    pub(crate) fn forget(self, place: &Place) {
        match self {
            Self::Postgres => postgres::forget(place),
            Self::Redis | Self::Cassandra => {}
        }
    }

    /// Returns the signals that end a server: an orderly one, and an immediate one that still
    /// leaves no system resources behind.
    pub(crate) fn signals(self) -> Signals {
        match self {
            // On TERM, PostgreSQL waits for its clients; on KILL, it leaves a segment of shared
            // memory.
            Self::Postgres => Signals { orderly: "INT", at_once: "QUIT" },
            Self::Redis | Self::Cassandra => Signals { orderly: "TERM", at_once: "KILL" },
        }
    }
}

/// The signals that end a server, by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signals {
    /// Ends it in an orderly way.
    pub orderly: &'static str,
    /// Ends it without care for its data.
    pub at_once: &'static str,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Engine {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|engine| engine.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::new(format!("no engine is called `{name}`; expected one of {names}"))
        })
    }
}
