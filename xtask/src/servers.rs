//! The servers that suites share: each is started once, and its address is passed in the
//! environment.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::run::root;

/// The engines, each with the variable that passes its address to the tests.
const ENGINES: [(&str, &str); 3] =
    [("postgres", "MINGLE_POSTGRES"), ("redis", "MINGLE_REDIS"), ("cassandra", "MINGLE_CASSANDRA")];

/// Servers that run until this is dropped. Each ends with its keeper, whose input ends with this
/// process.
#[derive(Default)]
pub struct Servers {
    keepers: Vec<Child>,
    /// The environment variables for suites.
    pub told: Vec<(&'static str, String)>,
}

impl Servers {
    /// Starts each fetched engine that has no address in the environment yet.
    ///
    /// # Errors
    ///
    /// When a fetched engine does not start.
    pub fn start(services: &Path) -> Result<Self, String> {
        Self::start_some(services, &ENGINES.map(|(engine, _)| engine))
    }

    /// Starts those of these engines that were fetched and have no address in the environment yet.
    ///
    /// # Errors
    ///
    /// When a fetched engine does not start.
    pub fn start_some(services: &Path, engines: &[&str]) -> Result<Self, String> {
        let mut servers = Self::default();
        let mut starting = Vec::new();
        for (engine, variable) in ENGINES.into_iter().filter(|(name, _)| engines.contains(name)) {
            if std::env::var_os(variable).is_some() || !is_fetched(services, engine)? {
                continue;
            }
            let mut keeper = command(services);
            let keeper =
                keeper.args(["hold", engine]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
            let mut keeper = keeper.map_err(|error| format!("{}: {error}", services.display()))?;
            let out = keeper.stdout.take();
            servers.keepers.push(keeper);
            starting.push((engine, variable, out));
        }
        for (engine, variable, out) in starting {
            let mut line = String::new();
            if let Some(out) = out {
                let read = BufReader::new(out).read_line(&mut line);
                read.map_err(|error| format!("{engine}: {error}"))?;
            }
            let address = line.split_whitespace().next();
            let address = address.ok_or_else(|| format!("{engine} did not start"))?;
            servers.told.push((variable, address.to_owned()));
        }
        Ok(servers)
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for keeper in &mut self.keepers {
            drop(keeper.stdin.take());
        }
        for keeper in &mut self.keepers {
            // The keeper ends its server before it ends itself.
            let _ = keeper.wait();
        }
    }
}

/// True if the files of an engine exist.
fn is_fetched(services: &Path, engine: &str) -> Result<bool, String> {
    let asked = command(services).args(["status", engine]).output();
    let told = asked.map_err(|error| format!("{}: {error}", services.display()))?;
    Ok(!String::from_utf8_lossy(&told.stdout).contains("not fetched"))
}

/// Returns the keeper of servers, which may have been built elsewhere.
fn command(services: &Path) -> Command {
    let mut command = Command::new(services);
    command.current_dir(root());
    if std::env::var_os("MINGLE_SERVICES").is_none() {
        command.env("MINGLE_SERVICES", root().join("target/services"));
    }
    command
}
