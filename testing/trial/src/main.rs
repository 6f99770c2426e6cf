//! Trials of the server `mingled` over real processes: a demonstration that loses a data center, and a
//! benchmark against Redis. `cargo xtask demo --mingled` and `cargo xtask bench mingled` run them.

mod bench;
mod center;
mod client;
mod demo;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Trials of the server mingled")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Three data centers under load, one of which is killed, given up and admitted again.
    Demo(demo::Options),
    /// Commands against Redis with the same persistence, and three data centers.
    Bench(bench::Options),
}

fn main() -> std::process::ExitCode {
    let result = match Arguments::parse().command {
        Command::Demo(options) => demo::run(&options),
        Command::Bench(options) => bench::run(&options),
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            std::process::ExitCode::FAILURE
        }
    }
}
