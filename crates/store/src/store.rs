//! Data stores and their transactions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mingle_model::{
    BuiltinQuery, IndexRead, Level, Name, Schema, Stamp, TransactionId, Type, Version, WitnessRow,
};
use serde::{Deserialize, Serialize};

use crate::listing::{Listed, Listing};
use crate::operation::{Answer, Read, Write};
use crate::record::Guard;
use crate::united::{EngineId, United};
use crate::violation::Violation;
use crate::worker::Worker;
use crate::world::BoxFuture;

/// One store, ready for transactions.
pub trait DataStore: Send + Sync {
    /// Returns the capabilities of this store.
    fn capabilities(&self) -> &Capabilities;

    /// Opens a transaction. Costs no round trip: a store takes its snapshot with the first read.
    ///
    /// # Errors
    ///
    /// When the store has no replica of the session's name, or is out of reach.
    fn begin<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>, StoreError>>;

    /// Returns the outcome of the commit that carried `id`. Once this has answered
    /// [`Outcome::NotCommitted`], no commit with that id takes effect any more.
    fn outcome(&self, id: TransactionId) -> BoxFuture<'_, Result<Outcome, StoreError>>;

    /// Checks that the store serves, as far as this process knows without asking a server: its own
    /// disk has not failed. This call also reopens a failed store once that is due.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`], with the reason.
    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Lists objects of a kind, at the session's replica.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] if the store cannot list its objects, or the cursor is none of its own; otherwise the
    /// errors of a read.
    fn list<'a>(
        &'a self,
        session: &'a Session,
        listing: &'a Listing,
    ) -> BoxFuture<'a, Result<Listed, StoreError>> {
        let _ = session;
        let store = self.capabilities().store.clone();
        let reason = format!("this engine does not list its objects {}", listing.kind);
        Box::pin(std::future::ready(Err(StoreError::Refused { store, reason })))
    }

    /// The engine that holds the store, if it also holds others: transactions over those stores can be
    /// [united](DataStore::begin_united), and a stamp seen at one of them holds for all.
    fn engine(&self) -> Option<EngineId> {
        None
    }

    /// Opens a transaction over all stores of its [engine](DataStore::engine), which commits at this
    /// store.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] if it shares no engine; otherwise the errors of [`DataStore::begin`].
    fn begin_united<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Box<dyn United>, StoreError>> {
        let _ = session;
        let store = self.capabilities().store.clone();
        let reason = "it shares its engine with no other store".to_owned();
        Box::pin(std::future::ready(Err(StoreError::Refused { store, reason })))
    }

    /// Returns a time in microseconds that is later than the timestamps of all that this process has
    /// written here or was answered; 0 at stores whose writes bear no timestamps.
    fn time(&self) -> u64 {
        0
    }

    /// Returns the address (host and port, for messages) of the server or servers of a replica, or of
    /// the one copy; `None` if the store is in this process.
    fn place(&self, replica: Option<&Name>) -> Option<String> {
        let _ = replica;
        None
    }

    /// Returns the stamp that every replica has seen; empty if the store has one copy or no count.
    fn everywhere(&self) -> BoxFuture<'_, Result<Stamp, StoreError>> {
        Box::pin(std::future::ready(Ok(Stamp::default())))
    }

    /// Returns the replicas that were given up for good: the caller need not ask or await them.
    fn departed(&self) -> Vec<Name> {
        Vec::new()
    }

    /// Returns the part of `seen` that is still available: `seen` without the writes that were lost
    /// with a replica that was given up.
    fn kept(&self, seen: &Stamp) -> Stamp {
        seen.clone()
    }

    /// Returns the worker that runs whole phases beside the store, if there is one. A wrapper that
    /// counts, delays or records a store's calls cannot see those phases, so it returns none.
    fn worker(&self) -> Option<&dyn Worker> {
        None
    }
}

/// A transaction at one store. Dropped without a commit, it leaves nothing behind.
pub trait Transaction: Send {
    /// Answers a batch of reads, in order and in one round trip, all from the transaction's one
    /// snapshot where the level has snapshots. Does not see writes that were not flushed.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] when the snapshot cannot be kept any longer.
    fn read<'a>(&'a mut self, reads: &'a [Read]) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>>;

