//! A reference for replicated stores: replicas in memory that keep every update they received.
//!
//! What a replica shows is a function of the *set* of updates that it has received, and of nothing
//! else: neither of their order nor of when they came. So replicas that received the same show the
//! same, which is what a store of level `causal` or `eventual` promises once updates stop. It is
//! the plainest store that keeps what adapters declare as [`mingle_store::Once::ById`],
//! [`mingle_store::Once::Home`] or [`mingle_store::Once::Never`]; tests and simulations compare
//! others with it. It forgets nothing, so it is no store to keep data in.
//!
//! [`ReplayStore::open`] gives a [`mingle_store::DataStore`]. Reading order:
//!
//! - [`config`]: what can be set, and which links between replicas are up.
//! - `context`: which updates a replica has received.
//! - `update`: what one replica tells the others of a commit, and the order of versions.
//! - `build`: from a transaction's writes to an update.
//! - `state`: what a set of updates comes to.
//! - `once`: which of several updates of one operation counts.
//! - `replica`: what arrives, and when.
//! - `fit`, `reading`, `size`: whether a call fits the schema, and what a read gives.
//! - `store`: the interface.
//!
//! How concurrent updates merge is what the embedded engine documents: a register, an entry and
//! an element are sets of dots, of which a write puts its own in the place of those that it saw;
//! of concurrent writes the highest in version order shows; an insert survives a concurrent
//! removal; counters are sums, logs are in version order; clearing and deleting remove what their
//! replica saw.
//!
//! Invariant: nothing runs in the background. What is due is applied when somebody asks.

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
