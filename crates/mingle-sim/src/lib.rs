//! Seeded simulation of transactions over the embedded engine.
//!
//! One seed decides everything: how many clients there are and what they call, how far the stores
//! are, which calls conflict or lose their answers, when callers go away, and which task runs
//! next. So a seed that fails can be run again, and fails again.
//!
//! - [`process`]: processes that die, networks that part, and schedules that shrink;
//! - [`world`]: the clock, the tasks and their order;
//! - [`mod@simulate`]: one seed, from its set-up to its verdict;
//! - [`covered`]: what it went through, in counters;
//! - [`check`]: what must hold afterwards;
//! - [`sabotage`]: faults that are planted to see that the checks notice.
//!
//! What [`mod@simulate`] simulates is what this version promises: it lets no process die yet.

pub mod check;
pub mod covered;
pub mod process;
pub mod sabotage;
pub mod simulate;
pub mod world;

pub use covered::Covered;
pub use sabotage::Sabotage;
pub use simulate::{Report, simulate, simulate_with};
pub use world::SimulatedWorld;
