//! How much memory a replica takes at most.
//!
//! It holds each item once or twice (folded, and as it was last read), with the ids of operations that may
//! come again; operations until they can be folded, transactions until all data centers have them, and how
//! the transactions of each session ended. Each of these is bounded by what is asked of the replica and by
//! its settings, so their sum is ([`heap_bytes_max`]). A test counts what is really allocated.

use mingle_model::{Origin, Value};

use crate::config::Config;
use crate::oplog;
use crate::outcomes;
use crate::timestamp::Timestamp;
use crate::tx::Transaction;
use crate::types::{Mark, OpId, State, Update, ids};

/// What a replica holds and what is asked of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Items of its partition.
    pub items: usize,
    /// Values in them: one for a register, the members of a set, those that conflict included.
    pub values: usize,
    /// Bytes of a name, at most.
    pub name_bytes: usize,
    /// Bytes of a value beyond a [`Value`] itself, at most.
    pub value_bytes: usize,
    /// Operation ids that items remember, each run once: those that no floor had passed (`RaiseFloor`)
    /// twice as long ago as it takes to fold.
    pub ids: usize,
    /// Operations that all data centers together commit at this partition in a second, one in a
    /// transaction.
    pub operations_per_second: usize,
    /// How far the slowest data center that is needed for uniformity is behind, in milliseconds.
    pub lag_ms: u64,
    /// Sessions that committed here within [`Config::outcome_ms_max`].
    pub sessions: usize,
    /// Data centers that are away. For them transactions are kept, up to
    /// [`Config::forward_bytes_max`] of each origin.
    pub dcs_away: usize,
}

/// What two counters before an `Arc`'s contents take.
const SHARED: usize = 2 * size_of::<usize>();

/// A replica that was asked nothing yet, with its queues.
const FIXED: usize = 128 << 10;

/// Bytes of a hash table for each entry, at most: just after it has grown it is 7/16 full.
const fn hashed(entry: usize) -> usize {
    (entry + 1) * 16 / 7
}

/// Bytes of a B-tree for each entry, at most: a leaf has room for 11 and holds at least 5, and there
/// is at most one inner node for six leaves.
const fn sorted(entry: usize) -> usize {
    (11 * entry + 16) / 5 + (11 * entry + 16 + 12 * size_of::<usize>()) / 30
}

/// The most bytes of heap that a replica with these settings takes under this load, once it has gone
/// on for long enough that what is older was folded and forgotten. What the allocator adds is not
/// counted.
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
    // As it was folded, and as it was last read.
    let items = load.items * (item + 2 * state) + load.values * 2 * standing;
    // The first of an item has a leaf with room for more.
    let id = sorted(ids::ENTRY_BYTES) + ids::RUN_BYTES + ids::ADDED_BYTES + value;
    let leaf = 11 * ids::ENTRY_BYTES + 16;
    let remembered = 2 * (load.ids.min(load.items) * leaf + load.ids * id);
    let transaction = SHARED + size_of::<Transaction>() + size_of::<Update>() + name + value;
    let kept = sorted(size_of::<(Timestamp, usize)>());
    // A list has room for four at least, and for twice as many as it holds at most. In one more list are
    // the transactions themselves.
    let operation = transaction + kept + 6 * oplog::ENTRY_BYTES + 2 * size_of::<usize>();
    // Snapshots that were handed out are told apart in sixteenths; then it takes a tick or so.
    let folded_after_ms = config.transaction_ms_max * 17 / 16 + load.lag_ms + 20 * config.tick_ms;
    let operations = load.operations_per_second * folded_after_ms as usize / 1_000;
    let is_away = usize::from(load.dcs_away > 0);
    let forwarded = is_away * usize::from(config.dc_count) * config.forward_bytes_max;
    // What is kept beyond is counted by the transaction; the tree and the counters come on top.
    let forwarded =
        forwarded / (size_of::<Transaction>() + size_of::<Update>()).max(1) * (transaction + kept);
    let session = sorted(size_of::<Origin>() + outcomes::SESSION_BYTES) + 4 * outcomes::ENDED_BYTES;
    FIXED + items + remembered + operations * operation + forwarded + load.sessions * session
}
