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

/// `builtin:keys` gives at most this many keys, and refuses where there are more.
pub const KEYS_MAX: usize = 100_000;

/// One storage commit takes at most this many transactions together.
pub const GROUP_MAX: usize = 256;

/// One storage commit applies at most this many updates from other replicas.
pub const DELIVERIES_PER_COMMIT_MAX: usize = 1_024;

/// Where more updates than this are on their way to a replica, those that are due are applied
/// with the next commit anywhere, even if nobody visits it.
pub const BACKLOG_MAX: usize = 4_096;

/// A kind has had at most this many fields, removed ones included.
pub const FIELDS_MAX: usize = 65_535;

/// redb keeps at most this much of one store's file in memory: 64 MiB.
pub const CACHE_BYTES: usize = 64 << 20;

/// In at most so many pairs the transactions of a store over data centers conflict. Each pair of a
/// transaction is one more key for each item that it uses, in what is certified.
pub const CONFLICTS_MAX: usize = 256;

/// After its disk failed, a store tries to open it again so often.
pub const REOPEN_EVERY: std::time::Duration = std::time::Duration::from_secs(1);

/// What became of a commit with an id is known for at least so long.
pub const OUTCOMES_KEPT: std::time::Duration = std::time::Duration::from_mins(10);

/// A commit with an id looks at so many outcomes of others, and removes those that are old.
pub const OUTCOMES_SWEPT: usize = 4;
