//! A causal store over three servers.

#[path = "../support/mod.rs"]
mod support;

mod alike;
mod cluster;
mod conformance;
mod faults;
mod histories;
mod opening;
