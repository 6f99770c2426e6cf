//! The Mingle language: from text to a checked, split program.
//!
//! The way of a program, each step in a module of its own:
//!
//! - [`syntax`]: text to tokens to a tree;
//! - [`mod@check`]: names and types, giving [`hir`], the unsplit program;
//! - [`flat`]: one effect a statement, variables followed assignment by assignment;
//! - [`flow`]: what influences what, and whether that is allowed;
//! - [`split`]: one phase for each store, and what they hand on;
//! - [`code`]: the instruction list;
//! - [`incremental`]: all of it again after an edit, without all of the work;
//! - [`insight`]: where statements run and what values depend on, for editors;
//! - [`names`]: which name stands for what, for editors;
//! - [`diagnostic`]: what is wrong, as data, and as text;
//! - [`mod@format`]: the tree as text again, laid out in the one way.
//!
//! Nothing here reads a file, a clock or the environment.

mod advice;
pub mod changes;
pub mod check;
pub mod code;
pub mod diagnostic;
pub mod explain;
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
pub use program::{Checked, EndorsementInfo, check, check_with};
