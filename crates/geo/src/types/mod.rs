//! Data types whose concurrent updates merge.
//!
//! They are operation-based: a transaction's operations are replicated, and each replica applies
//! them to its own state, causes before effects. An operation removes exactly what its
//! transaction's snapshot contained, so there are no tombstones. Replicas that have applied the
//! same operations have the same state, independent of the causal order of arrival.
//!
//! - [`Register`]: the last writer by [`Version`] is visible; conflicting values are kept beside it
//!   and can be given to a merge function (COPS-CD, Lloyd's thesis §6.3).
//! - [`Counter`]: sums exactly.
//! - [`Set`]: an insertion survives a removal that did not see it.
//! - [`Map`]: of registers and of counters.
//! - [`Log`]: keeps every line, in the order of versions.
//! - [`Item`](item::Item): one name for all types, with expiry; see [`item`].
//!
//! An operation may carry an [`OpId`]. Several data centers may run operations with the same id;
//! only the run with the lowest version counts; see [`ids`].

mod body;
mod counter;
pub(crate) mod dots;
pub mod ids;
pub mod item;
mod log;
mod map;
mod op;
mod register;
mod set;
mod state;

#[cfg(test)]
mod reset_tests;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use counter::{Counter, Removal};
pub use log::Log;
pub use map::Map;
pub use op::{Op, OpId, Update};
pub use register::Register;
pub use set::Set;
pub use state::State;

use crate::timestamp::Version;
use crate::vector::Vector;

/// The type of a data item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// One value.
    Register,
    /// A sum.
    Counter,
    /// Distinct values.
    Set,
    /// Values and counters by key.
    Map,
    /// Lines in order.
    Log,
    /// An item that any client may give any type; see [`item`].
    Item,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Register => "register",
            Self::Counter => "counter",
            Self::Set => "set",
            Self::Map => "map",
            Self::Log => "log",
            Self::Item => "item",
        })
    }
}

/// The version of an operation and the snapshot of its transaction.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// The operation's version.
    pub version: Version,
    /// The snapshot of its transaction. Its entry at the origin is below the timestamp:
    /// transactions that committed there in between were not seen.
    pub seen: Vector,
}

impl Cause {
    /// True if its transaction saw the operation of this mark, or ran it earlier.
    pub fn observes(&self, mark: &Mark) -> bool {
        let Version { timestamp, origin, index } = mark.version;
        if timestamp == self.version.timestamp && origin == self.version.origin {
            index < self.version.index
        } else {
            self.seen.covers(&mark.commit_vec)
        }
    }

    /// Returns the mark for a value that the operation writes.
    pub fn mark(&self) -> Mark {
        let Version { timestamp, origin, .. } = self.version;
        Mark { version: self.version, commit_vec: self.seen.with(origin, timestamp) }
    }
}

/// The operation that wrote a value of an item.
///
/// A snapshot that reaches an operation's timestamp at its origin need not contain it: it may lack
/// a transaction of a third data center that the operation's transaction had seen. So the commit
/// vector decides whether the operation was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The operation's version.
    pub version: Version,
    /// The commit vector of its transaction.
    pub commit_vec: Vector,
}

/// An unfolded operation on an item whose timestamp is within a snapshot's entry of its origin.
#[derive(Clone, Copy, Debug)]
pub struct Recent<'a> {
    /// The operation's version.
    pub version: Version,
    /// The operation.
    pub op: &'a Op,
    /// Its id, if other transactions may run it too.
    pub id: Option<&'a OpId>,
    /// True if the snapshot contains it.
    pub is_held: bool,
}
