//! Stores in Cassandra: every write is a mutation with a timestamp of its own.
//!
//! [`Cassandra::connect`] gives a [`mingle_store::DataStore`] of level `eventual` whose replicas
//! are data centers. The mutations of a commit can be sent twice, in any order and by any process,
//! with the same result; so a phase of a transaction takes effect once although several helpers run
//! it ([`mingle_store::Once::ById`]). Reading order:
//!
//! - [`config`], [`mapping`]: the settings, and the reasons why a store cannot be opened.
//! - `change`: the mutations; all other modules build on them.
//! - `clock`: their timestamps.
//! - `statement`: the tables.
//! - `block`, `listing`: finding the runtime's rows without reading a whole table.
//! - `scalar`, `operation`: values in columns of foreign tables; declared queries and commands.
//! - `layout`: the bytes that name objects, fields and elements.
//! - `bind`: mutations as statements with values.
//! - `link`, `error`: the cluster, and the possible effects of a failed request.
//! - `fetch`, `reading`: from reads to rows, and from rows to answers.
//! - `commands`: finds out if any process uses commands; `whole`: the witness rows that every read
//!   then includes.
//! - `writing`: from writes to mutations.
//! - `commit`: guards, compare-and-set, and sending.
//! - `trailing`: commit witnesses, which are written after the data they refer to.
//! - `fold`: merges many rows of a counter into one, in the background.
//! - [`mod@describe`]: the tables of an existing keyspace, for writing a first mapping.
//! - `open`: checks and tables made before a store is opened.
//! - [`store`], `transaction`: the store and its transactions.
//! - [`apart`]: for tests, replicas that receive each other's commits only on request.
//!
//! Merging of concurrent writes: registers and entries are cells, and the cell with the latest
//! timestamp is visible. Each element of a set is a row with a dot, and a removal deletes the rows
//! that it has seen. Each amount added to a counter and each line of a log is a row too.

pub mod apart;
mod bind;
mod block;
mod change;
mod clock;
mod commands;
mod commit;
pub mod config;
mod cql_type;
pub mod describe;
mod error;
mod examine;
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
pub use describe::{ColumnDescription, KeyspaceDescription, TableDescription, describe};
pub use examine::examine;
pub use mapping::{CollectionMapping, ObjectMapping};
pub use scylla::statement::{Consistency, SerialConsistency};
pub use store::Cassandra;

/// The chapter's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../chapter.md")]
struct Chapter;
