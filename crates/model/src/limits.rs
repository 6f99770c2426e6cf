//! The named bounds on sizes (language reference, "Values and objects").

/// A `string` or `bytes` value holds at most this many bytes: 16 MiB.
pub const STRING_BYTES_MAX: usize = 16 << 20;

/// A `list` holds at most this many items.
pub const LIST_ITEMS_MAX: usize = 1_000_000;

/// A page of an index holds at most this many refs.
pub const INDEX_PAGE_MAX: usize = 10_000;

/// A count over an index stops at this number.
pub const INDEX_COUNT_MAX: usize = 1_000_000;

/// An index has at most this many fields.
pub const INDEX_FIELDS_MAX: usize = 8;

/// A value holds at most about this many bytes, all that is in it included, wherever it is shared.
pub const VALUE_BYTES_MAX: usize = 256 << 20;

/// Lists, options and structs stand in each other at most this deep.
pub const VALUE_DEPTH_MAX: usize = 100;

/// Values that stand in each other deeper than this are refused when they are read from bytes, refs
/// counted too: reading them takes stack.
pub const DECODED_DEPTH_MAX: usize = 256;

/// JSON that is nested deeper than this is refused.
pub const JSON_DEPTH_MAX: usize = 100;

/// A number in a `json` value has at most this many digits before its point, and as many after it: enough for every
/// `f64`.
pub const JSON_DIGITS_MAX: usize = 400;

/// The largest `int` that JSON shows as a number; beyond it stands a string: 2^53.
pub const JSON_NUMBER_MAX: i64 = 1 << 53;

/// Bytes of the name of a principal.
pub const PRINCIPAL_BYTES_MAX: usize = 256;
