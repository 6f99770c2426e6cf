//! Recorded runs of the geo-replicated store, checked promise by promise.
//!
//! The store is not asked how it works: a run is what its clients saw, what was done to it, and the
//! vectors that it says order its transactions. Those are a witness: the checkers see whether they
//! make a causal order, and whether that order explains every value that was read.
//!
//! - [`history`]: recorded runs; [`vector`]: vectors of timestamps.
//! - [`check()`]: the check of all promises, or of some; [`Report`] and [`Problem`] are its answers.
//! - `index` makes a run ready; `values` is the meaning of the data types, from what is visible.
//! - One module for each promise: `order` (causality, versions), `explain` (values read), `registers`
//!   (without vectors), `atomic`, `visible` (the end), `uniform` (losses, migration), `cuts` (who was given up), `live`,
//!   `ids`,
//!   `strong` (conflicts, strict serializability, invariants).
//! - `conflict`: which strong transactions conflict.

mod atomic;
mod check;
mod conflict;
mod cuts;
mod explain;
pub mod history;
mod ids;
mod index;
mod item;
mod live;
mod order;
mod problem;
mod registers;
mod strong;
mod uniform;
mod values;
pub mod vector;
mod visible;

pub use check::{Counts, Report, check, check_some};
pub use conflict::{Conflicts, Strong};
pub use history::{
    Action, Admission, Attached, Call, Claim, Commit, Content, Cut, End, Fault, FaultKind, Floor,
    Item, ItemKind, Loss, Op, OpId, Outcome, Run, Session, Sighting, System, Transaction, View,
    What,
};
pub use problem::{Problem, Promise};
pub use vector::{DCS_MAX, STRONG, Vector};
