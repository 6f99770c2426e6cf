//! The named bounds on queues, batches and sizes.

/// The maximum number of items that a transaction changes.
pub const UPDATES_MAX: usize = 10_000;

/// The maximum number of keys of one partition in a read.
pub const READ_KEYS_MAX: usize = 10_000;

/// The maximum number of requests that wait at one replica; more are refused.
pub const WAITERS_MAX: usize = 10_000;

/// The maximum number of transactions in one REPLICATE message.
pub const BATCH_TRANSACTIONS_MAX: usize = 1_000;

/// The approximate maximum number of transaction bytes in one REPLICATE message; it may hold one
/// larger transaction.
pub const BATCH_BYTES_MAX: usize = 1 << 20;

/// The maximum number of batches sent to one data center in one tick.
pub const BATCHES_PER_TICK_MAX: usize = 4;

/// The maximum number of items in one message of a state transfer.
pub const TRANSFER_ITEMS_MAX: usize = 4_000;

/// The maximum number of items per second that a replica sends in state transfers, to all receivers
/// together; after a pause it may send [`TRANSFER_ITEMS_MAX`] more at once. The limit protects the
/// replica's other clients.
pub const TRANSFER_ITEMS_PER_S: u64 = 8_000;

/// The minimum number of items in an answer to a pull, unless fewer remain: the pull waits until so
/// many may be sent.
pub const TRANSFER_ITEMS_MIN: usize = 100;

/// The approximate maximum number of item bytes in one message of a state transfer; it may hold one
/// larger item.
pub const TRANSFER_BYTES_MAX: usize = 1 << 20;

/// The maximum number of items folded in one tick.
pub const FOLDS_PER_TICK_MAX: usize = 200;

/// The maximum number of items checked per tick for operation ids to forget, among items that hold
/// only ids.
pub const FORGETS_PER_TICK_MAX: usize = 20;

/// An item with more operations than this in its log is folded at its next change.
pub const FOLD_OPERATIONS: usize = 64;

/// The maximum number of a session's own commits that it remembers while they are not known to be
/// uniform. Of older ones it knows only that some exist.
pub const FRESH_COMMITS_MAX: usize = 1_000;

/// The maximum step, in microseconds, of the ceiling of a clock that is ahead of the machine's
/// clock.
pub const CEILING_STEP_US: u64 = 10_000;

/// The maximum number of times that a data center can lose its disks. The leader election of a
/// group keeps a table that grows by a few bytes with each loss.
pub const INCARNATION_MAX: u32 = 10_000;
