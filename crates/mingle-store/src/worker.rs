//! Whoever stands beside a distant store and runs whole phases there (MixT §7.2).
//!
//! A phase that reads what it has just read goes to and fro between runtime and store. Where they are
//! far apart it is the runtime's part that travels: once, with all that an attempt at the phase
//! needs. What that is, and what comes of it, is the runtime's matter; here it is bytes.

use std::time::Duration;

use mingle_model::Principal;

use crate::store::StoreError;
use crate::world::BoxFuture;

/// One attempt at a phase, to be run beside its store.
#[derive(Clone, Copy, Debug)]
pub struct Errand<'a> {
    /// The SHA-256 of the program's text: whoever knows that needs no text.
    pub program: [u8; 32],
    /// The program's text.
    pub text: &'a str,
    /// Tells this errand from all others, so that it is run once.
    pub nonce: u128,
    /// What to run, in the runtime's own form.
    pub attempt: &'a [u8],
    /// How long to go on asking what came of it.
    pub within: Duration,
}

/// What came of an errand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// In the runtime's own form.
    pub answer: Vec<u8>,
    /// How often something went to the worker and back.
    pub round_trips: u32,
}

/// Says which transactions a principal may call.
pub trait Admission: Send + Sync {
    /// True if this principal may call the transaction of this name; without a principal the caller is not named.
    fn admits(&self, principal: Option<&Principal>, transaction: &str) -> bool;
}

/// Runs errands beside a store.
///
/// Its [`Admission`] is that of the worker for this client, as the client was told when it opened the store.
pub trait Worker: Admission {
    /// Runs an errand once, however often it has to be asked for.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] when the worker has enough to do, and has not run it.
    /// [`StoreError::Unavailable`] when it was not sent. [`StoreError::Refused`] when the worker
    /// will not run it. [`StoreError::Unknown`] when no answer came: it may have been run, or may
    /// still be; what it has committed is to be asked of the store.
    fn run<'a>(&'a self, errand: Errand<'a>) -> BoxFuture<'a, Result<Ran, StoreError>>;
}