    /// Does the same as [`Transaction::read`], for a caller that reads and writes nothing more. The store may end
    /// the transaction in the same round trip, which spares a separate one to validate the reads. Only a
    /// [`Transaction::commit`] that is [empty](Commit::is_empty) may follow; it then costs no round trip.
    ///
    /// # Errors
    ///
    /// The errors of [`Transaction::read`], and of the commit.
    fn read_last<'a>(
        &'a mut self,
        reads: &'a [Read],
    ) -> BoxFuture<'a, Result<Vec<Answer>, StoreError>> {
        self.read(reads)
    }

    /// Sends writes ahead of the commit. Later reads of this transaction see them; other transactions
    /// do not. One round trip.
    fn flush(&mut self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Makes all writes visible and, where the store is durable, safe. One round trip; none where
    /// nothing was written and the level needs no validation of reads. A commit without writes
    /// leaves no outcome to ask for, unless it has guards: then the store judges the guards and
    /// validates the reads, as with writes.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] when another transaction got in between, or a guard does not hold.
    /// [`StoreError::Witnessed`] when an object whose data it writes, or the whole store, has witness
    /// rows that the commit does not know, at the transaction's replica: a transaction that overwrites
    /// a write must know which transactions to wait for.
    /// [`StoreError::Behind`] when the session has seen more than its replica; reads and flushes
    /// give it too.
    /// [`StoreError::Unknown`] when the answer was lost.
    fn commit(self: Box<Self>, commit: Commit)
    -> BoxFuture<'static, Result<Committed, StoreError>>;
}

/// The writes and conditions that a commit sends to a store.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Commit {
    /// The id for querying the outcome; none if the outcome will not be queried. Where the store is
    /// [`Once::Serial`], an id takes effect once: a second commit of one that has taken effect, at
    /// whichever replica, is a [`StoreError::Conflict`]. One that was said to be not committed is
    /// [`StoreError::Refused`].
    pub id: Option<TransactionId>,
    /// The writes that were not flushed, in order.
    pub writes: Vec<Write>,
    /// The conditions that records must satisfy.
    pub guards: Vec<Guard>,
    /// The transactions whose witness rows on the written objects, and on the whole store, are
    /// known. Its own rows need not be among them: those of `id`, and of any row that it writes.
    pub known: BTreeSet<TransactionId>,
    /// At a store that is [`Once::ById`]: of all commits with the same one, every replica counts
    /// one.
    pub operation: Option<OperationId>,
    /// When the operation takes place, for stores whose writes bear timestamps: microseconds, the
    /// same for all copies, and later than the versions of all that its phase was answered; 0 if
    /// no time is given.
    pub time: u64,
    /// The time, by the world's clock, until which the answers that this transaction got may replace questions that
    /// its commit would have to ask again: before it no process can have raised a floor that its guards must exceed.
    /// Used by stores at which other transactions can always get in between a commit's questions and its
    /// writes. All other stores judge guards and witness rows as a part of the commit, and ignore this field.
    #[serde(skip)]
    pub fresh_until: Option<Duration>,
}

impl Commit {
    /// True if it has neither writes nor guards: unless writes were flushed, nothing need be sent.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.guards.is_empty()
    }
}

/// The identity of a phase's operation, the same for every process that runs the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OperationId {
    /// The transaction.
    pub id: TransactionId,
    /// The index of the phase in its plan.
    pub phase: u32,
}

/// A commit that took effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// The version that its writes carry.
    pub version: Version,
    /// The stamp that the transaction has seen, its own writes included. Empty if the store has one
    /// copy or keeps no count.
    pub stamp: Stamp,
}

/// The outcome of a commit whose answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It took effect.
    Committed,
    /// It did not, and never will.
    NotCommitted,
    /// The store cannot say now.
    Unknown,
}

/// The mechanism by which a later phase takes effect once although several helpers may run it
/// (`serial`, `by-id`, `home`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Once {
    /// The commit witness is inserted conditionally in the phase's transaction.
    Serial,
    /// Every operation carries an id, and of operations with one id every replica counts one.
    ById,
    /// One replica runs the phase.
    Home,
    /// The store can do none of these, so it cannot hold a later writing phase that must survive
    /// a crash.
    Never,
}

