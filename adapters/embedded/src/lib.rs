//! The embedded engine: stores of every level in this process, in memory or in a folder.
//!
//! [`Embedded::open`] gives a [`mingle_store::DataStore`]. Reading order:
//!
//! - [`config`]: the settings, and the errors of opening a store.
//! - [`storage`]: ordered rows with snapshots and atomic commits, in memory or in a redb file.
//! - `folder`, `kept`: the files of a program's stores; `mending`: reopening a store after its disk failed.
//! - `encoding`: values, keys and rows as bytes.
//! - `catalog`, `layout`: the stored schema, and the durable ids in keys.
//! - `builtin`: the bodies of declared operations.
//! - `reading`, `writing`: answers computed from rows, and checks of writes.
//! - `witness`, `guarding`: witness rows, and the conditions of a commit on rows and records.
//! - `serializable`: the engine for `linearizable` and `snapshot`.
//! - `replicated`: the engine for `causal` and `eventual`.
//! - `geo`: the engine for causal stores over several data centers; `hosted`: its stores over data
//!   centers that are processes of their own.
//! - `turnstile`: orders commits and lets them share an `fsync`; `outcome`: the outcomes
//!   of commits.
//!
//! Two kinds of rows grow with use and are never removed: one small row for each process that ever
//! committed with an id ([`mingle_store::Commit::id`]), or, over data centers, one for each such id where
//! ids are kept; and one small row for each deleted object, except over data centers.
//!
//! Invariant: nothing runs in the background, except in `geo`. Work that is due is done at the next request,
//! so a test with its own clock sees the same result each time. Data centers tell each other their progress
//! with or without requests: a task of the world does this, and it ends with the store.

mod builtin;
mod catalog;
pub mod config;
mod core;
mod encoding;
mod folder;
mod geo;
mod guarding;
mod hosted;
mod index;
mod kept;
mod layout;
pub mod limits;
mod mending;
mod numbers;
mod open;
mod outcome;
mod reading;
mod replicated;
mod serializable;
pub mod storage;
mod turnstile;
mod unique;
mod witness;
mod writing;

pub use config::{EmbeddedConfig, LinkTable, Links, OpenError};
pub use geo::cluster;
pub use geo::{
    Admitted, ConflictPairs, DATACENTERS_MAX, DatacenterState, DatacenterStatus, GeoConfig,
    GeoStore, GivenUp,
};
pub use hosted::{HOSTED_STORES_MAX, Hosted};
pub use open::Embedded;
