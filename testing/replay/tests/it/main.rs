//! The promises of the store, tested through its interface.

mod conformance;
mod interface;
mod oracle;
mod partition;
mod sequential;
mod support;
