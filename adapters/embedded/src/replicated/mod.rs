//! The engine for `causal` and `eventual`: replicas with one view each.
//!
//! A transaction runs at the session's replica, against one snapshot. Its commit creates one
//! [`update`]: changes to units, each with the *dot* (origin, sequence) of the update, and removals
//! of earlier values. The update is applied at once at this replica and queued for the others. At a
//! causal store, another replica applies it once it has everything that the origin had seen; at an
//! eventual store, in any order.
//!
//! How concurrent updates merge:
//!
//! - A register, an entry and an element are sets of dots. A write replaces all dots that its
//!   replica had by its own; a removal removes the dots that its replica had. So an insert survives
//!   a concurrent removal, and of concurrent writes the last one wins: the one with the highest
//!   (Lamport timestamp, replica).
//! - An object exists as long as its presence has a dot; every write but a deletion adds one.
//! - A counter keeps a [`tally`], a log its lines in order of (timestamp, replica, sequence).
//! - Clearing and deleting carry the [`context`] of their replica, and remove all dots that it
//!   covers.
//!
//! A record is a register and a witness row an element, of a kind that no object has: so they are
//! replicated and merged with the data of their commit. Guards are judged by the records as last
//! committed at any replica ([`latest`]), unless the store is [`mingle_store::Once::Home`].
//! Sessions carry a [`stamp`] of the updates that replicas have seen.
//!
//! If a removal arrives before the dots it removes (at an eventual store only), the replica
//! remembers it until all of these have arrived ([`early`]), and forgets it then.

mod apply;
mod build;
mod context;
mod early;
mod engine;
mod inbox;
mod latest;
mod remove;
mod rows;
mod stamp;
mod tally;
mod transaction;
mod update;

#[cfg(test)]
mod tests;

pub use engine::ReplicatedStore;
