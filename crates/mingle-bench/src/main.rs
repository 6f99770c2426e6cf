//! The demonstration and the benchmarks. `cargo xtask demo` and `cargo xtask bench NAME` run it.

mod compiler;
mod cpu;
mod demo;
mod evaluation;
mod geo;
mod groups;
mod hand;
mod http;
mod interpreter;
mod lsp;
mod measured;
mod predict;
mod stores;
mod witnesses;
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
    /// Message Groups with its stores mixed, against the same with everything linearizable.
    Demo(demo::Options),
    /// The interpreter against the same logic written by hand, on the in-memory engine.
    Interpreter(interpreter::Options),
    /// Checking and splitting programs of growing size.
    Compiler(compiler::Options),
    /// The language server: diagnostics after an edit in a long program.
    Lsp(lsp::Options),
    /// What the HTTP layer adds to a call, and how many calls one core carries.
    Http(http::Options),
    /// Throughput with tracking against the same without, as in MixT's Figure 15.
    Witnesses(witnesses::Options),
    /// Stores in PostgreSQL: Message Groups against all in PostgreSQL and against an outbox written by
    /// hand, and small transactions against the same statements.
    Stores(stores::Options),
    /// The causal core of the geo-replicated store: throughput, visibility, catching up.
    Geo(geo::Options),
    /// Dependent reads at a distant store: whole, beside the store, against read by read.
    Worker(worker::Options),
    /// UniStore's evaluation: the systems that it compares, in a capacity model.
    Evaluation(evaluation::Options),
}

fn main() -> std::process::ExitCode {
    let result = match Arguments::parse().command {
        Command::Demo(options) => demo::run(&options),
        Command::Interpreter(options) => interpreter::run(&options),
        Command::Compiler(options) => compiler::run(&options),
        Command::Lsp(options) => lsp::run(&options),
        Command::Http(options) => http::run(&options),
        Command::Witnesses(options) => witnesses::run(&options),
        Command::Stores(options) => stores::run(&options),
        Command::Geo(options) => geo::run(&options),
        Command::Worker(options) => worker::run(&options),
        Command::Evaluation(options) => evaluation::run(&options),
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            std::process::ExitCode::FAILURE
        }
    }
}
