//! A causal store over three servers.

mod alike;
mod cluster;
mod conformance;
mod faults;
mod histories;
mod opening;
