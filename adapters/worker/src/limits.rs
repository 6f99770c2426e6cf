//! The named bounds of this crate.

use std::time::Duration;

/// The longest time to connect to a worker, unless the binding sets another: 5 s.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// The longest wait for a worker's answer, unless the binding sets another: 10 s. Whole phases may
/// take longer: their answers are requested until the call's deadline.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The expected time of a round trip, unless the binding sets another: 50 ms.
pub const ROUND_TRIP: Duration = Duration::from_millis(50);

/// The most idle connections that are kept open.
pub const IDLE_MAX: usize = 32;

/// The idle time after which a connection is not used again: 10 s. The server may be about to close
/// it.
pub const IDLE_FOR: Duration = Duration::from_secs(10);

/// The most bytes of an answer: 64 MiB.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The pause before a lost answer is requested again; it doubles each time.
pub const ASK_PAUSE_MIN: Duration = Duration::from_millis(5);

/// The longest of these pauses.
pub const ASK_PAUSE_MAX: Duration = Duration::from_millis(500);
