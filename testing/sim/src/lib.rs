//! Seeded simulation of transactions over stores of several engines.
//!
//! One seed decides everything: the number of clients and their calls, the distances of the stores,
//! the calls that conflict or lose their answers, the times of deaths and partitions, and the order
//! of tasks. So a seed that fails can be run again, and fails again.
//!
//! - [`workload`]: the simulated system and the promises that must hold;
//! - [`process`]: processes that die, networks that part, and schedules that shrink;
//! - [`world`]: the clock, the tasks and their order;
//! - [`series`]: seed after seed;
//! - [`recorded`]: converts a store's recorded events to a history that can be checked;
//! - [`flaw`], [`sabotage`]: planted faults that the checks must detect.

pub mod cops;
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
