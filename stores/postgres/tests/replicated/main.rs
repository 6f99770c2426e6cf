//! A causal store over three servers.

#[path = "../support/mod.rs"]
mod support;

mod cluster;
mod conformance;
mod faults;
mod histories;
mod opening;
