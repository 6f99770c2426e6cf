//! A reference for replicated stores: replicas in memory that keep every update they received.
//!
//! The visible state of a replica is a function of the *set* of updates that it has received, and
//! of nothing else: neither of their order nor of their times. So replicas that received the same
//! updates show the same, which a store of level `causal` or `eventual` promises once updates stop.
//! This is the simplest store with the properties that adapters declare as
//! [`mingle_store::Once::ById`], [`mingle_store::Once::Home`] or [`mingle_store::Once::Never`];
//! tests and simulations compare others with it. It never discards an update, so it is not meant
//! for real data.
//!
//! [`ReplayStore::open`] gives a [`mingle_store::DataStore`]. Reading order:
//!
//! - [`config`]: the settings, and the links between replicas that are up.
//! - `context`: the updates that a replica has received.
//! - `update`: the message from one replica to the others about a commit, and the order of
//!   versions.
//! - `build`: from a transaction's writes to an update.
//! - `state`: the state that a set of updates produces.
//! - `once`: the choice among several updates of one operation.
//! - `replica`: arrival of updates, with their times.
//! - `fit`, `reading`, `size`: checks of calls against the schema, and the results of reads.
//! - `store`: the interface.
//!
//! Concurrent updates merge as the embedded engine documents: a register, an entry and an element
//! are sets of dots, and a write replaces the dots that it saw by its own; of concurrent writes the
//! highest in version order is visible; an insert survives a concurrent removal; counters are sums,
//! logs are in version order; clearing and deleting remove everything that their replica saw.
//!
//! Invariant: nothing runs in the background. Due updates are applied when a call needs them.

mod build;
pub mod config;
mod context;
mod fit;
mod once;
mod reading;
mod replica;
mod size;
mod state;
mod store;
mod update;

#[cfg(test)]
mod tests;

pub use config::{Links, ReplayConfig};
pub use store::ReplayStore;
