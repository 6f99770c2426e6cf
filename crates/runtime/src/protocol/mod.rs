//! The records of a transaction at its stores, and the wait set.
//!
//! This part is pure: it has no stores, no clock, and no tasks. It turns decisions into records,
//! and records into decisions.

pub mod call_key;
pub(crate) mod commit_witness;
pub(crate) mod floor;
pub(crate) mod held;
pub mod intent;
pub(crate) mod leans;
pub(crate) mod pinned_answers;
pub(crate) mod role;
pub mod wait_set;
pub(crate) mod witness_rows;
