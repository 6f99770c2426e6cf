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
//! and runs wherever the engine was fetched or its address is told ([`Engine::variable`]). Where it
//! was not, the test is skipped, which `cargo xtask test` says at its end; with `CI=true` it fails.
//!
//! - [`engine`]: which there are, and which must run.
//! - [`home`]: the folder that all is kept in, and the user that servers run as.
//! - [`mod@checker`]: what checks the types of generated clients; it is fetched likewise.
//! - [`tool`]: running `mvn`, `tar` and the like.
//! - `postgres`, `redis`, `cassandra`: what is particular to each: fetching, launching, being ready.
//! - [`process`]: a process that cannot be mistaken for a later one of its number.
//! - `supervise`: a server that ends with its test, however that ends.
//! - [`server`]: a server for the length of a test, which can be killed and restarted.
//! - [`daemon`]: servers that outlive the command that starts them.
//! - [`ledger`]: which engines ran and which were skipped.

mod cassandra;
pub mod checker;
pub mod daemon;
pub mod engine;
pub mod error;
pub mod home;
pub mod ledger;
mod port;
mod postgres;
pub mod process;
mod redis;
mod require;
pub mod server;
mod supervise;
pub mod tool;

pub use checker::Checker;
pub use engine::Engine;
pub use error::Error;
pub use home::Home;
pub use require::{checker, private, private_with, shared};
pub use server::{Options, Server};
