//! The adapter over real nodes.

mod conformance;
mod copies;
mod operations;
mod support;
