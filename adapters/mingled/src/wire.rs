//! The messages between a program and a data center, version [`PROTOCOL`].
//!
//! A message is its length in bytes, a big-endian 32-bit number, and that many bytes of postcard. A
//! connection begins with [`HELLO`] and a [`Hello`]: the user and the password, if the data center has users, and the
//! digest of the program's declarations. If the data center does not know them, the program sends them. From then on each [`Request`] has an [`Answered`], except
//! [`Request::Drop`]. A connection has at most one transaction at a time, which ends with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use mingle_model::{Level, Name, Origin, Stamp, TransactionId};
use mingle_store::{
    Answer, Capabilities, Commit, Committed, Outcome, Read, Session, StoreError, Write,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::schema::Declared;

/// The version of the protocol; others are refused.
pub const PROTOCOL: u32 = 4;

/// The first bytes of a connection, before its messages.
pub const HELLO: &[u8; 8] = b"mingle\r\n";

/// The first message of a connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`] of the sender. It comes first, so that all versions can read it.
    pub protocol: u32,
    /// The number of the cluster, if the program knows it: the data center of another one refuses.
    pub cluster: Option<u128>,
    /// The [digest](crate::schema::digest) of the program's declarations.
    pub program: [u8; 32],
    /// The user, if the binding has one.
    pub user: Option<SignIn>,
    /// A store that the user must be allowed to have, of a sender that declares none because it only examines.
    pub examined: Option<Name>,
}

/// A user with its password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignIn {
    /// The name of the user.
    pub user: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignIn({})", self.user)
    }
}

/// Returns the version of the protocol at the beginning of a [`Hello`] of any version; none if there is none.
///
/// # Examples
///
/// ```
/// use mingle_store_mingled::wire::{Hello, PROTOCOL, framed, version};
///
/// let hello = Hello { protocol: PROTOCOL, cluster: None, program: [0; 32], user: None, examined: None };
/// assert_eq!(version(&framed(&hello)[4..]), Some(PROTOCOL));
/// assert_eq!(version(&[]), None);
/// ```
pub fn version(hello: &[u8]) -> Option<u32> {
    postcard::take_from_bytes(hello).ok().map(|(version, _)| version)
}

/// The answer to a [`Hello`], and to the declarations.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Welcome {
    /// The declarations are not known: the program sends a [`Program`].
    Unknown {
        /// The number of the cluster.
        cluster: u128,
        /// The name of the data center.
        datacenter: Name,
    },
    /// The stores are open.
    Known {
        /// The number of the cluster.
        cluster: u128,
        /// The name of the data center.
        datacenter: Name,
        /// The stores of the program, in order.
        stores: Vec<Capabilities>,
    },
    /// The data center does not open the stores, and closes the connection.
    Refused {
        /// The reason.
        reason: String,
        /// True if it may open them later.
        may_come: bool,
    },
}

/// The declarations of a program's stores, as a message.
pub type Program = Vec<Declared>;

/// The start of a transaction, which comes with its first request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Opening {
    /// The store at which it begins.
    pub store: u16,
    /// The session.
    pub session: Session,
    /// The level at which reads are answered, if it is weaker than the store's.
    pub level: Option<Level>,
    /// The program's transaction.
    pub transaction: Option<Name>,
    /// True if it is one over several stores.
    pub is_united: bool,
}

/// A request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Reads in the transaction.
    Read {
        /// The start, with the first request.
        opening: Option<Opening>,
        /// The store.
        store: u16,
        /// The reads.
        reads: Vec<Read>,
        /// True if nothing follows: the transaction ends.
        is_last: bool,
    },
    /// Writes ahead of the commit.
    Flush {
        /// The start, with the first request.
        opening: Option<Opening>,
        /// The store.
        store: u16,
        /// The writes.
        writes: Vec<Write>,
    },
    /// The commit of a transaction at one store.
    Commit {
        /// The start, with the first request.
        opening: Option<Opening>,
        /// The commit.
        commit: Commit,
    },
    /// The commit of a transaction over several stores.
    CommitUnited {
        /// The start, with the first request.
        opening: Option<Opening>,
        /// The id under which its outcome can be asked for.
        id: Option<TransactionId>,
        /// The commit of each store.
        parts: Vec<(u16, Commit)>,
    },
    /// The end of the transaction without a commit. It has no answer.
    Drop,
    /// A question for the outcome of a commit at a store: of several data centers, each answers for itself, and
    /// carries out no commit of this id any more.
    Outcome(u16, TransactionId),
    /// A question for the progress of a store's data centers.
    Everywhere(u16),
    /// Floors of operation ids, which were raised at another data center: no operation of these origins with a
    /// lower number will come.
    Floors(u16, Vec<(Origin, u64)>),
}

/// The progress of a store's data centers, as one of them knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The stamp that every new session at the data center sees at least.
    pub seen: Stamp,
    /// The number of changes of the membership that the data center knows.
    pub epoch: u32,
    /// The names that stamps have for incarnations of data centers that were cut off, with the time up to which the
    /// commits of each are kept.
    pub ends: BTreeMap<Name, u64>,
    /// The data centers that were given up.
    pub departed: BTreeSet<Name>,
}

/// The result of a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Given {
    /// The answers to reads.
    Answers(Vec<Answer>),
    /// The answers to reads that have ended the transaction.
    Ended(Vec<Answer>, Committed),
    /// The result of a flush, and of floors.
    Nothing,
    /// The result of a commit.
    Committed(Committed),
    /// The outcome of a commit.
    Outcome(Outcome),
    /// The progress of the data centers.
    Everywhere(Progress),
    /// Nothing was carried out, and the transaction has ended, because the user of the connection has changed. The data
    /// center closes the connection: the program connects again.
    Again,
}

/// The answer to a [`Request`].
pub type Answered = Result<Given, StoreError>;

/// Encodes a message, with its length.
///
/// # Panics
///
/// Never: writing to memory cannot fail.
///
/// # Examples
///
/// ```
/// use mingle_store_mingled::wire::{decode, framed};
///
/// let frame = framed(&7_u32);
/// assert_eq!(frame[..4], [0, 0, 0, 1]);
/// assert_eq!(decode::<u32>(&frame[4..]), Some(7));
/// assert_eq!(decode::<u32>(&[]), None);
/// ```
pub fn framed<T: Serialize>(message: &T) -> Vec<u8> {
    let body = postcard::to_stdvec(message).expect("writing to memory cannot fail");
    // A longer message than this is refused where it is sent.
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), &*body].concat()
}

/// Decodes a message; none if the bytes are no message of this type.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (message, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(message)
}
