//! The named bounds of this adapter.

use std::time::Duration;

/// One commit carries at most this many writes, flushed ones included.
pub const WRITES_MAX: usize = 100_000;

/// One batch has at most this many reads.
pub const READS_MAX: usize = 100_000;

/// One query asks for at most this many elements.
pub const ELEMENTS_MAX: usize = 100;

/// So many queries of one batch are under way at once.
pub const AT_ONCE: usize = 64;

/// What is longer stands in chunks of its own: 16 KiB. A server refuses batches over several
/// partitions beyond 50 KiB, unless it is set otherwise.
pub const INLINE_BYTES_MAX: usize = 16 << 10;

/// One chunk: 256 KiB, far below the 16 MiB that a server takes at once.
pub const CHUNK_BYTES: usize = 256 << 10;

/// A logged batch over several partitions takes about this many bytes, so that servers with their
/// own bound of 50 KiB take it.
pub const BATCH_BYTES_MAX: usize = 32 << 10;

/// A batch of one partition takes about this many bytes.
pub const PARTITION_BYTES_MAX: usize = 4 << 20;

/// A batch has at most this many statements: its length stands in two bytes.
pub const STATEMENTS_MAX: usize = 30_000;

/// What is longer names an object by its digest: 8 KiB of the 64 that a partition's key can have.
pub const KEY_BYTES_MAX: usize = 8 << 10;

/// What is longer names an element by its digest.
pub const ELEMENT_BYTES_MAX: usize = 1 << 10;

/// One `add` changes a counter by at most this much either way, so that a sum in 128 bits stays
/// exact for more adds than a store can hold: 2^90.
pub const ADD_MAX: i128 = 1 << 90;

/// So many commits whose answers were lost are remembered, to finish them when asked.
pub const REMEMBERED_MAX: usize = 1_000;

/// A counter is folded once a read finds so many old rows of it.
pub const FOLD_ROWS_MIN: usize = 200;

/// So many of a counter's rows are folded at once.
pub const FOLD_ROWS_MAX: usize = 5_000;

/// How old rows are that are folded: 10 minutes.
pub const FOLD_AFTER: Duration = Duration::from_mins(10);

/// How long what a client has given up may take to be carried out: a coordinator that dies leaves
/// its batch to others, who look every ten seconds.
pub const LATE_WRITES: Duration = Duration::from_mins(1);

/// After so long an intention to fold is taken for left behind; a folder gives up after half of it.
pub const INTENTION_AGE_MAX: Duration = Duration::from_hours(1);

/// Rows that a query asks for at once.
pub const PAGE_ROWS: i32 = 2_000;

/// How often a start tries again because another process changed the catalog at the same time.
pub const CATALOG_TRIES_MAX: u32 = 20;

/// What was lost on its way is sent again after so long at first, and after twice that each time.
pub const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Commit witnesses that could not be written are tried again after so long at most: 5 s.
pub const TRAILING_AGAIN_MAX: Duration = Duration::from_secs(5);

/// With so many commit witnesses on their way a commit waits for them.
pub const TRAILING_MAX: usize = 1_000;

/// After a commit witness was written others are gathered for so long, before they are written too.
pub const TRAILING_GATHERED_FOR: Duration = Duration::from_millis(25);

/// Who has looked and found no commands goes by that for so long: 500 ms.
pub const COMMANDS_RULED_OUT_FOR: Duration = Duration::from_millis(500);

/// Who is the first to have commands waits for so long before the first one. Twice as long as others
/// may go by what they have found, since clocks differ.
pub const COMMANDS_AFTER: Duration = Duration::from_secs(1);

/// The records of so many transactions of one origin stand in one partition.
pub const BLOCK_IDS: u64 = 1_024;

/// A block that was written down is taken to stand there for so long, after which it is written down anew.
pub const REGISTERED_FOR: Duration = Duration::from_secs(30);

/// A block without rows that was written down so long ago is forgotten, once its transactions are over.
pub const FORGOTTEN_AFTER: Duration = Duration::from_mins(2);

/// So many blocks that were written down are remembered.
pub const REGISTERED_MAX: usize = 10_000;

/// So many blocks are read one after the other before it is looked whether that is enough.
pub const BLOCKS_AT_ONCE: usize = 16;

/// One query asks for at most this many records.
pub const RECORDS_MAX: usize = 256;
