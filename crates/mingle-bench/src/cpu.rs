//! Processor time of this process.

use rustix::time::{ClockId, clock_gettime};

/// Processor time of all threads so far, in seconds, to the nanosecond. What `/proc` says is only as
/// new as the scheduler's last look at a thread.
pub fn used() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
