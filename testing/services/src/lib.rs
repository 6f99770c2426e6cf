//! Real servers for tests: fetched into a folder, started on loopback, never left behind.
//!
//! `cargo xtask services fetch` gets what the tests need; nothing is installed. A test then says
//!
//! ```no_run
//! # async fn test() {
//! use mingle_services::Engine;
//!
//! let Some(server) = mingle_services::shared(Engine::Postgres).await else { return };
//! println!("a server of this process listens at {}", server.url());
//! # }
//! ```
//!
//! and runs if the engine was fetched or the environment has its address ([`Engine::variable`]).
//! Otherwise the test is skipped, which `cargo xtask test` reports at its end; with `CI=true` it
//! fails.
//!
//! - [`engine`]: the engines, and those that must run.
//! - [`home`]: the folder of all files, and the user that runs the servers.
//! - [`mod@checker`]: the type checkers of generated clients; they are fetched like engines.
//! - [`browser`]: a headless browser for tests of pages.
//! - [`mod@library`]: client libraries of Redis in other languages.
//! - `packages`: what comes from the registries of `npm`, `pip` and Maven.
//! - [`tool`]: calls of `mvn`, `tar` and other commands.
//! - `postgres`, `redis`, `cassandra`: the parts specific to each engine: fetch, launch, readiness.
//! - [`process`]: a process that cannot be mistaken for a later one with the same id.
//! - `supervise`: a server that ends with its test, even if the test is killed.
//! - [`server`]: a server for the length of a test, which can be killed and restarted.
//! - [`daemon`]: servers that outlive the command that starts them.
//! - [`ledger`]: the engines that ran and those that were skipped.

pub mod browser;
mod cassandra;
pub mod checker;
pub mod daemon;
pub mod engine;
pub mod error;
pub mod home;
pub mod ledger;
pub mod library;
mod packages;
mod port;
mod postgres;
pub mod process;
mod redis;
mod require;
pub mod server;
mod supervise;
pub mod tool;

pub use browser::Browser;
pub use checker::Checker;
pub use engine::Engine;
pub use error::Error;
pub use home::Home;
pub use library::Library;
pub use require::{checker, library, private, private_with, shared};
pub use server::{Options, Server};
