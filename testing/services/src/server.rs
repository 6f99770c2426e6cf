//! A server for the length of a test, which can be killed and restarted.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::error::Error;
use crate::home::{Home, hand_over};
use crate::port;
use crate::process::{Process, signal_named};
use crate::supervise::Supervisor;
use crate::tool::ending;

/// Number of ports to try if other processes take the chosen ones.
const PORTS_TRIED: usize = 5;

/// Time for a server to end in an orderly way before it is killed.
pub(crate) const END_WITHIN: Duration = Duration::from_secs(30);

/// Additional settings of a server. Every server is durable, and on loopback only.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) is_for_load: bool,
}

impl Options {
    /// Adds a setting, by its name in the engine's documentation; it takes precedence over the
    /// default.
    ///
    /// ```
    /// use mingle_services::Options;
    ///
    /// let fast = Options::default().setting("fsync", "off").setting("max_connections", "200");
    /// ```
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Configures a server for measurements rather than for a quick start: with Java's optimizing
    /// compiler, which makes Cassandra fast after a while under load, and with more memory. The
    /// other engines always run like this.
    pub fn for_load(self) -> Self {
        Self { is_for_load: true, ..self }
    }
}

/// The address and the folder of one server process.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Holds the data folder and the log.
    pub folder: PathBuf,
    /// The index of the process in its server, from 0.
    pub index: usize,
    /// The address for clients.
    pub address: SocketAddrV4,
    /// The port at which the processes of one server reach each other.
    pub inner_port: u16,
}

impl Place {
    /// Returns the folder of the engine's data.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Returns the file of the server's output.
    pub fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Creates the folder for the user that runs the servers.
    pub fn make(&self) -> Result<(), Error> {
        fs::create_dir_all(&self.folder).map_err(Error::of(self.folder.display()))?;
        hand_over(&self.folder)
    }
}

/// Returns the places for the processes of one server of this engine, in subfolders of a folder.
pub(crate) fn places(engine: Engine, folder: &Path, ports: [u16; 2]) -> Vec<Place> {
    let [port, inner_port] = ports;
    let place = |(index, host): (usize, &Ipv4Addr)| Place {
        folder: folder.join(index.to_string()),
        index,
        address: SocketAddrV4::new(*host, port),
        inner_port,
    };
    engine.hosts().iter().enumerate().map(place).collect()
}

