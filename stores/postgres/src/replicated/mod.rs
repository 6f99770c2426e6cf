//! A causal store over several servers, which replicate to each other (technical report, §6.1).
//!
//! Sessions stay at a server. What is replicated is a log of updates, by logical replication with
//! `origin = none`: each server inserts rows of its own and nobody changes them, so there is nothing that
//! could conflict. A trigger applies an update where it arrives, in the order of causes, to tables that
//! each server has for itself. There every write has a row of its own beside those that were made apart,
//! and reads merge them. Reading order:
//!
//! - `tables.sql`, `functions.sql`: the tables of a server, and what it does by itself.
//! - `declared`: what is kept of the declarations. `setup`: tables. `link`: subscriptions.
//! - `vector`: what servers have seen.
//! - `writes`, `reading`, `answer`: from writes and reads to statements, from rows to answers.
//! - `transaction`, `commit`: one transaction. `store`: the store.
//!
//! Invariant: a row of what is replicated belongs to one server, is inserted there alone and once, and is
//! never changed.
//!
//! Invariant: an update is applied once, and after all that its server had seen: the vector, the
//! update's effect and its place in the inbox change in one transaction of the server.
//!
//! Invariant: an update comes to the same at every server, since it removes what its own server had
//! seen, and that is there wherever it is applied.
//!
//! Invariant: whoever changes the state of a server has its one row locked; so numbers have no gaps, and
//! are sent in their order.
//!
//! # Departures
//!
//! The report keeps a version vector in each row. Here an update carries the vector, and a row its dot
//! (which server, which number): under causal delivery a vector says no more of a row.

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
