//! A causal store over several servers, which replicate to each other (technical report, §6.1).
//!
//! A session stays at one server. The servers replicate a log of updates, by logical replication
//! with `origin = none`. Each server inserts its own rows and no server changes them, so
//! replication cannot conflict. At its arrival a trigger applies an update, in causal order, to the
//! local tables of the server. There every write has a row of its own besides concurrent ones, and
//! reads merge them. Reading order:
//!
//! - `tables.sql`, `functions.sql`: the tables of a server, and the functions that run there.
//! - `declared`: the stored declarations. `setup`: tables. `link`: subscriptions.
//! - `vector`: the updates that servers have seen.
//! - `writes`, `reading`, `answer`: from writes and reads to statements, from rows to answers.
//! - `transaction`, `commit`: one transaction. `store`: the store.
//!
//! Invariant: a replicated row belongs to one server, is inserted once and only there, and is never
//! changed.
//!
//! Invariant: an update is applied once, and after all updates that its server had seen: the
//! vector, the update's effect and its place in the inbox change in one transaction of the server.
//!
//! Invariant: an update has the same effect at every server: it removes the rows that its own
//! server had seen, and these are present wherever the update is applied.
//!
//! Invariant: a transaction that changes the state of a server holds the lock on its single state
//! row; numbers therefore have no gaps and are sent in order.
//!
//! # Departures
//!
//! The report keeps a version vector in each row. Here an update carries the vector, and a row
//! carries its dot (server and number): under causal delivery a vector in the row would add
//! nothing.

mod answer;
mod commit;
mod declared;
mod link;
mod reading;
mod setup;
mod store;
mod transaction;
mod vector;
mod writes;

pub use setup::{may_open, migrate, plan};
pub use store::ReplicatedPostgres;
