//! `mingle dev`: serves a program, and serves it anew after each change.
//!
//! A change is served once the program and its binding are free of errors and the stores open with
//! them; until then the program as it was goes on. All data stay where they are. Where a change does not
//! fit the data that are kept, the command asks before it sets them aside.

mod again;

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mingle::{Database, OpenError, SessionKey};
use mingle_server::config::random_key_bytes;
use mingle_server::{Config, Server};

use self::again::Kept;
use crate::exit::{Exit, Failure};
use crate::files;
use crate::generate;
use crate::held::Sign;
use crate::log::Log;
use crate::open::{self, Place, Prepared, block_on, prepare};
use crate::output::{Color, print};
use crate::rest::A_MOMENT;
use crate::serve::{failure, stop_signal};
use crate::watch::{LOOK_EVERY, Watched};

/// Serve a program on this machine, and again after each change of its file or binding.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  mingle dev                                       the program of this folder
  mingle dev shop.mingle --browser                 and open its page
  mingle dev shop.mingle --client typescript=web/shop.ts

It prints `listening on URL`. Errors in the program are shown, and the program as it was goes on. On its
page a call can crash the process at a step; the command then starts again. Data is kept; where a change does not fit it (a field with another type), the command asks if the data may be
set aside. Without a terminal it does not ask; --reset then sets the data aside.")]
pub struct Args {
    /// The program [default: the only one of this folder].
    file: Option<String>,

    /// Where to listen; only this machine can.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,

    /// Write a client after each change: typescript, python, go or rust.
    #[arg(long = "client", value_name = "LANGUAGE=FILE", value_parser = client)]
    clients: Vec<(String, PathBuf)>,

    /// Open the page of the program in a browser.
    #[arg(long)]
    browser: bool,

    /// Set the data aside where a change does not fit it, without asking.
    #[arg(long)]
    reset: bool,

    #[command(flatten)]
    log: Log,

    #[command(flatten)]
    place: Place,
}

/// Reads a value of `--client`.
fn client(text: &str) -> Result<(String, PathBuf), String> {
    let known = generate::LANGUAGES.join(", ");
    let parts = text.split_once('=').filter(|(_, file)| !file.is_empty());
    let (language, file) = parts.ok_or("expected LANGUAGE=FILE, such as typescript=web/shop.ts")?;
    if !generate::LANGUAGES.contains(&language) {
        return Err(format!("there is no client in {language:?}; there are {known}"));
    }
    Ok((language.to_owned(), file.into()))
}

/// The program that is served.
struct Served {
    /// Its address and the key of its sessions, which go on after a change.
    kept: Arc<Mutex<Kept>>,
    file: String,
    color: Color,
}

