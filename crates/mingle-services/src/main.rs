//! `cargo xtask services`: fetches, starts and stops the servers that tests need.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use mingle_services::{Engine, Error, Home, Server, daemon, ledger};

const HELP: &str = "\
The servers that tests need, on loopback.

Usage: cargo xtask services TASK [ENGINE…]

Tasks:
  fetch     get what is needed to run them; nothing is installed
  start     start them, and print what tells tests to use them
  stop      stop what was started
  status    what is fetched, and what runs
  hold      run one, print its address and process, and end it with this command or its input

Engines: postgres, redis, cassandra; without any, all of them.
Files and data are in target/services, or in the folder that MINGLE_SERVICES names.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["fetch", engines @ ..] => each(engines, &Engine::REQUIRED, fetch),
        ["start", engines @ ..] => each(engines, &Engine::REQUIRED, start),
        ["stop", engines @ ..] => each(engines, &Engine::ALL, stop),
        ["status", engines @ ..] => each(engines, &Engine::ALL, |home, engine| {
            println!("{}", daemon::status(home, engine)?);
            Ok(())
        }),
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

/// Runs a task for each engine that is named, or for the usual ones.
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

fn fetch(home: &Home, engine: Engine) -> Result<(), Error> {
    let begun = Instant::now();
    let fail = |error| Error::Failed(format!("cannot fetch {engine}: {error}"));
    if engine.fetch(home).map_err(fail)? {
        println!("{engine}: fetched in {:.1} s", begun.elapsed().as_secs_f64());
    } else {
        println!("{engine}: is there");
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

/// Runs a server as a test does, until our input ends or we do.
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

/// What `cargo xtask test` ends with.
fn report(file: &Path) -> Result<(), Error> {
    let must_run = ledger::is_ci();
    let (report, is_well) = ledger::report(file, must_run)?;
    eprint!("{report}");
    let why = "an engine that must run where CI=true was skipped, or no test asked for it";
    if is_well { Ok(()) } else { Err(Error::Failed(why.to_owned())) }
}
