//! The named bounds of this adapter.

use std::time::Duration;

/// One commit carries at most this many writes, flushed ones included: a script holds up everybody
/// else at its server.
pub const WRITES_MAX: usize = 100_000;

/// What one commit sends takes at most this many bytes: 256 MiB.
pub const COMMIT_BYTES_MAX: usize = 256 << 20;

/// One batch has at most this many reads.
pub const READS_MAX: usize = 100_000;

/// One transaction reads at most this many units.
pub const READ_SET_MAX: usize = 100_000;

/// A declared operation is at most this many words, once lists are spread: Lua's own bound is some
/// thousands.
pub const WORDS_MAX: usize = 4_000;

/// One `add` changes a counter by at most this much either way, so that a sum in 128 bits stays
/// exact for more adds than a store can hold: 2^90.
pub const ADD_MAX: i128 = 1 << 90;

/// How often a start tries again because another process changed the catalog at the same time.
pub const CATALOG_TRIES_MAX: u32 = 20;

/// The whole number that Lua holds exactly is smaller than this: 2^53.
pub const LUA_INT_END: i64 = 1 << 53;

/// After a connection could not be made, the next attempt is made no sooner than this.
pub const RECONNECT_AFTER: Duration = Duration::from_millis(20);
