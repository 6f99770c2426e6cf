//! Runs a split program over its stores as one atomic transaction, even if processes crash.
//!
//! A transaction whose phases write at most one store, and that has no transaction to wait for, is just
//! that write. Any other transaction leaves an *intent* with its first write: all that is needed to run
//! the rest. Each later phase leaves a *commit witness* with its effects, so that it takes effect
//! once, whichever process runs it. *Witness rows* on the written objects tell other transactions at
//! which stores to wait for this one.
//!
//! The path of one call: [`runtime`] takes the call, `execute/transaction` runs its phases in order,
//! `execute/phase` repeats one phase until it has committed, `execute/attempt` runs the phase once, and
//! `execute/commit` commits it.
//!
//! The folders, from the lowest to the highest; none imports a higher one:
//!
//! - `protocol`: the records of a transaction and the wait set, without I/O;
//! - `api`: the types that a caller sees: calls, sessions, settings, errors, events;
//! - `interpreter`: the machine that runs a phase's instructions, without I/O;
//! - `observe`: counts of events, and figures for a metrics recorder;
//! - `stores`: the program's stores, and all that this process has learned of them;
//! - `in_flight`: the transactions that this process has begun, until their records are removed;
//! - `execute`: transactions, phases, attempts, commits, and helping other transactions;
//! - `host_transaction`: calls whose first writing phase is a part of the application's own transaction;
//! - `remote_phase`: the worker that runs phases for other processes, beside a distant store;
//! - `recovery`: cleaning up after origins that are gone, and an operator's view and means;
//! - [`runtime`]: the facade, a program over its stores.
//!
//! # Example: one transaction over two stores
//!
//! `order` takes an item from stock at `shop`, a linearizable store with one copy, and then appends it
//! to the customer's feed at `feed`, a causal store. This process is origin 7, and it calls the
//! transaction (7,41): the 41st that it has numbered.
//!
//! ```text
//!     caller      origin 7                        shop                      feed
//!       │ call ────►│                               │                         │
//!       │           │ read item.stock ─────────────►│                         │
//!       │           │◄──────────────── 3, no rows   │                         │
//!  (a)  │           │ commit: stock = 2, intent,    │                         │
//!       │           │   row (7,41) on the item ────►│                         │
//!       │           │◄───────────────────── done    │                         │
//!  (b)  │           │ commit: append, commit witness (7,41) ─────────────────►│
//!       │           │◄───────────────────────────────────────────────── done  │
//!       │◄── result │                               │                         │
//!  (c)  │           │ later: floors, then witnesses and rows, then the intent │
//! ```
//!
//! - The commit (a) decides the transaction. It has two guards: `shop` holds no fence of origin 7, and
//!   the floor of origin 7 at `shop` is below 41. Before (a), a crash leaves nothing. After (a), any
//!   process can finish the transaction from its intent.
//! - The row on the item names `feed`. A transaction that reads or overwrites the item and then visits
//!   `feed` waits there for (7,41). If that takes longer than `help_after`, it runs the second phase
//!   itself (`execute/helper`). Otherwise [`sweep`] does so once origin 7 has shown no sign of life for a lease.
//! - The commit (b) has two guards as well: no commit witness (7,41), and a floor below 41. If this
//!   process and a helper both run the phase, the second commit is refused. An attempt that goes on from
//!   reads made ahead (`execute/prefetch`) needs no guard on the witness: its store counts one of several copies.
//! - The append leaves no row on the customer. It would if a replica of `shop` could lag behind the
//!   others: the row would then name `shop`.
//! - The clean-up (c) raises the floor of origin 7 at each store before it deletes anything there, and
//!   deletes the intent last. A helper that has read the intent and wakes up after the clean-up finds
//!   the floor at 41 or above, and its commit is refused.
//!
//! If the answer to (a) is lost, this process asks `shop` for the outcome of the id (7,41). `shop`
//! answers that it has committed, or ensures that it never will. If the answer to (b) is lost, the phase
//! runs again under the same guards.

mod api;
mod execute;
pub mod host_transaction;
mod in_flight;
mod interpreter;
#[doc(hidden)]
pub mod mutants;
mod observe;
mod protocol;
mod recovery;
pub mod remote_phase;
pub mod runtime;
mod stores;
pub mod tokio_world;

pub use api::call::{Call, CallReport, PhaseReport};
pub use api::error::Error;
pub use api::session::{Session, SessionKey, SessionScope, TokenError};
pub use api::settings as limits;
pub use api::settings::Settings;
pub use api::watch::{Event, Watcher};
pub use api::{call, error, session, watch};
pub use host_transaction as inside;
pub use host_transaction::Inside;
pub use interpreter::{machine, write_buffer};
pub use observe::{metrics, stats};
pub use protocol::call_key::CallKey;
pub use protocol::{intent, wait_set};
pub use recovery::abandon::Abandoned;
pub use recovery::survey::{
    self, Backlog, Found, Holdings, Place, Process, Survey, Unfinished, Unreachable,
};
pub use recovery::sweeper as sweep;
pub use recovery::sweeper::Swept;
pub use remote_phase as beside;
pub use remote_phase::Beside;
pub use runtime::Runtime;
pub use stores::Given;
pub use stores::answers::Answered;
pub use stores::availability::Away;
pub use stores::lost_replicas as loss;
pub use stores::lost_replicas::Loss;
pub use tokio_world::TokioWorld;

/// The wait set under its earlier name.
pub mod worklist {
    pub use crate::protocol::wait_set::{Awaited, WaitSet as Worklist};
}

/// The write buffer under its earlier name.
pub mod overlay {
    pub use crate::interpreter::write_buffer::{FieldView, FieldWrites, WriteBuffer as Overlay};
}

#[doc(hidden)]
pub mod planted {
    pub use crate::mutants::Mutant as Planted;
}