/// The capabilities of a store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Capabilities {
    /// The store's name in the program.
    pub store: Name,
    /// The level that it gives.
    pub level: Level,
    /// True if all writes of one transaction become visible together, and survive together.
    pub atomic_commit: bool,
    /// True if transactions here are serializable.
    pub serializable: bool,
    /// The mechanism by which a later phase takes effect once.
    pub once: Once,
    /// True if the answer to a commit can be lost.
    pub may_lose_answers: bool,
    /// For a store that is [`Once::ById`]: true if a floor can replace the commit witness of a later phase. The
    /// floor is raised at a replica once the phase was acknowledged there; it must tell a process that finds it at
    /// any replica as much as the witness would. This holds if a witness plays no part in making its
    /// phase visible; the witness of a copy is then kept, whichever copy counts.
    pub floor_suffices: bool,
    /// The names of the replicas at which a session can stay; empty if there is only one.
    pub replicas: Vec<Name>,
    /// The levels weaker than its own, strongest first, at which it answers reads sooner than at its own:
    /// see [`Session::level`].
    #[serde(default)]
    pub weaker_answers: Vec<Level>,
    /// The number of operations that fit one round trip.
    pub operations_per_round_trip: usize,
    /// The expected duration of one round trip.
    pub round_trip: Duration,
}

impl Capabilities {
    /// Returns the weaker levels at which a store answers whose replicas each answer from the state that
    /// they have: `eventual`, if it is stronger than that and has several replicas.
    ///
    /// # Examples
    ///
    /// ```
    /// use mingle_model::Level;
    /// use mingle_store::Capabilities;
    ///
    /// assert_eq!(Capabilities::weaker_than(Level::Causal, 3), [Level::Eventual]);
    /// assert!(Capabilities::weaker_than(Level::Causal, 1).is_empty());
    /// assert!(Capabilities::weaker_than(Level::Eventual, 3).is_empty());
    /// ```
    pub fn weaker_than(level: Level, replicas: usize) -> Vec<Level> {
        if level == Level::Eventual || replicas < 2 { Vec::new() } else { vec![Level::Eventual] }
    }
}

/// The replica and the history of the client for which a transaction begins.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Session {
    /// The replica at which the session stays, in every store that has one of that name; the
    /// first one if none.
    pub replica: Option<Name>,
    /// The stamp the replica must have seen before it serves; [`StoreError::Behind`] until then.
    /// Concerns the one store at which the transaction begins.
    pub after: Stamp,
    /// The level at which reads are answered: one of [`Capabilities::weaker_answers`], or the store's own
    /// if none. A transaction at a weaker level only reads; its commit is empty and validates nothing.
    #[serde(skip)]
    pub level: Option<Level>,
    /// The program's transaction whose phase is run, for stores that are told which transactions
    /// conflict; `None` for the runtime's own transactions, and behind a worker.
    #[serde(skip)]
    pub transaction: Option<Name>,
}

impl Session {
    /// A session that stays at this replica and has seen nothing yet.
    pub fn at(replica: impl Into<Name>) -> Self {
        Self { replica: Some(replica.into()), ..Self::default() }
    }
}

/// The part of a program that concerns one store.
#[derive(Clone, Debug)]
pub struct StoreSchema {
    /// The store's name.
    pub store: Name,
    /// The level that it must give.
    pub level: Level,
    /// All structs and objects of the program; those whose `store` is this one live here.
    pub schema: Arc<Schema>,
    /// Declared operations by name.
    pub operations: BTreeMap<Name, StoreOperation>,
}

impl StoreSchema {
    /// Checks that no object has an index or a key that the store draws, for stores that do neither; `what` names
    /// the store in the message.
    ///
    /// # Errors
    ///
    /// A message that names the first of them.
    pub fn refuse_builtins(&self, what: &str) -> Result<(), String> {
        self.refuse_some(what, |_| true)
    }

    /// Checks that no object has a `unique` or a key that the store draws, for stores that keep indexes and do neither;
    /// `what` names the store in the message.
    ///
    /// # Errors
    ///
    /// A message that names the first of them.
    pub fn refuse_all_but_indexes(&self, what: &str) -> Result<(), String> {
        let is_index = |builtin: &BuiltinQuery| builtin.index().is_some_and(|read| !read.is_unique);
        self.refuse_some(what, |builtin| !is_index(builtin))
    }

    /// Checks that no object has a key that the store draws, for stores that keep indexes and `unique`s; `what` names the
    /// store in the message.
    ///
    /// # Errors
    ///
    /// A message that names the first of them.
    pub fn refuse_draws(&self, what: &str) -> Result<(), String> {
        self.refuse_some(what, |builtin| builtin.draws().is_some())
    }

