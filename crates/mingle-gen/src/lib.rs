//! Code in other languages for checked programs: the output of `mingle gen`, and the expansion of
//! the macro `mingle::program!`.
//!
//! - [`rust`]: types for objects and structs, a method for each transaction.
//! - `typescript`, `python`: clients that call a server by HTTP; with the feature `text`.
//! - `declared`: the declarations of a program, from its syntax tree.
//! - `lines`: text from outside within comments.
//! - `names`: names of a program as names of another language.
//! - [`Runtime`]: whether a client has its runtime in its file, or imports it from a package.
//! - `text`: pieces of text that generators share.
//!
//! Nothing here reads a file, a clock or the environment.

mod declared;
mod lines;
mod names;
#[cfg(feature = "text")]
pub mod python;
pub mod rust;
#[cfg(feature = "text")]
mod shared;
#[cfg(feature = "text")]
mod text;
#[cfg(feature = "text")]
pub mod typescript;

pub use lines::one_line;
#[cfg(feature = "text")]
pub use shared::Runtime;
