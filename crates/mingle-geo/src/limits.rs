//! The named bounds on queues, batches and sizes.

/// A transaction changes at most this many items.
pub const UPDATES_MAX: usize = 10_000;

/// A read names at most this many keys of one partition.
pub const READ_KEYS_MAX: usize = 10_000;

/// At most this many requests wait at one replica; more are refused.
pub const WAITERS_MAX: usize = 10_000;

/// One message replicates at most this many transactions.
pub const BATCH_TRANSACTIONS_MAX: usize = 1_000;

/// One message replicates at most about this many bytes of transactions, or one transaction.
pub const BATCH_BYTES_MAX: usize = 1 << 20;

/// At most this many batches go to one data center in one tick.
pub const BATCHES_PER_TICK_MAX: usize = 4;

/// One message of a state transfer carries at most this many items.
pub const TRANSFER_ITEMS_MAX: usize = 4_000;

/// A replica sends at most this many items a second in state transfers, to all receivers together,
/// and after a while without any [`TRANSFER_ITEMS_MAX`] more: the others are to notice little.
pub const TRANSFER_ITEMS_PER_S: u64 = 8_000;

/// Fewer items are not sent for one pull while there are more: it waits until so many may be sent.
pub const TRANSFER_ITEMS_MIN: usize = 100;

/// One message of a state transfer carries at most about this many bytes of items, or one item.
pub const TRANSFER_BYTES_MAX: usize = 1 << 20;

/// At most this many items are folded in one tick.
pub const FOLDS_PER_TICK_MAX: usize = 200;

/// At most this many items that only remember operation ids are looked at in one tick, for ids to forget.
pub const FORGETS_PER_TICK_MAX: usize = 20;

/// An item with more operations than this in its log is folded when it is next changed.
pub const FOLD_OPERATIONS: usize = 64;

/// A session remembers at most this many commits of its own that are not known to be uniform; of
/// older ones it knows only that there are some.
pub const FRESH_COMMITS_MAX: usize = 1_000;

/// The ceiling of a clock that is ahead of the machine's is raised by at most so many microseconds.
pub const CEILING_STEP_US: u64 = 10_000;

/// A data center loses its disks at most so many times: what elects a group's leader keeps a table that
/// is longer by a few bytes for each.
pub const INCARNATION_MAX: u32 = 10_000;
