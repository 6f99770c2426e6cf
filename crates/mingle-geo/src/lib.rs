//! The protocol core of Mingle's geo-replicated store.
//!
//! Each of a few data centers holds a full copy of the data, split into partitions. A transaction
//! reads a causally consistent snapshot, commits in its own data center and is then replicated to
//! the others in the background. A transaction that `f + 1` data centers have is *uniform* and
//! survives the loss of `f` data centers. The protocol is UniStore's (Bravo, Gotsman, de Régil,
//! Wei: *UniStore: A fault-tolerant marriage of causal and strong consistency*, USENIX ATC 2021),
//! §5 and the causal part of §6. Numbers such as 1:21 are lines of its algorithms, and names are
//! the paper's. Each module's docs list its departures from the paper.
//!
//! Everything here is a state machine without I/O, clock or randomness. A [`Replica`] is one
//! partition of one data center. A [`Session`] is one client, and coordinates its own transactions.
//! A shell carries messages between them, writes their records to disk, and tells them the time.
//!
//! - [`timestamp`], [`clock`], [`vector`]: hybrid logical time and vectors of it.
//! - [`types`]: data types whose concurrent updates merge; [`key`]: their names.
//! - [`tx`], [`message`], [`record`]: committed transactions, messages and log records; [`floors`]:
//!   bounds below which operation ids are no longer accepted.
//! - [`replica`]: the protocol at the replicas; [`session`]: the protocol at the client.
//! - [`config`], [`limits`], [`memory`], [`error`]: settings, bounds, refusals; [`counters`]: event
//!   counts.
//! - [`wire`]: the messages between siblings, as bytes; [`flaw`]: mistakes to plant.
//!
//! - [`members`]: the incarnations that belong to the system, and the cuts of those that were lost.
//!
//! - [`certify`]: votes on strong transactions, from the log that a partition's replicas agree on.
//!
//! - [`strong`]: a replica that takes part in certification; [`central`]: one service that
//!   certifies for all partitions.
//!
//! - [`baseline`]: the systems that the paper compares with, as settings.
//!
//! Vectors have an entry for strong transactions ([`DcId::STRONG`]). [`Input::Deliver`] applies the
//! transactions that certification delivers.

pub mod baseline;
pub mod central;
pub mod certify;
pub mod clock;
mod committed;
pub mod config;
pub mod counters;
pub mod error;
pub mod flaw;
pub mod floors;
pub mod key;
pub mod limits;
pub mod members;
pub mod memory;
pub mod message;
mod oplog;
mod outcomes;
pub mod record;
pub mod replica;
pub mod session;
pub mod strong;
pub mod timestamp;
pub mod tx;
pub mod types;
pub mod vector;
pub mod wire;

pub use baseline::Baseline;
pub use clock::Clock;
pub use config::{Certification, Config};
pub use counters::Counters;
pub use error::{ConfigError, Refusal};
pub use key::Key;
pub use members::Members;
pub use message::{Address, Envelope, Message};
pub use record::{Alarm, Output, Persist, Record};
pub use replica::{Delivery, Input, Replica};
pub use session::{Event, Session, SessionConfig};
pub use strong::StrongReplica;
pub use timestamp::{DcId, Now, PartitionId, Timestamp, Version};
pub use tx::{Outcome, Transaction};
pub use types::{Cause, Kind, Mark, Op, OpId, State, Update};
pub use vector::Vector;
