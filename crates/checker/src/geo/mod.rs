//! Recorded runs of the geo-replicated store, checked promise by promise.
//!
//! The checkers do not depend on the store's design: a run has the observations of its clients, the
//! faults injected, and the vectors by which the store orders its transactions. The vectors are a
//! witness: the checkers test if they make a causal order, and if that order explains every value
//! that was read.
//!
//! - [`history`]: recorded runs; [`vector`]: vectors of timestamps.
//! - [`check()`]: the check of all promises, or of some; [`Report`] and [`Problem`] are its
//!   answers.
//! - `index` prepares a run; `values` defines the data types, from the visible operations, and `any`
//!   the items of any type, which may expire.
//! - One module for each promise: `order` (causality, versions), `explain` (values read),
//!   `registers` (without vectors), `atomic`, `visible` (the end), `uniform` (losses, migration),
//!   `cuts` (data centers given up), `live`, `ids`, `strong` (conflicts, strict serializability,
//!   invariants).
//! - `conflict`: conflicts between strong transactions.

mod any;
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
mod process;
mod registers;
mod strong;
mod uniform;
mod values;
pub mod vector;
mod visible;

pub use any::{Body, Element, ItemOp, Place, Side};
pub use check::{Counts, Report, check, check_some};
pub use conflict::{Conflicts, Strong};
pub use history::{
    Action, Admission, Attached, Call, Claim, Commit, Content, Cut, End, Fault, FaultKind, Floor,
    Item, ItemKind, Loss, Op, OpId, Outcome, Run, Session, Sighting, System, Transaction, View,
    What,
};
pub use problem::{Problem, Promise};
pub use vector::{DCS_MAX, STRONG, Vector};
