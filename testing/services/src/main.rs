//! `cargo xtask services`: fetches, starts and stops the servers that tests need.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use mingle_services::{Checker, Engine, Error, Home, Library, Server, daemon, ledger};

const HELP: &str = "\
The servers that tests need, on loopback, and the checkers and libraries of other languages.

Usage: cargo xtask services TASK [ENGINE…]

Tasks:
  fetch     get what is needed to run them; nothing is installed
  start     start them, and print what tells tests to use them
  stop      stop what was started
  status    what is fetched, and what runs
  hold      run one, print its address and process, and end it with this command or its input

Engines: postgres, redis, cassandra; without any, all of them.
What can be fetched too, and is if nothing is named: typescript, mypy, node-redis, redis-py, jedis.
Tests of clients in Go use the command go, which is not fetched.
Files and data are in target/services, or in the folder that MINGLE_SERVICES names.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["fetch", names @ ..] => fetch_all(names),
        ["start", engines @ ..] => each(engines, &Engine::REQUIRED, start),
        ["stop", engines @ ..] => each(engines, &Engine::ALL, stop),
        ["status"] => status(&[]).and_then(|()| others_status()),
        ["status", engines @ ..] => status(engines),
        ["hold", engine] => hold(engine),
        ["report", file] => report(Path::new(file)),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        other => {
            eprintln!("error: no task `{}`\n\n{HELP}", other.join(" "));
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a task for each named engine, or for the required ones.
fn each(
    named: &[&str],
    usual: &[Engine],
    run: impl Fn(&Home, Engine) -> Result<(), Error>,
) -> Result<(), Error> {
    let named: Vec<Engine> = named.iter().map(|name| name.parse()).collect::<Result<_, _>>()?;
    let engines = if named.is_empty() { usual } else { &named };
    let home = Home::find()?;
    engines.iter().try_for_each(|engine| run(&home, *engine))
}

/// Fetches the named engines, checkers and libraries, or all that tests need.
fn fetch_all(named: &[&str]) -> Result<(), Error> {
    let home = Home::find()?;
    let is_other = |name: &&str| name.parse::<Checker>().is_ok() || name.parse::<Library>().is_ok();
    let (others, engines): (Vec<&str>, Vec<&str>) = named.iter().partition(|name| is_other(name));
    if named.is_empty() || !engines.is_empty() {
        let get = |home: &Home, engine: Engine| fetch(engine.name(), || engine.fetch(home));
        each(&engines, &Engine::REQUIRED, get)?;
    }
    let is_wanted = |name: &str| named.is_empty() || others.contains(&name);
    let checkers: &[Checker] = if named.is_empty() { &Checker::REQUIRED } else { &Checker::ALL };
    for checker in checkers.iter().filter(|checker| is_wanted(checker.name())) {
        fetch(checker.name(), || checker.fetch(&home))?;
    }
    for library in Library::ALL.into_iter().filter(|library| is_wanted(library.name())) {
        fetch(library.name(), || library.fetch(&home))?;
    }
    Ok(())
}

fn fetch(name: &str, get: impl FnOnce() -> Result<bool, Error>) -> Result<(), Error> {
    let begun = Instant::now();
    let fail = |error| Error::Failed(format!("cannot fetch {name}: {error}"));
    if get().map_err(fail)? {
        println!("{name}: fetched in {:.1} s", begun.elapsed().as_secs_f64());
    } else {
        println!("{name}: is there");
    }
    Ok(())
}

fn status(engines: &[&str]) -> Result<(), Error> {
    each(engines, &Engine::ALL, |home, engine| {
        println!("{}", daemon::status(home, engine)?);
        Ok(())
    })
}

fn others_status() -> Result<(), Error> {
    let home = Home::find()?;
    let checkers = Checker::ALL.map(|checker| (checker.name(), checker.is_fetched(&home)));
    let libraries = Library::ALL.map(|library| (library.name(), library.is_fetched(&home)));
    for (name, is_there) in checkers.into_iter().chain(libraries) {
        let way = if name == Checker::Go.name() { "installed" } else { "fetched" };
        println!("{name}: {}{way}", if is_there { "" } else { "not " });
    }
    Ok(())
}

fn start(home: &Home, engine: Engine) -> Result<(), Error> {
    println!("export {}={}", engine.variable(), daemon::start(home, engine)?);
    Ok(())
}

fn stop(home: &Home, engine: Engine) -> Result<(), Error> {
    let ran = daemon::stop(home, engine)?;
    println!("{engine}: {}", if ran { "stopped" } else { "was not running" });
    Ok(())
}

/// Runs a server like a test, until the input or this process ends.
fn hold(engine: &str) -> Result<(), Error> {
    let engine = engine.parse()?;
    let fail = |error: std::io::Error| Error::Failed(format!("cannot hold {engine}: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(fail)?;
    let server = runtime.block_on(Server::start(engine))?;
    let processes = server.processes();
    let processes: Vec<String> = processes.iter().map(|process| process.pid.to_string()).collect();
    println!("{} {}", server.url(), processes.join(" "));
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).map_err(fail)?;
    Ok(())
}

/// Reports the summary at the end of `cargo xtask test`.
fn report(file: &Path) -> Result<(), Error> {
    let must_run = ledger::is_ci();
    let (report, is_well) = ledger::report(file, must_run)?;
    eprint!("{report}");
    let why = "an engine that must run where CI=true was skipped, or no test asked for it";
    if is_well { Ok(()) } else { Err(Error::Failed(why.to_owned())) }
}
