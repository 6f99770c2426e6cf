//! Programs over real servers.

#[path = "../support/scenarios.rs"]
mod scenarios;

mod matrix;
mod site;
