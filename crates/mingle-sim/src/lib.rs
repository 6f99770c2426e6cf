//! Seeded simulation of transactions over stores of several engines.
//!
//! One seed decides everything: how many clients there are and what they call, how far the stores
//! are, which calls conflict or lose their answers, when processes die and networks part, and
//! which task runs next. So a seed that fails can be run again, and fails again.
//!
//! - [`workload`]: what is simulated, and what must hold of it;
//! - [`process`]: processes that die, networks that part, and schedules that shrink;
//! - [`world`]: the clock, the tasks and their order;
//! - [`series`]: seed after seed;
//! - [`recorded`]: what a store's recorder has seen as a history that can be checked;
//! - [`flaw`], [`sabotage`]: faults that are planted to see that the checks notice.

pub mod flaw;
pub mod geo;
pub mod process;
pub mod recorded;
pub mod sabotage;
pub mod series;
pub mod workload;
pub mod world;

pub use flaw::Flaw;
pub use sabotage::Sabotage;
pub use world::SimulatedWorld;
