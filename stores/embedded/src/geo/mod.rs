//! The engine for stores over several data centers: the core of `mingle-geo` in this process.
//!
//! Each data center holds a full copy, cut into partitions. A transaction runs in one of them: it
//! reads a snapshot there and commits there, and what it wrote travels to the others, which takes as
//! long as they are apart. What the core promises is promised here: see its `lib.rs`. Reading order:
//!
//! - [`config`]: which data centers, how far from each other.
//! - `name`: which items of the core an object, a record or a witness row is.
//! - `net`: the replicas of all data centers, and what is on its way between them (`net::node`: causal
//!   replicas, or those that certify; `net::line`: connections that keep an order); `driver`: what is
//!   done with time, when nobody asks; `disk`: logs in a folder.
//! - `client`: a session of the core, as a future; `gate`: commits in one data center take turns;
//!   `site`: what a store keeps of each data center; `floor`: floors of operation ids.
//! - `fetch`, `answer`: from reads to items, and from their states to answers.
//! - `build`: from writes to operations.
//! - `judge`: what a commit demands, judged in its data center.
//! - `transaction`, `store`: the interface; `fate`, `outcome`: what became of a commit.
//! - `touch`, `strong`: what transactions of a linearizable store use, and how they commit;
//!   `relation`: which of them conflict, where that is declared.
//! - `members`: data centers that are given up, and come back; `site`: what a store keeps for each.
//! - `space`, `united`: several stores in one engine, and transactions over them.
//!
//! How concurrent updates merge is what the core's data types say, which is what `replicated` says
//! too: an insert survives a removal that did not see it, the last of several writers shows, counters
//! are sums, logs are in an order of causality. A commit takes away what its transaction's snapshot
//! had, so nothing that came in between is lost unseen.
//!
//! Guards and witness rows of a causal store are judged in the transaction's data center, so it is
//! [`mingle_store::Once::ById`]: operations of a later phase carry ids, of which one counts. In a
//! linearizable one they are certified, so it is [`mingle_store::Once::Serial`].

mod answer;
mod build;
mod client;
pub mod config;
mod disk;
mod driver;
mod fate;
mod fetch;
mod floor;
mod gate;
mod judge;
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
mod touch;
mod transaction;
mod united;

pub use config::GeoConfig;
pub use members::{Admitted, DatacenterState, DatacenterStatus, GivenUp};
/// A store has at most this many data centers.
pub use mingle_geo::vector::DCS_MAX as DATACENTERS_MAX;
pub use relation::Pairs as ConflictPairs;
pub use store::GeoStore;
