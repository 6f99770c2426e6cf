//! What a store must offer to take part in a mixed-consistency transaction.
//!
//! This is MixT's interface of handles, data stores and transaction contexts (MixT §3.3,
//! Figure 5), in Rust, object-safe and async: a [`DataStore`] opens [`Transaction`]s, in which
//! objects are read and written by [`Address`]. A store says what it can do in its
//! [`Capabilities`], and the runtime uses only that.
//!
//! - [`operation`]: reads, their answers, and writes.
//! - [`overlay`]: what a transaction has flushed, for stores that cannot hold it.
//! - [`record`]: the runtime's own rows, and what a commit may demand of them.
//! - [`store`]: the two traits, outcomes, capabilities and errors.
//! - [`violation`]: rules of the database that a write would have broken, and other reasons to refuse it.
//! - [`codec`], [`catalog`], [`overlay`]: what adapters share: values as text, what is kept of the
//!   declarations, and what a transaction has flushed.
//! - [`world`]: clock, sleep, randomness and tasks, which a simulator implements too.
//! - [`worker`]: whoever runs whole phases beside a distant store.
//! - [`limits`]: the named bounds.
//! - [`wrap`]: stores around stores: faults, counts, distances, histories.
//! - `conformance`, behind the feature of that name: the suite that every adapter must pass, and
//!   `TestWorld`, a world for it to run in.

pub mod catalog;
pub mod codec;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod limits;
pub mod operation;
pub mod overlay;
pub mod random;
pub mod record;
pub mod store;
#[cfg(feature = "conformance")]
pub mod test_world;
pub mod united;
pub mod violation;
pub mod worker;
pub mod world;
pub mod wrap;

pub use operation::{Address, Answer, Data, Read, Write};
pub use record::{Bytes, Guard, RecordKey, RecordKind};
pub use store::{
    Capabilities, Commit, Committed, DataStore, Once, OperationId, Outcome, Session, StoreError,
    StoreOperation, StoreSchema, Transaction,
};
#[cfg(feature = "conformance")]
pub use test_world::TestWorld;
pub use united::{EngineId, United, UnitedCommit};
pub use violation::{Refusal, Violation, ViolationKind};
pub use worker::{Admission, Errand, Ran, Worker};
pub use world::{BoxFuture, Turn, World, yield_once};
