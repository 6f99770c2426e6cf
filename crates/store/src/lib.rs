//! The interface that a store must implement to take part in a mixed-consistency transaction.
//!
//! This is MixT's interface of handles, data stores and transaction contexts (MixT §3.3,
//! Figure 5), in Rust, object-safe and async: a [`DataStore`] opens [`Transaction`]s, which read and
//! write objects by [`Address`]. A store declares its abilities in its [`Capabilities`], and the
//! runtime relies on no others.
//!
//! - [`operation`]: reads, their answers, and writes.
//! - [`overlay`]: a transaction's flushed writes, for stores that cannot hold them.
//! - [`record`]: the runtime's own rows, and the conditions that a commit may set for them.
//! - [`store`]: the two traits, outcomes, capabilities and errors.
//! - [`violation`]: rules of the database that a write would have broken, and other reasons to refuse it.
//! - [`codec`], [`catalog`], [`overlay`]: code shared by adapters: values as text, the stored
//!   declarations, and the flushed writes of a transaction.
//! - [`unique`]: words about objects that break the promise of a `unique`.
//! - [`declared`]: the part of a program that a store serves.
//! - [`world`]: clock, sleep, randomness and tasks, which a simulator implements too.
//! - [`worker`]: the worker that runs whole phases beside a distant store.
//! - [`listing`]: lists of objects, for the eyes of operators and developers.
//! - [`limits`]: the named bounds.
//! - [`wrap`]: stores around other stores: faults, counts, distances, histories.
//! - `conformance`, behind the feature of that name: the suite that every adapter must pass;
//!   `TestWorld`, behind `test-world`: a world for tests, in virtual time.

pub mod catalog;
pub mod codec;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod declared;
pub mod finding;
pub mod limits;
pub mod listing;
pub mod operation;
pub mod order;
pub mod overlay;
pub mod random;
pub mod record;
pub mod store;
#[cfg(feature = "test-world")]
pub mod test_world;
pub mod unique;
pub mod united;
pub mod violation;
pub mod worker;
pub mod world;
pub mod wrap;

pub use declared::{StoreOperation, StoreSchema};
pub use finding::{Finding, Judgement};
pub use listing::{Listed, Listing};
pub use operation::{Address, Answer, Data, KeyRange, Read, Write};
pub use record::{Bytes, Guard, RecordKey, RecordKind};
pub use store::{
    Capabilities, Commit, Committed, DataStore, Once, OperationId, Outcome, Session, StoreError,
    Transaction,
};
#[cfg(feature = "test-world")]
pub use test_world::TestWorld;
pub use united::{EngineId, United, UnitedCommit};
pub use violation::{Refusal, Violation, ViolationKind};
pub use worker::{Admission, Errand, Ran, Worker};
pub use world::{BoxFuture, Turn, World, yield_once};
