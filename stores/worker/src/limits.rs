//! The named bounds of this crate.

use std::time::Duration;

/// Connections to a worker are agreed upon within this time, unless the binding says otherwise.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// A worker answers within this time, unless the binding says otherwise. Whole phases may take
/// longer: their answers are asked for until the call's deadline.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// What a round trip is taken to last, unless the binding says otherwise.
pub const ROUND_TRIP: Duration = Duration::from_millis(50);

/// So many connections are kept open while nothing is asked.
pub const IDLE_MAX: usize = 32;

/// A connection that nothing was asked on for so long is not used again: the server may be about to
/// close it.
pub const IDLE_FOR: Duration = Duration::from_secs(10);

/// An answer has at most so many bytes: 64 MiB.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The pause before a lost answer is asked for again; it doubles.
pub const ASK_PAUSE_MIN: Duration = Duration::from_millis(5);

/// The longest of these pauses.
pub const ASK_PAUSE_MAX: Duration = Duration::from_millis(500);
