//! The named bounds of this engine.

/// A store has at most this many replicas.
pub const REPLICAS_MAX: usize = 64;

/// One commit carries at most this many writes, flushed ones included.
pub const WRITES_MAX: usize = 1_000_000;

/// The values in one commit take at most about this many bytes: 1 GiB. A replicated store keeps
/// them in one row, for which redb has a limit of its own.
pub const COMMIT_BYTES_MAX: usize = 1 << 30;

/// One transaction reads at most this many units at a serializable store.
pub const READ_SET_MAX: usize = 1_000_000;

/// One value, element or key takes at most this many bytes in its encoded form: 256 MiB.
pub const ENCODED_BYTES_MAX: usize = 256 << 20;

/// A value nests at most this deep, so that encoding and decoding stay within the stack.
pub const VALUE_DEPTH_MAX: usize = 128;

/// One `add` changes a counter by at most this much either way, so that a sum in 128 bits stays
/// exact for more adds than a store can hold: 2^90.
pub const ADD_MAX: i128 = 1 << 90;

/// `builtin:keys` returns at most this many keys, and fails if there are more.
pub const KEYS_MAX: usize = 100_000;

/// One storage commit takes at most this many transactions together.
pub const GROUP_MAX: usize = 256;

/// One storage commit applies at most this many updates from other replicas.
pub const DELIVERIES_PER_COMMIT_MAX: usize = 1_024;

/// If more updates than this are in transit to a replica, the next commit at any replica applies
/// those that are due, even if no client uses that replica.
pub const BACKLOG_MAX: usize = 4_096;

/// A kind has had at most this many fields, removed ones included.
pub const FIELDS_MAX: usize = 65_535;

/// redb keeps at most this much of one store's file in memory: 64 MiB.
pub const CACHE_BYTES: usize = 64 << 20;

/// The maximum number of conflict pairs of a store over data centers. Each pair of a transaction
/// adds one key to its certification for each item that the transaction uses.
pub const CONFLICTS_MAX: usize = 256;

/// The interval at which a store tries to reopen its disk after the disk failed.
pub const REOPEN_EVERY: std::time::Duration = std::time::Duration::from_secs(1);

/// The outcome of a commit with an id is kept for at least this long.
pub const OUTCOMES_KEPT: std::time::Duration = std::time::Duration::from_mins(10);

/// A commit with an id checks this many outcomes of other commits, and removes the old ones.
pub const OUTCOMES_SWEPT: usize = 4;

/// The maximum number of indexes that all programs of a store over data centers of their own have declared, since the
/// store was made. Each index of a kind adds some keys to the certification of a transaction that changes its fields.
pub const SHARED_INDEXES_MAX: usize = 500;

/// The maximum number of bytes, about, of a value in a field of an index, at a store over data centers of their own:
/// 64 KiB. Each replica holds the values a second time, in memory.
pub const INDEXED_BYTES_MAX: usize = 64 << 10;
