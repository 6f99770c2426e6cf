//! The named bounds on sizes (language reference, "Values and objects").

/// A `string` or `bytes` value holds at most this many bytes: 16 MiB.
pub const STRING_BYTES_MAX: usize = 16 << 20;

/// A `list` holds at most this many items.
pub const LIST_ITEMS_MAX: usize = 1_000_000;

/// JSON that is nested deeper than this is refused.
pub const JSON_DEPTH_MAX: usize = 100;

/// The largest `int` that JSON shows as a number; beyond it stands a string: 2^53.
pub const JSON_NUMBER_MAX: i64 = 1 << 53;
