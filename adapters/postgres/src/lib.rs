//! PostgreSQL stores, in tables created by Mingle and in existing tables of an application.
//!
//! [`Postgres::connect`] gives a [`mingle_store::DataStore`]. Reading order:
//!
//! - [`config`]: the settings, and the reasons why a store cannot be opened; [`mapping`]: objects in
//!   existing tables.
//! - `tls`, `pipeline`, `connect`, `session`, `pool`: connections, pipelines of prepared statements,
//!   and the pool that leases connections.
//! - `encoding`, `codec`, `wire`: values as digests, in columns, and in messages.
//! - `catalog`, `layout`, `tables`: the stored declarations, and the SQL that creates tables.
//! - `reading`, `writing`, `operation`: from reads and writes to statements, from rows to answers.
//! - `system`, `outcome`: the runtime's own rows.
//! - `transaction`, `commit`: one transaction; `store`: opening a store.
//! - [`inside`]: transactions that run inside a transaction of the application.
//! - `replicated`: a store on several servers, at the level causal.
//! - `describe`: a description of an existing database, from which a mapping can be written.
//!
//! Invariant: a transaction on one server is one PostgreSQL transaction at `SERIALIZABLE`, at
//! either level.
//!
//! Invariant: a commit is sent as a whole. Every condition that must prevent it raises an error in
//! the server, which then skips the `COMMIT` that follows.
//!
//! Invariant: a condition on the state at the end of the commit, rather than on its snapshot, is a
//! row lock: PostgreSQL refuses to lock a row that was changed since the snapshot.

mod again;
mod catalog;
mod codec;
mod commit;
pub mod config;
mod connect;
mod describe;
mod encoding;
mod error;
mod examine;
pub mod inside;
mod layout;
pub mod limits;
mod line;
pub mod mapping;
mod name;
mod numeric;
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
pub use describe::{ColumnDescription, Enumeration, ForeignKey, Reach, TableDescription, describe};
pub use examine::{Examination, examine};
pub use inside::{HostTransaction, JoinError, Joined};
pub use mapping::{CollectionMapping, MayRefuse, ObjectMapping};
pub use replicated::ReplicatedPostgres;
pub use store::{Migration, Postgres, check, migrate, plan_migration};
