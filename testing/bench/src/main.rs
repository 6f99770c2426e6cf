//! The demonstration and the benchmarks. `cargo xtask demo` and `cargo xtask bench NAME` run it; without the
//! feature `benchmarks` only the demonstration is built.

#[cfg(feature = "benchmarks")]
mod compiler;
#[cfg(feature = "benchmarks")]
mod cpu;
mod demo;
#[cfg(feature = "benchmarks")]
mod evaluation;
#[cfg(feature = "benchmarks")]
mod geo;
mod groups;
#[cfg(feature = "benchmarks")]
mod hand;
mod html;
#[cfg(feature = "benchmarks")]
mod http;
#[cfg(feature = "benchmarks")]
mod index;
#[cfg(feature = "benchmarks")]
mod interpreter;
#[cfg(feature = "benchmarks")]
mod lsp;
mod measured;
mod predict;
#[cfg(feature = "benchmarks")]
mod reference;
#[cfg(feature = "benchmarks")]
mod rounds;
#[cfg(feature = "benchmarks")]
mod soak;
#[cfg(feature = "benchmarks")]
mod stores;
#[cfg(feature = "benchmarks")]
mod witnesses;
#[cfg(feature = "benchmarks")]
mod worker;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "The demonstration and the benchmarks of Mingle")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A crash amid writes to two stores, with and without Mingle; then Message Groups with its stores mixed,
    /// against the same with everything linearizable.
    Demo(demo::Options),
    /// A shop of the demonstration, which is killed.
    #[command(hide = true)]
    Shop(demo::shop::Options),
    /// The interpreter against the same logic written by hand, on the in-memory engine.
    #[cfg(feature = "benchmarks")]
    Interpreter(interpreter::Options),
    /// Checking and splitting programs of growing size.
    #[cfg(feature = "benchmarks")]
    Compiler(compiler::Options),
    /// The language server: diagnostics after an edit in a long program.
    #[cfg(feature = "benchmarks")]
    Lsp(lsp::Options),
    /// The cost that the HTTP layer adds to a call, and the number of calls that one core carries.
    #[cfg(feature = "benchmarks")]
    Http(http::Options),
    /// Throughput with tracking against throughput without it, as in MixT's Figure 15.
    #[cfg(feature = "benchmarks")]
    Witnesses(witnesses::Options),
    /// Stores in PostgreSQL: Message Groups against all in PostgreSQL and against an outbox written by
    /// hand, and small transactions against the same statements.
    #[cfg(feature = "benchmarks")]
    Stores(stores::Options),
    /// A page of an index in PostgreSQL, against the same SQL by hand.
    #[cfg(feature = "benchmarks")]
    Index(index::Options),
    /// The causal core of the geo-replicated store: throughput, visibility, catching up.
    #[cfg(feature = "benchmarks")]
    Geo(geo::Options),
    /// Dependent reads at a distant store: whole phases beside the store, against one read at a time.
    #[cfg(feature = "benchmarks")]
    Worker(worker::Options),
    /// UniStore's evaluation: the systems that it compares, in a capacity model.
    #[cfg(feature = "benchmarks")]
    Evaluation(evaluation::Options),
    /// COPS, COPS-RT and one log over real sockets, as in chapter 7 of Lloyd's thesis.
    #[cfg(feature = "benchmarks")]
    Cops(reference::Options),
    /// Eiger over real sockets against eventual consistency, and our own store under the same work.
    #[cfg(feature = "benchmarks")]
    Eiger(reference::Options),
    /// Two `mingle serve` over real servers that are killed and stopped; then checks the data in the stores.
    #[cfg(feature = "benchmarks")]
    Soak(soak::Options),
}

fn main() -> std::process::ExitCode {
    let result = match Arguments::parse().command {
        Command::Demo(options) => demo::run(&options),
        Command::Shop(options) => demo::shop::run(&options),
        #[cfg(feature = "benchmarks")]
        Command::Interpreter(options) => interpreter::run(&options),
        #[cfg(feature = "benchmarks")]
        Command::Compiler(options) => compiler::run(&options),
        #[cfg(feature = "benchmarks")]
        Command::Lsp(options) => lsp::run(&options),
        #[cfg(feature = "benchmarks")]
        Command::Http(options) => http::run(&options),
        #[cfg(feature = "benchmarks")]
        Command::Witnesses(options) => witnesses::run(&options),
        #[cfg(feature = "benchmarks")]
        Command::Stores(options) => stores::run(&options),
        #[cfg(feature = "benchmarks")]
        Command::Index(options) => index::run(&options),
        #[cfg(feature = "benchmarks")]
        Command::Geo(options) => geo::run(&options),
        #[cfg(feature = "benchmarks")]
        Command::Worker(options) => worker::run(&options),
        #[cfg(feature = "benchmarks")]
        Command::Evaluation(options) => evaluation::run(&options),
        #[cfg(feature = "benchmarks")]
        Command::Cops(options) => reference::run_cops(&options),
        #[cfg(feature = "benchmarks")]
        Command::Eiger(options) => reference::run_eiger(&options),
        #[cfg(feature = "benchmarks")]
        Command::Soak(options) => soak::run(&options),
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            std::process::ExitCode::FAILURE
        }
    }
}
