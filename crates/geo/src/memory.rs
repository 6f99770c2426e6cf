//! An upper bound on the memory of a replica.
//!
//! A replica holds each item once or twice (folded, and as last read) with the operation ids that
//! may come again. It also holds operations until they can be folded, transactions until all data
//! centers have them, and the outcomes of each session's transactions. Each of these is bounded by
//! the load and by the settings, so their sum is too ([`heap_bytes_max`]). A test counts the real
//! allocations.

use mingle_model::{Origin, Value};

use crate::config::Config;
use crate::oplog;
use crate::outcomes;
use crate::timestamp::Timestamp;
use crate::tx::Transaction;
use crate::types::{Mark, OpId, State, Update, ids};

/// The data and the load of a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Items of its partition.
    pub items: usize,
    /// Values in the items: one for a register, the members of a set. Conflicting values count too.
    pub values: usize,
    /// The maximum bytes of a name.
    pub name_bytes: usize,
    /// The maximum bytes of a value beyond a [`Value`] itself.
    pub value_bytes: usize,
    /// Operation ids that items remember, each run once: the ids that were above every floor
    /// (`RaiseFloor`) twice the folding delay ago.
    pub ids: usize,
    /// Operations that all data centers together commit at this partition per second, with one
    /// operation in each transaction.
    pub operations_per_second: usize,
    /// The lag, in milliseconds, of the slowest data center that is needed for uniformity.
    pub lag_ms: u64,
    /// Sessions that committed here within [`Config::outcome_ms_max`].
    pub sessions: usize,
    /// Unreachable data centers. Transactions are kept for them, up to
    /// [`Config::forward_bytes_max`] of each origin.
    pub dcs_away: usize,
}

/// The bytes of the two counters before an `Arc`'s contents.
const SHARED: usize = 2 * size_of::<usize>();

/// The bytes of a replica without data, with its queues.
const FIXED: usize = 128 << 10;

/// Returns the maximum bytes of a hash table for each entry: just after growth it is 7/16 full.
const fn hashed(entry: usize) -> usize {
    (entry + 1) * 16 / 7
}

/// Returns the maximum bytes of a B-tree for each entry: a leaf has room for 11 and holds at least
/// 5, and there is at most one inner node for six leaves.
const fn sorted(entry: usize) -> usize {
    (11 * entry + 16) / 5 + (11 * entry + 16 + 12 * size_of::<usize>()) / 30
}

/// Returns the maximum bytes of heap of a replica with these settings under this load, in the
/// steady state where older data is folded and forgotten. The allocator's overhead is not counted.
///
/// # Examples
///
/// ```
/// use mingle_geo::memory::{Load, heap_bytes_max};
/// use mingle_geo::{Config, DcId, PartitionId};
///
/// let config = Config::new(DcId(0), 3, PartitionId(0), 16);
/// let idle = Load { items: 1_000, values: 1_000, value_bytes: 64, ..Load::default() };
/// let busy = Load { operations_per_second: 100, ..idle };
/// assert!(heap_bytes_max(&config, &idle) < heap_bytes_max(&config, &busy));
/// ```
pub fn heap_bytes_max(config: &Config, load: &Load) -> usize {
    let name = SHARED + load.name_bytes;
    let value = SHARED + load.value_bytes;
    let item = hashed(oplog::ITEM_BYTES) + sorted(oplog::KEY_BYTES) + name;
    let state = SHARED + size_of::<State>();
    let standing = size_of::<Mark>() + size_of::<Option<Box<OpId>>>() + size_of::<Value>() + value;
    // Each value is held as folded and as last read.
    let items = load.items * (item + 2 * state) + load.values * 2 * standing;
    // The first id of an item allocates a leaf with room for more.
    let id = sorted(ids::ENTRY_BYTES) + ids::RUN_BYTES + ids::ADDED_BYTES + value;
    let leaf = 11 * ids::ENTRY_BYTES + 16;
    let remembered = 2 * (load.ids.min(load.items) * leaf + load.ids * id);
    let transaction = SHARED + size_of::<Transaction>() + size_of::<Update>() + name + value;
    let kept = sorted(size_of::<(Timestamp, usize)>());
    // A list has room for at least four and at most twice its length. One more list holds the
    // transactions themselves.
    let operation = transaction + kept + 6 * oplog::ENTRY_BYTES + 2 * size_of::<usize>();
    // Snapshots that were handed out are tracked in steps of a sixteenth; folding then takes a few
    // ticks.
    let folded_after_ms = config.transaction_ms_max * 17 / 16 + load.lag_ms + 20 * config.tick_ms;
    let operations = load.operations_per_second * folded_after_ms as usize / 1_000;
    let is_away = usize::from(load.dcs_away > 0);
    let forwarded = is_away * usize::from(config.dc_count) * config.forward_bytes_max;
    // Forwarded transactions are bounded by their own bytes; the tree and the counters come on top.
    let forwarded =
        forwarded / (size_of::<Transaction>() + size_of::<Update>()).max(1) * (transaction + kept);
    let session = sorted(size_of::<Origin>() + outcomes::SESSION_BYTES) + 4 * outcomes::ENDED_BYTES;
    FIXED + items + remembered + operations * operation + forwarded + load.sessions * session
}
