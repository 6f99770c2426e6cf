//! Processes that die, networks that part, and schedules of both that shrink.
//!
//! - `host`: [`Process`], a world of its own around the simulated one: its clock jumps, and all of
//!   its tasks can be killed at once.
//! - `death`: when a process dies, counted in its calls to stores.
//! - `mortal`: [`MortalStore`], through which a process calls a store, and past which nothing of a
//!   dead one reaches it.
//! - `restart`: [`RestartingStore`], a store that stops and starts again; `kept`: what it keeps.
//! - `partition`: [`Partitions`], the cuts of a network over virtual time, between replicas and
//!   between processes and stores.
//! - `schedule`: [`Event`], all that happens in a run, as data.
//! - `shrink`: from a schedule that fails to a smaller one that fails too.

mod death;
mod host;
mod kept;
mod mortal;
mod partition;
mod restart;
mod schedule;
mod shrink;

pub use death::{DeathPlan, DeathRates, Moment};
pub use host::{ClockRates, Process};
pub use kept::kept;
pub use mortal::MortalStore;
pub use partition::{Cut, PartitionRates, PartitionedStore, Partitions, StoreLinks};
pub use restart::{Reopen, RestartingStore};
pub use schedule::{Event, Schedule};
pub use shrink::{Shrunk, shrink};
