//! A `mingle serve` process that can be killed, stopped and started again at its address.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process};

/// The unit of times in `/proc`, the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// The program to run, and its place.
pub struct Launch {
    /// The command line tool.
    pub mingle: PathBuf,
    /// Holds `soak.mingle` and `soak.toml`; the log goes there.
    pub folder: PathBuf,
    pub name: &'static str,
    /// The replica to stay at, if the stores have several.
    pub at: Option<&'static str>,
}

/// The process. It is killed when this is dropped.
pub struct Serve {
    launch: Launch,
    pub address: SocketAddr,
    child: Mutex<Child>,
}

impl Serve {
    /// Starts it at a free port.
    ///
    /// # Errors
    ///
    /// When it does not start; its log says why.
    pub fn start(launch: Launch) -> Result<Self, String> {
        let (child, address) = spawn(&launch, "127.0.0.1:0")?;
        Ok(Self { launch, address, child: Mutex::new(child) })
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills it, as `kill -9` does.
    pub fn kill(&self) -> Result<(), String> {
        let mut child = self.child();
        child.kill().and_then(|()| child.wait()).map(drop).map_err(|error| error.to_string())
    }

    /// Starts it again, at the same address.
    pub fn restart(&self) -> Result<(), String> {
        let (child, _) = spawn(&self.launch, &self.address.to_string())?;
        *self.child() = child;
        Ok(())
    }

    /// Stops the process by a signal, or lets it go on.
    pub fn pause(&self, is_stopped: bool) -> Result<(), String> {
        let pid = Pid::from_raw(self.child().id() as i32).ok_or("the process has no number")?;
        let signal = if is_stopped { Signal::STOP } else { Signal::CONT };
        kill_process(pid, signal).map_err(|error| format!("process {pid}: {error}"))
    }

    /// Returns an error if the process has ended by itself.
    pub fn check(&self) -> Result<(), String> {
        match self.child().try_wait() {
            Ok(Some(status)) if !is_killed(status) => Err(format!(
                "serve {} ended with {status}: see {}",
                self.launch.name,
                self.launch.log().display()
            )),
            _ => Ok(()),
        }
    }

    /// Resident memory in MiB, and processor time so far in seconds; none while it does not run.
    pub fn used(&self) -> Option<(f64, f64)> {
        let pid = self.child().id();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let memory: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<f64>().ok();
        let (user, system) = (ticks()?, ticks()?);
        Some((memory / 1_024.0, (user + system) / TICKS_PER_SECOND))
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.kill();
    }
}

fn is_killed(status: std::process::ExitStatus) -> bool {
    std::os::unix::process::ExitStatusExt::signal(&status) == Some(9)
}

impl Launch {
    fn log(&self) -> PathBuf {
        self.folder.join(format!("serve-{}.log", self.name))
    }
}

fn spawn(launch: &Launch, listen: &str) -> Result<(Child, SocketAddr), String> {
    let path = launch.log();
    let log = File::options().create(true).append(true).open(&path);
    let log = log.map_err(|error| format!("{}: {error}", path.display()))?;
    let mut command = Command::new(&launch.mingle);
    command.args(["serve", "soak.mingle", "--config", "soak.toml", "--listen", listen]);
    command
        .args(launch.at.map(|at| ["--at", at]).into_iter().flatten())
        .current_dir(&launch.folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let child = command.spawn();
    let mut child = child.map_err(|error| format!("{}: {error}", launch.mingle.display()))?;
    let mut line = String::new();
    if let Some(out) = child.stdout.as_mut() {
        BufReader::new(out).read_line(&mut line).map_err(|error| error.to_string())?;
    }
    let address =
        line.trim_end().strip_prefix("listening on http://").and_then(|at| at.parse().ok());
    address.map(|address| (child, address)).ok_or_else(|| {
        let log = std::fs::read_to_string(&path).unwrap_or_default();
        let last = log.lines().last().unwrap_or_default();
        format!("serve {} does not start: {line}{last}", launch.name)
    })
}
