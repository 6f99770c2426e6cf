//! The protocol between a store behind a worker and the worker, version [`PROTOCOL`].
//!
//! | | |
//! | --- | --- |
//! | `PUT /v1/worker/programs/HASH` | the text of a program, which is checked |
//! | `GET /v1/worker/stores/STORE?program=HASH` | a [`Description`], if the program fits the store |
//! | `PUT /v1/worker/stores/STORE/attempts/NONCE?program=HASH` | runs an attempt, once |
//! | `GET /v1/worker/stores/STORE/attempts/NONCE` | its result; if there was no attempt, there will be none |
//! | `POST /v1/worker/stores/STORE/operations` | an [`Operation`], answered by [`Answered`] |
//!
//! Bodies are postcard; the form of attempts is defined by the runtime. Errors are
//! `application/problem+json`, with the codes of [`code`] in addition to those of the server.

use std::fmt::Write as _;

use mingle_model::{Stamp, TransactionId};
use mingle_store::{
    Answer, Capabilities, Commit, Committed, Outcome, Read, Session, StoreError, Write,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::principals::Principals;

/// The version of the protocol; other versions are rejected.
pub const PROTOCOL: u32 = 3;

/// The content type of bodies.
pub const CONTENT_TYPE: &str = "application/octet-stream";

/// Codes of problems to which a client reacts.
pub mod code {
    /// The worker does not know the program: the client must send it.
    pub const UNKNOWN_PROGRAM: &str = "unknown-program";
    /// The worker never had the attempt, and will not run it any more.
    pub const UNKNOWN_ATTEMPT: &str = "unknown-attempt";
    /// The worker is overloaded, and has run nothing.
    pub const OVERLOADED: &str = "overloaded";
    /// The worker is about to stop, and has run nothing.
    pub const SHUTTING_DOWN: &str = "shutting-down";
    /// The attempt still runs.
    pub const IN_PROGRESS: &str = "in-progress";
}

/// A store, as its worker describes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Description {
    /// [`PROTOCOL`] of the worker. It comes first, so that all versions can read it.
    pub protocol: u32,
    /// The capabilities of the store.
    pub capabilities: Capabilities,
    /// Which transactions the client's callers may call; all if there is no list.
    pub principals: Option<Principals>,
}

/// A single operation on a store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Operation {
    /// Reads in a transaction of the sender, which begins with its first operation.
    Read {
        /// The transaction.
        transaction: Opening,
        /// The reads.
        reads: Vec<Read>,
        /// True if nothing follows.
        is_last: bool,
    },
    /// Writes ahead of the commit.
    Flush {
        /// The transaction.
        transaction: Opening,
        /// The writes.
        writes: Vec<Write>,
    },
    /// The end of a transaction.
    Commit {
        /// The transaction.
        transaction: Opening,
        /// The commit.
        commit: Commit,
    },
    /// The end of a transaction that is not committed.
    Drop {
        /// The transaction's number.
        number: u128,
    },
    /// A request for the outcome of a commit.
    Outcome(TransactionId),
    /// A request for the stamp that every replica has seen.
    Everywhere,
}

/// A transaction that the sender has begun.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Opening {
    /// The sender's number for it: a random number.
    pub number: u128,
    /// True if the worker must have it: this is not its first operation.
    pub is_open: bool,
    /// The sender's session.
    pub session: Session,
}

/// The result of an operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Given {
    /// The answers to reads.
    Answers(Vec<Answer>),
    /// The answers to reads after which nothing follows: they have ended the transaction.
    Ended(Vec<Answer>, Committed),
    /// The result of operations without one.
    Nothing,
    /// The result of a commit.
    Committed(Committed),
    /// The outcome of a commit.
    Outcome(Outcome),
    /// The stamp that every replica has seen.
    Everywhere(Stamp),
}

/// The answer to an [`Operation`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answered {
    /// The result, or the store's error.
    pub result: Result<Given, StoreError>,
    /// [`mingle_store::DataStore::time`], after the operation.
    pub time: u64,
}

/// Encodes a value.
///
/// # Panics
///
/// Never: writing to memory cannot fail.
pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).expect("writing to memory cannot fail")
}

/// Decodes a value; none if the bytes are not of this type.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}

/// Returns bytes as hexadecimal digits.
///
/// # Examples
///
/// ```
/// use mingle_store_worker::wire::{from_hex, hex};
///
/// assert_eq!(hex(&[1, 0xaf]), "01af");
/// assert_eq!(from_hex("01af"), Some([1, 0xaf]));
/// assert_eq!(from_hex::<2>("01ag"), None);
/// ```
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns `N` bytes from their hexadecimal digits.
pub fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let digit = |at: usize| char::from(digits[at]).to_digit(16);
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = (digit(2 * at)? * 16 + digit(2 * at + 1)?) as u8;
    }
    Some(bytes)
}
