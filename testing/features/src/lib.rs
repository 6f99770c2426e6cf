//! Features of third-party crates, and nothing else.
//!
//! Cargo compiles a crate once for each set of features. The binaries that nobody publishes depend on this
//! crate, so that they ask for the set that the command line asks for: after `cargo xtask demo` the command
//! line compiles only crates that the demonstration does not have.
//!
//! Macros and build scripts run while others are compiled, and Cargo keeps their features apart from those of the
//! programs. What both use is asked for here on both sides, with the same features; `cargo xtask check` names a crate
//! that is compiled twice nevertheless.
