//! A process that cannot be mistaken for a later one with the same id.

use std::fmt;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// A process: its id, and its start time in clock ticks since boot. Ids are reused, the pair is
/// not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: i32,
    /// Its start time, in clock ticks.
    pub born: u64,
}

/// The system's data about a process.
struct Stat {
    is_zombie: bool,
    parent: i32,
    born: u64,
}

/// Reads `/proc/PID/stat`; `None` if there is no such process.
fn stat(pid: i32) -> Option<Stat> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it is in parentheses, and may itself contain spaces and parentheses.
    let (_, rest) = line.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let is_zombie = matches!(*fields.first()?, "Z" | "X");
    Some(Stat {
        is_zombie,
        parent: fields.get(1)?.parse().ok()?,
        born: fields.get(19)?.parse().ok()?,
    })
}

impl Process {
    /// Returns the running process with this id.
    pub fn running(pid: i32) -> Option<Self> {
        let stat = stat(pid)?;
        (!stat.is_zombie).then_some(Self { pid, born: stat.born })
    }

    /// True if it runs; a zombie does not.
    pub fn is_running(self) -> bool {
        Self::running(self.pid) == Some(self)
    }

    /// Sends a signal to this process, never to a later one with the same id. It is no error if the
    /// process has ended.
    pub(crate) fn signal(self, signal: Signal) -> io::Result<()> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(()) };
        match self.send(pid, signal) {
            Err(rustix::io::Errno::SRCH) => Ok(()),
            other => other.map_err(io::Error::from),
        }
    }

    #[cfg(target_os = "linux")]
    fn send(self, pid: Pid, signal: Signal) -> rustix::io::Result<()> {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
        // The descriptor refers to the same process even after the check.
        let descriptor = pidfd_open(pid, PidfdFlags::empty());
        if !self.is_running() {
            return Ok(());
        }
        match descriptor {
            Ok(descriptor) => pidfd_send_signal(descriptor, signal),
            Err(rustix::io::Errno::NOSYS) => rustix::process::kill_process(pid, signal),
            Err(error) => Err(error),
        }
    }

    /// On other systems nothing is fetched, so no process is started.
    #[cfg(not(target_os = "linux"))]
    fn send(self, _: Pid, _: Signal) -> rustix::io::Result<()> {
        Err(rustix::io::Errno::NOSYS)
    }

    /// Returns the running processes that it has started.
    fn children(self) -> Vec<Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_child = |pid: &i32| stat(*pid).is_some_and(|stat| stat.parent == self.pid);
        pids.filter(is_child).filter_map(Self::running).collect()
    }

    /// Kills it together with all processes that it has started, so that none of them notices the
    /// death of another and cleans up, as in a power failure.
    ///
    /// # Errors
    ///
    /// If this process lacks the permission.
    pub fn kill_all(self) -> io::Result<()> {
        // A stopped process starts no other one and notices nothing.
        self.signal(Signal::STOP)?;
        let children = self.children();
        self.signal(Signal::KILL)?;
        children.iter().try_for_each(|child| child.kill_all())?;
        let deadline = Instant::now() + Duration::from_secs(10);
        if std::iter::once(&self).chain(&children).all(|process| process.has_ended_by(deadline)) {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("{self} runs though it was killed")))
    }

    /// Waits for its end; returns false if the deadline passes first.
    pub fn has_ended_by(self, deadline: Instant) -> bool {
        loop {
            if !self.is_running() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Asks it to end with a signal, and kills it if it still runs after `patience`.
    pub(crate) fn end(self, asked: Signal, patience: Duration) -> io::Result<()> {
        self.signal(asked)?;
        if self.has_ended_by(Instant::now() + patience) { Ok(()) } else { self.kill_all() }
    }
}

/// Returns the signal with this name.
pub(crate) fn signal_named(name: &str) -> Signal {
    match name {
        "INT" => Signal::INT,
        "QUIT" => Signal::QUIT,
        "TERM" => Signal::TERM,
        _ => Signal::KILL,
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_told_from_a_later_one_of_its_number() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let process = Process::running(child.id() as i32).unwrap();
        let later = Process { born: process.born + 1, ..process };
        assert!(process.is_running() && !later.is_running());
        later.kill_all().unwrap();
        assert!(process.is_running());
        // It is a zombie until it is waited for, and does not count as running.
        process.kill_all().unwrap();
        assert!(!process.is_running());
        child.wait().unwrap();
        assert_eq!(Process::running(process.pid), None);
    }

    #[test]
    fn all_that_it_started_is_killed_too() {
        let script = "sleep 1000 & sleep 1000 & wait";
        let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let process = Process::running(child.id() as i32).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while process.children().len() < 2 && Instant::now() < deadline {
            std::thread::yield_now();
        }
        let children = process.children();
        assert_eq!(children.len(), 2);
        process.kill_all().unwrap();
        assert!(children.iter().all(|child| !child.is_running()));
        child.wait().unwrap();
    }
}
