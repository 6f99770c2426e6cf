//! The reference protocols of Lloyd's thesis, as state machines without I/O.
//!
//! *Stronger Consistency and Semantics for Geo-Replicated Storage* (Princeton, 2013) describes COPS,
//! COPS-RT, COPS-CD and Eiger: stores that several data centers replicate, in which every operation
//! is answered by the client's own data center, and whose data is causal+ consistent. Data centers
//! keep their data in servers, each for some of the keys; a write travels to the *equivalent
//! servers* of the other data centers, which apply it after its dependencies.
//!
//! ```text
//!        data center 0                          data center 1
//!   client ─► server of k ─── replication ─────► server of k
//!     ▲          server of l                       server of l ◄─ dep_check(l, ts) by server of k
//!     └ context: one-hop dependencies
//! ```
//!
//! These protocols are there to be compared with: in memory, without durability, as in the thesis, and
//! not for production. The names of messages and terms are the thesis's.
//!
//! In reading order:
//!
//! - [`clock`]: Lamport clocks and unique timestamps;
//! - [`locator`]: the servers of keys;
//! - [`mod@column`]: the rows and columns of Eiger;
//! - [`deps`]: dependencies, and the contexts of actors;
//! - [`link`]: delivery between servers, once and in order;
//! - [`message`]: all messages and events;
//! - [`wire`]: the encoding of frames, for real connections;
//! - [`config`], [`flaw`]: settings, and planted faults;
//! - `net` and `dep_check`: the shared parts of servers;
//! - [`cops`]: COPS, COPS-RT, COPS-CD, and the baselines `eventual` and `log`;
//! - [`eiger`]: columns, read-only and write-only transactions;
//! - [`server`]: a server of any protocol.

pub mod clock;
pub mod column;
pub mod config;
pub mod cops;
mod dep_check;
pub mod deps;
pub mod eiger;
pub mod flaw;
pub mod link;
pub mod locator;
pub mod message;
mod net;
pub mod server;
pub mod wire;
