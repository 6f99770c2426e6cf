//! Servers that outlive the command that starts them.
//!
//! They are kept in a file, with the number and the start of each process, so that no later process
//! of that number is ever taken for one of them. Their data stays.

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

/// The file that says what was started, below the home.
const STARTED: &str = "started.txt";

/// A process that was started: one line of the file.
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

/// What was started and runs, read from the file; others wait while this is held.
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

    /// The processes of an engine that were started and run.
    fn running(&self, engine: Engine) -> impl Iterator<Item = &Started> {
        let of_engine = self.started.iter().filter(move |started| started.engine == engine);
        of_engine.filter(|started| started.process.is_running())
    }
}

/// Starts a server that goes on when we end, unless one runs, and gives its address. It keeps the
/// data of the one before.
///
/// # Errors
///
/// [`Error::NotFetched`]; or what the server complained about, such as that its port is taken.
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
        // Whatever comes, `stop` finds it.
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

/// The ports that the server had before, which the data of some engines knows; free ones if there
/// was none.
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

/// Makes the data folder, unless one was made before from beginning to end.
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

/// Runs a server that is nobody's child once we end.
fn detach(launch: &Launch, place: &Place) -> Result<Process, Error> {
    let fail = || format!("cannot run {}", launch.program.display());
    let log = OpenOptions::new().create(true).append(true).open(place.log());
    let log = log.map_err(Error::of(place.log().display()))?;
    let errors = log.try_clone().map_err(Error::of(fail()))?;
    let mut command = launch.command(&[]);
    command.process_group(0).current_dir(&place.folder).stdout(log).stderr(errors);
    let child = command.spawn().map_err(Error::of(fail()))?;
    let pid = child.id() as i32;
    // One that has ended already is noticed by whoever waits for its answer.
    Ok(Process::running(pid).unwrap_or(Process { pid, born: 0 }))
}

/// Stops the server of an engine that [`start`] has started; says whether one ran.
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

/// One line on an engine: whether it was fetched, and the address of the server that runs.
///
/// # Errors
///
/// If the file of what was started cannot be read.
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
