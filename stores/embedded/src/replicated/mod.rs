//! The engine for `causal` and `eventual`: replicas that each have a view of their own.
//!
//! A transaction runs at the session's replica, against one snapshot. Its commit makes one
//! [`update`] of what it did: changes to units, each with the *dot* (origin, sequence) of the
//! update, and removals of what was there. It is applied at once here, and queued for the other
//! replicas, where it is applied once it is due: at a causal store when all that its origin had
//! seen is there, at an eventual one in whatever order.
//!
//! How concurrent updates merge:
//!
//! - A register, an entry and an element are sets of dots. A write puts its dot in the place of
//!   all that its replica had; a removal takes away those that its replica had. So an insert
//!   survives a concurrent removal, and of concurrent writes the last one shows: the one of the
//!   highest (Lamport timestamp, replica).
//! - An object exists as long as its presence has a dot; every write but a deletion adds one.
//! - A counter keeps a [`tally`], a log its lines in order of (timestamp, replica, sequence).
//! - Clearing and deleting carry the [`context`] of their replica, and remove what that covers.
//!
//! A record is a register and a witness row an element, of a kind that no object has: so they travel
//! and merge with the data of their commit. Guards are judged by the records as they were last
//! committed at any replica ([`latest`]), unless the store is [`mingle_store::Once::Home`]. What
//! replicas have seen is told to sessions as a [`stamp`].
//!
//! Where a removal comes before what it removes (at an eventual store only), the replica
//! remembers it until all of that has come ([`early`]), and forgets it then.

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
