//! The worker that stands beside a distant store and runs whole phases there (MixT §7.2).
//!
//! A phase whose reads depend on earlier reads needs several round trips between runtime and store. If they
//! are far apart, the runtime sends the attempt to the worker instead, once, with all that the attempt
//! needs. The runtime defines the content of an attempt and of its answer; this module treats them as bytes.

use std::time::Duration;

use mingle_model::Principal;

use crate::store::StoreError;
use crate::world::BoxFuture;

/// One attempt at a phase, to be run beside its store.
#[derive(Clone, Copy, Debug)]
pub struct Errand<'a> {
    /// The SHA-256 of the program's text: a worker that knows the hash needs no text.
    pub program: [u8; 32],
    /// The program's text.
    pub text: &'a str,
    /// A number that distinguishes this errand from all others, so that it is run once.
    pub nonce: u128,
    /// The attempt to run, encoded by the runtime.
    pub attempt: &'a [u8],
    /// The time for which to keep asking for the answer.
    pub within: Duration,
}

/// The answer to an errand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The answer, encoded by the runtime.
    pub answer: Vec<u8>,
    /// The number of round trips to the worker.
    pub round_trips: u32,
}

/// The transactions that a principal may call.
pub trait Admission: Send + Sync {
    /// True if this principal may call the transaction of this name; without a principal the caller is not named.
    fn admits(&self, principal: Option<&Principal>, transaction: &str) -> bool;
}

/// Runs errands beside a store.
///
/// Its [`Admission`] is the worker's admission for this client, as the client was told when it opened the store.
pub trait Worker: Admission {
    /// Runs an errand once, however often the client has to ask for the answer.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] when the worker is fully loaded and has not run it.
    /// [`StoreError::Unavailable`] when it was not sent. [`StoreError::Refused`] when the worker
    /// will not run it. [`StoreError::Unknown`] when no answer came: it may have been run, or may
    /// still run; the caller must ask the store for the outcome of its commit.
    fn run<'a>(&'a self, errand: Errand<'a>) -> BoxFuture<'a, Result<Ran, StoreError>>;
}
