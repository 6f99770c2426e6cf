//! Stores in Cassandra: every write a mutation with a timestamp of its own.
//!
//! [`Cassandra::connect`] gives a [`mingle_store::DataStore`] of level `eventual` whose replicas
//! are data centers. What a commit sends can be sent twice, in any order and by anybody, and
//! comes to the same; so a phase of a transaction takes effect once although several helpers run
//! it ([`mingle_store::Once::ById`]). Reading order:
//!
//! - [`config`], [`mapping`]: what can be set, and why a store cannot be opened.
//! - `change`: the mutations, which everything else is about.
//! - `clock`: their timestamps.
//! - `statement`: the tables.
//! - `block`, `listing`: how the runtime's rows are found without reading a whole table.
//! - `scalar`, `operation`: values in columns that are not ours; declared queries and commands.
//! - `layout`: by which bytes objects, fields and elements are named.
//! - `bind`: mutations as statements with values.
//! - `link`, `error`: the cluster, and what its errors say of a request's effect.
//! - `fetch`, `reading`: from reads to rows, and from rows to answers.
//! - `commands`: whether anybody has any; `whole`: the witness rows that come with every read then.
//! - `writing`: from writes to mutations.
//! - `commit`: guards, what is compared and set, and sending.
//! - `trailing`: commit witnesses, which follow what they speak of.
//! - `fold`: many rows of a counter become one, off everybody's path.
//! - `open`: what is looked at, and made, before a store is opened.
//! - [`store`], `transaction`: all together.
//! - [`apart`]: for tests, replicas that hear of each other only when told to.
//!
//! How concurrent writes merge: registers and entries are cells, of which the one with the latest
//! timestamp shows; the elements of a set are rows with a dot each, of which a removal takes those
//! that it has seen; what is added to a counter, and the lines of a log, are rows too.

pub mod apart;
mod bind;
mod block;
mod change;
mod clock;
mod commands;
mod commit;
pub mod config;
mod cql_type;
mod error;
mod fetch;
mod fold;
mod layout;
pub mod limits;
mod link;
mod listing;
pub mod mapping;
mod open;
mod operation;
mod reading;
mod scalar;
mod statement;
pub mod store;
#[cfg(feature = "tls")]
mod tls;
mod trailing;
mod transaction;
mod whole;
mod writing;

pub use apart::Apart;
pub use config::{CassandraConfig, OpenError, Outcomes};
pub use mapping::{CollectionMapping, ObjectMapping};
pub use scylla::statement::{Consistency, SerialConsistency};
pub use store::Cassandra;

/// The chapter's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../chapter.md")]
struct Chapter;
