//! The named bounds of this adapter.

use std::time::Duration;

/// One commit carries at most this many writes, flushed ones included.
pub const WRITES_MAX: usize = 100_000;

/// One batch has at most this many reads.
pub const READS_MAX: usize = 100_000;

/// One query asks for at most this many elements.
pub const ELEMENTS_MAX: usize = 100;

/// Queries of one batch under way at once.
pub const AT_ONCE: usize = 64;

/// The length of a value, 16 KiB, above which it is in chunks of its own. By default a server
/// refuses batches of more than 50 KiB over several partitions.
pub const INLINE_BYTES_MAX: usize = 16 << 10;

/// The length of a chunk: 256 KiB, far below the 16 MiB that a server takes at once.
pub const CHUNK_BYTES: usize = 256 << 10;

/// The approximate size of a logged batch over several partitions, 32 KiB, so that servers with
/// their default bound of 50 KiB take it.
pub const BATCH_BYTES_MAX: usize = 32 << 10;

/// The approximate size of a batch of one partition: 4 MiB.
pub const PARTITION_BYTES_MAX: usize = 4 << 20;

/// A batch has at most this many statements: the protocol has two bytes for their number.
pub const STATEMENTS_MAX: usize = 30_000;

/// The length of an object's key above which its digest names the object: 8 KiB, of the 64 KiB that
/// the key of a partition can have.
pub const KEY_BYTES_MAX: usize = 8 << 10;

/// The length of an element, 1 KiB, above which its digest names it.
pub const ELEMENT_BYTES_MAX: usize = 1 << 10;

/// The greatest amount of one `add`, in either direction: 2^90. So a sum in 128 bits stays exact
/// for more adds than a store can hold.
pub const ADD_MAX: i128 = 1 << 90;

/// Commits with lost answers that a process remembers, to finish them when asked.
pub const REMEMBERED_MAX: usize = 1_000;

/// The number of old rows found in a read from which a counter is folded.
pub const FOLD_ROWS_MIN: usize = 200;

/// The most rows of a counter that are folded at once.
pub const FOLD_ROWS_MAX: usize = 5_000;

/// The age from which rows are folded: 10 minutes.
pub const FOLD_AFTER: Duration = Duration::from_mins(10);

/// The time within which an abandoned write can still be carried out: 1 minute. A coordinator that
/// dies leaves its batch to other nodes, which look every ten seconds.
pub const LATE_WRITES: Duration = Duration::from_mins(1);

/// The age of an intention to fold from which it counts as abandoned; a folder gives up after half
/// of it.
pub const INTENTION_AGE_MAX: Duration = Duration::from_hours(1);

/// The rows that a query requests at once.
pub const PAGE_ROWS: i32 = 2_000;

/// The most tries of a start when other processes change the catalog at the same time.
pub const CATALOG_TRIES_MAX: u32 = 20;

/// The wait before a lost request is sent again: 20 ms, doubled each time.
pub const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// The longest wait before commit witnesses that could not be written are tried again: 5 s.
pub const TRAILING_AGAIN_MAX: Duration = Duration::from_secs(5);

/// The number of pending commit witnesses from which a commit waits for them.
pub const TRAILING_MAX: usize = 1_000;

/// The time after a write of commit witnesses for which others are gathered before the next write:
/// 25 ms.
pub const TRAILING_GATHERED_FOR: Duration = Duration::from_millis(25);

/// The time for which a process relies on having found no commands: 500 ms.
pub const COMMANDS_RULED_OUT_FOR: Duration = Duration::from_millis(500);

/// The wait of the first process with commands before its first command: 1 s. It is twice the time
/// for which other processes rely on having found none, since clocks differ.
pub const COMMANDS_AFTER: Duration = Duration::from_secs(1);

/// The number of one origin's transactions whose records are in one partition.
pub const BLOCK_IDS: u64 = 1_024;

/// The time for which a registered block counts as registered; after it the block is registered
/// again.
pub const REGISTERED_FOR: Duration = Duration::from_secs(30);

/// The age of a registration from which a block without rows is forgotten, once its transactions
/// are over.
pub const FORGOTTEN_AFTER: Duration = Duration::from_mins(2);

/// The most registered blocks that a process remembers.
pub const REGISTERED_MAX: usize = 10_000;

/// The number of blocks read before checking if more are needed.
pub const BLOCKS_AT_ONCE: usize = 16;

/// One query asks for at most this many records.
pub const RECORDS_MAX: usize = 256;
