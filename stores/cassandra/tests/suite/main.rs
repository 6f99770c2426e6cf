//! The adapter over real nodes.

mod conformance;
mod support;
