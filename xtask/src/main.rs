//! The project's own tasks, as `cargo xtask TASK`.
//!
//! Only the standard library: what everybody runs first must build at once.

mod check;
mod run;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
The project's own tasks.

Usage: cargo xtask TASK

Tasks:
  test                   run all tests, and say what ran, and on which engines
  check [--skip-tests]   everything that must hold before a commit: format, lints,
                         tests, tidiness, documentation, generated programs
  tidy [--bless]         lengths of files and functions, leftovers, docs; with --bless,
                         shrink the list of exceptions to what is still needed
  demo [ARGS…]           Message Groups, mixed against all-linearizable, measured
  bench NAME [ARGS…]     one benchmark: interpreter, compiler, lsp, witnesses, stores, geo, worker,
                         evaluation or http
  sim [--seconds N | --seeds N] [--seed S] [--jobs N] [--planted FAULT|all]
                         simulates seed after seed; a failure prints what runs it again,
                         and a short schedule; with a planted fault, until that is found
  sim geo [ARGS…]        the same of the geo-replicated store's core
  release                build for release what `check` runs so
  services TASK [ENGINE…]
                         the servers that tests need: fetch, start, stop, status
  help                   this text
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        ["test"] => check::test(),
        ["check"] => check::check(false),
        ["check", "--skip-tests"] => check::check(true),
        ["tidy"] => tidy::tidy(false),
        ["tidy", "--bless"] => tidy::tidy(true),
        ["demo", rest @ ..] => run::bench("demo", rest),
        ["bench", name, rest @ ..] => run::bench(name, rest),
        ["sim", rest @ ..] => run::simulate(rest),
        ["release"] => run::Released::build().map(drop),
        ["services", rest @ ..] => run::services(rest),
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
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
