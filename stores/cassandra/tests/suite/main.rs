//! The adapter over real nodes.

mod conformance;
mod copies;
mod folding;
mod mapping;
mod operations;
mod secure;
mod start;
mod support;
