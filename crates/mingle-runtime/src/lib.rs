//! Runs a split program over its stores, as one atomic transaction, whoever crashes.
//!
//! A transaction whose phases write at most one store, and that has nobody to wait for, is just
//! that write. Any other one leaves, with its first write, an *intent*: all that is needed to run
//! the rest. Each later phase leaves a *commit witness* with its effects, so that it takes effect
//! once whoever runs it, and *witness rows* on what was written tell others at which stores to
//! wait for it.
//!
//! One call: [`runtime`] takes it, `transaction` runs its phases in order, `phase` one of them
//! until it has committed, `attempt` that once, and `conclude` is its commit; `ahead` reads
//! for the next one before the first commit, and `early` while the one before it runs;
//! `owed` raises a floor in the place of commit witnesses; `turns` lets others run while a phase computes.
//!
//! - [`machine`]: the interpreter of one phase; it computes, and says what it wants to read;
//! - [`overlay`]: the transaction's own writes, through which its reads see them;
//! - [`call`]: calls and reports, and what a caller shares with its task;
//! - [`inside`]: calls whose first writing phase is a part of the application's own transaction;
//! - [`beside`]: phases that run whole beside a distant store, and those who run them there;
//! - `bounded`: deadlines of requests to stores; `circuit`: stores that are away;
//! - `keyed`: calls that may be made again; [`watch`]: what happens in a call while it runs;
//! - [`session`]: what a client's transactions must not lose sight of, and its token;
//! - [`worklist`]: whom to wait for, and where;
//! - [`intent`]: what is kept so that somebody else can finish a transaction;
//! - [`help`]: finishing what others have begun;
//! - `parked`: transactions that cannot be finished for now, and those that an operator has ended;
//! - `cleaner`: deleting what is over; [`sweep`]: after origins that are gone;
//! - [`survey`]: what an operator sees of a runtime and of its stores;
//! - `places`: how stores and replicas have answered;
//! - [`stats`]: how often what happened; [`metrics`]: figures for whoever collects them;
//! - [`error`]: how a call can end without a result;
//! - [`planted`]: faults that are planted to see that the checkers notice;
//! - [`tokio_world`]: the real clock, and tokio's tasks.

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
