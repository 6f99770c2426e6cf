//! Stores around other stores: they add faults, counts, distances and histories to any adapter.
//!
//! - [`fault`]: conflicts, unavailability and lost answers, by a plan.
//! - [`count`]: how many round trips a program takes.
//! - [`distance`]: what a round trip takes.
//! - [`history`]: what every transaction read and wrote, for the checkers.
//! - [`checked`]: nothing that does not fit the declarations.
//! - [`layer`]: what most of them share, to make more of them with.

pub mod checked;
pub mod count;
pub mod distance;
pub mod fault;
pub mod history;
pub mod layer;
