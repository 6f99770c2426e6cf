//! Redis and Valkey stores: one primary, and each commit is one script.
//!
//! [`Redis::connect`] gives a [`mingle_store::DataStore`]. The server runs scripts one after
//! another. A commit is one script that validates the transaction's reads, and then writes; so
//! transactions are strictly serializable, as long as the server keeps what it acknowledged.
//! Reading order:
//!
//! - [`config`], [`mapping`]: the settings, and the reasons why a store cannot be opened.
//! - `server`: the checks of a server at the start.
//! - `link`, `script`, `request`, `reply`: the connection, and the form of requests to scripts and of
//!   their replies. The scripts themselves are in `lua/`.
//! - `layout`: the places of fields.
//! - `index`: indexes of objects; `building`: their making over objects that are there.
//! - `operation`: declared queries and commands.
//! - `reading`, `writing`, `witness`: from reads and writes to words, and from replies to answers.
//! - [`store`], `transaction`: both together.
//! - [`sample`]: a sample of a server's keys, for writing a first mapping.

mod building;
pub mod config;
mod examine;
mod index;
mod layout;
pub mod limits;
mod link;
pub mod mapping;
mod operation;
mod reading;
mod reply;
mod request;
pub mod sample;
mod script;
mod server;
pub mod store;
mod transaction;
mod witness;
mod writing;

pub use config::{OpenError, RedisConfig};
pub use examine::examine;
pub use mapping::{FieldMapping, KeyType, ObjectMapping};
pub use sample::{Contents, Sample, SampledKey, Sampler};
pub use store::Redis;

/// The code example of the chapter, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../chapter.md")]
struct Chapter;
