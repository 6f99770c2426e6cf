//! Runs a split program over its stores as one atomic transaction, even if processes crash.
//!
//! A transaction whose phases write at most one store, and that has no transaction to wait for, is just
//! that write. Any other transaction leaves an *intent* with its first write: all that is needed to run
//! the rest. Each later phase leaves a *commit witness* with its effects, so that it takes effect
//! once, whichever process runs it. *Witness rows* on the written objects tell other transactions at
//! which stores to wait for this one.
//!
//! The path of one call: [`runtime`] takes the call, `transaction` runs its phases in order, `phase`
//! repeats one phase until it has committed, `attempt` runs the phase once, and `conclude` commits it.
//! `ahead` reads for the next phase before the first commit, and `early` while the phase before it runs;
//! `owed` raises a floor instead of writing commit witnesses; `turns` lets other tasks run while a phase
//! computes.
//!
//! - [`machine`]: the interpreter of one phase; it computes, and asks for the reads it needs;
//! - [`overlay`]: the transaction's own writes, through which its reads see them;
//! - [`call`]: calls and reports, and the state that a caller shares with its task;
//! - [`inside`]: calls whose first writing phase is a part of the application's own transaction;
//! - [`beside`]: phases that run whole beside a distant store, and the workers that run them there;
//! - `bounded`: deadlines of requests to stores; `circuit`: stores that are away;
//! - `keyed`: calls that may be made again; [`watch`]: the events of a call while it runs;
//! - [`session`]: the state that a client's transactions must not lose sight of, and its token;
//! - [`worklist`]: the transactions to wait for, and the stores at which to wait;
//! - [`intent`]: the records with which another process can finish a transaction;
//! - [`help`]: finishing transactions that other processes have begun;
//! - `parked`: transactions that cannot be finished for now, and those that an operator has ended;
//! - `cleaner`: deleting the records of finished transactions; [`sweep`]: cleaning up after origins that
//!   are gone;
//! - [`survey`]: an operator's view of a runtime and of its stores;
//! - `places`: how stores and replicas have answered;
//! - [`stats`]: counts of events; [`metrics`]: figures for a metrics recorder;
//! - [`error`]: the ways in which a call can end without a result;
//! - [`planted`]: faults that are planted to test that the checkers find them;
//! - [`tokio_world`]: the real clock, and tokio's tasks.
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
//!   itself ([`help`]). Otherwise [`sweep`] does so once origin 7 has shown no sign of life for a lease.
//! - The commit (b) has two guards as well: no commit witness (7,41), and a floor below 41. If this
//!   process and a helper both run the phase, the second commit is refused. An attempt that goes on from
//!   reads made ahead (`ahead`) needs no guard on the witness: its store counts one of several copies.
//! - The append leaves no row on the customer. It would if a replica of `shop` could lag behind the
//!   others: the row would then name `shop`.
//! - The clean-up (c) raises the floor of origin 7 at each store before it deletes anything there, and
//!   deletes the intent last. A helper that has read the intent and wakes up after the clean-up finds
//!   the floor at 41 or above, and its commit is refused.
//!
//! If the answer to (a) is lost, this process asks `shop` for the outcome of the id (7,41). `shop`
//! answers that it has committed, or ensures that it never will. If the answer to (b) is lost, the phase
//! runs again under the same guards.

mod ahead;
mod asked;
mod attempt;
mod behind;
pub mod beside;
mod bounded;
pub mod call;
mod circuit;
mod cleaner;
mod conclude;
mod drive;
mod early;
pub mod error;
mod fixed;
pub mod help;
pub mod inside;
pub mod intent;
mod keyed;
mod known;
mod lease;
mod leave;
pub mod limits;
pub mod loss;
pub mod machine;
pub mod metrics;
pub mod overlay;
mod owed;
mod own;
mod parked;
mod phase;
mod places;
#[doc(hidden)]
pub mod planted;
mod principal;
mod records;
pub mod runtime;
pub mod session;
pub mod stats;
pub mod survey;
pub mod sweep;
mod through;
pub mod tokio_world;
mod transaction;
mod turns;
mod unheard;
mod united;
pub mod watch;
pub mod worklist;

pub use beside::Beside;
pub use call::{Call, CallReport, PhaseReport};
pub use circuit::Away;
pub use error::Error;
pub use inside::Inside;
pub use keyed::CallKey;
pub use limits::Settings;
pub use loss::Loss;
pub use parked::Abandoned;
pub use places::Answered;
pub use runtime::Runtime;
pub use session::{Session, SessionKey, SessionScope, TokenError};
pub use survey::{Backlog, Found, Holdings, Place, Process, Survey, Unfinished, Unreachable};
pub use sweep::Swept;
pub use tokio_world::TokioWorld;
pub use watch::{Event, Watcher};
