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
//! - [`mod@derive`]: indexes, which replicas derive from items.
//! - [`wire`]: messages and records, as bytes; [`flaw`]: mistakes to plant.
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
//!
//! # A causal transaction, step by step
//!
//! There are three data centers d0, d1 and d2 with two partitions p0 and p1 each, and `f = 1`. A
//! session at d0 reads one key of each partition and writes both. Timestamps are short numbers here.
//!
//! ```text
//!  session at d0        d0: p0, p1                      d1: p0, p1
//!  read ──────────────► read at [d0:100 d1:90]
//!  commit ── Prepare ─► prepared at 110 and 112
//!         ◄─ PrepareAck ── (on disk)
//!  Committed [d0:112 d1:90]
//!         ── Commit ──► in the opLog
//!                       Replicate (99, 120] ──────────► in the opLog, knownVec[d0] = 120
//!                                                       stableVec[d0] = 120 at p0 and p1
//!                       SiblingVecs ──────────────────► uniformVec[d0] = 120: visible
//! ```
//!
//! 1. **Begin** (`session/mod.rs`). The first [`Session::read`] or [`Session::write`] gives the
//!    transaction its id. No message is needed: earlier answers brought a [`message::Handout`] with
//!    `stableVec` and `uniformVec`.
//! 2. **Read** (`session/read.rs`). The snapshot is [`message::Handout::causal_snapshot`], joined
//!    with the session's past: here `[d0:100 d1:90]`. Each partition gets a `Read`, in one round.
//! 3. **Serve the read** (`replica/read.rs`, `oplog.rs`). Each replica moves its clock to 100, so that
//!    no later transaction commits below. It waits only if a transaction is prepared at or below 100.
//!    Then it applies the operations that the snapshot covers to the item's base or cached state.
//! 4. **Commit** (`session/commit.rs`). Writes were kept in the session until now. It sends each
//!    partition a `Prepare` with that partition's operations. (One partition alone would get a
//!    `CommitOne`, which needs no prepare: `replica/commit.rs`.)
//! 5. **Prepare** (`replica/prepare.rs`). p0 proposes 110 and p1 proposes 112, both above every entry
//!    of the snapshot. Each writes the prepare record, and sends its `PrepareAck` once that is on
//!    disk. Until the decision `knownVec[d0]` stays below the proposal.
//! 6. **Decide** (`session/commit.rs`). With both votes the transaction is committed, at the highest
//!    proposal: the commit vector is `[d0:112 d1:90]`. The session joins it into its past, reports
//!    [`Event::Committed`] and sends `Commit` to both. If it vanishes before that, the participants
//!    ask each other and decide the same (`replica/resolve.rs`).
//! 7. **Apply** (`replica/prepare.rs`, `replica/commit.rs`). Each replica adds its operations to
//!    `oplog.rs` and to `committed.rs`, and remembers the outcome (`outcomes.rs`). Once both
//!    partitions of d0 have announced a `knownVec[d0]` of at least 112, `stableVec[d0]` reaches it,
//!    and new transactions at d0 see this one.
//! 8. **Replicate** (`replica/tick.rs`, `replica/replicate.rs`). On a tick, p0 and p1 each send their
//!    siblings an interval, say `(99, 120]`, with all of d0's transactions in it. A sibling that
//!    lacks nothing below 99 applies it, writes it to disk and sets `knownVec[d0]` to 120. If d0 is
//!    lost on the way, a sibling that has the interval forwards it (`replica/forward.rs`).
//! 9. **Stable at d1** (`replica/uniform.rs`). The partitions of d1 announce their `knownVec` to each
//!    other once it is on disk. The minimum is `stableVec`: its entry d0 is 120 when both have all.
//! 10. **Uniform at d1** (`replica/uniform.rs`, [`vector::uniform_of`]). Siblings exchange their
//!     `stableVec`. d1 and one other data center, for example d0, have reached 120: these are
//!     `f + 1`, so `uniformVec[d0]` at d1 is 120. From now on d1 hands it out, and a new
//!     transaction there reads both writes or, on an older snapshot, neither. The partitions of d1 also
//!     tell each other their `uniformVec` ([`message::UniformVecLocal`]): if d0 is cut off when only
//!     one of them has heard of it, the other serves what the first has shown, too.
//!
//! Later, when no running snapshot is below the commit vector, `replica/fold.rs` folds the operations
//! into the items' bases, and `committed.rs` drops the transaction once every data center has it.

pub mod baseline;
pub mod central;
pub mod certify;
pub mod clock;
mod codec;
mod committed;
pub mod config;
pub mod counters;
pub mod derive;
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
pub mod pattern;
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
pub use replica::{Delay, DelayedBy, Delivery, HeldPart, Input, Replica, folding, uniformity};
pub use session::{Event, Session, SessionConfig};
pub use strong::StrongReplica;
pub use timestamp::{DcId, Now, PartitionId, Timestamp, Version};
pub use tx::{Outcome, Transaction};
pub use types::{Cause, Kind, Mark, Op, OpId, State, Update};
pub use vector::Vector;
