//! The `mingle` command: checks, explains, formats and runs programs.
//!
//! Each subcommand is a module with its arguments and a `run`. Output for other programs goes to
//! standard output; errors of the call or of files go to standard error.

mod check;
mod check_history;
mod completions;
mod datacenters;
#[cfg(feature = "server")]
mod dev;
mod doctor;
mod exit;
mod explain;
mod files;
mod fmt;
mod generate;
mod held;
#[cfg(any(feature = "cassandra", feature = "postgres", feature = "redis"))]
mod init;
#[cfg(feature = "server")]
mod log;
mod lsp;
mod man;
mod migrate;
mod new;
mod open;
mod output;
mod progress;
mod recover;
mod repl;
mod rest;
mod run;
#[cfg(feature = "server")]
mod serve;
mod show;
mod status;
mod test;
mod watch;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Mixed-consistency transactions: check, explain, format and run programs.
#[derive(Parser)]
#[command(
    name = "mingle",
    version,
    arg_required_else_help = true,
    after_help = "\
Examples:
  mingle new shop                      begin: a program, tests and bindings
  mingle check shop.mingle             is anything wrong with it?
  mingle explain M0302                 what does this diagnostic mean?
  mingle explain shop.mingle           which part of each transaction runs where?
  mingle run shop.mingle buy item=tea  call a transaction
  mingle test shop.mingle              run its tests, with crashes
  mingle show shop.mingle Item tea     look at an object
  mingle repl shop.mingle              both, line by line
  mingle recover shop.mingle --list    was anything left unfinished?
  mingle doctor shop.mingle            do its servers fit: versions, rights, clocks, settings?
  mingle status shop.mingle            do its stores answer, and which processes are there?
  mingle datacenters shop.mingle       how do the data centers of its stores stand?
  mingle init postgres://app@db/shop   begin with the tables of a database
  mingle migrate shop.mingle           which SQL do its tables still need?
  mingle fmt shop.mingle               lay it out
  mingle serve shop.mingle             let others call it, over HTTP
  mingle dev shop.mingle               the same, again after each change
  mingle lsp                           serve an editor
  mingle gen rust shop.mingle          call it from Rust, with types
  mingle check-history run.jsonl       does what was recorded keep its promise?

Exit codes:
  0  all is well        1  a program has errors     2  usage, or a file
  3  a `require` failed 4  a store failed, or       5  conflicts, or waiting for others, outlasted
     something is left unfinished                      the deadline
  6  the outcome of a commit is unknown"
)]
struct Cli {
    /// When to use colours.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    color: output::Color,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    New(new::Args),
    Check(check::Args),
    Explain(explain::Args),
    Fmt(fmt::Args),
    Gen(generate::Args),
    Run(run::Args),
    Test(test::Args),
    Show(show::Args),
    Repl(repl::Args),
    Recover(recover::Args),
    Status(status::Args),
    Doctor(doctor::Args),
    Datacenters(datacenters::Args),
    Migrate(migrate::Args),
    #[cfg(any(feature = "cassandra", feature = "postgres", feature = "redis"))]
    Init(init::Args),
    CheckHistory(check_history::Args),
    #[cfg(feature = "server")]
    Serve(serve::Args),
    #[cfg(feature = "server")]
    Dev(dev::Args),
    Lsp(lsp::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    Man(man::Args),
}

/// Prints no message for a contained panic: it becomes an error, which has the message.
fn silence_contained_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !mingle::is_contained() {
            usual(panic);
        }
    }));
}

fn main() -> ExitCode {
    silence_contained_panics();
    let cli = Cli::parse();
    let exit = match cli.command {
        Command::New(args) => new::run(&args),
        Command::Check(args) => Ok(check::run(&args, cli.color)),
        Command::Explain(args) => explain::run(&args, cli.color),
        Command::Fmt(args) => Ok(fmt::run(&args, cli.color)),
        Command::Gen(args) => generate::run(&args, cli.color),
        Command::Run(args) => run::run(&args, cli.color),
        Command::Test(args) => test::run(&args, cli.color),
        Command::Show(args) => show::run(&args, cli.color),
        Command::Repl(args) => repl::run(&args, cli.color),
        Command::Recover(args) => recover::run(&args, cli.color),
        Command::Status(args) => status::run(&args, cli.color),
        Command::Doctor(args) => doctor::run(&args, cli.color),
        Command::Datacenters(args) => datacenters::run(&args, cli.color),
        Command::Migrate(args) => migrate::run(&args, cli.color),
        #[cfg(any(feature = "cassandra", feature = "postgres", feature = "redis"))]
        Command::Init(args) => init::run(&args),
        Command::CheckHistory(args) => check_history::run(&args),
        #[cfg(feature = "server")]
        Command::Serve(args) => serve::run(&args, cli.color),
        #[cfg(feature = "server")]
        Command::Dev(args) => dev::run(&args, cli.color),
        Command::Lsp(args) => lsp::run(&args),
        Command::Completions(args) => Ok(completions::run(&args)),
        Command::Man(args) => man::run(&args),
    };
    match exit {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("error: {}", failure.message);
            failure.exit.into()
        }
    }
}
