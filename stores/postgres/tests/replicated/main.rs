//! A causal store over three servers.

#[path = "../support/mod.rs"]
mod support;

mod cluster;
mod conformance;
