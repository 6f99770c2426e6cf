//! Stores in a cluster of `mingled`.
//!
//! A [`Cluster`] is a program's connection to one data center: its stores there are one engine. Whole
//! objects are read and written by requests to the data center, one round trip for each batch of reads and
//! one for a commit; guards, witness rows and outcomes are judged there.
//!
//! - [`config`]: the address, and the errors of opening.
//! - [`wire`]: the messages, which the server shares; [`schema`]: a program's declarations as a message.
//! - `link`: connections; `cluster`: a program's connection; `store`, `transaction`, `united`: the
//!   interface.
//! - [`limits`]: the named bounds.

mod cluster;
pub mod config;
pub mod limits;
mod link;
pub mod schema;
mod store;
mod transaction;
mod united;
pub mod wire;

pub use cluster::Cluster;
pub use config::{MingledConfig, OpenError};
pub use store::MingledStore;
