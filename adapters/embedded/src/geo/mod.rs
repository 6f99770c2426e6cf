//! The engine for stores over several data centers: the core of `mingle-geo` in this process.
//!
//! Each data center holds a full copy, cut into partitions. A transaction runs in one data center:
//! it reads a snapshot there and commits there. Its writes then travel to the other data centers,
//! with the delay of the distance between them. The guarantees are those of the core: see its
//! `lib.rs`. Reading order:
//!
//! - [`config`]: the data centers and the distances between them.
//! - `name`: the items of the core that store an object, a record or a witness row.
//! - `cluster`: the interface to the replicas of the data centers, in this process or elsewhere.
//! - `net`: the replicas of all data centers and the messages between them (`net::node`: replicas,
//!   causal or certifying; `net::line`: connections that keep an order); `driver`: the background
//!   task that delivers messages and ticks replicas; `disk`: logs in a folder.
//! - `client`: a session of the core, as a future; `gate`: commits in one data center take turns;
//!   `site`: the state that a store keeps for each data center; `floor`: floors of operation ids.
//! - `fetch`, `answer`: from reads to items, and from item states to answers.
//! - `build`: from writes to operations.
//! - `judge`: the guards and witness rows of a commit, checked in its data center.
//! - `make`: new stores; `transaction`, `store`: the interface; `fate`, `outcome`, `sweep`: outcomes
//!   of commits.
//! - `index`: indexes of objects; `transaction::index`: reads of them; `agreed`: the indexes of several programs.
//! - `touch`, `strong`: the items that transactions of a linearizable store use, and how these
//!   transactions commit; `relation`: the declared relation of conflicts; `upgraded`: strong
//!   transactions of a causal store.
//! - `members`: giving up a data center and admitting it again.
//! - `space`, `united`: several stores in one engine, and transactions over them.
//!
//! Concurrent updates merge as the core's data types define, by the same rules as in `replicated`:
//! an insert survives a removal that did not see it, the last of several writes to a register wins,
//! counters are sums, logs are in a causal order. A commit removes only values that its
//! transaction's snapshot had, so no concurrent update is lost unseen.
//!
//! A causal store judges guards and witness rows in the transaction's data center, so it is
//! [`mingle_store::Once::ById`]: operations of a later phase carry ids, and only one operation of
//! each id counts. A linearizable store certifies them, so it is [`mingle_store::Once::Serial`].

mod agreed;
mod answer;
mod build;
mod client;
pub mod cluster;
pub mod config;
mod disk;
mod driver;
mod fate;
mod fetch;
mod floor;
mod gate;
mod index;
mod judge;
mod make;
mod members;
mod name;
mod net;
mod outcome;
mod relation;
mod reopen;
mod site;
mod space;
mod store;
mod strong;
mod sweep;
mod touch;
mod transaction;
mod united;
mod upgraded;

pub use config::GeoConfig;
pub(crate) use make::Lasting;
pub use members::{Admitted, DatacenterState, DatacenterStatus, GivenUp};
/// The maximal number of data centers of a store.
pub use mingle_geo::vector::DCS_MAX as DATACENTERS_MAX;
pub(crate) use name::declarations;
pub use relation::Pairs as ConflictPairs;
pub(crate) use relation::{check_kept as check_conflicts_kept, conflicts};
pub(crate) use space::{Engine, Space};
pub use store::GeoStore;
