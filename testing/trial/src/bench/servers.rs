//! The servers that are compared.

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::center::{Running, free_addresses};
use crate::client::{Client, Reply};

/// The time in which a server must answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time at which a server acknowledges a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// At once; it is on disk some time later.
    EverySecond,
    /// Once it is on disk.
    Always,
}

/// A server that runs.
#[derive(Debug)]
pub struct Server(Running);

impl Server {
    /// Starts Redis with its data in a folder.
    pub fn redis(redis: &Path, folder: &Path, promise: Promise) -> Result<Self, String> {
        let fault = |error: std::io::Error| format!("{}: {error}", redis.display());
        std::fs::create_dir_all(folder).map_err(fault)?;
        let address = free_addresses(1)?.remove(0);
        let log = File::create(folder.join("log")).map_err(fault)?;
        let appendfsync = match promise {
            Promise::EverySecond => "everysec",
            Promise::Always => "always",
        };
        let child = Command::new(redis.join("server"))
            .env("LD_LIBRARY_PATH", redis.join("libraries"))
            .args(["--bind", "127.0.0.1", "--port", &address.port().to_string()])
            .args(["--appendonly", "yes", "--appendfsync", appendfsync, "--save", "", "--dir"])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(log)
            .spawn()
            .map_err(|error| {
                format!(
                    "{}: {error}; `cargo xtask services fetch redis` fetches it",
                    redis.display()
                )
            })?;
        let server = Self(Running::new(child, address));
        let deadline = Instant::now() + PATIENCE;
        while !answers(address) {
            if Instant::now() > deadline {
                return Err(format!("redis at {address} does not answer within {PATIENCE:?}"));
            }
            std::thread::sleep(PATIENCE / 500);
        }
        Ok(server)
    }

    /// Starts a single data center with its data in a folder.
    pub fn mingled(program: &Path, folder: &Path, promise: Promise) -> Result<Self, String> {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let durability = match promise {
            Promise::EverySecond => "memory",
            Promise::Always => "disk",
        };
        let data = folder.join("data").display().to_string();
        let args = ["--listen", "127.0.0.1:0", "--durability", durability, "--dir", &data];
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        Running::mingled(program, &args, &folder.join("log")).map(Self)
    }

    /// Returns the address for clients.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Returns the processor time that it has used so far.
    pub fn cpu(&self) -> Result<Duration, String> {
        self.0.cpu()
    }

    /// Stops it.
    pub fn stop(self) -> Result<(), String> {
        self.0.stop()
    }
}

fn answers(address: SocketAddr) -> bool {
    let client = Client::connect(address, PATIENCE);
    client
        .and_then(|mut client| client.ask("PING"))
        .is_ok_and(|it| it == Reply::Simple("PONG".into()))
}