/// Waits until a server answers.
///
/// # Errors
///
/// With the end of its log, if it ends instead, or does not answer in time.
pub(crate) fn await_ready(engine: Engine, place: &Place, process: Process) -> Result<(), Error> {
    let deadline = Instant::now() + engine.patience();
    while !engine.is_ready(place, process.pid) {
        let is_running = process.is_running();
        if !is_running || Instant::now() > deadline {
            let log = fs::read(place.log()).unwrap_or_default();
            let log = ending(&String::from_utf8_lossy(&log));
            let how = if is_running { "does not answer" } else { "ended at once" };
            return Err(Error::new(format!("{engine} at {} {how}{log}", place.address)));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// True if a server could not start because its port was taken.
fn is_port_taken(error: &Error) -> bool {
    error.to_string().to_lowercase().contains("address already in use")
}

/// A running server. It is stopped when this value is dropped, or when the process that holds it
/// ends, even if killed. Its data is removed with it.
///
/// ```no_run
/// # async fn test() -> Result<(), mingle_services::Error> {
/// use mingle_services::{Engine, Server};
///
/// let server = Server::start(Engine::Redis).await?;
/// println!("listening at {}", server.url());
/// server.kill9().await?;
/// server.restart().await?; // at the same address, with the data it had acknowledged
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    engine: Engine,
    url: String,
    own: Option<Arc<Own>>,
}

impl Server {
    /// Starts a server for the caller alone.
    ///
    /// # Errors
    ///
    /// [`Error::NotFetched`]; or the server's complaint.
    pub async fn start(engine: Engine) -> Result<Self, Error> {
        Self::start_with(engine, Options::default()).await
    }

    /// Like [`Server::start`], with settings.
    ///
    /// # Errors
    ///
    /// As [`Server::start`].
    pub async fn start_with(engine: Engine, options: Options) -> Result<Self, Error> {
        let own = blocking(move || Own::start(engine, &options)).await?;
        let places: Vec<Place> = own.nodes.iter().map(|node| node.place.clone()).collect();
        Ok(Self { engine, url: engine.url(&places), own: Some(Arc::new(own)) })
    }

    /// Returns the server whose address is in the environment ([`Engine::variable`]), if there is
    /// one. This process cannot kill it.
    pub fn told(engine: Engine) -> Option<Self> {
        engine.told().map(|url| Self { engine, url, own: None })
    }

    /// Returns its engine.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Returns its address in the form for clients, such as
    /// `postgres://postgres@127.0.0.1:20345/postgres`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the address of each of its processes. For a server that this process did not start,
    /// they are parsed from its address, in which hosts are IP addresses.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        match &self.own {
            Some(own) => own.nodes.iter().map(|node| node.place.address.into()).collect(),
            None => addresses_in(&self.url),
        }
    }

    /// Returns its running processes, in the order of [`Server::addresses`].
    pub fn processes(&self) -> Vec<Process> {
        let nodes = self.own.iter().flat_map(|own| &own.nodes);
        nodes.filter_map(Node::process).filter(|process| process.is_running()).collect()
    }

    /// Returns the output of its processes so far; none if this process did not start it.
    pub fn log(&self) -> Option<String> {
        let own = self.own.as_ref()?;
        let logs = own.nodes.iter().filter_map(|node| fs::read(node.place.log()).ok());
        Some(logs.map(|log| String::from_utf8_lossy(&log).into_owned()).collect())
    }

    /// Kills all its processes, as in a power failure; they are gone when this returns.
    ///
    /// # Errors
    ///
    /// If this process did not start it.
    pub async fn kill9(&self) -> Result<(), Error> {
        let own = self.own()?;
        blocking(move || own.nodes.iter().try_for_each(Node::kill)).await
    }

    /// Kills the process at the address of this index.
    ///
    /// # Errors
    ///
    /// If this process did not start it, or there is no process at that index.
    pub async fn kill9_node(&self, index: usize) -> Result<(), Error> {
        let own = self.own()?;
        let count = own.nodes.len();
        let none = move || Error::new(format!("there is no process {index}, of {count}"));
        blocking(move || own.nodes.get(index).ok_or_else(none)?.kill()).await
    }

    /// Starts the processes that do not run, at their addresses and with their data, and waits
    /// until they answer.
    ///
    /// # Errors
    ///
    /// If this process did not start it, or it does not come back; the text gives the reason.
    pub async fn restart(&self) -> Result<(), Error> {
        let own = self.own()?;
        blocking(move || own.restart()).await
    }

    fn own(&self) -> Result<Arc<Own>, Error> {
        let what = || Error::new(format!("{} at {} is not ours to kill", self.engine, self.url));
        self.own.clone().ok_or_else(what)
    }
}

/// Runs a blocking function on a thread where it delays no other task.
async fn blocking<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(run).await.map_err(Error::of("the runtime ends"))?
}

/// A server that this process has started.
#[derive(Debug)]
struct Own {
    engine: Engine,
    home: Home,
    options: Options,
    folder: PathBuf,
    nodes: Vec<Node>,
}

/// One process of a server.
#[derive(Debug)]
struct Node {
    place: Place,
    supervisor: Mutex<Option<Supervisor>>,
}

impl Own {
    fn start(engine: Engine, options: &Options) -> Result<Self, Error> {
        let home = Home::find()?;
        if !engine.is_fetched(&home) {
            return Err(Error::NotFetched(engine.name()));
        }
        let mut tried = 0;
        loop {
            tried += 1;
            match Self::try_start(engine, &home, options) {
                Err(error) if tried < PORTS_TRIED && is_port_taken(&error) => {}
                other => return other,
            }
        }
    }

