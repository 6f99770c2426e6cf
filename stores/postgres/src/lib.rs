//! Stores in PostgreSQL: tables of our own, and tables that were there before.
//!
//! [`Postgres::connect`] gives a [`mingle_store::DataStore`]. Reading order:
//!
//! - [`config`]: what can be set, and why a store cannot be opened; [`mapping`]: objects in tables
//!   that were there before.
//! - `tls`, `pipeline`, `connect`, `session`, `pool`: connections, pipelines of prepared statements, who has which.
//! - `encoding`, `codec`, `wire`: values as digests, in columns, and on their way.
//! - `catalog`, `layout`, `tables`: what is kept of the declarations, and the SQL that makes tables.
//! - `reading`, `writing`, `operation`: from reads and writes to statements, from rows to answers.
//! - `system`, `outcome`: the runtime's own rows.
//! - `transaction`, `commit`: one transaction; `store`: opening one.
//! - [`inside`]: transactions that are parts of one of the application's.
//! - `replicated`: the same over several servers, at the level causal.
//! - `describe`: what a database has, for whoever wants to begin with it.
//!
//! Invariant: a transaction at one server is one transaction of PostgreSQL at `SERIALIZABLE`, at either
//! level.
//!
//! Invariant: a commit goes out as a whole. Whatever must keep it from taking effect raises an error
//! in the server, which then skips the `COMMIT` that follows.
//!
//! Invariant: what a commit demands of the state at its end, rather than of its snapshot, is a row
//! lock: PostgreSQL refuses one on a row that was changed since the snapshot.

mod again;
mod catalog;
mod codec;
mod commit;
pub mod config;
mod connect;
mod describe;
mod encoding;
mod error;
pub mod inside;
mod layout;
pub mod limits;
mod line;
pub mod mapping;
mod name;
mod operation;
mod outcome;
mod pipeline;
mod pool;
mod reading;
mod replicated;
mod session;
mod store;
mod system;
mod tables;
mod text;
mod tls;
mod together;
mod transaction;
mod wire;
mod writing;

pub use config::{Migrate, OpenError, PostgresConfig};
pub use describe::{ColumnDescription, ForeignKey, TableDescription, describe};
pub use inside::{HostTransaction, JoinError, Joined};
pub use mapping::{CollectionMapping, MayRefuse, ObjectMapping};
pub use replicated::ReplicatedPostgres;
pub use store::{Migration, Postgres, check, migrate, plan_migration};
