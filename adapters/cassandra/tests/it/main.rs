//! The adapter over real nodes.

mod changing;
mod commands;
mod conformance;
mod copies;
mod folding;
mod held;
mod hostile;
mod listing;
mod lost;
mod mapping;
mod native;
mod operations;
mod secure;
mod start;
mod support;
