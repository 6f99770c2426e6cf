//! Phases that run whole beside a distant store (MixT §7.2).
//!
//! A store may have a [worker](mingle_store::Worker): then an attempt at a phase goes there and
//! back once, however often the phase reads. What travels is the attempt, not the protocol: the
//! worker makes an execution of it again and runs the same code over its own connection to the
//! store, so intents, witnesses, guards and fences are what they are elsewhere. All that must be the
//! caller's is sent along: its principal, the id, `now()`, the seed of `unique()`, recorded values, whom to wait
//! for. Whoever sends it stays the transaction's origin: it cleans up, helps, and finds out what
//! came of an attempt whose answer was lost.
//!
//! - `wire`: what is sent, and what comes back;
//! - `send`: an attempt on its way, and what the answer changes here;
//! - `lost`: attempts without an answer;
//! - [`Beside`]: running those of others; `elsewhere` stands for the stores that are not here.
//!
//! # Departures
//!
//! MixT leaves it to the programmer to bring the code to the workers. Here a worker knows a program
//! by the hash of its text and asks for what it lacks.

mod elsewhere;
mod lost;
mod run;
mod send;
mod wire;

pub use run::{Beside, NoAttempt};
