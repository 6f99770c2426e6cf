//! The records of a transaction at its stores, and the wait set.
//!
//! This part is pure: it has no stores, no clock, and no tasks. It turns decisions into records,
//! and records into decisions.

pub mod intent;
pub mod wait_set;
