//! The project's own tasks, as `cargo xtask TASK`.
//!
//! Only the standard library: what everybody runs first must build at once.

mod artifacts;
mod check;
mod dist;
mod lanes;
mod licences;
mod long;
mod mutants;
mod newcomer;
mod run;
mod seeds;
mod servers;
mod test;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
The project's own tasks.

Usage: cargo xtask TASK

Tasks:
  build                  build all programs and tests, as `test` and `check` need them
  test [NAME…]           run all tests, or the suites with NAME in theirs, and say what ran,
                         and on which engines
  check [--skip-tests | --long]
                         everything that must hold before a commit: format, lints,
                         tests, tidiness, documentation, generated programs, simulations;
                         with --long also what takes hours: thousands of seeds, servers that
                         are killed, benchmarks with their bars
  tidy [--bless | --figures]
                         lengths of files and functions, leftovers, prose, import cycles, and the
                         links and pictures of the book; with --bless, shrink the lists of
                         exceptions to what is still needed and write the examples into the
                         book; with --figures, print the figures for each crate
  mutants [--crate NAME] [--sample N] [--seed S] [--jobs N] [--suite NAME]
          [--bless | --list]
                         plants mistakes in the crates and tells which of them no test notices,
                         against xtask/mutants.txt; with --suite, only by suites with NAME in theirs
  dist [--test] [--skip-missing] [--publish-dry-run]
                         make a release in target/dist; with --test, try each artefact out
  licences               licences and duplicate versions of all dependencies, against
                         xtask/licences.txt
  demo [ARGS…]           crashes amid writes to two stores; then Message Groups, mixed against all-linearizable
  demo --mingled [ARGS…] three data centers of the server under load, one of which is killed, given
                         up and admitted again; fails if an acknowledged write is lost or doubled
  mingle [ARGS…]         the command line without the drivers of other engines
  bench NAME [ARGS…]     one benchmark: interpreter, compiler, lsp, witnesses, stores, index, geo,
                         worker, evaluation, cops, eiger, http, mingled, or pool (stale reads of
                         pooled connections)
  sim [--seconds N | --seeds N] [--seed S] [--jobs N] [--planted FAULT|all]
                         simulates seed after seed; a failure prints what runs it again,
                         and a short schedule; with a planted fault, until that is found
  sim geo [ARGS…]        the same of the geo-replicated store's core
  sim cops [ARGS…]       the same of the reference protocols
  sim outage [ARGS…]     a minute without a replica or a store under a steady load, second by second
  soak [--minutes N] [--seed S] [--without ENGINE]
                         two `mingle serve` over real servers that are killed and stopped, for two
                         minutes; then what the stores hold is read from outside
  services TASK [ENGINE…]
                         the servers that tests need: fetch, start, stop, status
  help                   this text
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        ["test", names @ ..] => test::test(names),
        ["build"] => artifacts::Artifacts::build().map(drop),
        ["check"] => check::check(false),
        ["check", "--long"] => check::check(false).and_then(|()| long::long()),
        ["check", "--skip-tests"] => check::check(true),
        ["tidy"] => tidy::tidy(false),
        ["tidy", "--bless"] => tidy::tidy(true),
        ["tidy", "--figures"] => tidy::figures(),
        ["mutants", rest @ ..] => mutants::mutants(rest),
        ["dist", rest @ ..] => dist::dist(rest),
        ["licences"] => licences::licences(),
        ["demo", rest @ ..] => run::demo(rest),
        ["mingle", rest @ ..] => match run::mingle(rest) {
            Ok(code) => return code,
            Err(message) => Err(message),
        },
        ["bench", name, rest @ ..] => run::bench(name, rest),
        ["sim", rest @ ..] => run::simulate(rest),
        ["soak", rest @ ..] => {
            artifacts::Artifacts::build().and_then(|artifacts| check::soak(&artifacts, rest))
        }
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
