//! Processes that die, networks that part, and schedules of both that shrink.
//!
//! - `host`: [`Process`], a separate world inside the simulated one: its clock jumps, and all of
//!   its tasks can be killed at once.
//! - `death`: the planned deaths of processes, counted in their calls to stores.
//! - `mortal`: [`MortalStore`], the layer through which a process calls a store; no call of a dead
//!   process passes it.
//! - `restart`: [`RestartingStore`], a store that stops and restarts; `kept`: the data that it
//!   keeps.
//! - `partition`: [`Partitions`], the cuts of a network over virtual time, between replicas and
//!   between processes and stores.
//! - `schedule`: [`Event`], all events of a run, as data.
//! - `shrink`: reduces a failing schedule to a smaller one that still fails.

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
pub use partition::{Cut, PartitionRates, PartitionedStore, Partitions, Slow, StoreLinks};
pub use restart::{Reopen, RestartingStore};
pub use schedule::{Event, Schedule};
pub use shrink::{Shrunk, shrink};
