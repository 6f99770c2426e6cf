//! Which engines there are, and which must run.

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

/// A database that tests talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Engine {
    /// PostgreSQL: one server.
    Postgres,
    /// Redis, or Valkey where the distribution has that: one server.
    Redis,
    /// Cassandra: three nodes in three data centers.
    Cassandra,
}

impl Engine {
    /// All engines.
    pub const ALL: [Self; 3] = [Self::Postgres, Self::Redis, Self::Cassandra];

    /// The engines that are fetched when none is named, and that must run where `CI=true`: those
    /// that tests exist for.
    pub const REQUIRED: [Self; 3] = Self::ALL;

    /// The name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Redis => "redis",
            Self::Cassandra => "cassandra",
        }
    }

    /// The variable of the environment that tells the address of a server that is there already:
    /// `postgres://…`, `redis://…`, `host:port,…`.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Postgres => "MINGLE_POSTGRES",
            Self::Redis => "MINGLE_REDIS",
            Self::Cassandra => "MINGLE_CASSANDRA",
        }
    }

    /// The address that the environment tells.
    pub fn told(self) -> Option<String> {
        std::env::var(self.variable()).ok().filter(|address| !address.is_empty())
    }

    /// The folder below the home that the fetched files are in; it is there only once complete.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Postgres => postgres::FOLDER,
            Self::Redis => redis::FOLDER,
            Self::Cassandra => cassandra::FOLDER,
        }
    }

    /// Whether the files are there.
    pub fn is_fetched(self, home: &Home) -> bool {
        home.path().join(self.folder()).is_dir()
    }

    /// Gets the files, unless they are there; says whether it had to.
    ///
    /// # Errors
    ///
    /// If a tool is missing, a registry cannot be reached, or what came is not what was expected.
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

    /// Makes the data folder of a new server.
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

    /// The command that runs a server.
    pub(crate) fn launch(self, home: &Home, place: &Place, options: &Options) -> Launch {
        let files = home.path().join(self.folder());
        match self {
            Self::Postgres => postgres::launch(&files, place, options),
            Self::Redis => redis::launch(&files, place, options),
            Self::Cassandra => cassandra::launch(&files, place, options),
        }
    }

    /// Whether the server that has this process id answers.
    pub(crate) fn is_ready(self, place: &Place, pid: i32) -> bool {
        match self {
            Self::Postgres => postgres::is_ready(place, pid),
            Self::Redis => redis::is_ready(place, pid),
            Self::Cassandra => cassandra::is_ready(place),
        }
    }

    /// What clients are told.
    pub(crate) fn url(self, places: &[Place]) -> String {
        let addresses: Vec<String> = places.iter().map(|place| place.address.to_string()).collect();
        let addresses = addresses.join(",");
        match self {
            Self::Postgres => format!("postgres://postgres@{addresses}/postgres"),
            Self::Redis => format!("redis://{addresses}"),
            Self::Cassandra => addresses,
        }
    }

    /// How long a server may take until it answers.
    pub(crate) fn patience(self) -> Duration {
        match self {
            Self::Postgres | Self::Redis => Duration::from_mins(1),
            Self::Cassandra => Duration::from_mins(5),
        }
    }

    /// The hosts that the processes of one server listen at.
    pub(crate) fn hosts(self) -> &'static [Ipv4Addr] {
        match self {
            Self::Postgres | Self::Redis => &[Ipv4Addr::LOCALHOST],
            Self::Cassandra => &cassandra::HOSTS,
        }
    }

    /// Removes what a server that is over has left outside of its folder.
    pub(crate) fn forget(self, place: &Place) {
        match self {
            Self::Postgres => postgres::forget(place),
            Self::Redis | Self::Cassandra => {}
        }
    }

    /// The signals that end a server: in good order, and at once but leaving nothing of the
    /// system's behind.
    pub(crate) fn signals(self) -> Signals {
        match self {
            // Told to terminate, PostgreSQL waits for its clients; killed, it leaves a segment of
            // shared memory.
            Self::Postgres => Signals { orderly: "INT", at_once: "QUIT" },
            Self::Redis | Self::Cassandra => Signals { orderly: "TERM", at_once: "KILL" },
        }
    }
}

/// The signals that end a server, by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signals {
    /// Ends it in good order.
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
