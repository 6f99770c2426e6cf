//! Stores around other stores: they add faults, counts, distances and histories to any adapter.
//!
//! - [`fault`]: conflicts, unavailability and lost answers, by a plan.
//! - [`count`]: the number of round trips of a program.
//! - [`distance`]: the duration of a round trip.
//! - [`history`]: the reads and writes of every transaction, for the checkers.
//! - [`checked`]: refuses all that does not fit the declarations.
//! - [`layer`]: the base of most of them, for further wrappers.

pub mod checked;
pub mod count;
pub mod distance;
pub mod fault;
pub mod history;
pub mod layer;