    fn try_start(engine: Engine, home: &Home, options: &Options) -> Result<Self, Error> {
        let folder = home.new_run(engine.name())?;
        let ports = port::free(engine.hosts())?;
        let nodes = places(engine, &folder, ports).into_iter();
        let nodes = nodes.map(|place| Node { place, supervisor: Mutex::new(None) }).collect();
        // If a later step fails, the drop of this value cleans up.
        let own = Self { engine, home: home.clone(), options: options.clone(), folder, nodes };
        for node in &own.nodes {
            node.place.make()?;
            engine.prepare(home, &node.place, options)?;
        }
        own.run(own.nodes.iter())?;
        Ok(own)
    }

    /// Starts these processes, and waits until all of them answer.
    fn run<'a>(&self, nodes: impl Iterator<Item = &'a Node> + Clone) -> Result<(), Error> {
        for node in nodes.clone() {
            let launch = self.engine.launch(&self.home, &node.place, &self.options);
            let (folder, log) = (&node.place.folder, node.place.log());
            let signal = self.engine.signals().at_once;
            node.replace(Supervisor::start(&launch, signal, folder, &log)?);
        }
        for node in nodes {
            if let Some(process) = node.process() {
                await_ready(self.engine, &node.place, process)?;
            }
        }
        Ok(())
    }

    fn restart(&self) -> Result<(), Error> {
        let is_dead = |node: &&Node| !node.process().is_some_and(Process::is_running);
        let deadline = Instant::now() + self.engine.patience();
        loop {
            let dead: Vec<&Node> = self.nodes.iter().filter(is_dead).collect();
            let started = self.run(dead.iter().copied());
            // Another process may hold its port briefly.
            if started.is_ok() || Instant::now() > deadline {
                return started;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        for node in &self.nodes {
            let Some(supervisor) = node.take() else { continue };
            let asked = signal_named(self.engine.signals().at_once);
            // A process that could not be ended is left to its shell, which tries again after this
            // process has ended.
            if supervisor.process.end(asked, END_WITHIN).is_ok() {
                supervisor.dismiss();
            }
            self.engine.forget(&node.place);
        }
        // An error that leaves the folder behind cannot be reported here.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Node {
    fn process(&self) -> Option<Process> {
        let supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner);
        supervisor.as_ref().map(|supervisor| supervisor.process)
    }

    fn take(&self) -> Option<Supervisor> {
        self.supervisor.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Drops the shell of a killed server once its successor's shell is there.
    fn replace(&self, successor: Supervisor) {
        let mut supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(former) = supervisor.replace(successor) {
            former.dismiss();
        }
    }

    fn kill(&self) -> Result<(), Error> {
        let Some(process) = self.process() else { return Ok(()) };
        process.kill_all().map_err(Error::of(format!("cannot kill {process}")))
    }
}

/// Returns the addresses in a text such as `redis://127.0.0.1:6379` or
/// `127.0.0.1:9042,127.0.0.2:9042`.
fn addresses_in(url: &str) -> Vec<SocketAddr> {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let hosts = after_scheme.split(['/', '?']).next().unwrap_or(after_scheme);
    let hosts = hosts.rsplit_once('@').map_or(hosts, |(_, hosts)| hosts);
    hosts.split(',').filter_map(|host| host.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_from_urls() {
        let port = |port| SocketAddr::from(([127, 0, 0, 1], port));
        for (url, expected) in [
            ("postgres://postgres:a@b@127.0.0.1:5432/postgres?sslmode=disable", vec![port(5432)]),
            ("redis://127.0.0.1:6379", vec![port(6379)]),
            ("127.0.0.1:9042,127.0.0.1:9043", vec![port(9042), port(9043)]),
            ("redis://localhost:6379", vec![]),
        ] {
            assert_eq!(addresses_in(url), expected, "{url}");
        }
    }
}
