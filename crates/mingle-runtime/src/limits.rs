//! The bounds that a run keeps to.

use std::time::Duration;

/// How long a call may take, and what it may use until its first commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Conflicts are retried for so long.
    pub deadline: Duration,
    /// Instructions up to the end of the first phase that writes.
    pub steps_max: u64,
    /// Bytes of values that are read, recorded or written up to the end of that phase.
    pub memory_bytes_max: usize,
    /// The first pause after a conflict; it doubles, with jitter.
    pub backoff_min: Duration,
    /// The longest pause after a conflict.
    pub backoff_max: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(10),
            steps_max: 200_000_000,
            memory_bytes_max: 1 << 30,
            backoff_min: Duration::from_millis(1),
            backoff_max: Duration::from_millis(500),
        }
    }
}
