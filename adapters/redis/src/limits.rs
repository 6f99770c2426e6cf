//! The named bounds of this adapter.

use std::time::Duration;

/// Maximum number of writes in one commit, including flushed writes: a script blocks all other
/// clients of its server.
pub const WRITES_MAX: usize = 100_000;

/// Maximum size of one commit's request: 256 MiB.
pub const COMMIT_BYTES_MAX: usize = 256 << 20;

/// Maximum number of reads in one batch.
pub const READS_MAX: usize = 100_000;

/// Maximum number of units that one transaction reads.
pub const READ_SET_MAX: usize = 100_000;

/// Maximum number of words of a declared operation, with its lists expanded: Lua's own bound is a
/// few thousand.
pub const WORDS_MAX: usize = 4_000;

/// Maximum change of a counter by one `add`, in either direction: 2^90. A sum in 128 bits then
/// stays exact for more adds than a store can hold.
pub const ADD_MAX: i128 = 1 << 90;

/// Maximum number of objects that one step of making an index gives their entries: a script blocks all other clients of its server.
pub const INDEX_BATCH: usize = 200;

/// The number of keys for which one `SCAN` asks when indexes are made. The server answers all other clients between two
/// of these.
pub const INDEX_SCAN: &str = "500";

/// The number of entries that a search for objects with the same values asks for at once.
pub const INDEX_PAGE: usize = 1_000;

/// Pause between two looks at an index that another process makes.
pub const INDEX_PAUSE: Duration = Duration::from_millis(50);

/// The number of pauses without progress after which an index that another process makes is made by this one.
pub const INDEX_PAUSES_MAX: u32 = 100;

/// Maximum number of attempts to make an index while other processes make others.
pub const INDEX_TRIES_MAX: u32 = 20;

/// Maximum number of attempts at the start while other processes change the catalog.
pub const CATALOG_TRIES_MAX: u32 = 20;

/// Lua holds whole numbers below this bound exactly: 2^53.
pub const LUA_INT_END: i64 = 1 << 53;

/// Minimum pause after a failed connection attempt.
pub const RECONNECT_AFTER: Duration = Duration::from_millis(20);

/// The number of keys for which one `SCAN` of a sample asks. The server answers all other clients between two of these.
pub const SAMPLE_SCAN: &str = "500";

/// The number of keys that one request of a sample looks at.
pub const SAMPLE_BATCH: usize = 100;

/// The number of items of a hash, set or list that a sample looks at; the server may give more of a small one.
pub const SAMPLE_ITEMS: &str = "50";

/// The number of bytes of a string that a sample looks at.
pub const SAMPLE_STRING_BYTES: usize = 16 << 10;
