//! Stores in a cluster of `mingled`.
//!
//! A [`Cluster`] is a program's connections to its data centers: its stores there are one engine. Whole
//! objects are read and written by requests to the data center of the session, one round trip for each batch of reads
//! and one for a commit; guards and witness rows are judged there. A data center answers for itself alone:
//! outcomes, and the commits that all data centers have, are put together from the answers of all.
//!
//! - [`config`]: the address, and the errors of opening.
//! - [`wire`]: the messages, which the server shares; [`schema`]: a program's declarations as a message.
//! - [`security`]: the user and the encryption of connections.
//! - `link`, `stream`: connections; `cluster`: a program's connection; `store`, `transaction`, `united`: the
//!   interface.
//! - [`limits`]: the named bounds.

mod cluster;
pub mod config;
pub mod limits;
mod link;
pub mod schema;
pub mod security;
mod store;
mod stream;
mod transaction;
mod united;
pub mod wire;

pub use cluster::Cluster;
pub use config::{MingledConfig, OpenError};
pub use security::{Credentials, Identity, Password, TlsConfig, WrongKey};
pub use store::MingledStore;