    fn refuse_some(
        &self,
        what: &str,
        is_refused: impl Fn(&BuiltinQuery) -> bool,
    ) -> Result<(), String> {
        let mut builtins =
            self.operations.values().filter_map(|operation| operation.builtin.as_ref());
        match builtins.find(|builtin| is_refused(builtin)) {
            None => Ok(()),
            Some(BuiltinQuery::Index(read)) if read.is_unique => Err(format!(
                "object {} has a `unique`, {}, and {what} keeps none: make the values the key of an object",
                read.object, read.index
            )),
            Some(BuiltinQuery::Index(read)) => Err(format!(
                "object {} has the index {}, and {what} keeps no indexes: keep the refs in a `set` of another object",
                read.object, read.index
            )),
            Some(BuiltinQuery::Draw(object)) => Err(format!(
                "the program creates {object} by a `new` without a key, and {what} draws no numbers: give the key, \
                 or declare one of type `string`"
            )),
        }
    }
}

/// A declared query or command, and its body in the engine's own language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOperation {
    /// True if it writes.
    pub is_command: bool,
    /// Names and types of its parameters.
    pub parameters: Vec<(Name, Type)>,
    /// The type of its result; none for a command without a result.
    pub result: Option<Type>,
    /// The body from the binding, if that has one.
    pub body: Option<String>,
    /// What it asks if the compiler declares it: such a query has no body, and the store answers it by its own
    /// means.
    pub builtin: Option<BuiltinQuery>,
}

impl StoreOperation {
    /// Returns the read of an index that it is.
    pub fn index(&self) -> Option<&IndexRead> {
        self.builtin.as_ref().and_then(BuiltinQuery::index)
    }

    /// Returns the kind of object whose keys it draws.
    pub fn draws(&self) -> Option<&Name> {
        self.builtin.as_ref().and_then(BuiltinQuery::draws)
    }
}

/// An error at a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoreError {
    /// Another transaction got in between; the same again may succeed.
    Conflict,
    /// The store cannot be reached, or cannot serve now.
    Unavailable {
        /// The store.
        store: Name,
        /// The reason.
        reason: String,
    },
    /// The commit may or may not have taken effect; ask [`DataStore::outcome`].
    Unknown {
        /// The store.
        store: Name,
        /// The id under which to ask.
        id: Option<TransactionId>,
    },
    /// The replica has not yet seen the session's state. The same request will succeed once that state
    /// has reached it.
    Behind {
        /// The store.
        store: Name,
        /// The replica.
        replica: Name,
    },
    /// Objects that the commit writes have witness rows that it does not know. Nothing was
    /// written.
    Witnessed {
        /// All rows of the objects that it writes, and of the whole store.
        rows: Vec<WitnessRow>,
    },
    /// The store refuses, and would refuse again: a bound exceeded, data of another program, a
    /// replica that does not exist.
    Refused {
        /// The store.
        store: Name,
        /// The reason.
        reason: String,
    },
    /// A rule that the database keeps about its own data does not allow the write. Nothing was written.
    Violated {
        /// The store.
        store: Name,
        /// The rule.
        violation: Box<Violation>,
    },
}

impl StoreError {
    /// True if a retry of the whole phase may succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Conflict | Self::Witnessed { .. } | Self::Behind { .. })
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict => f.write_str("another transaction got in between"),
            Self::Unavailable { store, reason } => {
                write!(f, "store {store} is unavailable: {reason}")
            }
            Self::Unknown { store, id: Some(id) } => {
                write!(f, "store {store} did not say whether {id} took effect")
            }
            Self::Unknown { store, id: None } => {
                write!(f, "store {store} did not say whether the commit took effect")
            }
            Self::Behind { store, replica } => {
                write!(
                    f,
                    "replica {replica} of store {store} has not yet seen what the session has"
                )
            }
            Self::Witnessed { rows } => {
                write!(
                    f,
                    "the written objects have {} witness rows that were not known",
                    rows.len()
                )
            }
            Self::Refused { store, reason } => write!(f, "store {store} refuses: {reason}"),
            Self::Violated { store, violation } => write!(f, "store {store} refuses: {violation}"),
        }
    }
}

impl std::error::Error for StoreError {}
