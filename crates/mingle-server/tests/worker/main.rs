//! Phases that run beside a distant store, over real connections.

mod bounds;
mod faults;
mod programs;
mod replicas;
mod site;
mod trips;
