//! Phases that run whole beside a distant store (MixT §7.2).
//!
//! A store may have a [worker](mingle_store::Worker). An attempt at a phase then costs one round
//! trip to the worker, however often the phase reads. The attempt is sent, not the protocol: the
//! worker rebuilds an execution and runs the same code over its own connection to the store, so
//! intents, witnesses, guards and fences work as they do elsewhere. The sender includes all that
//! depends on the caller: its principal, the id, `now()`, the seed of `unique()`, the recorded values and
//! the transactions to wait for. The sender stays the transaction's origin: it cleans up, helps, and
//! finds out the outcome of an attempt whose answer was lost.
//!
//! - `execute/send_phase`: sending an attempt and applying its answer, the messages to the worker and back,
//!   and attempts without an answer;
//! - [`Beside`]: runs the attempts of other processes; `elsewhere` stands for the stores that the worker
//!   cannot reach.
//!
//! # Departures
//!
//! MixT leaves it to the programmer to install the code at the workers. Here a worker identifies a
//! program by the hash of its text and asks the sender for a text that it lacks.

mod elsewhere;
mod run;

pub use run::{Beside, NoAttempt};
