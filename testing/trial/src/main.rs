//! Trials of the server `mingled` over real processes: a demonstration that loses a data center, a
//! benchmark against Redis, and a pool of connections whose stale reads are counted. `cargo xtask demo
//! --mingled`, `cargo xtask bench mingled` and `cargo xtask bench pool` run them.

mod bench;
mod center;
mod client;
mod demo;
mod pool;

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
    /// A pool of connections, on which no read is stale.
    Pool(pool::Options),
    /// Commands against Redis with the same persistence, and three data centers.
    Bench(bench::Options),
}

fn main() -> std::process::ExitCode {
    let result = match Arguments::parse().command {
        Command::Demo(options) => demo::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Pool(options) => pool::run(&options),
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            std::process::ExitCode::FAILURE
        }
    }
}
