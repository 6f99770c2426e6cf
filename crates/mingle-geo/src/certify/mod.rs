//! Certification of strong transactions (UniStore §6.3).
//!
//! The replicas of a partition agree on a log of [`Entry`]s; a [`Certifier`] follows it. Whether a
//! transaction may commit, as far as its partition is concerned, is a *vote*, and a pure function of
//! the log up to its [`Entry::Prepare`]: so every replica knows it, whoever led when it was chosen,
//! and no state beside the log has a say. Two-phase commit runs across the logs: a transaction
//! commits if all its participants vote for it, at the highest timestamp that they proposed
//! ([`decide`]). Since votes stand in logs, any replica can finish what a coordinator began.
//!
//! - [`entry`]: what stands in a log.
//! - [`conflict`]: which two transactions conflict.
//! - [`certifier`]: votes, decisions, and the order of delivery.
//! - [`configuration`]: who agrees on a log, and how another comes in the place of one that is lost.
//! - [`group`]: a replica's part in agreeing on the log; [`coordinator`]: who asks for votes;
//!   [`message`]: what they say.
//!
//! # Departures
//!
//! - The paper's service (after Chockler and Gotsman, *Multi-shot distributed transaction commit*,
//!   DISC 2018) has each leader vote from its memory and replicate votes. Here preparations are
//!   replicated and votes follow from them, which leaves nothing that could be voted twice.
//! - A vote looks at the *full* commit vector of what it conflicts with, not at its strong entry
//!   alone: a snapshot may reach to a strong timestamp and lack what that transaction had seen.
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
