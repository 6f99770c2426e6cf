//! Servers as child processes, which end with this process.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The time in which a process must stop.
const STOP: Duration = Duration::from_secs(10);

/// The unit of times in `/proc`, the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// A process that is killed when this is dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// The address for clients.
    pub address: SocketAddr,
}

impl Running {
    /// Starts `mingled` with these arguments; its errors go to the file `log`.
    pub fn mingled(program: &Path, args: &[String], log: &Path) -> Result<Self, String> {
        let fault = |error: std::io::Error| format!("{}: {error}", program.display());
        let errors = File::options().create(true).append(true).open(log).map_err(fault)?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(fault)?;
        let mut line = String::new();
        let out = child.stdout.take();
        let read = out.map(|out| BufReader::new(out).read_line(&mut line));
        let address = line.split([' ', ',']).find_map(|word| word.parse().ok());
        match (read, address) {
            (Some(Ok(_)), Some(address)) => Ok(Self { child, address }),
            _ => {
                // It has ended, or is of no use.
                let _ = child.kill();
                let _ = child.wait();
                Err(format!("mingled did not start; its error is in {}", log.display()))
            }
        }
    }

    /// Takes over a child that serves at this address.
    pub fn new(child: Child, address: SocketAddr) -> Self {
        Self { child, address }
    }

    /// Kills the process, as `kill -9` does.
    pub fn kill(&mut self) -> Result<(), String> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.map(drop).map_err(|error| format!("process {}: {error}", self.child.id()))
    }

    /// Asks the process to stop, and waits until it has.
    pub fn stop(mut self) -> Result<(), String> {
        let id = self.child.id();
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).map_err(|error| format!("process {id}: {error}"))?;
        let until = Instant::now() + STOP;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("process {id} ended with {status}")),
                Ok(None) if Instant::now() < until => std::thread::sleep(STOP / 1_000),
                Ok(None) => return Err(format!("process {id} does not stop within {STOP:?}")),
                Err(error) => return Err(format!("process {id}: {error}")),
            }
        }
    }

    /// Returns the processor time that it has used so far.
    pub fn cpu(&self) -> Result<Duration, String> {
        let path = format!("/proc/{}/stat", self.child.id());
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        // The name of the program is in brackets, and may have spaces.
        let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |place: usize| fields.get(place).and_then(|text| text.parse::<f64>().ok());
        match (ticks(11), ticks(12)) {
            (Some(user), Some(system)) => {
                Ok(Duration::from_secs_f64((user + system) / TICKS_PER_SECOND))
            }
            _ => Err(format!("{path} has no processor time")),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // By its id. It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Several data centers of a cluster.
#[derive(Debug)]
pub struct Cluster {
    program: PathBuf,
    folder: PathBuf,
    peers: Vec<SocketAddr>,
    more: Vec<String>,
    /// The processes that run.
    pub running: Vec<Option<Running>>,
}

impl Cluster {
    /// Starts data centers with these further arguments. Their data and logs are in the folder.
    pub fn start(
        program: &Path,
        folder: &Path,
        count: usize,
        more: &[&str],
    ) -> Result<Self, String> {
        let fault = |error: std::io::Error| format!("{}: {error}", folder.display());
        std::fs::create_dir_all(folder).map_err(fault)?;
        std::fs::write(folder.join("key"), "a key of a trial on loopback").map_err(fault)?;
        let running = (0..count).map(|_| None).collect();
        let more = more.iter().map(ToString::to_string).collect();
        let (program, folder) = (program.to_owned(), folder.to_owned());
        let mut cluster = Self { program, folder, peers: free_addresses(count)?, more, running };
        for dc in 0..count {
            cluster.run(dc, &[])?;
        }
        Ok(cluster)
    }

    /// Starts the process of a data center.
    pub fn run(&mut self, dc: usize, more: &[&str]) -> Result<(), String> {
        let peers: Vec<String> = self.peers.iter().map(ToString::to_string).collect();
        let path = |name: String| self.folder.join(name).display().to_string();
        let fixed = ["serve", "--ends-with-input", "--listen", "127.0.0.1:0", "--cluster", "7a1a1"];
        let own = [
            ("--peers", peers.join(",")),
            ("--dc", dc.to_string()),
            ("--dir", path(format!("d{dc}"))),
            ("--token-key", path("key".into())),
        ];
        let own = own.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
        let more = more.iter().map(ToString::to_string);
        let args = fixed.iter().map(ToString::to_string).chain(own);
        let args: Vec<String> = args.chain(self.more.iter().cloned()).chain(more).collect();
        let log = self.folder.join(format!("d{dc}.log"));
        self.running[dc] = Some(Running::mingled(&self.program, &args, &log)?);
        Ok(())
    }

    /// Returns the address of a data center for clients, if it runs.
    pub fn address(&self, dc: usize) -> Option<SocketAddr> {
        self.running[dc].as_ref().map(|running| running.address)
    }

    /// Stops all data centers.
    pub fn stop(mut self) -> Result<(), String> {
        let stopped = self.running.iter_mut().filter_map(Option::take).map(Running::stop);
        // All are stopped, even if one of them fails.
        stopped.collect::<Vec<_>>().into_iter().collect()
    }
}

/// Returns free addresses on loopback.
pub fn free_addresses(count: usize) -> Result<Vec<SocketAddr>, String> {
    let fault = |error: std::io::Error| format!("no free port on 127.0.0.1: {error}");
    let listeners: Result<Vec<TcpListener>, _> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    let listeners = listeners.map_err(fault)?;
    listeners.iter().map(|listener| listener.local_addr().map_err(fault)).collect()
}
