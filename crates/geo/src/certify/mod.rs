//! Certification of strong transactions (UniStore §6.3).
//!
//! The replicas of a partition agree on a log of [`Entry`]s, and a [`Certifier`] follows it. A
//! partition's decision whether a transaction may commit is a *vote*. A vote is a pure function of
//! the log up to its [`Entry::Prepare`], so every replica knows it, regardless of the leader at
//! that time, and no state outside the log has an effect. Two-phase commit runs across the logs: a
//! transaction commits if all its participants vote for it, at the highest timestamp that they
//! proposed ([`decide`]). Since votes are in logs, any replica can finish a transaction that a
//! coordinator began.
//!
//! - [`entry`]: the entries of a log.
//! - [`conflict`]: the conflict relation of transactions.
//! - [`certifier`]: votes, decisions, and the order of delivery.
//! - [`configuration`]: the members that agree on a log, and their replacement.
//! - [`group`]: a replica's part in agreeing on the log; [`coordinator`]: the collection of votes;
//!   [`message`]: their messages.
//!
//! # Departures
//!
//! - In the paper's service (after Chockler and Gotsman, *Multi-shot distributed transaction
//!   commit*, DISC 2018), each leader votes from its memory and replicates votes. Here prepares are
//!   replicated and votes follow from them, so no replica can vote twice.
//! - A vote compares the *full* commit vector of a conflicting transaction, not only its strong
//!   entry, because a snapshot may reach a strong timestamp and lack the causes of that
//!   transaction.
//! - `HEARTBEAT_STRONG` (3:9-10) is [`Entry::Advance`], proposed when a partition holds others back.

mod answer;
pub mod certifier;
pub mod configuration;
pub mod conflict;
mod consensus;
pub mod coordinator;
pub mod entry;
pub mod group;
mod index;
mod learner;
mod members;
pub mod message;
mod mirror;
mod resolve;

pub use certifier::{Certifier, CertifierConfig, Dropped};
pub use configuration::{Configuration, Moved};
pub use conflict::{Access, Conflicts, Label, Touch};
pub use coordinator::{Certified, Coordinator};
pub use entry::{Decision, Entry, Proposal, Vote, decide};
pub use group::{Group, GroupConfig};
pub use message::{GroupEnvelope, GroupInput, GroupMessage, GroupOutput, Voted};
pub use mirror::GroupRecord;
