//! The named bounds of this crate.

use std::time::Duration;

/// The longest distance that makes sense.
pub const DISTANCE_MAX: Duration = Duration::from_hours(1);

/// The conformance suite tries one transaction at most so often before it says that the store
/// makes no progress.
pub const TRIES_MAX: u32 = 1_000;

/// One value, element or key takes at most this many bytes as text: 256 MiB.
pub const ENCODED_BYTES_MAX: usize = 256 << 20;
