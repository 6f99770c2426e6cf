//! Code in other languages for checked programs: the output of `mingle gen`, and the expansion of
//! the macro `mingle::program!`.
//!
//! - [`rust`]: types for objects and structs, a method for each transaction.
//! - `typescript`, `python`, `go`: clients that call a server by HTTP; with the feature `text`.
//! - `declared`: the declarations of a program, from its syntax tree.
//! - `lines`: text from outside within comments.
//! - `names`: conversion of a program's names to names of another language.
//! - [`Runtime`]: the place of a client's runtime code: its own file, or a package.
//! - `text`: pieces of text shared by the generators.
//!
//! Nothing here reads a file, a clock or the environment.

mod declared;
#[cfg(feature = "text")]
pub mod go;
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
