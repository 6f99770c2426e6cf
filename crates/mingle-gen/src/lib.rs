//! Code in other languages for checked programs: what `mingle gen` writes, and what the macro
//! `mingle::program!` expands to.
//!
//! - [`rust`]: types for objects and structs, a method for each transaction.
//!
//! Nothing here reads a file, a clock or the environment.

pub mod rust;
