//! The Mingle language: from text to a checked, split program.

pub mod diagnostic;
pub mod format;
pub mod syntax;
