//! Data centers as processes of the command `mingled serve`.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{PATIENCE, Raw};

/// A cluster whose processes are killed with it.
pub struct Serving {
    folder: tempfile::TempDir,
    peers: Vec<SocketAddr>,
    cluster: &'static str,
    /// Arguments of all processes.
    shared: Vec<String>,
    pub running: Vec<Option<(Child, SocketAddr)>>,
}

/// Waits until a condition holds.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns free addresses on loopback.
pub fn free_addresses(count: u8) -> Vec<SocketAddr> {
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
    listeners.iter().map(|it| it.local_addr().expect("it is bound")).collect()
}

impl Serving {
    /// Creates a cluster of data centers that do not run yet.
    pub fn new(count: u8, shared: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("key"), "a key that all of them have").expect("room");
        let shared = shared.iter().map(ToString::to_string).collect();
        let running = (0..count).map(|_| None).collect();
        Self { folder, peers: free_addresses(count), cluster: "c1", shared, running }
    }

    /// Creates one with another number.
    pub fn of(cluster: &'static str, count: u8, shared: &[&str]) -> Self {
        let mut serving = Self::new(count, shared);
        serving.cluster = cluster;
        serving
    }

    /// Creates a cluster, starts all data centers, and waits until they are connected.
    pub fn started(count: u8, shared: &[&str]) -> Self {
        let mut serving = Self::new(count, shared);
        for dc in 0..usize::from(count) {
            serving.start(dc, &[]);
        }
        serving.connected();
        serving
    }

    pub fn folder(&self, dc: usize) -> PathBuf {
        self.folder.path().join(format!("d{dc}"))
    }

    /// Starts a data center that does not run.
    pub fn start(&mut self, dc: usize, more: &[&str]) {
        let peers: Vec<String> = self.peers.iter().map(ToString::to_string).collect();
        let mut child = Command::new(env!("CARGO_BIN_EXE_mingled"))
            .args(["serve", "--listen", "127.0.0.1:0", "--cluster", self.cluster])
            .args(["--peers", &peers.join(","), "--dc", &dc.to_string(), "--dir"])
            .arg(self.folder(dc))
            .arg("--token-key")
            .arg(self.folder.path().join("key"))
            .args(&self.shared)
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("the output is piped");
        BufReader::new(out).read_line(&mut line).expect("a text");
        let mut words = line.split([' ', ',', ';']);
        let address = words.find_map(|word| word.parse().ok());
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}"));
        self.running[dc] = Some((child, address));
    }

    /// Kills a data center with SIGKILL.
    pub fn kill(&mut self, dc: usize) {
        let (mut child, _) = self.running[dc].take().expect("it runs");
        child.kill().expect("it is a child");
        child.wait().expect("it is a child");
    }

    pub fn address(&self, dc: usize) -> SocketAddr {
        self.running[dc].as_ref().expect("it runs").1
    }

    pub fn client(&self, dc: usize) -> Raw {
        let (_, address) = self.running[dc].as_ref().expect("it runs");
        Raw::connect(*address)
    }

    /// Waits until all data centers that run are connected.
    pub fn connected(&self) {
        let running = self.running.iter().enumerate().filter(|(_, it)| it.is_some());
        let running: Vec<usize> = running.map(|(dc, _)| dc).collect();
        for dc in &running {
            let mut client = self.client(*dc);
            let others = running.len() - 1;
            until("they are connected", || {
                client.ask("DATACENTERS").matches("\"connected\"").count() == others
            });
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        for (child, _) in self.running.iter_mut().flatten() {
            // By its id. It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns a field of a data center in the reply to `DATACENTERS`, as it is shown.
pub fn field(client: &mut Raw, dc: usize, name: &str) -> String {
    let reply = client.ask("DATACENTERS");
    let begin = reply.find(&format!("\"name\", \"d{dc}\"")).expect("it is listed");
    let rest = &reply[begin..];
    let place = rest.find(&format!("\"{name}\", ")).expect("it has the field");
    let value = &rest[place + name.len() + 4..];
    let end = match value.strip_prefix('"') {
        Some(text) => text.find('"').expect("it ends") + 2,
        None => value.find([',', ']']).expect("it ends"),
    };
    value[..end].trim_matches('"').trim_start_matches(':').to_owned()
}
