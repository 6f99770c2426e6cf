//! Eiger: columns, read-only transactions and write-only transactions (thesis, chapter 5).
//!
//! Each version has an earliest valid time (EVT), the logical time at which it became visible at its
//! server; a server answers a read with the EVT and its current time, the latest valid time (LVT).
//! The answer is valid between them. A read-only transaction looks for a time at which all answers are
//! valid, and reads the others again at this *effective time*:
//!
//! ```text
//!   location 1   A [2 ─────── 10]                     read again at 15: B
//!   location 2              K [12 ──────────── 16]
//!   location 3   Q [7 ─────────────────── 15]
//!                                         ▲ effective time
//! ```
//!
//! A write-only transaction is a two-phase commit without refusals. Participants mark the locations as
//! pending and vote, and the coordinator commits once all have voted; its logical time is the EVT
//! everywhere in the data center. A transaction never aborts, and a read never waits for one: a cohort
//! that is asked for a time at which a transaction is pending asks the coordinator, which knows.
//!
//! ```text
//!   client      ── atomic_mutate ─► cohort        (pending)           columns
//!               │                     │ yes_vote      ▲ commit         ▲
//!               └─ atomic_mutate ─► coordinator ──────┴─ mutated ─► client
//! ```
//!
//! Each participant sends its part to the equivalent servers of the other data centers. The cohorts
//! there notify the coordinator, which waits for all parts and for the dependencies of the whole
//! transaction, and only then begins the same two phases.
//!
//! - `chain`: the versions of a location;
//! - [`server`]: the servers; `transactions` has the write transactions, `reads` the slices;
//! - [`client`]: the client library.
//!
//! # Departures
//!
//! - The answer for a slice with a pending transaction has the EVT of the columns that are there, not
//!   only an LVT: the effective time is never earlier than a version that was readable before.
//! - The interval of a slice covers its absent columns: they are an answer that is valid up to the LVT,
//!   and a slice without columns takes part in the choice of the effective time.
//! - A dependency is satisfied once its own operation is applied, not once a newer one of its key is:
//!   see `dep_check`.
//! - Versions are kept for twice `trans_time` after they were overwritten, whether they were read or not:
//!   the thesis keeps the time of the last access, to keep fewer.
//! - Additions of one data center that were prepared at the same time, in transactions, do not depend
//!   on each other: a counter can have more than one dependency for a data center until the next
//!   addition.
//! - Data centers are linearizable for the actors of one client. The answer to a transaction can
//!   overtake its commit on the way to a cohort; a client that has not seen the answer's time can then
//!   read there as of an earlier time. §5.3.4 promises more, and its author withdrew that later.
//! - Counter columns cannot be deleted.

mod chain;
pub mod client;
mod reads;
pub mod server;
mod transactions;