impl Served {
    fn kept(&self) -> Kept {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Prints where the program is served for the first time in this process.
    fn announce(&self, url: &str, opens_browser: bool) {
        let crashes = self.kept().crashes;
        if crashes > 0 {
            print(&format!("listening on {url} again, after crash {crashes}\n"));
            return;
        }
        print(&format!("listening on {url}\n"));
        if opens_browser {
            open_browser(url);
        }
    }

    fn config(&self, prepared: &Prepared) -> Config {
        Config {
            name: files::stem(&self.file),
            session_key: SessionKey::new(self.kept().key),
            replica: prepared.session.replica(),
            #[cfg(unix)]
            crash: Some(again::crash(&self.kept)),
            ..Config::default()
        }
    }
}

/// Runs the command.
pub fn run(args: &Args, color: Color) -> Result<Exit, Failure> {
    args.log.start(color, None)?;
    if !args.listen.ip().is_loopback() {
        let message =
            format!("{} is not of this machine; `mingle serve` serves others", args.listen);
        return Err(Failure::usage(message));
    }
    let file = args.file.clone().map_or_else(only_program, Ok)?;
    let sources = open::sources(&file, args.place.config());
    let kept = Kept::of_former()?;
    let first = || Kept { address: args.listen, key: random_key_bytes(), crashes: 0 };
    let kept = Arc::new(Mutex::new(kept.unwrap_or_else(first)));
    let served = Served { kept, file, color };
    block_on(serve(args, served, Watched::new(sources)))
}

/// Returns the program of this folder, if there is one alone.
fn only_program() -> Result<String, Failure> {
    let entries = std::fs::read_dir(".")
        .map_err(|error| Failure::usage(format!("cannot read this folder: {error}")))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_program =
        |name: &String| name.ends_with(".mingle") && !name.ends_with(crate::test::ENDING);
    let mut programs: Vec<String> =
        names.filter(is_program).filter(|name| name != ".mingle").collect();
    programs.sort();
    if programs.len() > 1 {
        // Files that others import are no programs of their own.
        let parts: Vec<PathBuf> = programs.iter().flat_map(|name| files::imported(name)).collect();
        let is_root = |name: &String| !parts.iter().any(|part| part == Path::new(name));
        if programs.iter().any(is_root) {
            programs.retain(is_root);
        }
    }
    match programs.len() {
        1 => Ok(programs.remove(0)),
        0 => Err(Failure::usage("no program in this folder; `mingle new NAME` makes one")),
        _ => Err(Failure::usage(format!("which program? There are {}", programs.join(", ")))),
    }
}

async fn serve(args: &Args, served: Served, mut watched: Watched) -> Result<Exit, Failure> {
    let mut stop = pin!(stop_signal()?);
    let (mut next, mut last) = (load(args, &served, &mut watched), None);
    let mut is_first = true;
    loop {
        let begun = Instant::now();
        let Some((prepared, database, version)) = open_next(args, next.take(), last.take()).await
        else {
            eprintln!("waiting for changes");
            tokio::select! {
                () = stop.as_mut() => return Ok(Exit::Success),
                () = change(&mut watched) => {}
            }
            next = load(args, &served, &mut watched);
            continue;
        };
        let database = Arc::new(database);
        let config = served.config(&prepared);
        let bound = Server::bind(database.clone(), served.kept().address, config).await;
        let server = bound.map_err(failure)?;
        let url = server.url();
        let _sign = Sign::put(&prepared.data, &url);
        if is_first {
            served.announce(&url, args.browser);
            is_first = false;
        } else if version == Version::Last {
            eprintln!("{} goes on as it was", served.file);
        } else {
            let passed = begun.elapsed().as_millis();
            print(&format!("serving {} anew, after {passed} ms\n", served.file));
        }
        if let Some(address) = url.split_once("//").and_then(|(_, address)| address.parse().ok()) {
            served.kept.lock().unwrap_or_else(PoisonError::into_inner).address = address;
        }
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let serving = tokio::spawn(server.run(async move { drop(ended.await) }));
        next = next_good(args, &served, &mut watched, stop.as_mut()).await;
        drop(end);
        // A panic of the server is no reason to keep the next program from being served.
        serving.await.ok();
        close(database).await;
        if next.is_none() {
            return Ok(Exit::Success);
        }
        last = Some(prepared);
    }
}

/// Waits for a version without errors. None if the command is told to end.
async fn next_good(
    args: &Args,
    served: &Served,
    watched: &mut Watched,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> Option<Prepared> {
    loop {
        tokio::select! {
            () = stop.as_mut() => return None,
            () = change(watched) => {}
        }
        let next = load(args, served, watched);
        if next.is_some() {
            return next;
        }
        eprintln!("the program as it was goes on; waiting for changes");
    }
}

/// Ends the work of a database, and releases its folder.
async fn close(database: Arc<Database>) {
    match Arc::into_inner(database) {
        Some(database) => drop(database.close(A_MOMENT).await),
        // A connection still holds it; opening the next one waits for that.
        None => tokio::time::sleep(LOOK_EVERY).await,
    }
}

/// Returns after a change of the files.
async fn change(watched: &mut Watched) {
    while watched.changed().is_none() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Reads the program and its binding, and writes its clients; watches the files that it imports. None if there are errors, which are then
/// printed.
fn load(args: &Args, served: &Served, watched: &mut Watched) -> Option<Prepared> {
    watched.add(files::imported(&served.file));
    let prepared = prepare(&served.file, &args.place, served.color).and_then(|prepared| {
        mingle::check_binding(&prepared.program, &prepared.binding)
            .map_err(|error| open::failure(&error))?;
        write_clients(args, &served.file, &prepared)?;
        Ok(prepared)
    });
    prepared.map_err(|failure| eprintln!("error: {}", failure.message)).ok()
}

fn write_clients(args: &Args, file: &str, prepared: &Prepared) -> Result<(), Failure> {
    if args.clients.is_empty() {
        return Ok(());
    }
    let checked = mingle_lang::check(&*prepared.program.text);
    let name = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
    for (language, path) in &args.clients {
        let Some(text) = generate::client(language, &checked, &name) else { continue };
        // A file that stays the same is not written: other programs may watch it.
        if std::fs::read(path).is_ok_and(|old| old == text.as_bytes()) {
            continue;
        }
        std::fs::write(path, text)
            .map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))?;
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}

/// The version of the program that is served.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    /// The one that was just read.
    Next,
    /// The one before it, since the next one does not fit the data.
    Last,
}

/// Opens the stores of the next program; if that fails, those of the last one.
async fn open_next(
    args: &Args,
    next: Option<Prepared>,
    last: Option<Prepared>,
) -> Option<(Prepared, Database, Version)> {
    if let Some(next) = next {
        match open_stores(&next).await {
            Ok(database) => return Some((next, database, Version::Next)),
            Err(error) => {
                eprintln!("error: {error}");
                if error.is_changed_declaration() && may_reset(args, &next.data) {
                    match set_aside(&next.data) {
                        Ok(aside) => eprintln!("the data is now in {}", aside.display()),
                        Err(failure) => eprintln!("error: {}", failure.message),
                    }
                    match open_stores(&next).await {
                        Ok(database) => return Some((next, database, Version::Next)),
                        Err(error) => eprintln!("error: {error}"),
                    }
                }
            }
        }
    }
    let last = last?;
    match open_stores(&last).await {
        Ok(database) => Some((last, database, Version::Last)),
        Err(error) => {
            eprintln!("error: {error}");
            None
        }
    }
}

/// The longest wait for the folder of the program that was served before.
const RELEASED: Duration = Duration::from_secs(5);

async fn open_stores(prepared: &Prepared) -> Result<Database, OpenError> {
    let Prepared { program, binding, data, .. } = prepared;
    let begun = Instant::now();
    loop {
        match Database::open(program.clone(), binding, Some(data)).await {
            Err(error) if error.is_unavailable() && begun.elapsed() < RELEASED => {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            opened => {
                let opened = opened?;
                for warning in opened.warnings() {
                    tracing::warn!("{warning}");
                }
                return Ok(opened);
            }
        }
    }
}

/// Asks if the data may be set aside.
fn may_reset(args: &Args, data: &Path) -> bool {
    if args.reset {
        return true;
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        eprintln!("to set the data in {} aside, start with --reset", data.display());
        return false;
    }
    eprint!("Set the data in {} aside, and begin with none? [y/N] ", data.display());
    std::io::stderr().flush().ok();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// Gives the folder of the data another name; returns it.
fn set_aside(data: &Path) -> Result<PathBuf, Failure> {
    let name = data.file_name().unwrap_or_default().to_string_lossy();
    let aside = (1..=u32::MAX)
        .map(|number| data.with_file_name(format!("{name}.before-{number}")))
        .find(|folder| !folder.exists())
        .expect("some number is free");
    std::fs::rename(data, &aside).map_err(|error| {
        Failure::usage(format!("cannot rename {}: {error}", files::shown(&data.to_string_lossy())))
    })?;
    Ok(aside)
}

/// Opens a page in the browser of this machine, if there is one.
fn open_browser(url: &str) {
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    let started = std::process::Command::new(program)
        .arg(url)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn();
    if let Err(error) = started {
        eprintln!("note: {program} does not start ({error}); the page is at {url}");
    }
}
