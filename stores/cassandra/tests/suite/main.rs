//! The adapter over real nodes.

mod conformance;
mod copies;
mod mapping;
mod operations;
mod support;
