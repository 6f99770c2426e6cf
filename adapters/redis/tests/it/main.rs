//! Tests of the adapter with real servers.

mod conflicts;
mod conformance;
mod costs;
mod crash;
mod hostile;
mod indexes;
mod indexing;
mod kept;
mod lost;
mod mapping;
mod migration;
mod operations;
mod ordered;
mod outcomes;
mod serial;
mod start;
mod support;
#[cfg(feature = "tls")]
mod tls;
mod whole;
