//! Programs over real servers.

#[path = "../support/scenarios.rs"]
mod scenarios;

mod contest;
mod dying;
mod keys;
mod killed;
mod legacy;
mod matrix;
mod site;
