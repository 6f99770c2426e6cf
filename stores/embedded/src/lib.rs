//! The embedded engine: stores of every level in this process, in memory or in a folder.
//!
//! [`Embedded::open`] gives a [`mingle_store::DataStore`]. Reading order:
//!
//! - [`config`]: what can be set, and why a store cannot be opened.
//! - [`storage`]: ordered rows with snapshots and atomic commits, in memory or in a redb file.
//! - `folder`, `kept`: the files of a program's stores; `mending`: a store that opens again after its disk failed.
//! - `encoding`: values, keys and rows as bytes.
//! - `catalog`, `layout`: what is kept of the schema, and the durable ids in keys.
//! - `builtin`: the bodies of declared operations.
//! - `reading`, `writing`: from rows to answers, and writes checked.
//! - `witness`, `guarding`: witness rows, and what a commit demands of rows and records.
//! - `serializable`: the engine for `linearizable` and `snapshot`.
//! - `replicated`: the engine for `causal` and `eventual`.
//! - `geo`: the engine for causal stores over several data centers.
//! - `turnstile`: how commits are ordered, and share an `fsync`; `outcome`: what became of
//!   one.
//!
//! What grows with use and is never given back: one small row for each process that ever committed with an
//! id ([`mingle_store::Commit::id`]), over data centers one for each such id where they are kept; and one
//! small row for each object that was deleted, but not over data centers.
//!
//! Invariant: nothing runs in the background, but in `geo`. What is due is done when somebody asks, so a
//! test with a clock of its own sees the same each time. Data centers tell each other how far they are
//! whether or not somebody asks: that is a task of the world, and ends with the store.

mod builtin;
mod catalog;
pub mod config;
mod core;
mod encoding;
mod folder;
mod geo;
mod guarding;
mod kept;
mod layout;
pub mod limits;
mod mending;
mod open;
mod outcome;
mod reading;
mod replicated;
mod serializable;
pub mod storage;
mod turnstile;
mod witness;
mod writing;

pub use config::{EmbeddedConfig, LinkTable, Links, OpenError};
pub use geo::{
    Admitted, ConflictPairs, DATACENTERS_MAX, DatacenterState, DatacenterStatus, GeoConfig,
    GeoStore, GivenUp,
};
pub use open::Embedded;
