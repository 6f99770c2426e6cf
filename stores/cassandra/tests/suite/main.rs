//! The adapter over real nodes.

mod conformance;
mod copies;
mod folding;
mod mapping;
mod operations;
mod start;
mod support;
