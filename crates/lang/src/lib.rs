//! The Mingle language: from text to a checked, split program.
//!
//! The stages of a program, each in its own module:
//!
//! - [`syntax`]: text to tokens to a tree;
//! - [`mod@check`]: names and types, giving [`hir`], the unsplit program;
//! - [`flat`]: at most one effect per statement, variables tracked assignment by assignment;
//! - [`flow`]: which data influences which effects, and whether the rules allow it;
//! - [`split`]: one phase per store visit, and the values that phases pass on;
//! - [`code`]: the instruction list;
//! - [`incremental`]: repeats these stages after an edit, and reuses earlier results;
//! - [`insight`]: the stores where statements run and the sources of values, for editors;
//! - [`names`]: the declaration that each name refers to, for editors;
//! - [`files`]: programs of several files;
//! - [`diagnostic`]: the program's mistakes, as data and as text;
//! - [`mod@format`]: prints the tree as text in the standard layout.
//!
//! Nothing here reads a file, a clock or the environment.

mod advice;
pub mod changes;
pub mod check;
pub mod code;
pub mod diagnostic;
pub mod explain;
pub mod files;
pub mod flat;
pub mod flow;
pub mod format;
pub mod generate;
pub mod hir;
pub mod incremental;
pub mod insight;
mod last;
pub mod names;
pub mod ops;
pub mod plain;
mod program;
pub mod split;
pub mod syntax;

pub use code::{Instr, Phase, Plan, Program};
pub use diagnostic::apply_edits;
pub use program::{Checked, EndorsementInfo, check, check_source, check_with};
