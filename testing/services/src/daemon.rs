//! Servers that outlive the command that starts them.
//!
//! A file holds the process id and the start time of each, so that a later process with the same id
//! is never taken for a server. Their data is kept.

use std::fs::{self, File, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use crate::engine::Engine;
use crate::error::Error;
use crate::home::{Home, hand_over};
use crate::port;
use crate::process::{Process, signal_named};
use crate::server::{END_WITHIN, Options, Place, await_ready, places};
use crate::tool::Launch;

/// The file that lists the started processes, below the home.
const STARTED: &str = "started.txt";

/// A started process: one line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Started {
    engine: Engine,
    process: Process,
    url: String,
}

impl Started {
    fn print(&self) -> String {
        let Self { engine, process, url } = self;
        format!("{engine} {} {} {url}\n", process.pid, process.born)
    }

    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [engine, pid, born, url] = words.as_slice() else { return None };
        let process = Process { pid: pid.parse().ok()?, born: born.parse().ok()? };
        Some(Self { engine: engine.parse().ok()?, process, url: (*url).to_owned() })
    }
}

/// The running processes, read from the file; other processes wait while this is held.
struct Register {
    path: PathBuf,
    started: Vec<Started>,
    _lock: File,
}

impl Register {
    fn open(home: &Home) -> Result<Self, Error> {
        let path = home.path().join(STARTED);
        let lock = path.with_extension("lock");
        let file = OpenOptions::new().create(true).append(true).open(&lock);
        let file = file.and_then(|file| file.lock().map(|()| file));
        let lock = file.map_err(Error::of(format!("cannot lock {}", lock.display())))?;
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            other => other.map_err(Error::of(path.display()))?,
        };
        let mut started = Vec::new();
        for line in text.lines() {
            let unreadable =
                || Error::new(format!("{}: `{line}` is not ours: delete the file", path.display()));
            started.push(Started::parse(line).ok_or_else(unreadable)?);
        }
        Ok(Self { path, started, _lock: lock })
    }

    fn save(&self) -> Result<(), Error> {
        let text: String = self.started.iter().map(Started::print).collect();
        let new = self.path.with_extension("new");
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &self.path));
        written.map_err(Error::of(self.path.display()))
    }

    /// Returns the running processes of an engine.
    fn running(&self, engine: Engine) -> impl Iterator<Item = &Started> {
        let of_engine = self.started.iter().filter(move |started| started.engine == engine);
        of_engine.filter(|started| started.process.is_running())
    }
}

/// Starts a server that continues after this process, unless one runs, and returns its address. It
/// keeps the data of the previous server.
///
/// # Errors
///
/// [`Error::NotFetched`]; or the server's complaint, for example that its port is taken.
pub fn start(home: &Home, engine: Engine) -> Result<String, Error> {
    let mut register = Register::open(home)?;
    if let Some(started) = register.running(engine).next() {
        return Ok(started.url.clone());
    }
    if !engine.is_fetched(home) {
        return Err(Error::NotFetched(engine.name()));
    }
    let mut folder = home.path().join("started");
    make_for_server(&folder)?;
    folder.push(engine.name());
    make_for_server(&folder)?;
    let places = places(engine, &folder, ports(engine, &folder)?);
    let url = engine.url(&places);
    register.started.retain(|started| started.engine != engine);
    for place in &places {
        prepare(home, engine, place)?;
        let process = detach(&engine.launch(home, place, &Options::default()), place)?;
        // The entry is written first, so that `stop` finds the process after any failure.
        register.started.push(Started { engine, process, url: url.clone() });
        register.save()?;
    }
    let started = register.started.iter().filter(|started| started.engine == engine);
    for (place, started) in places.iter().zip(started) {
        await_ready(engine, place, started.process)?;
    }
    Ok(url)
}

fn make_for_server(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(Error::of(folder.display()))?;
    hand_over(folder)
}

/// Returns the ports of the previous server, which the data of some engines contains; free ones if
/// there was none.
fn ports(engine: Engine, folder: &Path) -> Result<[u16; 2], Error> {
    let kept = folder.join("ports");
    let text = fs::read_to_string(&kept).unwrap_or_default();
    let numbers: Vec<u16> = text.split_whitespace().flat_map(str::parse).collect();
    if let [port, inner_port] = numbers.as_slice() {
        return Ok([*port, *inner_port]);
    }
    let ports = port::free(engine.hosts())?;
    fs::write(&kept, format!("{} {}\n", ports[0], ports[1])).map_err(Error::of(kept.display()))?;
    Ok(ports)
}

/// Creates the data folder, unless an earlier call completed it.
fn prepare(home: &Home, engine: Engine, place: &Place) -> Result<(), Error> {
    let done = place.folder.join("prepared");
    if done.exists() {
        return Ok(());
    }
    if place.folder.exists() {
        fs::remove_dir_all(&place.folder).map_err(Error::of(place.folder.display()))?;
    }
    place.make()?;
    engine.prepare(home, place, &Options::default())?;
    fs::write(&done, "").map_err(Error::of(done.display()))
}

/// Runs a server that has no parent once this process ends.
fn detach(launch: &Launch, place: &Place) -> Result<Process, Error> {
    let fail = || format!("cannot run {}", launch.program.display());
    let log = OpenOptions::new().create(true).append(true).open(place.log());
    let log = log.map_err(Error::of(place.log().display()))?;
    let errors = log.try_clone().map_err(Error::of(fail()))?;
    let mut command = launch.command(&[]);
    command.process_group(0).current_dir(&place.folder).stdout(log).stderr(errors);
    let child = command.spawn().map_err(Error::of(fail()))?;
    let pid = child.id() as i32;
    // If it has already ended, the wait for its answer will notice.
    Ok(Process::running(pid).unwrap_or(Process { pid, born: 0 }))
}

/// Stops the server of an engine that [`start`] has started; returns true if one ran.
///
/// # Errors
///
/// If it does not end.
pub fn stop(home: &Home, engine: Engine) -> Result<bool, Error> {
    let mut register = Register::open(home)?;
    let running: Vec<Process> = register.running(engine).map(|started| started.process).collect();
    let asked = signal_named(engine.signals().orderly);
    for process in &running {
        let ended = process.end(asked, END_WITHIN);
        ended.map_err(Error::of(format!("cannot stop {engine}, {process}")))?;
    }
    register.started.retain(|started| started.engine != engine);
    register.save()?;
    Ok(!running.is_empty())
}

/// Returns one line on an engine: if it was fetched, and the address of the running server.
///
/// # Errors
///
/// If the file of started processes cannot be read.
pub fn status(home: &Home, engine: Engine) -> Result<String, Error> {
    let register = Register::open(home)?;
    let fetched = if engine.is_fetched(home) { "fetched" } else { "not fetched" };
    let running = match (engine.told(), register.running(engine).next()) {
        (Some(url), _) => format!("told to use {url}"),
        (None, Some(started)) => format!("running at {}", started.url),
        (None, None) => "not running".to_owned(),
    };
    Ok(format!("{engine}: {fetched}, {running}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_started_is_read_back() {
        let process = Process { pid: 12, born: 34 };
        let url = "postgres://postgres@127.0.0.1:20000/postgres".to_owned();
        let started = Started { engine: Engine::Postgres, process, url };
        assert_eq!(Started::parse(&started.print()), Some(started));
        assert_eq!(Started::parse("postgres 12 x url"), None);
        assert_eq!(Started::parse("postgres 12"), None);
    }
}
