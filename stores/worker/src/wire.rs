//! What is said between a store behind a worker and the worker, version 1.
//!
//! | | |
//! | --- | --- |
//! | `PUT /v1/worker/programs/HASH` | the text of a program, which is checked |
//! | `GET /v1/worker/stores/STORE?program=HASH` | a [`Description`], if the program fits the store |
//! | `PUT /v1/worker/stores/STORE/attempts/NONCE?program=HASH` | runs an attempt, once |
//! | `GET /v1/worker/stores/STORE/attempts/NONCE` | what came of it; if there was none, there will be none |
//! | `POST /v1/worker/stores/STORE/operations` | an [`Operation`], answered by [`Answered`] |
//!
//! Bodies are postcard; the attempts' own form is the runtime's. Errors are `application/problem+json`, with
//! the codes of [`code`] beside those of the server.

use std::fmt::Write as _;

use mingle_model::{Stamp, TransactionId};
use mingle_store::{
    Answer, Capabilities, Commit, Committed, Outcome, Read, Session, StoreError, Write,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::principals::Principals;

/// The version of what is said; another one is refused.
pub const PROTOCOL: u32 = 3;

/// The type of what is sent.
pub const CONTENT_TYPE: &str = "application/octet-stream";

/// Codes of problems that a client acts upon.
pub mod code {
    /// The worker does not know the program: it is to be sent.
    pub const UNKNOWN_PROGRAM: &str = "unknown-program";
    /// There was no such attempt, and it will not be run any more.
    pub const UNKNOWN_ATTEMPT: &str = "unknown-attempt";
    /// The worker has enough to do, and has run nothing.
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
    /// What the store can do.
    pub capabilities: Capabilities,
    /// Which transactions the client's callers may call; all if there is no list.
    pub principals: Option<Principals>,
}

/// Something that goes to a store by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Operation {
    /// In a transaction of the sender's, which begins with the first of these.
    Read {
        /// Which transaction.
        transaction: Opening,
        /// What is read.
        reads: Vec<Read>,
        /// Whether nothing follows.
        is_last: bool,
    },
    /// Writes ahead of the commit.
    Flush {
        /// Which transaction.
        transaction: Opening,
        /// What is written.
        writes: Vec<Write>,
    },
    /// The end of a transaction.
    Commit {
        /// Which transaction.
        transaction: Opening,
        /// What goes with it.
        commit: Commit,
    },
    /// The end of a transaction that is not committed.
    Drop {
        /// Which transaction.
        number: u128,
    },
    /// What became of a commit.
    Outcome(TransactionId),
    /// What every replica has seen.
    Everywhere,
}

/// A transaction that the sender has begun.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Opening {
    /// Which of its transactions: a random number.
    pub number: u128,
    /// Whether the worker must have it: this is not the first that is asked in it.
    pub is_open: bool,
    /// Who asks, and from where.
    pub session: Session,
}

/// What an operation gives.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Given {
    /// Of a read.
    Answers(Vec<Answer>),
    /// Of reads after which nothing follows: they have ended the transaction.
    Ended(Vec<Answer>, Committed),
    /// Of what gives nothing.
    Nothing,
    /// Of a commit.
    Committed(Committed),
    /// Of a question for an outcome.
    Outcome(Outcome),
    /// Of a question for what every replica has seen.
    Everywhere(Stamp),
}

/// The answer to an [`Operation`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answered {
    /// What it gives, or what the store says is wrong.
    pub result: Result<Given, StoreError>,
    /// [`mingle_store::DataStore::time`], after that.
    pub time: u64,
}

/// Something as bytes.
///
/// # Panics
///
/// Never: writing to memory cannot fail.
pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).expect("writing to memory cannot fail")
}

/// Something from its bytes; none if they are something else.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}

/// Bytes as hexadecimal digits.
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

/// So many bytes from their hexadecimal digits.
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
